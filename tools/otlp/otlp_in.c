/* SPDX-License-Identifier: BSD-2-Clause */
#include "otlp_in.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "receiver.h"
#include "tools/base/totals.h"
#include "tools/base/host_rules.h"

#include <stdlib.h>

#define REFRESH_MS 1000

/* ---- slow and failed spans ------------------------------------------------------------------- */

#define RULE_NAME_MAX 1024 /* bytes of a name that rules are compared with */

void slow_spans_refresh(struct slow_spans *slow)
{
    for (unsigned i = 0; i < slow->rules.count; i++) {
        const struct otlp_alarm alarm = {.dropped = slow->held_back[i],
                                         .why = text_of(slow->rules.rules[i].text)};

        if (slow->held_back[i])
            slow->alarm(slow->context, &alarm);
        slow->held_back[i] = 0;
    }
    (void)host_rules_refresh();
    (void)blkin_slow_parse(&slow->rules, host_rules() ? host_rules() : "");
}

static const char *slow_spans_string(char string[RULE_NAME_MAX], struct text text)
{
    *text_copy(string, text_cut(text, RULE_NAME_MAX - 1)) = '\0';
    return string;
}

unsigned slow_spans_find(const struct slow_spans *slow, const struct otlp_origin *origin,
                         const struct otlp_span *span)
{
    const bool is_entry =
        span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER || !span->parent_id;
    const uint64_t counted_ns = is_entry ? (uint64_t)(span->end_ns - span->start_ns) : 0;
    char service[RULE_NAME_MAX], name[RULE_NAME_MAX];

    if (!span->is_error && counted_ns < slow->rules.least_ns)
        return BLKIN_SLOW_NO_RULE;
    return blkin_slow_find(&slow->rules, slow_spans_string(service, origin->service),
                           slow_spans_string(name, span->name), counted_ns, span->is_error);
}

bool slow_spans_give(struct slow_spans *slow, unsigned rule, struct payer *sender,
                     const struct otlp_span *span)
{
    const struct otlp_alarm alarm = {.trace_id_high = span->trace_id_high,
                                     .trace_id = span->trace_id,
                                     .duration_ns = (uint64_t)(span->end_ns - span->start_ns),
                                     .dropped = slow->held_back[rule],
                                     .why = text_of(slow->rules.rules[rule].text),
                                     .sender = sender->name};

    if (!payer_count_alarm(sender, BLKIN_SLOW_BURST_NS)) {
        slow->held_back[rule]++;
        return false;
    }
    slow->held_back[rule] = 0;
    slow->alarm(slow->context, &alarm);
    return true;
}

json_t *slow_spans_json(const struct slow_spans *slow)
{
    json_t *texts = json_array();

    for (unsigned i = 0; i < slow->rules.count; i++)
        (void)json_array_append_new(texts, json_string(slow->rules.rules[i].text));
    return json_pack("{so, ss}", "rules", texts, "wrong", host_rules_wrong());
}

struct otlp_in {
    struct loop *loop;
    struct otlp_in_callbacks callbacks;
    uint64_t spans_per_s; /* of one sender; 0: no limit */
    int64_t now_ns;       /* the time of the current call of otlp_in_take_message() */
    struct receiver_message *message;
    struct otlp_peers peers;
    struct slow_spans slow;
    struct receiver *receiver;
    struct timer refresh;
};

/* ---- spans in -------------------------------------------------------------------------------- */

/* Returns 0 if the sender may send a request now, else the seconds until it may. One message may
 * exceed the allowance. */
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

static void otlp_in_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    struct otlp_in *in = context;
    struct otlp_peer *peer = in->message->sender;
    enum sdk_added added = SDK_ADDED;
    bool is_given;
    unsigned rule;

    if (in->callbacks.span && in->callbacks.span(in->callbacks.context, origin, span))
        peer->counts.spans_passed_on++;
    else
        added = sdk_store_add(peer->store, origin, span, in->now_ns);
    in->message->too_large += added == SDK_TOO_LARGE;
    in->message->no_memory += added == SDK_NO_MEMORY;
    if (added != SDK_ADDED) /* a span that is refused gives no alarm */
        return;
    rule = slow_spans_find(&in->slow, origin, span);
    if (rule == BLKIN_SLOW_NO_RULE)
        return;
    /* the senders of recent alarms share the limit of the rules */
    payers_set_rate(&in->peers.payers, &peer->payer, in->slow.rules.cap_period_ns);
    is_given = slow_spans_give(&in->slow, rule, &peer->payer, span);
    peer->counts.alarms += is_given;
    peer->counts.alarms_held_back += !is_given;
}

/* One call decodes for at most this long, so that other work of the loop can run. The call looks at
 * the clock after each CALL_FIELDS fields. */
#define CALL_NS     INT64_C(5000000)
#define CALL_FIELDS 256

static bool otlp_in_take_message(void *context, struct receiver_message *message)
{
    struct otlp_in *in = context;
    struct otlp_peer *peer = message->sender;
    const struct receiver_message before = *message;
    const struct otlp_decoded *decoded = &message->decoding.decoded;
    const int64_t begun_ns = clock_ns();
    bool has_more;

    in->now_ns = wall_clock_ns();
    in->peers.memory.offset_ns = in->now_ns - begun_ns;
    in->message = message;
    sdk_store_begin(peer->store);
    do
        has_more = otlp_decode_some(&message->decoding, CALL_FIELDS, otlp_in_take_span, in);
    while (has_more && clock_ns() - begun_ns < CALL_NS);
    peer->counts.spans_in += decoded->spans - before.decoding.decoded.spans;
    peer->counts.spans_invalid += decoded->invalid - before.decoding.decoded.invalid;
    peer->counts.spans_too_large += message->too_large - before.too_large;
    peer->counts.spans_no_memory += message->no_memory - before.no_memory;
    peer->allowance -= (double)(decoded->spans - before.decoding.decoded.spans);
    return has_more;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static const struct total otlp_in_totals[] = {
#define OTLP_TOTAL(name, help) {#name, offsetof(struct otlp_counts, name), help},
    OTLP_COUNTS(OTLP_TOTAL)
#undef OTLP_TOTAL
};

static const struct totals_table otlp_in_table = {
    "agent_otlp", otlp_in_totals, sizeof(otlp_in_totals) / sizeof(otlp_in_totals[0])};

const struct sdk_memory *otlp_in_memory(const struct otlp_in *in)
{
    return &in->peers.memory;
}

static json_t *otlp_in_peers_json(const struct otlp_in *in)
{
    json_t *list = json_array();
    const struct otlp_peer *peer;

    cds_list_for_each_entry(peer, &in->peers.payers.list, payer.in_list)
    {
        const struct otlp_counts counts = otlp_peer_counts(peer);
        const struct sdk_held held = sdk_store_held(peer->store);

        (void)json_array_append_new(
            list,
            json_pack("{ss, sI, sI, sI, sI, so}", "sender", peer->payer.name, "connections",
                      (json_int_t)peer->payer.sender.connections, "body_bytes",
                      (json_int_t)peer->body_bytes, "spans", (json_int_t)held.spans, "bytes",
                      (json_int_t)held.bytes, "counts", totals_own_json(&otlp_in_table, &counts)));
    }
    return list;
}

static json_t *otlp_in_time(const struct otlp_in *in, int64_t mono_ns)
{
    return json_time(mono_ns ? mono_ns + in->peers.memory.offset_ns : 0);
}

json_t *otlp_in_json(const struct otlp_in *in)
{
    const struct otlp_counts counts = otlp_peers_counts(&in->peers);
    const struct sdk_held held = sdk_memory_held(&in->peers.memory);

    return json_pack("{ss, ss, s{sI, sI, sI, so, so}, so, so, so}", "url",
                     receiver_url(in->receiver), "socket", receiver_socket(in->receiver), "held",
                     "spans", (json_int_t)held.spans, "traces", (json_int_t)held.traces, "bytes",
                     (json_int_t)held.bytes, "came_after", otlp_in_time(in, held.came_ns),
                     "ended_after", otlp_in_time(in, held.ended_ns), "slow",
                     slow_spans_json(&in->slow), "counts", totals_own_json(&otlp_in_table, &counts),
                     "senders", otlp_in_peers_json(in));
}

void otlp_in_print(const struct otlp_in *in, struct printer *printer)
{
    const struct otlp_counts counts = otlp_peers_counts(&in->peers);

    totals_own_print(printer, &otlp_in_table, &counts);
    print_metric(printer, "blkin_agent_otlp_held_spans", "gauge", "Spans that are held in memory.",
                 sdk_memory_held(&in->peers.memory).spans);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void otlp_in_refresh(void *context)
{
    struct otlp_in *in = context;

    timer_set(in->loop, &in->refresh, REFRESH_MS);
    slow_spans_refresh(&in->slow);
}

void otlp_in_limit(struct otlp_in *in, uint64_t spans_per_s)
{
    struct otlp_peer *peer;

    in->spans_per_s = spans_per_s;
    cds_list_for_each_entry(peer, &in->peers.payers.list, payer.in_list) peer->allowance =
        (double)spans_per_s;
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
    otlp_peers_begin(&in->peers, options->store_bytes);
    in->receiver = receiver_open(loop, options->listen, options->socket, &calls, &in->peers, error);
    if (!in->receiver) {
        otlp_in_close(in);
        return NULL;
    }
    otlp_in_limit(in, options->spans_per_s);
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
