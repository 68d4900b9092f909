/*
 * Spans of other SDKs: from the receiver into the store, past the rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "foreign.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "receiver.h"
#include "rules.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"

#include <stdlib.h>

#define STORE_BYTES   (UINT64_C(64) << 20)
#define MESSAGE_BYTES (UINT64_C(8) << 20)
#define CONNECTIONS   256
#define REFRESH_MS    1000

struct foreign {
    struct loop *loop;
    struct foreign_callbacks callbacks;
    uint64_t spans_per_s; /* 0: no limit */
    double allowance;     /* spans that may come now; below 0: so many were too many */
    int64_t allowed_ms;   /* as of then */
    int64_t now_ns;       /* as spans come of */
    struct receiver_message *message;
    struct foreign_store *store;
    struct receiver *receiver;
    struct foreign_counts counts;
    struct timer refresh;
};

/* ---- spans come ------------------------------------------------------------------------------ */

/* A message may take more than is left of the allowance, and the next one waits for that. */
static unsigned foreign_busy_s(void *context)
{
    struct foreign *foreign = context;
    const double rate = (double)foreign->spans_per_s;
    const int64_t now_ms = clock_ms();

    if (rate == 0)
        return 0;
    foreign->allowance += (double)(now_ms - foreign->allowed_ms) * rate / 1000;
    if (foreign->allowance > rate)
        foreign->allowance = rate;
    foreign->allowed_ms = now_ms;
    return foreign->allowance > 0 ? 0 : 1 + (unsigned)(-foreign->allowance / rate);
}

static void foreign_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    struct foreign *foreign = context;

    enum rules_verdict verdict;

    /* an alarm is given when the span can be taken */
    if (foreign->callbacks.span &&
        foreign->callbacks.span(foreign->callbacks.context, origin, span)) {
        foreign->counts.spans_passed_on++;
    } else if (!foreign_store_add(foreign->store, origin, span, foreign->now_ns)) {
        foreign->message->too_large++;
        return;
    }
    verdict = foreign_rules_check(origin, span, &foreign->callbacks);
    foreign->counts.alarms += verdict == RULES_ALARM;
    foreign->counts.alarms_held_back += verdict == RULES_HELD_BACK;
}

/* The loop has other things to do: after so long they come first. */
#define STEP_NS     INT64_C(5000000)
#define STEP_FIELDS 256

static bool foreign_take_message(void *context, struct receiver_message *message)
{
    struct foreign *foreign = context;
    struct foreign_counts *counts = &foreign->counts;
    const struct receiver_message before = *message;
    const struct otlp_decoded *decoded = &message->decoding.decoded;
    const int64_t begun_ns = clock_ns();
    bool has_more;

    foreign->now_ns = wall_clock_ns();
    foreign->message = message;
    foreign_store_begin(foreign->store);
    do
        has_more = otlp_decode_some(&message->decoding, STEP_FIELDS, foreign_take_span, foreign);
    while (has_more && clock_ns() - begun_ns < STEP_NS);
    counts->spans_in += decoded->spans - before.decoding.decoded.spans;
    counts->spans_invalid += decoded->invalid - before.decoding.decoded.invalid;
    counts->spans_too_large += message->too_large - before.too_large;
    foreign->allowance -= (double)(decoded->spans - before.decoding.decoded.spans);
    return has_more;
}

/* ---- and are given --------------------------------------------------------------------------- */

void foreign_take(const struct foreign *foreign, struct foreign_wanted *wanted, otlp_span_fn *call,
                  void *context)
{
    foreign_store_take(foreign->store, wanted, call, context);
}

void foreign_copy(const struct foreign *foreign, int64_t from_ns, int64_t until_ns,
                  otlp_span_fn *call, void *context)
{
    foreign_store_copy(foreign->store, from_ns, until_ns, call, context);
}

/* ---- what is told ---------------------------------------------------------------------------- */

#define TOTAL(name, help)                                  \
    {                                                      \
#name, offsetof(struct foreign_counts, name), help \
    }

static const struct total foreign_totals[] = {
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

static const struct totals_table foreign_table = {
    "agent_otlp", foreign_totals, sizeof(foreign_totals) / sizeof(foreign_totals[0])};

static struct foreign_counts foreign_counts(const struct foreign *foreign)
{
    struct foreign_counts counts = foreign->counts;

    counts.spans_overwritten = foreign_store_held(foreign->store).overwritten;
    return counts;
}

struct foreign_held foreign_held(const struct foreign *foreign)
{
    return foreign_store_held(foreign->store);
}

const char *foreign_url(const struct foreign *foreign)
{
    return receiver_url(foreign->receiver);
}

json_t *foreign_json(const struct foreign *foreign)
{
    const struct foreign_counts counts = foreign_counts(foreign);
    const struct foreign_held held = foreign_held(foreign);

    return json_pack("{ss, ss, s{sI, sI, sI, so, so}, so, so}", "url", foreign_url(foreign),
                     "socket", receiver_socket(foreign->receiver), "held", "spans",
                     (json_int_t)held.spans, "traces", (json_int_t)held.traces, "bytes",
                     (json_int_t)held.bytes, "came_after", json_time(held.came_ns), "ended_after",
                     json_time(held.ended_ns), "slow", foreign_rules_json(), "counts",
                     totals_own_json(&foreign_table, &counts));
}

void foreign_print(const struct foreign *foreign, struct printer *printer)
{
    const struct foreign_counts counts = foreign_counts(foreign);

    totals_own_print(printer, &foreign_table, &counts);
    print_metric(printer, "blkin_agent_otlp_held_spans", "gauge", "Spans that are held in memory.",
                 foreign_held(foreign).spans);
}

/* ---- the foreign ------------------------------------------------------------------------------
 */

static void foreign_refresh(void *context)
{
    struct foreign *foreign = context;

    timer_set(foreign->loop, &foreign->refresh, REFRESH_MS);
    foreign_rules_refresh(&foreign->callbacks);
}

static uint64_t foreign_or(uint64_t value, uint64_t none)
{
    return value ? value : none;
}

void foreign_reload(struct foreign *foreign, const struct foreign_options *options)
{
    receiver_limit(foreign->receiver, foreign_or(options->message_bytes, MESSAGE_BYTES),
                   foreign_or(options->connections, CONNECTIONS));
    foreign->spans_per_s = options->spans_per_s;
    foreign->allowance = (double)options->spans_per_s;
    foreign->allowed_ms = clock_ms();
}

struct foreign *foreign_open(struct loop *loop, const struct foreign_options *options,
                             const struct foreign_callbacks *callbacks, struct error *error)
{
    struct foreign *foreign = calloc(1, sizeof(*foreign));
    struct receiver_calls calls = {foreign_busy_s, foreign_take_message, foreign};

    error_set(error, "out of memory");
    if (!foreign)
        return NULL;
    *foreign = (struct foreign){.loop = loop, .callbacks = *callbacks};
    foreign->refresh = (struct timer){.due = foreign_refresh, .context = foreign};
    foreign->store = foreign_store_new(foreign_or(options->store_bytes, STORE_BYTES));
    if (foreign->store)
        foreign->receiver = receiver_open(loop, options, &calls, &foreign->counts, error);
    if (!foreign->receiver) {
        foreign_close(foreign);
        return NULL;
    }
    foreign_reload(foreign, options);
    foreign_rules_open();
    foreign_refresh(foreign);
    return foreign;
}

void foreign_close(struct foreign *foreign)
{
    if (!foreign)
        return;
    receiver_close(foreign->receiver);
    foreign_store_free(foreign->store);
    timer_clear(foreign->loop, &foreign->refresh);
    free(foreign);
}
