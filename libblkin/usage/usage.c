/*
 * The meters of a thread, and which of its spans they are charged to.
 *
 * What a thread works for follows from the program's calls: it is the current span. If the program
 * makes no span current, it follows from begins and ends that are nested like brackets. The thread
 * keeps the ids of these open spans, each below the one before. When the thread turns to a span
 * that is not below any of them, or to the children of an outer one, the spans left behind get no
 * usage: for which of them the thread works from now on is unknown. The thread keeps only ids,
 * because a span that is not current may no longer exist.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "usage.h"

#include "libblkin/span/span.h"
#include "run_delay.h"
#include "tracepoints/format/step_id.h"

#include <sys/resource.h>

#define OPEN_MAX_ 32 /* nested spans of one thread that can have usage */

enum { HOLDER_NONE = 0, HOLDER_LOST = 1 };

struct meter {
    uint32_t generation; /* all of it is of this blkin_usage_state */
    uint8_t level;       /* that this thread can read */
    bool is_busy;        /* else a signal handler would find it in between */
    uint32_t depth;      /* of open[] */
    uint32_t base;       /* of these, the current span and those around it */
    uint64_t charging;   /* the id of the current span if it is charged, or 0 */
    struct blkin_span *current;
    struct blkin_usage since; /* when that became the current one; free */
    struct blkin_usage charged;
    uint64_t open[OPEN_MAX_];
};

static _Thread_local struct meter own_meter;

/* ---- the meter ---- */

/* NULL: there is no level, or this is a signal handler that has interrupted us. */
static struct meter *enter(void)
{
    const uint32_t generation = __atomic_load_n(&blkin_usage_state, __ATOMIC_RELAXED);
    struct meter *meter = &own_meter;

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

static void leave(struct meter *meter)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    meter->is_busy = false;
}

static void add(struct blkin_usage *sum, const struct blkin_usage *part)
{
    for (int i = 0; i < USAGE_TIMES; i++)
        sum->ns[i] += part->ns[i];
    for (int i = 0; i < USAGE_COUNTS; i++)
        sum->counts[i] += part->counts[i];
}

static struct blkin_usage difference(const struct blkin_usage *from, const struct blkin_usage *what)
{
    struct blkin_usage rest;

    for (int i = 0; i < USAGE_TIMES; i++)
        rest.ns[i] = from->ns[i] - what->ns[i];
    for (int i = 0; i < USAGE_COUNTS; i++)
        rest.counts[i] = from->counts[i] - what->counts[i];
    return rest;
}

static uint64_t cpu_ns(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Not its times: where CPU time is accounted by ticks, they are late. */
static void read_counts(struct meter *meter, struct blkin_usage *usage)
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
    if (meter->level >= 3 && !blkin_run_delay(&usage->ns[USAGE_RUN_DELAY]))
        meter->level = 2;
}

/* The CPU clock last, so that what reading the rest takes is not the span's; returns free. */
static struct blkin_usage read_at_begin(struct meter *meter, uint64_t *now_ns)
{
    struct blkin_usage usage = {0};

    read_counts(meter, &usage);
    usage.ns[USAGE_CPU] = cpu_ns();
    usage.ns[USAGE_WALL] = *now_ns = span_now_ns();
    return difference(&usage, &meter->charged);
}

/* And first. */
static struct blkin_usage read_at_end(struct meter *meter, uint64_t now_ns)
{
    struct blkin_usage usage = {.ns[USAGE_WALL] = now_ns};

    usage.ns[USAGE_CPU] = cpu_ns();
    read_counts(meter, &usage);
    return difference(&usage, &meter->charged);
}

/* ---- what the thread works for ---- */

/* Is a span with this parent below this one, or below a step of it? */
static bool is_below(uint64_t parent_id, uint64_t id)
{
    uint64_t number;

    return parent_id && (parent_id == id || blkin_step_number(id, parent_id, &number));
}

/*
 * The thread does something for a span with this parent. Returns true if that may be charged as the
 * next one in open[]. It may not if the span does not belong to the current span.
 */
static bool turn_to(struct meter *meter, uint64_t parent_id)
{
    uint32_t depth = meter->depth;

    while (depth > 0 && !is_below(parent_id, meter->open[depth - 1]))
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

void blkin_usage_turn_away(void)
{
    struct meter *meter = enter();

    if (!meter)
        return;
    (void)turn_to(meter, 0);
    leave(meter);
}

static bool push(struct meter *meter, uint64_t id)
{
    if (meter->depth == OPEN_MAX_)
        return false;
    meter->open[meter->depth++] = id;
    return true;
}

/* Its place in open[] plus 1, or 0. */
static uint32_t find(const struct meter *meter, uint64_t id)
{
    uint32_t place = meter->depth;

    while (place > 0 && meter->open[place - 1] != id)
        place--;
    return place;
}

/* ---- begin ---- */

uint64_t blkin_usage_begin(struct blkin_span *span)
{
    struct blkin_span_usage *usage = span_usage(span);
    struct meter *meter = enter();
    uint64_t now_ns;

    if (!meter)
        return 0;
    *usage = (struct blkin_span_usage){.generation = meter->generation};
    if (turn_to(meter, span->context.parent_span_id) && push(meter, span->context.span_id))
        usage->amount = read_at_begin(meter, &now_ns);
    else
        now_ns = span_now_ns();
    usage->level = meter->level;
    leave(meter);
    return now_ns;
}

/* ---- the current span ---- */

/* It is not the current one any more. */
static void settle(struct meter *meter, const struct blkin_usage *now)
{
    const struct blkin_usage part = difference(now, &meter->since);
    struct blkin_span *span = meter->current;
    struct blkin_span_usage *usage = span_usage(span);
    uintptr_t self = (uintptr_t)meter;

    add(&meter->charged, &part);
    /* it may have ended, and another one have begun in its place */
    if (__atomic_load_n(&span->state_, __ATOMIC_RELAXED) & SPAN_CHARGED &&
        span->context.span_id == meter->charging &&
        __atomic_load_n(&usage->holder, __ATOMIC_RELAXED) == self) {
        add(&usage->amount, &part);
        usage->level = meter->level < usage->level ? meter->level : usage->level;
        (void)__atomic_compare_exchange_n(&usage->holder, &self, HOLDER_NONE, false,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    meter->charging = 0;
    meter->depth = meter->base;
    meter->base = 0;
}

/* Two threads that have it as their current span at once would both charge it. */
static bool hold(struct meter *meter, struct blkin_span_usage *usage)
{
    uintptr_t holder = HOLDER_NONE;

    if (__atomic_compare_exchange_n(&usage->holder, &holder, (uintptr_t)meter, false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    __atomic_store_n(&usage->holder, HOLDER_LOST, __ATOMIC_RELAXED);
    return false;
}

static void charge(struct meter *meter, struct blkin_span *span, const struct blkin_usage *now)
{
    struct blkin_span_usage *usage = span_usage(span);
    const uint64_t id = span->context.span_id;
    const uint32_t place = find(meter, id);

    if (!hold(meter, usage))
        return;
    if (!usage->was_current) {
        usage->was_current = true;
        usage->amount = (struct blkin_usage){0};
    }
    if (place) {
        meter->depth = place;
    } else {
        (void)turn_to(meter, span->context.parent_span_id);
        (void)push(meter, id);
    }
    meter->base = meter->depth;
    meter->charging = id;
    meter->current = span;
    meter->since = *now;
}

struct blkin_span *blkin_usage_switch(struct blkin_span *span, struct blkin_span *before)
{
    struct meter *meter = enter();
    struct blkin_usage now;
    bool is_charged;

    if (!meter)
        return before;
    is_charged = span && __atomic_load_n(&span->state_, __ATOMIC_RELAXED) & SPAN_CHARGED &&
                 span_usage(span)->generation == meter->generation;
    if (!(is_charged && meter->charging == span->context.span_id) &&
        (is_charged || meter->charging)) {
        now = read_at_end(meter, span_now_ns());
        if (meter->charging) {
            settle(meter, &now);
            now = meter->since;
        }
        if (is_charged)
            charge(meter, span, &now);
    }
    if (span && !is_charged)
        (void)turn_to(meter, 0);
    leave(meter);
    return before;
}

/* ---- end ---- */

static bool end_of_current(struct meter *meter, struct blkin_span *span, uint64_t now_ns)
{
    struct blkin_span_usage *usage = span_usage(span);

    if (meter->current == span && meter->charging == span->context.span_id) {
        const struct blkin_usage now = read_at_end(meter, now_ns);

        settle(meter, &now);
    }
    (void)turn_to(meter, span->context.parent_span_id);
    return __atomic_load_n(&usage->holder, __ATOMIC_ACQUIRE) == HOLDER_NONE;
}

/* One that never was the current one. */
static bool end_of_open(struct meter *meter, struct blkin_span *span, uint64_t now_ns, bool is_now)
{
    struct blkin_span_usage *usage = span_usage(span);
    const uint32_t place = find(meter, span->context.span_id);
    struct blkin_usage now;

    if (!place) {
        (void)turn_to(meter, span->context.parent_span_id);
        return false;
    }
    if (place <= meter->base) { /* while one within it is the current one */
        meter->open[place - 1] = 0;
        return false;
    }
    meter->depth = place - 1;
    if (!is_now)
        return false;
    now = read_at_end(meter, now_ns);
    usage->amount = difference(&now, &usage->amount);
    usage->level = meter->level < usage->level ? meter->level : usage->level;
    add(&meter->charged, &usage->amount);
    return true;
}

/* ---- tags ---- */

/* As they are in the log, with zeros for the numbers: only those have to be put. */
#define TAG(length, key) "I" length "000000000000" key

static const char all_tags[] =                                      /* of level: */
    TAG("<", "usage.cpu_us") TAG("@", "usage.off_cpu_us")           /* 1 */
    TAG(">", "usage.switches") TAG("A", "usage.preemptions")        /* 2 */
    TAG("<", "usage.faults") TAG("B", "usage.major_faults")         /* 2 */
    TAG("C", "usage.dirtied_pages") TAG("B", "usage.run_delay_us"); /* 2, 3 */
static const uint8_t tags_of_level[BLKIN_USAGE_LEVEL_MAX + 1] = {0, 2, 7, 8};

_Static_assert(sizeof(all_tags) <= sizeof(((struct blkin_usage_tags *)0)->text),
               "no room for the tags");

size_t blkin_usage_tag_size(const char *tag)
{
    return 14 + (size_t)blkin_number_at(tag + 1, 2);
}

static uint64_t to_us(uint64_t ns)
{
    return (ns + 500) / 1000;
}

/*
 * Readings of two clocks, between which anything may happen: nothing takes more CPU time than time,
 * nor waits longer than it is off the CPU.
 */
static void put_tags(struct blkin_usage_tags *tags, const struct blkin_span_usage *usage)
{
    const uint64_t *ns = usage->amount.ns;
    const uint32_t *counts = usage->amount.counts;
    const uint64_t on = ns[USAGE_CPU] < ns[USAGE_WALL] ? ns[USAGE_CPU] : ns[USAGE_WALL];
    const uint64_t off = ns[USAGE_WALL] - on;
    const uint64_t values[] = {
        to_us(on),
        to_us(off),
        counts[USAGE_SWITCHES],
        counts[USAGE_PREEMPTIONS],
        counts[USAGE_FAULTS],
        counts[USAGE_MAJOR_FAULTS],
        counts[USAGE_DIRTIED] / (4096 / 512),
        to_us(ns[USAGE_RUN_DELAY] < off ? ns[USAGE_RUN_DELAY] : off),
    };
    char *at = tags->text;

    memcpy(tags->text, all_tags, sizeof(all_tags));
    for (unsigned i = 0; i < tags_of_level[usage->level]; i++) {
        (void)blkin_put_long(at + 3, values[i]);
        at += blkin_usage_tag_size(at);
    }
    tags->length = (size_t)(at - tags->text);
}

void blkin_usage_end(struct blkin_span *span, uint64_t now_ns, bool is_now,
                     struct blkin_usage_tags *tags)
{
    struct blkin_span_usage *usage = span_usage(span);
    struct meter *meter = enter();
    bool is_known = false;

    tags->length = 0;
    if (!meter)
        return;
    if (usage->generation == meter->generation)
        is_known = usage->was_current ? end_of_current(meter, span, now_ns)
                                      : end_of_open(meter, span, now_ns, is_now);
    leave(meter);
    if (is_known)
        put_tags(tags, usage);
}

/* ---- threads and forks ---- */

void blkin_usage_thread_begin(void)
{
    *(volatile bool *)&own_meter.is_busy = own_meter.is_busy;
    blkin_run_delay_thread_begin();
}

/* Open spans get no usage: the child's own meter starts at 0. */
void blkin_usage_after_fork(void)
{
    own_meter = (struct meter){0};
    blkin_usage_state += BLKIN_USAGE_LEVEL_MAX + 1;
    blkin_run_delay_after_fork();
}
