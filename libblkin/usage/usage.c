/*
 * The meters of a thread, and the spans to which they are charged.
 *
 * A thread works for its current span. If the program sets no current span, the thread works for
 * the innermost open span that it has begun: such spans are nested like brackets. The thread stores
 * the ids of these spans, each below the span before. If the thread begins a span that is not below
 * the innermost of them, spans that are not above the new span get no usage. For these spans, the
 * thread's work is unknown. Only ids are stored, because a span that is not current may not exist
 * any more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "usage.h"

#include "libblkin/span/span.h"
#include "tracepoints/format/step_id.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE_OPEN_MAX 32 /* nested spans of a thread that can have usage */

enum { HOLDER_NONE = 0, HOLDER_LOST = 1 };

struct meter {
    uint32_t generation; /* the blkin_usage_state for which this struct is valid */
    uint8_t level;       /* the highest level that this thread can read */
    bool is_busy;        /* a signal handler must not use the meter now */
    uint32_t depth;      /* number of ids in open[] */
    uint32_t base;       /* number of ids in open[] up to the current span; 0: it is not charged */
    uint64_t charging;   /* id of the current span if it is charged, or 0 */
    struct blkin_span *current;
    struct blkin_usage since;   /* the free reading when the span became current */
    struct blkin_usage charged; /* the sum of all charges */
    uint64_t open[USAGE_OPEN_MAX];
};

static _Thread_local struct meter usage_meter;

/*
 * ---- /proc/thread-self/schedstat, which stays open while a thread reads its run delay ----
 *
 * A program may close descriptors that it does not know, and open other files under the same
 * numbers. So fstat(2) checks before each use that the descriptor still refers to this file.
 */

#define DELAY_FILES_MAX 1024 /* number of threads that can have such a file at the same time */

/* All files are in one table, so that a forked child can close them. */
struct delay_file {
    int fd_plus_1; /* 0: the entry is free; -1: taken, but the file is not open yet */
    dev_t device;
    ino_t inode;
};

static struct delay_file delay_files[DELAY_FILES_MAX];
static unsigned delay_files_used; /* entries from this index on were never taken */
static _Thread_local struct delay_file *delay_own_file;
static pthread_key_t delay_key;
static bool delay_has_key;

/* Returns the descriptor; negative: not open. */
static int delay_fd(const struct delay_file *file)
{
    return __atomic_load_n(&file->fd_plus_1, __ATOMIC_RELAXED) - 1;
}

static bool delay_is_same(const struct delay_file *file)
{
    struct stat status;

    return delay_fd(file) >= 0 && fstat(delay_fd(file), &status) == 0 &&
           status.st_dev == file->device && status.st_ino == file->inode;
}

/* A quiet process makes no system call, so its files stay open: see base/thread.h. */
static void delay_give_back(struct delay_file *file)
{
    if (!blkin_is_quiet && delay_is_same(file))
        close(delay_fd(file));
    __atomic_store_n(&file->fd_plus_1, 0, __ATOMIC_RELEASE);
}

static struct delay_file *delay_take(void)
{
    for (unsigned i = 0; i < DELAY_FILES_MAX; i++) {
        unsigned used = __atomic_load_n(&delay_files_used, __ATOMIC_RELAXED);
        int none = 0;

        if (!__atomic_compare_exchange_n(&delay_files[i].fd_plus_1, &none, -1, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        while (used <= i && !__atomic_compare_exchange_n(&delay_files_used, &used, i + 1, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        return &delay_files[i];
    }
    return NULL;
}

static bool delay_open(struct delay_file *file)
{
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return false;
    /* must not replace a standard stream that the program has closed */
    if (fd <= STDERR_FILENO || fstat(fd, &status) < 0) {
        close(fd);
        return false;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    __atomic_store_n(&file->fd_plus_1, fd + 1, __ATOMIC_RELEASE);
    return true;
}

static bool delay_second_number(const char *text, const char *end, uint64_t *number)
{
    while (text < end && *text != ' ')
        text++;
    *number = 0;
    for (text++; text < end && *text >= '0' && *text <= '9'; text++)
        *number = *number * 10 + (uint64_t)(*text - '0');
    return text < end; /* at the end of the text, the number may be cut off */
}

static bool delay_read(const struct delay_file *file, uint64_t *ns)
{
    char text[80];
    const ssize_t length = pread(delay_fd(file), text, sizeof(text), 0);

    return length > 0 && delay_second_number(text, text + length, ns);
}

static bool delay_is_open(void)
{
    if (!delay_own_file) {
        if (!delay_has_key || pthread_setspecific(delay_key, delay_files) != 0)
            return false;
        delay_own_file = delay_take();
    }
    return delay_own_file && (delay_is_same(delay_own_file) || delay_open(delay_own_file));
}

static bool delay_read_own(uint64_t *ns)
{
    const int saved_errno = errno;
    const bool is_read = delay_is_open() && delay_read(delay_own_file, ns);

    errno = saved_errno;
    return is_read;
}

static void delay_end_thread(void *unused)
{
    (void)unused;
    if (delay_own_file)
        delay_give_back(delay_own_file);
    delay_own_file = NULL;
}

/* Allocates the thread's value of the key now, because a signal handler must not allocate. */
static void delay_begin_thread(void)
{
    if (delay_has_key)
        (void)pthread_setspecific(delay_key, delay_files);
}

static void delay_after_fork(void)
{
    for (unsigned i = 0; i < delay_files_used; i++)
        delay_give_back(&delay_files[i]);
    if (delay_files_used)
        delay_files_used = 0;
    delay_own_file = NULL;
}

__attribute__((constructor)) static void delay_begin(void)
{
    delay_has_key = pthread_key_create(&delay_key, delay_end_thread) == 0;
}

/* After dlclose(3) of a plug-in, which unloads this library, its threads may continue. */
__attribute__((destructor)) static void delay_end(void)
{
    if (!delay_has_key)
        return;
    delay_has_key = false;
    (void)pthread_key_delete(delay_key);
    for (unsigned i = 0; i < delay_files_used; i++)
        delay_give_back(&delay_files[i]);
}

/* ---- the meter ---- */

/* Returns the thread's meter. NULL: usage is off, or this is a signal handler that has interrupted
 * a use of the meter. */
static struct meter *usage_enter(void)
{
    const uint32_t generation = __atomic_load_n(&blkin_usage_state, __ATOMIC_RELAXED);
    struct meter *meter = &usage_meter;

    if (!(generation & BLKIN_USAGE_LEVEL_MAX) || meter->is_busy)
        return NULL;
    meter->is_busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (meter->generation != generation) {
        *meter = (struct meter){
            .generation = generation,
            .level = generation & BLKIN_USAGE_LEVEL_MAX,
            .is_busy = true,
        };
    }
    return meter;
}

static void usage_leave(struct meter *meter)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    meter->is_busy = false;
}

static void usage_add(struct blkin_usage *sum, const struct blkin_usage *part)
{
    for (int i = 0; i < USAGE_TIMES; i++)
        sum->ns[i] += part->ns[i];
    for (int i = 0; i < USAGE_COUNTS; i++)
        sum->counts[i] += part->counts[i];
}

static struct blkin_usage usage_difference(const struct blkin_usage *from,
                                           const struct blkin_usage *what)
{
    struct blkin_usage rest;

    for (int i = 0; i < USAGE_TIMES; i++)
        rest.ns[i] = from->ns[i] - what->ns[i];
    for (int i = 0; i < USAGE_COUNTS; i++)
        rest.counts[i] = from->counts[i] - what->counts[i];
    return rest;
}

/* Does not use the times of getrusage(2): they are late if the kernel accounts CPU time by ticks.
 */
static void usage_read_counts(struct meter *meter, struct blkin_usage *usage)
{
    struct rusage rusage;

    if (meter->level >= 2 && getrusage(RUSAGE_THREAD, &rusage) == 0) {
        usage->counts[USAGE_SWITCHES] = (uint32_t)rusage.ru_nvcsw;
        usage->counts[USAGE_PREEMPTIONS] = (uint32_t)rusage.ru_nivcsw;
        usage->counts[USAGE_FAULTS] = (uint32_t)rusage.ru_minflt;
        usage->counts[USAGE_MAJOR_FAULTS] = (uint32_t)rusage.ru_majflt;
        usage->counts[USAGE_DIRTIED] = (uint32_t)rusage.ru_oublock;
    } else if (meter->level >= 2) {
        meter->level = 1;
    }
    if (meter->level >= 3 && !delay_read_own(&usage->ns[USAGE_RUN_DELAY]))
        meter->level = 2;
}

/* Returns the free reading at a begin. Reads the CPU clock last, so that the span is not charged
 * for the other readings. */
static struct blkin_usage usage_read_at_begin(struct meter *meter, uint64_t *now_ns)
{
    struct blkin_usage usage = {0};

    usage_read_counts(meter, &usage);
    usage.ns[USAGE_CPU] = blkin_clock_read(CLOCK_THREAD_CPUTIME_ID);
    usage.ns[USAGE_WALL] = *now_ns = blkin_clock_now();
    return usage_difference(&usage, &meter->charged);
}

/* Returns the free reading at an end. Reads the CPU clock first. */
static struct blkin_usage usage_read_at_end(struct meter *meter, uint64_t now_ns)
{
    struct blkin_usage usage = {.ns[USAGE_WALL] = now_ns};

    usage.ns[USAGE_CPU] = blkin_clock_read(CLOCK_THREAD_CPUTIME_ID);
    usage_read_counts(meter, &usage);
    return usage_difference(&usage, &meter->charged);
}

/* ---- the current work of a thread ---- */

/* Returns true if a span with this parent is below the span `id`, or below a step of it. */
static bool usage_is_below(uint64_t parent_id, uint64_t id)
{
    uint64_t number;

    return parent_id && (parent_id == id || blkin_step_number(id, parent_id, &number));
}

/* Called when the thread does something for a span with this parent. Ends the charging of open
 * spans that are not around it. Returns true if the span may become the next one in open[]; false
 * if it is outside of the current span. */
static bool usage_turn_to(struct meter *meter, uint64_t parent_id)
{
    uint32_t depth = meter->depth;

    while (depth > 0 && !usage_is_below(parent_id, meter->open[depth - 1]))
        depth--;
    if (depth > 0) {
        meter->depth = depth > meter->base ? depth : meter->base;
        return depth >= meter->base;
    }
    if (!meter->charging) {
        meter->depth = 0;
        return true;
    }
    meter->open[0] = meter->charging;
    meter->depth = meter->base = 1;
    return false;
}

void blkin_usage_turn_to_unknown(void)
{
    struct meter *meter = usage_enter();

    if (!meter)
        return;
    (void)usage_turn_to(meter, 0);
    usage_leave(meter);
}

static bool usage_push(struct meter *meter, uint64_t id)
{
    if (meter->depth == USAGE_OPEN_MAX)
        return false;
    meter->open[meter->depth++] = id;
    return true;
}

/* Returns the id's index in open[] plus 1, or 0. */
static uint32_t usage_find(const struct meter *meter, uint64_t id)
{
    uint32_t index_plus_1 = meter->depth;

    while (index_plus_1 > 0 && meter->open[index_plus_1 - 1] != id)
        index_plus_1--;
    return index_plus_1;
}

/* ---- begin ---- */

uint64_t blkin_usage_begin(struct blkin_span *span)
{
    struct blkin_span_usage *usage = span_usage(span);
    struct meter *meter = usage_enter();
    uint64_t now_ns;

    if (!meter)
        return 0;
    *usage = (struct blkin_span_usage){.generation = meter->generation};
    if (usage_turn_to(meter, span->context.parent_span_id) &&
        usage_push(meter, span->context.span_id))
        usage->amount = usage_read_at_begin(meter, &now_ns);
    else
        now_ns = blkin_clock_now();
    usage->level = meter->level;
    usage_leave(meter);
    return now_ns;
}

/* ---- the current span ---- */

/* Called when the span is no longer current. Adds its usage since it became current. */
static void usage_charge_current(struct meter *meter, const struct blkin_usage *now)
{
    const struct blkin_usage part = usage_difference(now, &meter->since);
    struct blkin_span *span = meter->current;
    struct blkin_span_usage *usage = span_usage(span);
    uintptr_t self = (uintptr_t)meter;

    usage_add(&meter->charged, &part);
    /* checks that the span has not ended, nor another one begun in its memory */
    if (__atomic_load_n(&span->state_, __ATOMIC_RELAXED) & SPAN_CHARGED &&
        span->context.span_id == meter->charging &&
        __atomic_load_n(&usage->holder, __ATOMIC_RELAXED) == self) {
        usage_add(&usage->amount, &part);
        usage->level = meter->level < usage->level ? meter->level : usage->level;
        (void)__atomic_compare_exchange_n(&usage->holder, &self, HOLDER_NONE, false,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    meter->charging = 0;
    meter->depth = meter->base;
    meter->base = 0;
}

/* Returns false if the span is another thread's current span, too: both would charge it. */
static bool usage_set_holder(struct meter *meter, struct blkin_span_usage *usage)
{
    uintptr_t holder = HOLDER_NONE;

    if (__atomic_compare_exchange_n(&usage->holder, &holder, (uintptr_t)meter, false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    __atomic_store_n(&usage->holder, HOLDER_LOST, __ATOMIC_RELAXED);
    return false;
}

static void usage_start_charging(struct meter *meter, struct blkin_span *span,
                                 const struct blkin_usage *now)
{
    struct blkin_span_usage *usage = span_usage(span);
    const uint64_t id = span->context.span_id;
    const uint32_t index_plus_1 = usage_find(meter, id);

    if (!usage_set_holder(meter, usage))
        return;
    if (!usage->was_current) {
        usage->was_current = true;
        usage->amount = (struct blkin_usage){0};
    }
    if (index_plus_1) {
        meter->depth = index_plus_1;
    } else {
        (void)usage_turn_to(meter, span->context.parent_span_id);
        (void)usage_push(meter, id);
    }
    meter->base = meter->depth;
    meter->charging = id;
    meter->current = span;
    meter->since = *now;
}

struct blkin_span *blkin_usage_switch(struct blkin_span *span, struct blkin_span *before)
{
    struct meter *meter = usage_enter();
    struct blkin_usage now;
    bool is_charged;

    if (!meter)
        return before;
    is_charged = span && __atomic_load_n(&span->state_, __ATOMIC_RELAXED) & SPAN_CHARGED &&
                 span_usage(span)->generation == meter->generation;
    if (!(is_charged && meter->charging == span->context.span_id) &&
        (is_charged || meter->charging)) {
        now = usage_read_at_end(meter, blkin_clock_now());
        if (meter->charging) {
            usage_charge_current(meter, &now);
            now = meter->since;
        }
        if (is_charged)
            usage_start_charging(meter, span, &now);
    }
    if (span && !is_charged)
        (void)usage_turn_to(meter, 0);
    usage_leave(meter);
    return before;
}

/* ---- end ---- */

static bool usage_end_current(struct meter *meter, struct blkin_span *span, uint64_t now_ns)
{
    struct blkin_span_usage *usage = span_usage(span);

    if (meter->current == span && meter->charging == span->context.span_id) {
        const struct blkin_usage now = usage_read_at_end(meter, now_ns);

        usage_charge_current(meter, &now);
    }
    (void)usage_turn_to(meter, span->context.parent_span_id);
    return __atomic_load_n(&usage->holder, __ATOMIC_ACQUIRE) == HOLDER_NONE;
}

/* Ends the usage of a span that was never current. Returns true if the usage is known. */
static bool usage_end_open(struct meter *meter, struct blkin_span *span, uint64_t now_ns,
                           bool is_now)
{
    struct blkin_span_usage *usage = span_usage(span);
    const uint32_t index_plus_1 = usage_find(meter, span->context.span_id);
    struct blkin_usage now;

    if (!index_plus_1) {
        (void)usage_turn_to(meter, span->context.parent_span_id);
        return false;
    }
    if (index_plus_1 <= meter->base) { /* a span inside this one is current */
        meter->open[index_plus_1 - 1] = 0;
        return false;
    }
    meter->depth = index_plus_1 - 1;
    if (!is_now)
        return false;
    now = usage_read_at_end(meter, now_ns);
    usage->amount = usage_difference(&now, &usage->amount);
    usage->level = meter->level < usage->level ? meter->level : usage->level;
    usage_add(&meter->charged, &usage->amount);
    return true;
}

/* ---- tags ---- */

/* The tags as records of a log, with zeros in place of the numbers. */
#define TAG(length, key) "I" length "000000000000" key

static const char usage_all_tags[] =                                /* level: */
    TAG("<", "usage.cpu_us") TAG("@", "usage.off_cpu_us")           /* 1 */
    TAG(">", "usage.switches") TAG("A", "usage.preemptions")        /* 2 */
    TAG("<", "usage.faults") TAG("B", "usage.major_faults")         /* 2 */
    TAG("C", "usage.dirtied_pages") TAG("B", "usage.run_delay_us"); /* 2, 3 */
static const uint8_t usage_tags_of_level[BLKIN_USAGE_LEVEL_MAX + 1] = {0, 2, 7, 8};

_Static_assert(sizeof(usage_all_tags) <= sizeof(((struct blkin_usage_tags *)0)->text),
               "no room for the tags");

size_t blkin_usage_tag_size(const char *tag)
{
    return 14 + (size_t)blkin_number_at(tag + 1, 2);
}

static uint64_t usage_to_us(uint64_t ns)
{
    return (ns + 500) / 1000;
}

/* The two clocks are not read at the same moment. So CPU time is limited to the elapsed time, and
 * the run delay to the time off the CPU. */
static void usage_put_tags(struct blkin_usage_tags *tags, const struct blkin_span_usage *usage)
{
    const uint64_t *ns = usage->amount.ns;
    const uint32_t *counts = usage->amount.counts;
    const uint64_t on = ns[USAGE_CPU] < ns[USAGE_WALL] ? ns[USAGE_CPU] : ns[USAGE_WALL];
    const uint64_t off = ns[USAGE_WALL] - on;
    const uint64_t values[] = {
        usage_to_us(on),
        usage_to_us(off),
        counts[USAGE_SWITCHES],
        counts[USAGE_PREEMPTIONS],
        counts[USAGE_FAULTS],
        counts[USAGE_MAJOR_FAULTS],
        counts[USAGE_DIRTIED] / (4096 / 512),
        usage_to_us(ns[USAGE_RUN_DELAY] < off ? ns[USAGE_RUN_DELAY] : off),
    };
    char *at = tags->text;

    memcpy(tags->text, usage_all_tags, sizeof(usage_all_tags));
    for (unsigned i = 0; i < usage_tags_of_level[usage->level]; i++) {
        (void)blkin_put_long(at + 3, values[i]);
        at += blkin_usage_tag_size(at);
    }
    tags->length = (size_t)(at - tags->text);
}

void blkin_usage_end(struct blkin_span *span, uint64_t now_ns, bool is_now,
                     struct blkin_usage_tags *tags)
{
    struct blkin_span_usage *usage = span_usage(span);
    struct meter *meter = usage_enter();
    bool is_known = false;

    tags->length = 0;
    if (!meter)
        return;
    if (usage->generation == meter->generation)
        is_known = usage->was_current ? usage_end_current(meter, span, now_ns)
                                      : usage_end_open(meter, span, now_ns, is_now);
    usage_leave(meter);
    if (is_known)
        usage_put_tags(tags, usage);
}

/* ---- threads and forks ---- */

void blkin_usage_thread_begin(void)
{
    /* writes to the meter: the first access may allocate it, if dlopen(3) has loaded this library
     */
    *(volatile bool *)&usage_meter.is_busy = usage_meter.is_busy;
    delay_begin_thread();
}

/* Spans that are open at the fork get no usage: the child's meters start at 0. */
void blkin_usage_after_fork(void)
{
    usage_meter = (struct meter){0};
    blkin_usage_state += BLKIN_USAGE_LEVEL_MAX + 1;
    delay_after_fork();
}
