/*
 * A recording that is cut into traces gives the spans of the whole one, though the buffers of its
 * CPUs are not cut at one moment: random events of all kinds, random cuts, each trace through a new
 * assembler in which the state of the one before was restored. Broken states:
 * fuzz/fuzz-checkpoint.c.
 *
 *   RUNS=N test-checkpoint-parts
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"

#include "tracepoints/format/events.h"

#include "check.h"
#include "moved.h"
#include "seed.h"
#include "span_text.h"

#include <stdlib.h>

#define MS      INT64_C(1000000)
#define EVENTS  1500
#define CPUS    4
#define CUTS    6
#define THREADS 6
#define SPANS   40

static const struct assembler_options options = {
    .idle_timeout_ns = 1000 * MS,
    .end_timeout_ns = 50 * MS,
    .open_timeout_ns = 2000 * MS,
    .max_open_spans = 60000,
    .max_open_bytes = 64 << 20,
    .correct_clocks = true,
};

/* ---- a recording ----------------------------------------------------------------------------- */

struct recorded {
    struct event event;
    struct loss loss; /* instead, if it has events */
    unsigned cpu;
};

static struct recorded recording[EVENTS];
static uint64_t sequences[2][THREADS]; /* of what streams, and of the others */
static int64_t now_ns;

enum use { UNUSED, STREAMED, ORIGINAL };

static struct {
    enum use use;
    uint64_t id;
    uint64_t half; /* the client's, or the server's */
} spans[SPANS];

static const char *const services[] = {"client", "osd", "mon"};
/* steps "a" and, in it, "b", with an annotation in each */
static const char log_of_steps[] =
    "(10000000000a01010000000x(1020000000b01030000000y)04000000)05000000";

static struct event next_event(enum event_kind kind, uint64_t id)
{
    const uint64_t thread = dice(THREADS);
    struct event event = {
        .kind = kind,
        .time_ns = now_ns,
        .origin = {.host = text_of(thread % 2 ? "near" : "far"), .clock = 5, .pid = 7, .tid = 8},
        .trace_id = 1 + id % 5,
        .span_id = id,
        .parent_id = id / 2,
        .span_name = text_of("write"),
        .service = text_of(services[id % 3]),
        .ip = text_of("10.0.0.1"),
        .port = 6800,
        .thread = thread + 1,
        .age_ns = 1000,
    };

    if (kind >= EVENT_SPAN) {
        uint64_t *sequence = &sequences[kind == EVENT_SPAN || kind == EVENT_PROCESS][thread];

        *sequence += dice(40) ? 1 : 4; /* some are lost */
        event.sequence = *sequence;
    }
    if (kind == EVENT_PROCESS)
        event.realtime = (uint64_t)now_ns + (dice(30) ? 0 : 5000 * MS);
    event.key = text_of(kind == EVENT_ANNOTATION ? "warning" : "key");
    event.value = text_of("some value");
    return event;
}

static struct event next_of_streamed(unsigned i)
{
    const uint64_t choice = dice(5);
    struct event event;

    if (choice > 2) {
        event = next_event(choice == 3 ? EVENT_ANNOTATION : EVENT_TAG, spans[i].id);
        event.log = text_of(choice == 3 ? "" : "s10200kvv");
    } else if (choice == 2) { /* the whole one, too */
        event = next_event(EVENT_SPAN, spans[i].id);
        event.flags = BLKIN_SPAN_STREAMED;
        event.duration_ns = 3 * MS;
        event.log = text_of(dice(2) ? log_of_steps : "");
    } else {
        event = next_event(EVENT_END, spans[i].id);
        if (dice(3))
            spans[i].use = UNUSED;
    }
    return event;
}

static struct event next_of_original(unsigned i)
{
    static const char *const values[] = {"cs", "sr", "working", "ss", "cr"};
    const uint64_t choice = dice(7);
    struct event event;

    if (choice > 4)
        return next_event(choice == 5 ? EVENT_KEYVAL_TEXT : EVENT_KEYVAL_INTEGER, spans[i].id);
    event = next_event(EVENT_TIMESTAMP, spans[i].id);
    event.value = text_of(values[choice]);
    event.service = text_of(services[choice == 0 || choice == 4]); /* halves of one span */
    if (choice == 4)
        spans[i].use = UNUSED;
    return event;
}

static struct event next_of_any(void)
{
    const unsigned i = (unsigned)dice(SPANS);
    static uint64_t last_id;
    struct event event;

    if (spans[i].use == STREAMED)
        return next_of_streamed(i);
    if (spans[i].use == ORIGINAL)
        return next_of_original(i);
    spans[i].id = ++last_id;
    spans[i].use = (enum use)dice(3);
    if (spans[i].use == ORIGINAL)
        return next_of_original(i);
    event = next_event(spans[i].use == STREAMED ? EVENT_BEGIN
                       : dice(9)                ? EVENT_SPAN
                                                : EVENT_PROCESS,
                       spans[i].id);
    event.duration_ns = 3 * MS;
    event.log = text_of(dice(2) ? log_of_steps : "");
    return event;
}

static void record(void)
{
    memset(spans, 0, sizeof(spans));
    memset(sequences, 0, sizeof(sequences));
    now_ns = INT64_C(1700000000000) * MS;
    for (unsigned i = 0; i < EVENTS; i++) {
        now_ns += 1 + (int64_t)dice((uint64_t)(dice(100) ? 3 * MS : 600 * MS));
        recording[i] = (struct recorded){.event = next_of_any(), .cpu = (unsigned)dice(CPUS)};
        if (dice(100) == 0)
            recording[i].loss = (struct loss){
                .origin = recording[i].event.origin,
                .has_times = true,
                .begin_ns = now_ns - 20 * MS,
                .end_ns = now_ns,
                .events = 1 + dice(5),
            };
    }
}

/* ---- its spans ------------------------------------------------------------------------------- */

struct result {
    char **spans;
    size_t count;
    struct assembler_counts counts;
};

static void take_span(void *context, struct span *span)
{
    struct result *result = context;
    size_t length;
    char **at = realloc(result->spans, (result->count + 1) * sizeof(*at));
    FILE *stream;

    result->spans = at;
    stream = open_memstream(&result->spans[result->count++], &length);
    print_span(stream, span);
    fclose(stream);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void finish(struct result *result, struct assembler *assembler)
{
    assembler_flush(assembler);
    result->counts = *assembler_counts(assembler);
    result->counts.open_bytes = 0;
    assembler_free(assembler);
    if (result->count)
        qsort((void *)result->spans, result->count, sizeof(*result->spans), compare);
}

static void drop(struct result *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->spans[i]);
    free((void *)result->spans);
}

/* A cut reaches one CPU after the other. */
struct cut {
    int64_t ends[CPUS];
    int64_t end_ns; /* of them all */
};

static struct cut cuts[CUTS + 1];

static void cut_recording(int64_t skew_ns)
{
    int64_t last_ns = 0;

    for (unsigned i = 0; i < CUTS; i++) {
        const int64_t at_ns = recording[dice(EVENTS)].event.time_ns;

        for (unsigned cpu = 0; cpu < CPUS; cpu++)
            cuts[i].ends[cpu] = at_ns + (int64_t)dice((uint64_t)skew_ns + 1);
        cuts[i].end_ns = 0;
    }
    /* in their order; a trace may be empty */
    for (unsigned i = 0; i < CUTS; i++) {
        for (unsigned j = i + 1; j < CUTS; j++) {
            const struct cut cut = cuts[i];

            if (cuts[j].ends[0] < cut.ends[0]) {
                cuts[i] = cuts[j];
                cuts[j] = cut;
            }
        }
        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
            if (i && cuts[i].ends[cpu] < cuts[i - 1].ends[cpu])
                cuts[i].ends[cpu] = cuts[i - 1].ends[cpu];
            if (cuts[i].ends[cpu] > last_ns)
                last_ns = cuts[i].ends[cpu];
        }
        cuts[i].end_ns = last_ns;
    }
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        cuts[CUTS].ends[cpu] = INT64_MAX;
}

/* With the trace time that the ends of the traces tell, and no cut. */
static struct result whole(void)
{
    struct result result = {.count = 0};
    struct assembler *assembler = assembler_new(&options, take_span, &result);
    unsigned cut = 0;

    for (unsigned i = 0; i < EVENTS; i++) {
        for (; cut < CUTS && recording[i].event.time_ns > cuts[cut].end_ns - HOLD_NS; cut++)
            assembler_advance(assembler, cuts[cut].end_ns - HOLD_NS);
        if (recording[i].loss.events)
            assembler_note_loss(assembler, &recording[i].loss);
        else
            assembler_add(assembler, &recording[i].event);
    }
    finish(&result, assembler);
    return result;
}

static bool is_in(const struct recorded *recorded, unsigned trace)
{
    const int64_t time_ns = recorded->event.time_ns;

    return time_ns < cuts[trace].ends[recorded->cpu] &&
           (trace == 0 || time_ns >= cuts[trace - 1].ends[recorded->cpu]);
}

static struct result in_traces(void)
{
    struct result result = {.count = 0};
    struct assembler *assembler = assembler_new(&options, take_span, &result);
    struct hold *hold = hold_new(assembler);

    for (unsigned trace = 0; trace <= CUTS; trace++) {
        for (unsigned i = 0; i < EVENTS; i++) {
            if (!is_in(&recording[i], trace))
                continue;
            if (recording[i].loss.events)
                hold_note_loss(hold, &recording[i].loss);
            else
                hold_add(hold, &recording[i].event);
        }
        if (trace == CUTS)
            break;
        hold_end_trace(hold, cuts[trace].end_ns);
        assembler = moved(assembler, &hold);
    }
    hold_flush(hold);
    CHECK(hold_events(hold) == 0);
    hold_free(hold);
    finish(&result, assembler);
    return result;
}

/* Says the first difference only. */
static void check_same(const struct result *a, const struct result *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (strcmp(a->spans[i], b->spans[i]) == 0)
            continue;
        fprintf(stderr, "the whole recording gives\n%sits parts give\n%s", a->spans[i],
                b->spans[i]);
        check_failures++;
        break;
    }
    CHECK(a->count == b->count);
    if (memcmp(&a->counts, &b->counts, sizeof(a->counts)) != 0) {
        check_failures++;
        print_counts(stderr, &a->counts);
        print_counts(stderr, &b->counts);
    }
}

static void test_cuts(uint64_t run)
{
    struct result all, parts;

    dice_state = UINT64_C(0x9e3779b97f4a7c15) * (run + 2);
    record();
    cut_recording((int64_t)(run % 3) * 40 * MS);
    all = whole();
    parts = in_traces();
    check_same(&all, &parts);
    if (run == 0) {
        print_counts(stdout, &all.counts);
        CHECK(all.counts.events_missing && all.counts.spans_duplicate && all.counts.events_late &&
              all.counts.spans_with_loss && all.counts.spans_incomplete &&
              all.counts.spans_corrected && all.counts.events_duplicate);
    }
    drop(&all);
    drop(&parts);
}

int main(void)
{
    const char *given = getenv("RUNS");
    const uint64_t runs = given ? strtoull(given, NULL, 10) : 60;

    for (uint64_t run = 0; run < runs && !check_failures; run++)
        test_cuts(run);
    printf("%llu recordings of %d events, cut %d times\n", (unsigned long long)runs, EVENTS, CUTS);
    return check_status();
}
