/*
 * Drives the exporter without a trace: makes spans, and prints their outcomes as JSON.
 *
 *     exporter-driver endpoint=URL [OPTION=VALUE]... STEP...
 *
 * Options are the component's parameters, and:
 *
 *     interrupted=yes    interrupts before the start
 *     bad=N,N,...        these spans have the name "bad"
 *     big=N:BYTES        span N has a tag whose value has BYTES bytes
 *     per-trace=N        each trace has N spans
 *     noise=BYTES        each span has a tag of about BYTES random digits
 *     services=N         a hash of its number gives each span one of N services, at most 4
 *
 * Span number N, from 0, has the id N + 1. Steps:
 *
 *     add:N              adds spans
 *     add-until:OUTCOME:N   adds spans until N have this outcome
 *     live               the trace is live from now on
 *     wait:OUTCOME:N     waits until N spans have this outcome
 *     wait:spool-OUTCOME:N  waits until N spans of the spool have this outcome
 *     requests:N         waits until N requests were begun
 *     settled:N          waits until all spans below N are settled
 *     reported           waits for a message to the operator
 *     sleep:MS, interrupt, flush, close
 *     say:TEXT           writes TEXT to stderr
 *     number:N           the first span has the number N, not 0
 *     pace:US            from now on pauses after each span of add:N
 *     settled            from now on prints "settled N": all spans below N are settled
 *     pause              waits for a line on stdin
 *
 * Messages for the operator go to stderr. Status 1: the exporter did not start, or the spool is not
 * on disk. Status 2: an argument is wrong, or a wait took too long. Status 3: the counts do not add
 * up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/params.h"
#include "waits.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static struct params params;

/* Sets the defaults that differ from the component's. */
static void set_defaults(void)
{
    params_begin(&params);
    /* much longer than a busy machine delays an answer */
    params.exporter.transport.request_timeout_ms = 20000;
    params.exporter.batch_timeout_ms = 50;
    params.exporter.retry_timeout_ms = 60000;
}

static const char *bad = "";
static const char *big = "";
static int64_t spans_per_trace = INT64_MAX;
static struct exporter *exporter;
static uint64_t added;
static uint64_t first_number;
static int64_t pace_us;
static int64_t noise;
static int64_t services = 1;
static bool says_settled;
static bool is_interrupted;
static atomic_bool has_reported;
static int64_t slowest_add_ms[2], slowest_counts_ms[2]; /* the slowest and the second slowest */

static const char *const outcomes[OUTCOMES] = {
    [OUTCOME_ACCEPTED] = "accepted",       [OUTCOME_REFUSED] = "refused",
    [OUTCOME_INVALID] = "invalid",         [OUTCOME_TOO_LARGE] = "too_large",
    [OUTCOME_UNDELIVERED] = "undelivered", [OUTCOME_DROPPED] = "dropped",
    [OUTCOME_NO_MEMORY] = "no_memory",     [OUTCOME_SKIPPED] = "skipped",
    [OUTCOME_SPOOLED] = "spooled",         [OUTCOME_POSSIBLY_PERSISTED] = "possibly_persisted",
    [OUTCOME_SAMPLED_OUT] = "sampled_out",
};

static void fail(const char *what, const char *argument)
{
    fprintf(stderr, "exporter-driver: %s: %s\n", what, argument);
    exit(2);
}

static bool interrupted(void *context)
{
    (void)context;
    return is_interrupted;
}

static void report(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "%s\n", message);
    atomic_store(&has_reported, true);
}

static void check_spool(const struct exporter_counts *counts)
{
    const struct spool_counts *spool = &counts->spool;
    uint64_t sum = spool->waiting + spool->expired + spool->corrupt;

    for (int i = 0; i < OUTCOMES; i++)
        sum += spool->outcome[i];
    if (sum == spool->spans && sum == spool->found + counts->outcome[OUTCOME_SPOOLED])
        return;
    fprintf(stderr,
            "exporter-driver: spool: %" PRIu64 " spans, sum %" PRIu64 ", %" PRIu64
            " found, %" PRIu64 " put in\n",
            spool->spans, sum, spool->found, counts->outcome[OUTCOME_SPOOLED]);
    exit(3);
}

/* Returns the counts, whose sums must hold at any time. */
static struct exporter_counts checked_counts(void)
{
    const struct exporter_counts counts = exporter_counts(exporter);
    uint64_t sum = counts.waiting;

    for (int i = 0; i < OUTCOMES; i++)
        sum += counts.outcome[i];
    check_spool(&counts);
    if (sum != counts.spans || counts.spans != added) {
        fprintf(stderr,
                "exporter-driver: %" PRIu64 " added, %" PRIu64 " counted, sum %" PRIu64 "\n", added,
                counts.spans, sum);
        exit(3);
    }
    return counts;
}

/* Is the number in a list such as 1,5:20,7? Sets *value to the number behind its colon. */
static bool is_listed(const char *list, uint64_t number, unsigned long *value)
{
    while (*list) {
        char *end;
        const bool is_it = strtoull(list, &end, 10) == number;

        *value = *end == ':' ? strtoul(end + 1, &end, 10) : 0;
        if (is_it)
            return true;
        list = *end ? end + 1 : end;
    }
    return false;
}

/* Prints how many spans are settled, if the number has grown: a test then kills this process. */
static void say_settled(void)
{
    static uint64_t said;
    const uint64_t so_far = exporter_settled(exporter);

    if (so_far == said)
        return;
    if (so_far > added)
        fail("settled", "more spans than were added");
    said = so_far;
    printf("settled %" PRIu64 "\n", first_number + so_far);
    fflush(stdout);
}

/* Adds random digits, which compression makes half as long. */
static void add_noise(struct span *span)
{
    char text[4096];
    size_t length = 0;

    for (uint64_t i = 0; length < (size_t)noise && length + 16 < sizeof(text); i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%016" PRIx64,
                                   hash_mix(span->id * 4096 + i));
    (void)span_add(span, SPAN_TAG_TEXT, text_of("noise"), (struct text){text, length}, 0);
}

/* The begin of a call that may wait for other threads. A call without a voluntary context switch
 * did not wait: a busy machine did not run this thread. */
struct driver_lap {
    int64_t start_ms;
    long waits;
};

static struct driver_lap begin_wait(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_THREAD, &usage);
    return (struct driver_lap){clock_ms(), usage.ru_nvcsw};
}

static void note_wait(const struct driver_lap *before, int64_t slowest_ms[2])
{
    const struct driver_lap now = begin_wait();

    const int64_t took_ms = now.waits > before->waits ? now.start_ms - before->start_ms : 0;

    if (took_ms > slowest_ms[0]) {
        slowest_ms[1] = slowest_ms[0];
        slowest_ms[0] = took_ms;
    } else if (took_ms > slowest_ms[1]) {
        slowest_ms[1] = took_ms;
    }
}

static void add(uint64_t number)
{
    static const struct endpoint endpoints[] = {
        {.service = {"driver", 6}, .port = 1},
        {.service = {"driver1", 7}, .port = 1},
        {.service = {"driver2", 7}, .port = 2},
        {.service = {"driver3", 7}, .ipv4 = "10.0.0.1"},
    };
    struct span span = {
        .trace_id = number / (uint64_t)spans_per_trace + 1,
        .id = number + 1,
        .endpoint = &endpoints[hash_mix(number) % (uint64_t)services % 4],
        .start_ns = INT64_C(1735732800000000000),
        .end_ns = INT64_C(1735732800001000000),
    };
    unsigned long bytes;
    struct driver_lap wait;

    (void)span_set_name(&span, text_of(is_listed(bad, number, &bytes) ? "bad" : "good"));
    if (is_listed(big, number, &bytes)) {
        char *text = calloc(1, bytes + 1);

        memset(text, 'x', bytes);
        (void)span_add(&span, SPAN_TAG_TEXT, text_of("big"), (struct text){text, bytes}, 0);
        free(text);
    }
    if (noise)
        add_noise(&span);
    wait = begin_wait();
    exporter_add(exporter, &span);
    added++;
    note_wait(&wait, slowest_add_ms);
    wait = begin_wait();
    (void)checked_counts();
    note_wait(&wait, slowest_counts_ms);
    free(span.log);
}

static void wait_more(int64_t *end_ms, const char *what)
{
    const char *patience = getenv("PATIENCE"); /* of tests/run */

    if (!wait_up_to(20000 * (patience ? atoi(patience) : 1), end_ms))
        fail("waited too long for", what);
}

/* Waits for OUTCOME:N, and calls more() until then. */
static void wait_for(const char *what, void (*more)(void))
{
    const bool is_of_spool = strncmp(what, "spool-", 6) == 0;
    const char *outcome = is_of_spool ? what + 6 : what;
    const char *colon = strchr(what, ':');

    for (int i = 0; colon && i < OUTCOMES; i++) {
        const uint64_t wanted = strtoull(colon + 1, NULL, 10);
        int64_t end_ms = 0;
        struct exporter_counts counts;

        if (strncmp(outcomes[i], outcome, (size_t)(colon - outcome)) != 0)
            continue;
        while (counts = checked_counts(),
               (is_of_spool ? counts.spool.outcome : counts.outcome)[i] < wanted) {
            wait_more(&end_ms, what);
            more();
        }
        return;
    }
    fail("wait: expected OUTCOME:N", what);
}

static void add_next(void)
{
    add(first_number + added);
}

static void add_nothing(void)
{
}

static int64_t integer_of(const char *step)
{
    const char *colon = strchr(step, ':');

    return colon ? strtoll(colon + 1, NULL, 10) : 0;
}

static void take_step(const char *step)
{
    struct error error;
    int64_t end_ms = 0;

    if (strncmp(step, "add:", 4) == 0) {
        for (int64_t i = integer_of(step); i; i--) {
            add_next();
            if (says_settled)
                say_settled();
            if (pace_us)
                pause_us(pace_us);
        }
    } else if (strncmp(step, "number:", 7) == 0) {
        first_number = (uint64_t)integer_of(step);
    } else if (strncmp(step, "pace:", 5) == 0) {
        pace_us = integer_of(step);
    } else if (strcmp(step, "settled") == 0) {
        says_settled = true;
    } else if (strcmp(step, "live") == 0) {
        exporter_set_live(exporter);
    } else if (strncmp(step, "wait:", 5) == 0) {
        wait_for(step + 5, add_nothing);
    } else if (strncmp(step, "add-until:", 10) == 0) {
        wait_for(step + 10, add_next);
    } else if (strncmp(step, "requests:", 9) == 0) {
        while (checked_counts().requests < (uint64_t)integer_of(step))
            wait_more(&end_ms, step);
    } else if (strncmp(step, "settled:", 8) == 0) {
        while (exporter_settled(exporter) < (uint64_t)integer_of(step))
            wait_more(&end_ms, step);
    } else if (strcmp(step, "reported") == 0) {
        while (!atomic_load(&has_reported))
            wait_more(&end_ms, step);
    } else if (strncmp(step, "sleep:", 6) == 0) { /* the test gives the reason */
        pause_us(integer_of(step) * 1000);
    } else if (strcmp(step, "interrupt") == 0) {
        is_interrupted = true;
    } else if (strncmp(step, "say:", 4) == 0) {
        fprintf(stderr, "%s\n", step + 4);
    } else if (strcmp(step, "pause") == 0) {
        while (getchar() != '\n' && !feof(stdin))
            ;
    } else if (strcmp(step, "flush") == 0) {
        exporter_flush(exporter);
    } else if (strcmp(step, "close") == 0) {
        if (!exporter_close(exporter, &error))
            report(NULL, error.text);
    } else {
        fail("unknown step", step);
    }
}

static void set_option(const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        int64_t *integer;
    } own[] = {
        {"bad", &bad, NULL},
        {"big", &big, NULL},
        {"per-trace", NULL, &spans_per_trace},
        {"noise", NULL, &noise},
        {"services", NULL, &services},
    };
    const int64_t integer = strtoll(value, NULL, 10);
    struct error error;
    size_t count;
    const struct param_rule *rules = params_table(&count);

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(name, own[i].name) != 0)
            continue;
        if (own[i].text)
            *own[i].text = value;
        else
            *own[i].integer = integer;
        return;
    }
    if (strcmp(name, "interrupted") == 0) {
        is_interrupted = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct param_value given = {
            value, rules[i].type == PARAM_BOOLEAN ? strcmp(value, "no") != 0 : integer};

        if (strcmp(name, rules[i].name) != 0)
            continue;
        if (!params_set(&params, &rules[i], &given, &error))
            fail(error.text, value);
        return;
    }
    fail("unknown option", name);
}

static void print_spool(const struct spool_counts *spool)
{
    printf(", \"spool\": {\"spans\": %" PRIu64 ", \"found\": %" PRIu64, spool->spans, spool->found);
    for (int i = 0; i < OUTCOMES; i++)
        printf(", \"%s\": %" PRIu64, outcomes[i], spool->outcome[i]);
    printf(", \"expired\": %" PRIu64 ", \"corrupt\": %" PRIu64 ", \"waiting\": %" PRIu64
           ", \"unreadable\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"lost_own\": %" PRIu64 "}",
           spool->expired, spool->corrupt, spool->waiting, spool->unreadable, spool->errors,
           spool->bytes, spool->lost_own);
}

static void print(void)
{
    const struct exporter_counts counts = checked_counts();
    struct error error;

    printf("{\"spans\": %" PRIu64, counts.spans);
    for (int i = 0; i < OUTCOMES; i++)
        printf(", \"%s\": %" PRIu64, outcomes[i], counts.outcome[i]);
    printf(
        ", \"waiting\": %" PRIu64 ", \"cut\": %" PRIu64 ", \"unsure\": %" PRIu64
        ", \"requests\": %" PRIu64 ", \"retries\": %" PRIu64
        ", \"failed\": %s, \"slowest_add_ms\": %" PRId64 ", \"slowest_counts_ms\": %" PRId64,
        counts.waiting, counts.cut, counts.unsure, counts.requests, counts.retries,
        exporter_has_failed(exporter, &error) ? "true" : "false", slowest_add_ms[1],
        slowest_counts_ms[1]); /* not the slowest: the machine may have stopped the program once */
    print_spool(&counts.spool);
    printf("}\n");
}

int main(int argc, char **argv)
{
    const struct exporter_callbacks callbacks = {interrupted, report, NULL, NULL};
    struct error error;
    bool is_stored;
    int i = 1;

    set_defaults();
    for (; i < argc; i++) {
        char *equals = strchr(argv[i], '=');

        if (!equals)
            break;
        *equals = '\0';
        set_option(argv[i], equals + 1);
    }
    exporter = exporter_new(&params.exporter, &callbacks, &error);
    if (!exporter) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (; i < argc; i++)
        take_step(argv[i]);
    print();
    is_stored = exporter_is_stored(exporter, &error);
    if (!is_stored)
        report(NULL, error.text);
    exporter_free(exporter);
    return is_stored ? 0 : 1;
}
