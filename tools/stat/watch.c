/*
 * The live part of blkin stat.
 *
 * What a span itself tells is counted when it comes; its self time when its trace is complete. If
 * there is more than can be read, a share of the traces is asked for, the same one of all taps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/model/open_traces.h"
#include "tap_reader.h"
#include "tools/base/control.h"
#include "tools/base/output.h"
#include "tools/trace/calls.h"
#include "tools/trace/traces.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAPS_MAX   256
#define CONNECT_MS 10 /* between attempts to connect to a tap that is not there */
#define SHARE_MAX  1024U

/* A child comes before its parent, but for what other hosts' sinks are behind. */
#define QUIET_MS        2000
#define TRACES_BYTES    ((size_t)64 << 20)
#define TRACE_SPANS_MAX 10000 /* of one trace */
#define NAMES_MAX       65536
#define NAMES_BYTES     ((size_t)16 << 20)

/* Of the time: with more a share of half as many traces is asked for, with less of twice as many.
 */
#define BUSY_MUCH   0.8
#define BUSY_LITTLE 0.3

static const char *const services[SERVICES_MAX] = {"live"};

struct watch {
    const struct options *options;
    const char *folder; /* of the services' sockets; NULL: one tap only */
    struct names *names;
    struct statistics *statistics;
    struct open_traces *traces;
    struct open_traces_counts told; /* what the intervals before have counted */
    bool is_starved;
    struct span_list spans; /* of one line */
    struct tap_reader *taps[TAPS_MAX];
    size_t taps_count;
    json_t *known[SERVICES_MAX]; /* the paths of their taps, some of which may not be there yet */
    json_t *accounts[SERVICES_MAX];
    bool has_begun;
    bool may_connect; /* in this interval */
    uint32_t share;
    bool has_broken;      /* some tap */
    uint64_t spans_count; /* these three of the interval */
    uint64_t passed;
    uint64_t dropped;
    int64_t begin_ms;
    double busy_s; /* CPU time of this process before the interval */
};

/* ---- traces */

static void use_trace(void *context, const struct closed_trace *closed)
{
    struct watch *watch = context;

    if (!closed->is_linked || !statistics_add_rest(watch->statistics, closed->model))
        watch->is_starved = true;
}

/* Out of memory: returns false. */
static bool use_span(struct watch *watch, const struct json_span *loaded, int64_t now_ms)
{
    struct trace_span span = span_for_model(loaded, watch->names);

    span.of = NULL;
    return statistics_add_span(watch->statistics, &span) &&
           open_traces_add(watch->traces, trace_id_half(loaded->trace_id, true),
                           trace_id_half(loaded->trace_id, false), &span, 0, now_ms);
}

/* ---- taps */

static bool watch_use_line(void *context, const struct tap_line *line)
{
    struct watch *watch = context;
    const int64_t now_ms = clock_ms();
    bool done;

    watch->spans.count = 0;
    done = spans_add(&watch->spans, line->spans, "tap");
    for (size_t i = 0; done && i < watch->spans.count; i++)
        done = use_span(watch, &watch->spans.spans[i], now_ms);
    watch->spans_count += watch->spans.count;
    watch->passed += line->passed;
    watch->dropped += line->dropped;
    return done;
}

static bool add_tap(struct watch *watch, const char *path, struct error *error)
{
    struct tap_reader *tap;

    for (size_t i = 0; i < watch->taps_count; i++) {
        if (strcmp(tap_reader_path(watch->taps[i]), path) == 0)
            return true;
    }
    if (watch->taps_count == TAPS_MAX)
        return error_set(error, "there are more than %d taps", TAPS_MAX);
    tap = tap_reader_open(path, watch->has_begun, error);
    if (!tap)
        return false;
    if (watch->share > 1)
        tap_reader_ask(tap, watch->share);
    watch->taps[watch->taps_count++] = tap;
    return true;
}

static void remove_tap(struct watch *watch, size_t i)
{
    tap_reader_close(watch->taps[i]);
    watch->taps[i] = watch->taps[--watch->taps_count];
}

static void read_tap(struct watch *watch, size_t i)
{
    struct error error = {""};

    switch (tap_reader_read(watch->taps[i], watch_use_line, watch, &error)) {
    case TAP_BROKEN:
        fprintf(stderr, "blkin stat: %s\n", error.text);
        watch->has_broken = true;
        watch->may_connect = false; /* it may be so again at once */
        remove_tap(watch, i);
        break;
    case TAP_ENDED:
        remove_tap(watch, i);
        break;
    case TAP_GOES_ON:
        break;
    }
}

/* Until there is something to read, or it is time. Returns false if it cannot wait any more. */
static bool read_taps(struct watch *watch, int64_t until_ms)
{
    struct pollfd fds[TAPS_MAX];
    const int64_t now_ms = clock_ms();
    const size_t count = watch->taps_count;
    int ready;

    for (size_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){tap_reader_fd(watch->taps[i]), POLLIN, 0};
    ready = poll(fds, count, until_ms > now_ms ? (int)(until_ms - now_ms) : 0);
    if (ready < 0 && errno != EINTR) {
        perror("blkin stat: cannot wait");
        return false;
    }
    /* from the last one on, as one that is removed gets the last one's place */
    for (size_t i = count; ready > 0 && i-- > 0;) {
        if (fds[i].revents)
            read_tap(watch, i);
    }
    return true;
}

/* ---- services */

/*
 * Connects to the taps that are there by now: a sink that converts a closed chunk lives for less
 * than an interval. Returns whether some are still missing.
 */
static bool connect_taps(struct watch *watch)
{
    bool is_missing = false;
    struct error error;
    const json_t *path;
    size_t i;

    for (int service = 0; service < SERVICES_MAX; service++) {
        json_array_foreach(watch->known[service], i, path)
        {
            if (json_is_string(path))
                is_missing |= !add_tap(watch, json_string_value(path), &error);
        }
    }
    return is_missing;
}

/* Asks a service, of which one that is not there is no error. Returns whether it answers. */
static bool ask_service(struct watch *watch, int service)
{
    struct error error;
    json_t *status = control_ask(watch->folder, services[service], "status", &error);

    json_decref(watch->accounts[service]);
    json_decref(watch->known[service]);
    watch->accounts[service] = json_incref(json_object_get(status, "counters"));
    watch->known[service] =
        status ? control_ask(watch->folder, services[service], "taps", &error) : NULL;
    json_decref(status);
    return status != NULL;
}

static bool ask_services(struct watch *watch)
{
    bool one_answers = false;

    for (int i = 0; i < SERVICES_MAX; i++)
        one_answers |= ask_service(watch, i);
    (void)connect_taps(watch);
    watch->has_begun = true;
    return one_answers;
}

/* ---- intervals */

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Too fast: half as many traces. Slow enough: twice as many. */
static void choose_share(struct watch *watch, double busy)
{
    uint32_t share = watch->share;

    if ((watch->dropped || busy > BUSY_MUCH) && share < SHARE_MAX)
        share *= 2;
    else if (!watch->dropped && busy < BUSY_LITTLE && share > 1)
        share /= 2;
    if (share == watch->share)
        return;
    watch->share = share;
    for (size_t i = 0; i < watch->taps_count; i++)
        tap_reader_ask(watch->taps[i], share);
}

static void begin_interval(struct watch *watch)
{
    statistics_clear(watch->statistics);
    if (names_are_full(watch->names))
        names_clear(watch->names);
    watch->spans_count = watch->passed = watch->dropped = 0;
    watch->may_connect = true;
    watch->begin_ms = clock_ms();
    watch->busy_s = cpu_seconds();
}

static struct report_traces traces_of_interval(struct watch *watch)
{
    const struct open_traces_counts counts = open_traces_counts(watch->traces);
    const struct report_traces traces = {
        .complete = counts.complete - watch->told.complete,
        .early = counts.early - watch->told.early,
        .open = counts.open,
    };

    watch->told = counts;
    return traces;
}

static bool show(struct watch *watch, double seconds)
{
    struct report report = {
        .is_live = true,
        .seconds = seconds,
        .spans = watch->spans_count,
        .passed = watch->passed,
        .dropped = watch->dropped,
        .share = watch->share,
        .taps = watch->taps_count,
        .traces = traces_of_interval(watch),
        .statistics = watch->statistics,
    };

    for (int i = 0; i < SERVICES_MAX; i++) {
        report.account_names[i] = services[i];
        report.accounts[i] = watch->accounts[i];
    }
    return watch->options->json ? print_json(&report, watch->options)
                                : print_table(&report, watch->options);
}

/* Returns false if it cannot be shown. */
static bool end_interval(struct watch *watch, bool is_last)
{
    const int64_t now_ms = clock_ms();
    const double seconds = (double)(now_ms - watch->begin_ms) / 1000;
    const double busy = (cpu_seconds() - watch->busy_s) / seconds;

    /* what is open has names, too: they go together, once there is no room for new ones */
    if (is_last || names_are_full(watch->names))
        (void)open_traces_close_some(watch->traces, UINT64_MAX);
    else
        open_traces_advance(watch->traces, now_ms);
    if (watch->is_starved || !show(watch, seconds)) {
        fputs("blkin stat: out of memory\n", stderr);
        return false;
    }
    if (output_flush("blkin stat", 0) != 0)
        return false;
    choose_share(watch, busy);
    return true;
}

/* Until the end of the interval, or of the one tap. Returns false if it cannot go on. */
static bool run_interval(struct watch *watch)
{
    const int64_t end_ms = watch->begin_ms + watch->options->interval_ms;

    while (clock_ms() < end_ms && (watch->folder || watch->taps_count)) {
        const int64_t soon_ms = clock_ms() + CONNECT_MS;
        const bool is_missing = watch->may_connect && connect_taps(watch);

        if (!read_taps(watch, is_missing && soon_ms < end_ms ? soon_ms : end_ms))
            return false;
    }
    return true;
}

static int run(struct watch *watch)
{
    bool is_last;

    do {
        begin_interval(watch);
        if (!run_interval(watch))
            return 1;
        is_last = watch->options->once || (!watch->folder && !watch->taps_count);
        if (watch->folder && !ask_services(watch) && !watch->taps_count) {
            fprintf(stderr, "blkin stat: the service has ended\n");
            is_last = true;
        }
        if (!end_interval(watch, is_last))
            return 1;
    } while (!is_last);
    return watch->has_broken;
}

/* ---- beginning and end */

static bool begin(struct watch *watch, const struct options *options)
{
    *watch = (struct watch){.options = options, .share = 1};
    watch->names = names_new(NAMES_MAX, NAMES_BYTES);
    if (watch->names)
        watch->statistics = statistics_new(watch->names);
    if (watch->statistics)
        watch->traces = open_traces_new(&(struct open_traces_options){.quiet = QUIET_MS,
                                                                      .max_bytes = TRACES_BYTES,
                                                                      .max_spans = TRACE_SPANS_MAX,
                                                                      .close = use_trace,
                                                                      .context = watch});
    if (!watch->traces)
        fputs("blkin stat: out of memory\n", stderr);
    return watch->traces != NULL;
}

static void end(struct watch *watch)
{
    while (watch->taps_count)
        remove_tap(watch, watch->taps_count - 1);
    for (int i = 0; i < SERVICES_MAX; i++) {
        json_decref(watch->accounts[i]);
        json_decref(watch->known[i]);
    }
    open_traces_free(watch->traces);
    statistics_free(watch->statistics);
    names_free(watch->names);
    spans_free(&watch->spans);
}

int watch_tap(const struct options *options, const char *path)
{
    struct watch watch;
    struct error error;
    int status = 1;

    if (begin(&watch, options)) {
        if (add_tap(&watch, path, &error))
            status = run(&watch);
        else
            fprintf(stderr, "blkin stat: %s; check that a sink with tap=\"%s\" runs\n", error.text,
                    path);
    }
    end(&watch);
    return status;
}

int watch_services(const struct options *options, const char *folder)
{
    struct watch watch;
    int status = 1;

    if (begin(&watch, options)) {
        watch.folder = folder;
        if (ask_services(&watch))
            status = run(&watch);
        else
            fprintf(stderr,
                    "blkin stat: no service answers in \"%s\": start \"blkin live\", name its "
                    "--runtime-dir, or give a FILE, FOLDER, URL or SOCKET\n",
                    folder);
    }
    end(&watch);
    return status;
}
