/*
 * Puts the tables in force.
 *
 * With BLKIN_DEBUG set, the first need reports whether LTTng is loaded and whether there are rings.
 * BLKIN_DEBUG=check also checks the use of spans. Set-user-ID programs ignore it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loader.h"

#include "blkin.h"
#include "libblkin/base/chores.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/gate.h"
#include "libblkin/base/quiet.h"
#include "libblkin/base/signals.h"
#include "libblkin/policy/policy.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_provider.h"
#include "libblkin/usage/usage.h"
#include "lttng.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static blkin_record_fn load_and_record;

/* They claim to be enabled, so that the first event of the original API finds out. */
static const struct blkin_tracepoint not_known[BLKIN_ORIGINAL_EVENTS] = {
    [0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&blkin_not_known_yet, load_and_record},
};

/* What they and blkin_gate_ say where only the agent's rings may come. */
static const int awaits_rings = BLKIN_GATE_LOOKS;
static blkin_record_fn record_below;
static const struct blkin_tracepoint awaiting[BLKIN_ORIGINAL_EVENTS] = {
    [0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&awaits_rings, record_below},
};

const struct blkin_tracepoint *blkin_original_tracepoints = not_known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the first need */
static bool is_open;

/* Idempotent: who is overtaken by another thread is put right with the next chores. */
static void publish(void)
{
    const struct blkin_provider *below = blkin_lttng_provider_in_use();
    const bool has_rings = ring_map() != NULL;
    const bool awaits = !has_rings && ring_find_state() != RING_NEVER;
    const struct blkin_provider *table = has_rings ? ring_provider_over(below) : below;

    __atomic_store_n(&blkin_provider_table, table, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_original_tracepoints, awaits ? awaiting : table->zipkin,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_gate_, awaits ? &awaits_rings : table->events[BLKIN_EVENT_SPAN].enabled,
                     __ATOMIC_RELEASE);
}

_Static_assert(RING_RULES_MAX <= BLKIN_POLICY_TEXT_MAX, "the agent's rules have to fit");

/* Takes the agent's answer, and the rules that come with the rings. */
static enum ring_found find_rings(void)
{
    const enum ring_found found = ring_find();
    const struct ring_map *map = ring_map();
    char rules[RING_RULES_MAX];

    if (map && ring_map_rules(map, rules))
        blkin_slow_offer(rules);
    return found;
}

static void open_with_lock(bool is_at_start)
{
    const char *debug = secure_getenv("BLKIN_DEBUG");

    blkin_checks = debug && strcmp(debug, "check") == 0;
    blkin_clock_init();
    blkin_sampling_init();
    blkin_slow_init();
    ring_provider_init(&blkin_no_provider);
    ring_find_wait(is_at_start);
    (void)find_rings();
    if (debug) {
        blkin_lttng_report();
        ring_find_report();
    }
    publish();
    __atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
}

/* Of the calling thread, which records for the first time. */
static void prepare_thread(void)
{
    blkin_provider_load(false);
    blkin_provider()->init_thread();
    blkin_usage_thread_begin();
}

/* With signals blocked: a handler that records must not find the lock taken by its own thread. */
void blkin_provider_load(bool is_at_start)
{
    static _Thread_local bool is_loading __attribute__((tls_model("initial-exec")));
    const int saved_errno = errno;
    sigset_t signals;
    int state;

    __atomic_store_n(&blkin_thread_prepare, prepare_thread, __ATOMIC_RELAXED);
    if (__atomic_load_n(&is_open, __ATOMIC_ACQUIRE)) {
        if (is_at_start)
            publish(); /* blkin_init() may have loaded LTTng just now */
        return;
    }
    if (is_loading) /* this is the handler of a fault */
        return;
    is_loading = true;
    blkin_block_signals(&signals);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    /* Early, as the agent answers meanwhile, and not with the lock: it takes the one of libdl,
     * which another thread may have that records in a constructor. */
    ring_find_begin();
    pthread_mutex_lock(&lock);
    if (!is_open)
        open_with_lock(is_at_start);
    else
        publish();
    pthread_mutex_unlock(&lock);
    (void)pthread_setcancelstate(state, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &signals, NULL);
    is_loading = false;
    errno = saved_errno;
}

bool blkin_provider_refresh(void)
{
    enum ring_found found;

    if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
        return false;
    found = find_rings();
    if (found != RING_NEVER || blkin_is_quiet)
        publish();
    return found == RING_SOON;
}

bool blkin_provider_be_quiet(void)
{
    blkin_provider_load(true);
    if (ring_find() == RING_SOON) {
        ring_find_wait(true);
        (void)find_rings();
    }
    if (!ring_map())
        return false;
    blkin_lttng_leave("the program installs a seccomp filter");
    publish();
    return true;
}

void blkin_provider_before_chroot(void)
{
    blkin_provider_load(true);
    ring_find_before_chroot();
    publish();
}

void blkin_provider_after_fork(void)
{
    (void)pthread_mutex_init(&lock, NULL); /* another thread of the parent may have been loading */
    ring_find_after_fork();
    if (is_open)
        publish();
}

static void record_below(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                         const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint =
        &blkin_lttng_provider_in_use()->zipkin[annotation->type];

    if (blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
}

static void load_and_record(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                            const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint;

    blkin_provider_load(false);
    tracepoint = blkin_original_tracepoint(annotation);
    if (tracepoint->record != load_and_record && blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
}
