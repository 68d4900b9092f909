/*
 * The cost of the library's calls in this process: see usage() for the modes and spans.h for the
 * spans. The caller makes the session that a mode needs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include "anchor_events.h"

#include "batch.h"
#include "threads.h"
#include "libblkin/base/thread.h"
#include "spans.h"

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static struct blkin_endpoint service = {.ip = "10.0.0.1", .port = 6800, .name = "osd.12"};
static struct blkin_context not_sampled = {
    .trace_id_high = 1,
    .trace_id = 2,
    .span_id = 3,
    .flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_REMOTE,
};
static struct blkin_trace trace;

#define BENCH_STEPS 8 /* in a span; STEPS of of_library.py is the same number */

/* ---- loops ---- */

WHOLE_SPANS(run_root_span, BEGIN_ROOT, REST_OF_SPAN(&span, i))
WHOLE_SPANS(run_remote_span,
            blkin_span_begin_remote(&span, "osd_op write", BLKIN_SERVER, &not_sampled),
            REST_OF_SPAN(&span, i))

/* A span that is the thread's current one. */
WHOLE_SPANS(run_current_span, BEGIN_CHILD, {
    FORGET();
    {
        BLKIN_CURRENT_SCOPE(&span);
        FORGET();
    }
    blkin_span_end(&span);
    FORGET();
})

/* A span without annotations and tags, but with steps, which fill half of its log. */
WHOLE_SPANS(run_stepped_span, BEGIN_CHILD, {
    FORGET();
    for (unsigned step = 0; step < BENCH_STEPS; step++) {
        blkin_step_begin(&span, "osd_op write", BLKIN_INTERNAL);
        FORGET();
        blkin_step_end(&span);
        FORGET();
    }
    blkin_span_end(&span);
    FORGET();
})

/* A step of a span that is not recorded. */
LOOP(run_step, {
    blkin_step_begin(&root, "osd_op write", BLKIN_INTERNAL);
    FORGET();
    blkin_step_end(&root);
    FORGET();
})

LOOP(run_annotation, blkin_span_annotate(&root, "queued"))
LOOP(run_integer, lttng_ust_tracepoint(bench, integer, (int)i))

/* An event of the original by LTTng's own macro. */
#define RAW(event, ...)                                                                    \
    lttng_ust_tracepoint(bench, event, trace.name, service.name, service.port, service.ip, \
                         (long)trace.info.trace_id, (long)trace.info.span_id,              \
                         (long)trace.info.parent_span_id, __VA_ARGS__)

static void raw_timestamp(const char *text)
{
    RAW(timestamp, text);
}

static void raw_string(const char *key, const char *value)
{
    RAW(keyval_string, key, value);
}

static void raw_integer(const char *key, int64_t value)
{
    RAW(keyval_integer, key, value);
}

LOOP(run_raw_timestamp, raw_timestamp("queued"))
LOOP(run_raw_string, raw_string("object", "rbd_data.4f2a.01"))
LOOP(run_raw_integer, raw_integer("offset", i))

/* The same span as four events of the original, without making its ids. */
LOOP(run_original_span, {
    raw_timestamp("queued");
    raw_string("object", "rbd_data.4f2a.01");
    raw_integer("offset", i);
    raw_timestamp("committed");
})

/* The same events by the original's calls. */
#define RECORDS(name, kind, ...)                                        \
    LOOP(name, {                                                        \
        struct blkin_annotation annotation;                             \
                                                                        \
        blkin_init_##kind##_annotation(&annotation, __VA_ARGS__, NULL); \
        blkin_record(&trace, &annotation);                              \
    })

RECORDS(run_record_timestamp, timestamp, "queued")
RECORDS(run_record_string, string, "object", "rbd_data.4f2a.01")
RECORDS(run_record_integer, integer, "offset", i)

LOOP(run_init_child, {
    struct blkin_trace child;

    blkin_init_child(&child, &trace, NULL, "write");
    ESCAPE(&child);
})

/* An id, as libblkin makes one for each span; thread.c is linked in once more for this. */
LOOP(run_id, ESCAPE(blkin_id_next(&blkin_thread)))

#if defined(__x86_64__)
LOOP(run_counter, ESCAPE(__rdtsc()))
#endif
LOOP(run_clock, ESCAPE(now_ns()))

/* The kernel's share: the CPU clock of usage levels 1 and 2, at a begin and an end. */
static void read_cpu_clock(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
}

LOOP(run_cpu_clock, {
    read_cpu_clock();
    read_cpu_clock();
})

/* The kernel's share for all meters of these levels. */
static void read_meters(void)
{
    struct rusage rusage;

    read_cpu_clock();
    (void)getrusage(RUSAGE_THREAD, &rusage);
}

LOOP(run_meters, {
    read_meters();
    read_meters();
})

#define BENCH_RULES "osd*:write>20ms, scrub>10s, "

SUBJECT(run_unruled_span, blkin_set_slow(""), run_child_span)
SUBJECT(run_ruled_span, blkin_set_slow(BENCH_RULES "*>100ms, error, max=50/s"),
        run_child_span) /* the rules match no span */
SUBJECT(run_storm_span, blkin_set_slow(BENCH_RULES "*>0ns, error, max=50/s"),
        run_child_span) /* the rules match all spans */

SUBJECT(run_level0_span, blkin_set_usage(0), run_bare_span)
SUBJECT(run_level1_span, blkin_set_usage(1), run_bare_span)
SUBJECT(run_level2_span, blkin_set_usage(2), run_bare_span)
SUBJECT(run_level3_span, blkin_set_usage(3), run_bare_span)

/* ---- modes: subjects that are measured in turns ---- */

static const struct subject off[] = {
    {"empty", run_empty},   {"off_root_span", run_root_span},
    {"off_step", run_step}, {"init_child", run_init_child},
    {"id", run_id},
};
static const struct subject on[] = {
    {"integer", run_integer},
    {"span", run_child_span},
    {"bare_span", run_bare_span},
    {"stepped_span", run_stepped_span},
    {"original_span", run_original_span},
    {"raw_timestamp", run_raw_timestamp},
    {"record_timestamp", run_record_timestamp},
    {"raw_string", run_raw_string},
    {"record_string", run_record_string},
    {"raw_integer", run_raw_integer},
    {"record_integer", run_record_integer},
#if defined(__x86_64__)
    {"counter", run_counter},
#endif
    {"clock", run_clock},
};
static const struct subject rules[] = {
    {"span", run_unruled_span},
    {"ruled_span", run_ruled_span},
    {"storm_span", run_storm_span},
};
static const struct subject of_usage[] = {
    {"level0", run_level0_span}, {"level1", run_level1_span}, {"level2", run_level2_span},
    {"level3", run_level3_span}, {"meters", run_meters},      {"cpu_clock", run_cpu_clock},
};
static const struct subject filter[] = {{"span", run_child_span}};
static const struct subject streaming[] = {
    {"integer", run_integer},
    {"annotation", run_annotation},
};
static const struct subject unsampled[] = {
    {"empty", run_empty},
    {"unsampled_remote_span", run_remote_span},
    {"unsampled_child_span", run_child_span},
    {"unsampled_step", run_step},
};

#define MODE(name, subjects)                                     \
    {                                                            \
        name, subjects, sizeof(subjects) / sizeof((subjects)[0]) \
    }
static const struct {
    const char *name;
    const struct subject *subjects;
    size_t count;
} modes[] = {
    MODE("off", off),
    MODE("on", on),
    MODE("rules", rules),
    MODE("usage", of_usage),
    MODE("filter", filter),
    MODE("streaming", streaming),
    MODE("unsampled", unsampled),
};

/* Returns whether the mode exists. */
static bool run_mode(const char *mode)
{
    if (strcmp(mode, "threads") == 0) {
        measure_threads(run_child_span);
        return true;
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(modes[i].name, mode) == 0) {
            measure(&usual_batches, modes[i].subjects, modes[i].count);
            return true;
        }
    }
    return false;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench-lib MODE\n"
                    "  off               no session\n"
                    "  on                a session with blkin:span, zipkin:* and bench:*\n"
                    "  threads           the session of \"on\"\n"
                    "  unsampled         the session of \"on\"\n"
                    "  rules             the session of \"on\", and one with blkin:slow\n"
                    "  usage             the session of \"on\"\n"
                    "  filter            the session of \"on\", and others with filters: one span\n"
                    "  streaming         a session with blkin:* and bench:*\n"
                    "  count KIND CALLS  only calls: KIND is empty, root, child or current\n");
    return 2;
}

static int mode_count(const char *kind, unsigned calls)
{
    static const struct subject kinds[] = {
        {"empty", run_empty},
        {"root", run_root_span},
        {"child", run_child_span},
        {"current", run_current_span},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, kind) == 0) {
            kinds[i].run(calls);
            return 0;
        }
    }
    return usage();
}

/* Ends the program if the session is wrong, because figures would be wrong, too. */
int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    blkin_init();
    blkin_set_service(service.name, service.ip, (uint16_t)service.port);
    blkin_init_new_trace(&trace, "osd_op write", &service);
    if (strcmp(mode, "unsampled") == 0)
        blkin_set_sampling("never");
    blkin_span_begin(&root, "client request", BLKIN_CLIENT, NULL);
    if (strcmp(mode, "count") == 0 && argc == 4)
        return mode_count(argv[2], (unsigned)atoi(argv[3]));
    if (strcmp(mode, "off") == 0) {
        if (blkin_is_on() || lttng_ust_tracepoint_enabled(bench, integer))
            errx(1, "a session is on");
    } else {
        if (!blkin_is_on() || !lttng_ust_tracepoint_enabled(bench, integer))
            errx(1, "no session is on");
        if (blkin_span_is_recorded(&root) == (strcmp(mode, "unsampled") == 0))
            errx(1, "the root span is recorded in mode unsampled, or not recorded in another mode");
    }
    return run_mode(mode) ? 0 : usage();
}
