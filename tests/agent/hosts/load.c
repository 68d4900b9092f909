/*
 * One host's part of a load that crosses all hosts. Request k is due on host H at T0 + H ms + k /
 * RATE. A request has three spans on each host. Each host's first span is the child of the last
 * span of the host before. A number made of k decides whether the request is slow, so all hosts
 * know the slow requests. No other request is slow, however long the machine takes for it.
 *
 *     load FOLDER HOST HOSTS [KEY=VALUE]...
 *
 * Without t0=SECONDS, the load writes the file FOLDER/ready-HOST when it has its rings. It begins
 * at the time that the file FOLDER/t0 then has.
 *
 * FOLDER/lane-0 replaces the network between the hosts: it has the span below which each host calls
 * the next host. FOLDER/made-HOST has a struct load_made for each slow or failed request. Both
 * files are mapped, so a killed host has written all requests that it has made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "babeltrace-plugin/base/hash.h"
#include "waits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOAD_HOSTS_MAX 8
#define LOAD_SPANS     3
#define LOAD_TICK_NS   INT64_C(1000000)
#define LANE_SIZE      (UINT64_C(1) << 17) /* requests that a host may be ahead of the next host */
#define MADE_MAX       (UINT64_C(1) << 20)
#define LOAD_HELD_MAX  4096U
#define PATIENCE       ((is_joint ? 60 : 3) * INT64_C(1000000000)) /* ns, for the caller */
#define TRACE_HIGH     UINT64_C(0x626c6b696e000000)

/* The format that check.py reads. */
struct load_made {
    uint64_t k;
    uint64_t trace_id; /* the lower half; the upper is TRACE_HIGH + seed */
    uint64_t ids[LOAD_SPANS];
    int64_t ended;  /* the end of the first span in ns since 1970; 0: the span is open */
    uint32_t why;   /* LOAD_SLOW, LOAD_FAILED */
    uint32_t where; /* the host on which the request is slow or fails */
};

enum { LOAD_SLOW = 1, LOAD_FAILED = 2 };

struct made_file {
    uint64_t count;
    struct load_made made[MADE_MAX];
};

struct load_lane {
    struct {
        uint64_t number; /* k + 1: the entry is for request k */
        uint64_t span_id;
    } calls[LOAD_HOSTS_MAX][LANE_SIZE];
};

/* The options. slow, failed, late: N: one request in N is such a request; 0: none. */
static struct {
    double rate, t0, seconds, seed;
    double slow, failed, late; /* late: of slow requests: the root ends late */
    double slow_ms, late_ms;
    double steps;    /* the inner two of three spans are steps */
    double phase;    /* s: the length of a phase; `odd_slow` is for every second phase */
    double odd_slow; /* like `slow`, in odd phases */
} want = {.rate = 1000, .seconds = 10, .seed = 1, .slow_ms = 30, .late_ms = 500, .odd_slow = -1};

/* A slow request. */
struct load_held {
    struct blkin_span spans[LOAD_SPANS];
    struct load_made *made;
    int64_t due;
};

/* A queue of slow requests of one kind. All take equally long, so the oldest one ends first. */
struct held_queue {
    struct load_held held[LOAD_HELD_MAX];
    unsigned first, count;
};

/* The counts of the even phases, or of the odd phases. */
struct tick_account {
    uint64_t requests, cpu_ns;
};

static unsigned host, hosts;
static bool is_joint; /* without t0: a late host makes all requests */
static struct load_lane *lane;
static struct made_file *made_file;
static struct held_queue queues[2]; /* of requests that end late: the second one */
static struct tick_account accounts[2];
static uint64_t uncalled;
static int64_t behind; /* the longest delay of a request, in ns */
static volatile sig_atomic_t ends;

static void end(int signal)
{
    (void)signal;
    ends = 1;
}

static int64_t now(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* splitmix64: a random number that is the same on all hosts. */
static uint64_t mixed(uint64_t k, uint64_t what)
{
    return hash_mix((k + ((uint64_t)want.seed << 40) + (what << 56)) *
                    UINT64_C(0x9e3779b97f4a7c15));
}

enum { MADE_ID, IS_SLOW, IS_FAILED, IS_LATE, WHERE };

static bool is_one_in(uint64_t k, uint64_t what, double many)
{
    return many > 0 && mixed(k, what) % (uint64_t)many == 0;
}

static unsigned phase_of(uint64_t k)
{
    return want.phase > 0 ? (unsigned)((double)k / want.rate / want.phase) % 2 : 0;
}

static uint32_t planted(uint64_t k)
{
    const double slow = want.odd_slow >= 0 && phase_of(k) ? want.odd_slow : want.slow;

    return (is_one_in(k, IS_SLOW, slow) ? LOAD_SLOW : 0) |
           (is_one_in(k, IS_FAILED, want.failed) ? LOAD_FAILED : 0);
}

static void *map(const char *folder, const char *name, unsigned number, size_t size)
{
    char path[4096];
    void *mapped;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s-%u", folder, name, number);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    mapped = fd < 0 || ftruncate(fd, (off_t)size) < 0
                 ? MAP_FAILED
                 : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    (void)close(fd);
    return mapped;
}

/* ---- one request ---- */

/* Sets the id of the caller's span; 0: no caller. Returns false if there was no call so far. */
static bool caller(uint64_t k, uint64_t *span_id)
{
    *span_id = 0;
    if (host == 0)
        return true;
    if (__atomic_load_n(&lane->calls[host - 1][k % LANE_SIZE].number, __ATOMIC_ACQUIRE) != k + 1)
        return false;
    *span_id = lane->calls[host - 1][k % LANE_SIZE].span_id;
    return true;
}

static void call_next(uint64_t k, uint64_t span_id)
{
    lane->calls[host][k % LANE_SIZE].span_id = span_id;
    __atomic_store_n(&lane->calls[host][k % LANE_SIZE].number, k + 1, __ATOMIC_RELEASE);
}

/* Makes the first span, the work, and the call of the next host, which gets the call's span id. */
static void begin(struct blkin_span *spans, uint64_t k, uint64_t parent, uint64_t *ids)
{
    const struct blkin_context context = {
        .trace_id_high = TRACE_HIGH + (uint64_t)want.seed,
        .trace_id = mixed(k, MADE_ID),
        .span_id = parent,
        .flags =
            BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED | (parent ? BLKIN_CONTEXT_REMOTE : 0),
    };
    const char *last = host + 1 < hosts ? "call" : "write";
    struct blkin_context inner;

    blkin_span_begin_remote(&spans[0], "request", BLKIN_SERVER, &context);
    blkin_span_tag_int64(&spans[0], "k", (int64_t)k);
    blkin_span_annotate(&spans[0], "queued");
    ids[0] = blkin_span_context(&spans[0])->span_id;
    if (want.steps > 0) {
        blkin_step_begin(&spans[0], "commit", BLKIN_INTERNAL);
        blkin_step_context(&spans[0], &inner);
        ids[1] = inner.span_id;
        blkin_step_end(&spans[0]);
        blkin_step_begin(&spans[0], last, BLKIN_CLIENT);
        blkin_step_context(&spans[0], &inner);
        ids[2] = inner.span_id;
    } else {
        blkin_span_begin(&spans[1], "commit", BLKIN_INTERNAL, &spans[0]);
        ids[1] = blkin_span_context(&spans[1])->span_id;
        blkin_span_end(&spans[1]);
        blkin_span_begin(&spans[2], last, BLKIN_CLIENT, &spans[0]);
        ids[2] = blkin_span_context(&spans[2])->span_id;
    }
    call_next(k, ids[2]);
}

static void end_last(struct blkin_span *spans)
{
    if (want.steps > 0)
        blkin_step_end(&spans[0]);
    else
        blkin_span_end(&spans[2]);
}

/* Ends the span with the duration that it has on an idle machine. */
static void end_fast(struct blkin_span *spans)
{
    const int64_t at = now(CLOCK_MONOTONIC);

    end_last(spans);
    blkin_span_set_start(&spans[0], (uint64_t)(at - 100000 * (int64_t)(hosts - host)));
    blkin_span_end_at(&spans[0], (uint64_t)at);
}

static void fail(struct blkin_span *spans, uint32_t where)
{
    if (host <= where) /* the callers of the failed host fail, too */
        blkin_span_error(&spans[0], "EIO: planted");
}

static struct load_made *note(uint64_t k, const uint64_t *ids, uint32_t why, uint32_t where)
{
    struct load_made *made = &made_file->made[made_file->count % MADE_MAX];

    *made = (struct load_made){.k = k, .trace_id = mixed(k, MADE_ID), .why = why, .where = where};
    memcpy(made->ids, ids, sizeof(made->ids));
    __atomic_store_n(&made_file->count, made_file->count + 1, __ATOMIC_RELEASE);
    return made;
}

static void mark_ended(struct load_made *made)
{
    __atomic_store_n(&made->ended, now(CLOCK_REALTIME), __ATOMIC_RELEASE);
}

/* ---- slow requests ---- */

static void end_first(struct held_queue *queue)
{
    struct load_held *held = &queue->held[queue->first % LOAD_HELD_MAX];

    end_last(held->spans);
    blkin_span_end(&held->spans[0]);
    mark_ended(held->made);
    queue->first++;
    queue->count--;
}

static void end_due(int64_t at)
{
    for (unsigned i = 0; i < 2; i++)
        while (queues[i].count > 0 && queues[i].held[queues[i].first % LOAD_HELD_MAX].due <= at)
            end_first(&queues[i]);
}

/* Waits at the end for all slow requests: a shortened request would fit no rule. */
static void end_all(const struct held_queue *queue)
{
    while (queue->count > 0) {
        sleep_until(queue->held[queue->first % LOAD_HELD_MAX].due);
        end_due(now(CLOCK_MONOTONIC));
    }
}

static bool ends_late(uint64_t k)
{
    return host == 0 && is_one_in(k, IS_LATE, want.late);
}

static void hold(uint64_t k, uint64_t parent, uint32_t why, uint32_t where)
{
    const bool is_late = ends_late(k);
    struct held_queue *queue = &queues[is_late];
    struct load_held *held;
    uint64_t ids[LOAD_SPANS];

    held = &queue->held[(queue->first + queue->count++) % LOAD_HELD_MAX];
    begin(held->spans, k, parent, ids);
    held->made = note(k, ids, why, where);
    if (why & LOAD_FAILED)
        fail(held->spans, where);
    held->due = now(CLOCK_MONOTONIC) + (int64_t)(want.slow_ms * 1e6) +
                (where - host) * LOAD_TICK_NS + (is_late ? (int64_t)(want.late_ms * 1e6) : 0);
}

/* ---- the load ---- */

static void serve(uint64_t k, uint64_t parent)
{
    const uint32_t why = planted(k), where = (uint32_t)(mixed(k, WHERE) % hosts);
    struct blkin_span spans[LOAD_SPANS];
    uint64_t ids[LOAD_SPANS];

    if (why & LOAD_SLOW && host <= where) {
        hold(k, parent, why, where);
    } else {
        begin(spans, k, parent, ids);
        if (why & LOAD_FAILED)
            fail(spans, where);
        end_fast(spans);
        if (why)
            mark_ended(note(k, ids, why, where));
    }
    accounts[phase_of(k)].requests++;
}

/* Makes the requests that are due. Returns the number of the next request. */
static uint64_t serve_due(uint64_t k, uint64_t last, int64_t t0)
{
    for (; k < last && !ends; k++) {
        const int64_t at = now(CLOCK_MONOTONIC), due = t0 + (int64_t)((double)k / want.rate * 1e9);
        uint64_t parent;

        if (due > at)
            break;
        end_due(at);
        /* far behind: wait, as no slow request may be shortened */
        if (queues[ends_late(k)].count == LOAD_HELD_MAX)
            break;
        if (caller(k, &parent))
            serve(k, parent);
        else if (at - due < PATIENCE)
            break;
        else
            uncalled++;
        behind = at - due > behind ? at - due : behind;
    }
    return k;
}

static void run(void)
{
    const uint64_t last = (uint64_t)(want.rate * want.seconds);
    /* One tick after the host before, so that the call of that host is in the lane. */
    const int64_t t0 = (int64_t)(want.t0 * 1e9) + host * LOAD_TICK_NS;
    int64_t tick = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID), before;
    /* A restarted host begins with the request that is due now. */
    uint64_t k = tick > t0 && !is_joint ? (uint64_t)((double)(tick - t0) / 1e9 * want.rate) : 0;

    tick = tick > t0 ? tick : t0;
    while (k < last && !ends) {
        const unsigned phase = phase_of(k);

        tick += LOAD_TICK_NS;
        sleep_until(tick);
        k = serve_due(k, last, t0);
        end_due(now(CLOCK_MONOTONIC));
        before = cpu;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        accounts[phase].cpu_ns += (uint64_t)(cpu - before);
    }
    end_all(&queues[0]);
    end_all(&queues[1]);
}

/* Waits until the agent has given rings: earlier requests would be recorded nowhere. */
static void await_rings(void)
{
    bool is_recorded = false;

    while (!is_recorded && !ends &&
           (want.t0 <= 0 || now(CLOCK_MONOTONIC) < (int64_t)(want.t0 * 1e9))) {
        struct blkin_span span;

        blkin_span_begin(&span, "the first", BLKIN_SERVER, NULL);
        is_recorded = blkin_span_is_recorded(&span);
        blkin_span_end(&span);
        sleep_until(now(CLOCK_MONOTONIC) + LOAD_TICK_NS);
    }
}

static void await_start(const char *folder)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/ready-%u", folder, host);
    is_joint = want.t0 <= 0;
    file = is_joint ? fopen(path, "w") : NULL;
    if (!file)
        return;
    (void)fclose(file);
    (void)snprintf(path, sizeof(path), "%s/t0", folder);
    while (!ends && want.t0 <= 0) {
        sleep_until(now(CLOCK_MONOTONIC) + LOAD_TICK_NS);
        file = fopen(path, "r");
        if (file && fscanf(file, "%lf", &want.t0) != 1)
            want.t0 = 0;
        if (file)
            (void)fclose(file);
    }
}

/* ---- options and results ---- */

static bool set(const char *text)
{
    static const struct {
        const char *key;
        double *value;
    } keys[] = {{"rate", &want.rate},   {"t0", &want.t0},           {"seconds", &want.seconds},
                {"seed", &want.seed},   {"slow", &want.slow},       {"failed", &want.failed},
                {"late", &want.late},   {"slow-ms", &want.slow_ms}, {"late-ms", &want.late_ms},
                {"steps", &want.steps}, {"phase", &want.phase},     {"odd-slow", &want.odd_slow}};
    char *rest;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const size_t length = strlen(keys[i].key);

        if (strncmp(text, keys[i].key, length) == 0 && text[length] == '=') {
            *keys[i].value = strtod(text + length + 1, &rest);
            return rest != text + length + 1 && *rest == '\0' && *keys[i].value >= 0;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static char name[16];

    if (argc < 4 || (hosts = (unsigned)atoi(argv[3])) < 1 || hosts > LOAD_HOSTS_MAX ||
        (host = (unsigned)atoi(argv[2])) >= hosts)
        return fprintf(stderr, "usage: load FOLDER HOST HOSTS [KEY=VALUE]...\n"), 2;
    for (int i = 4; i < argc; i++) {
        if (!set(argv[i]))
            return fprintf(stderr, "load: unknown or malformed argument %s\n", argv[i]), 2;
    }
    lane = map(argv[1], "lane", 0, sizeof(*lane));
    made_file = map(argv[1], "made", host, sizeof(*made_file));
    (void)signal(SIGTERM, end);
    (void)snprintf(name, sizeof(name), "store-%u", host + 1);
    blkin_init();
    blkin_set_service(name, "10.77.0.1", 6800);
    await_rings();
    await_start(argv[1]);
    run();
    printf("{\"host\": %u, \"uncalled\": %" PRIu64 ", \"behind_ms\": %.1f", host, uncalled,
           (double)behind / 1e6);
    for (unsigned i = 0; i < 2; i++)
        printf(", \"%s\": {\"requests\": %" PRIu64 ", \"cpu_us\": %.3f}", i ? "odd" : "even",
               accounts[i].requests,
               (double)accounts[i].cpu_ns / 1e3 /
                   (accounts[i].requests ? (double)accounts[i].requests : 1));
    printf("}\n");
    return 0;
}
