/*
 * Gives the spans of the receiver to the store, and checks them against the slow rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_in.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "receiver.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"

#include <stdlib.h>

#define STORE_BYTES   (UINT64_C(64) << 20)
#define MESSAGE_BYTES (UINT64_C(8) << 20)
#define CONNECTIONS   256
#define REFRESH_MS    1000

struct otlp_in {
    struct loop *loop;
    struct otlp_in_callbacks callbacks;
    uint64_t spans_per_s; /* of one sender; 0: no limit */
    int64_t now_ns;       /* when the spans of `message` were received */
    struct receiver_message *message;
    struct otlp_peers peers;
    struct slow_spans slow;
    struct receiver *receiver;
    struct timer refresh;
};

/* ---- spans in -------------------------------------------------------------------------------- */

/* Returns 0 if the sender has an allowance, else the seconds until then. One message may exceed the
 * allowance. */
static unsigned otlp_in_busy_s(void *context, struct otlp_peer *peer)
{
    const struct otlp_in *in = context;
    const double rate = (double)in->spans_per_s;
    const int64_t now_ms = clock_ms();

    if (rate == 0)
        return 0;
    peer->allowance += (double)(now_ms - peer->allowed_ms) * rate / 1000;
    if (peer->allowance > rate)
        peer->allowance = rate;
    peer->allowed_ms = now_ms;
    return peer->allowance > 0 ? 0 : 1 + (unsigned)(-peer->allowance / rate);
}

/* The senders of recent alarms share the limit of the rules. */
static void otlp_in_alarm(struct otlp_in *in, unsigned rule, const struct otlp_span *span)
{
    struct otlp_peer *peer = in->message->sender;
    const uint64_t now_ns = (uint64_t)clock_ns();
    const struct otlp_peer *other;
    bool is_given;

    peer->alarms.period_ns = in->slow.rules.cap_period_ns;
    cds_list_for_each_entry(other, &in->peers.list, in_list)
    {
        if (other != peer && other->alarms.next_ns > now_ns)
            peer->alarms.period_ns += in->slow.rules.cap_period_ns;
    }
    is_given = slow_spans_give(&in->slow, rule, &peer->alarms, span);
    peer->counts.alarms += is_given;
    peer->counts.alarms_held_back += !is_given;
}

static void otlp_in_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    struct otlp_in *in = context;
    struct otlp_peer *peer = in->message->sender;
    unsigned rule;

    /* a span that is refused gives no alarm */
    if (in->callbacks.span && in->callbacks.span(in->callbacks.context, origin, span)) {
        peer->counts.spans_passed_on++;
    } else if (!sdk_store_add(peer->store, origin, span, in->now_ns)) {
        in->message->too_large++;
        return;
    }
    rule = slow_spans_find(&in->slow, origin, span);
    if (rule != BLKIN_SLOW_NO_RULE)
        otlp_in_alarm(in, rule, span);
}

/* a step ends after this time, so that other work of the loop can run */
#define STEP_NS     INT64_C(5000000)
#define STEP_FIELDS 256

static bool otlp_in_take_message(void *context, struct receiver_message *message)
{
    struct otlp_in *in = context;
    struct otlp_peer *peer = message->sender;
    const struct receiver_message before = *message;
    const struct otlp_decoded *decoded = &message->decoding.decoded;
    const int64_t begun_ns = clock_ns();
    bool has_more;

    in->now_ns = wall_clock_ns();
    in->message = message;
    sdk_store_begin(peer->store);
    do
        has_more = otlp_decode_some(&message->decoding, STEP_FIELDS, otlp_in_take_span, in);
    while (has_more && clock_ns() - begun_ns < STEP_NS);
    peer->counts.spans_in += decoded->spans - before.decoding.decoded.spans;
    peer->counts.spans_invalid += decoded->invalid - before.decoding.decoded.invalid;
    peer->counts.spans_too_large += message->too_large - before.too_large;
    peer->allowance -= (double)(decoded->spans - before.decoding.decoded.spans);
    return has_more;
}

/* ---- spans out ------------------------------------------------------------------------------- */

void otlp_in_take(const struct otlp_in *in, struct sdk_wanted *wanted, otlp_span_fn *call,
                  void *context)
{
    sdk_memory_take(&in->peers.memory, wanted, call, context);
}

void otlp_in_copy(const struct otlp_in *in, int64_t from_ns, int64_t until_ns, otlp_span_fn *call,
                  void *context)
{
    sdk_memory_copy(&in->peers.memory, from_ns, until_ns, call, context);
}

/* ---- counts ---------------------------------------------------------------------------------- */

#define TOTAL(name, help)                               \
    {                                                   \
#name, offsetof(struct otlp_counts, name), help \
    }

static const struct total otlp_in_totals[] = {
    TOTAL(requests, "Requests that came."),
    TOTAL(requests_taken, "Requests whose spans were accepted."),
    TOTAL(requests_cut_off, "Requests whose sender went away or took too long."),
    TOTAL(refused_page, "Requests with another path or method, or from a web page."),
    TOTAL(refused_type,
          "Requests that are not protobuf, or compressed by something else than gzip."),
    TOTAL(refused_too_large, "Requests that are too large."),
    TOTAL(refused_broken, "Requests that are not OTLP."),
    TOTAL(refused_rate, "Requests beyond the limit of spans per second."),
    TOTAL(refused_memory, "Requests for which there was no memory."),
    TOTAL(connections, "Connections that came."),
    TOTAL(hung_up, "Connections that were too many or took too long."),
    TOTAL(bytes, "Bytes of requests, as they came over the network."),
    TOTAL(spans_in, "Spans that came."),
    TOTAL(spans_invalid, "Spans that were refused because they have no ids."),
    TOTAL(spans_too_large, "Spans that were refused as too large."),
    TOTAL(spans_passed_on, "Spans that were sent at once (send = all)."),
    TOTAL(spans_overwritten, "Spans in memory that newer ones have overwritten."),
    TOTAL(alarms, "Spans that were slow or failed."),
    TOTAL(alarms_held_back, "Alarms that the limit of the rules held back."),
};

static const struct totals_table otlp_in_table = {
    "agent_otlp", otlp_in_totals, sizeof(otlp_in_totals) / sizeof(otlp_in_totals[0])};

struct sdk_held otlp_in_held(const struct otlp_in *in)
{
    return sdk_memory_held(&in->peers.memory);
}

const char *otlp_in_url(const struct otlp_in *in)
{
    return receiver_url(in->receiver);
}

static json_t *otlp_in_peers_json(const struct otlp_in *in)
{
    json_t *list = json_array();
    const struct otlp_peer *peer;

    cds_list_for_each_entry(peer, &in->peers.list, in_list)
    {
        const struct otlp_counts counts = otlp_peer_counts(peer);
        const struct sdk_held held = sdk_store_held(peer->store);

        (void)json_array_append_new(
            list,
            json_pack("{ss, sI, sI, sI, sI, so}", "sender", peer->name, "connections",
                      (json_int_t)peer->sender.connections, "body_bytes",
                      (json_int_t)peer->body_bytes, "spans", (json_int_t)held.spans, "bytes",
                      (json_int_t)held.bytes, "counts", totals_own_json(&otlp_in_table, &counts)));
    }
    return list;
}

json_t *otlp_in_json(const struct otlp_in *in)
{
    const struct otlp_counts counts = otlp_peers_counts(&in->peers);
    const struct sdk_held held = otlp_in_held(in);

    return json_pack("{ss, ss, s{sI, sI, sI, so, so}, so, so, so}", "url", otlp_in_url(in),
                     "socket", receiver_socket(in->receiver), "held", "spans",
                     (json_int_t)held.spans, "traces", (json_int_t)held.traces, "bytes",
                     (json_int_t)held.bytes, "came_after", json_time(held.came_ns), "ended_after",
                     json_time(held.ended_ns), "slow", slow_spans_json(&in->slow), "counts",
                     totals_own_json(&otlp_in_table, &counts), "senders", otlp_in_peers_json(in));
}

void otlp_in_print(const struct otlp_in *in, struct printer *printer)
{
    const struct otlp_counts counts = otlp_peers_counts(&in->peers);

    totals_own_print(printer, &otlp_in_table, &counts);
    print_metric(printer, "blkin_agent_otlp_held_spans", "gauge", "Spans that are held in memory.",
                 otlp_in_held(in).spans);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void otlp_in_refresh(void *context)
{
    struct otlp_in *in = context;

    timer_set(in->loop, &in->refresh, REFRESH_MS);
    slow_spans_refresh(&in->slow);
}

static uint64_t otlp_in_or_default(uint64_t value, uint64_t none)
{
    return value ? value : none;
}

void otlp_in_reload(struct otlp_in *in, const struct otlp_in_options *options)
{
    struct otlp_peer *peer;

    receiver_limit(in->receiver, otlp_in_or_default(options->message_bytes, MESSAGE_BYTES),
                   otlp_in_or_default(options->connections, CONNECTIONS));
    in->spans_per_s = options->spans_per_s;
    cds_list_for_each_entry(peer, &in->peers.list, in_list) peer->allowance =
        (double)options->spans_per_s;
}

struct otlp_in *otlp_in_open(struct loop *loop, const struct otlp_in_options *options,
                             const struct otlp_in_callbacks *callbacks, struct error *error)
{
    struct otlp_in *in = calloc(1, sizeof(*in));
    struct receiver_calls calls = {otlp_in_busy_s, otlp_in_take_message, in};

    error_set(error, "out of memory");
    if (!in)
        return NULL;
    *in = (struct otlp_in){.loop = loop, .callbacks = *callbacks};
    in->slow.alarm = callbacks->alarm;
    in->slow.context = callbacks->context;
    in->refresh = (struct timer){.due = otlp_in_refresh, .context = in};
    otlp_peers_begin(&in->peers, otlp_in_or_default(options->store_bytes, STORE_BYTES));
    in->receiver = receiver_open(loop, options->listen, options->socket, &calls, &in->peers, error);
    if (!in->receiver) {
        otlp_in_close(in);
        return NULL;
    }
    otlp_in_reload(in, options);
    otlp_in_refresh(in);
    return in;
}

void otlp_in_close(struct otlp_in *in)
{
    if (!in)
        return;
    receiver_close(in->receiver);
    otlp_peers_end(&in->peers);
    timer_clear(in->loop, &in->refresh);
    free(in);
}
