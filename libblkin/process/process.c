/*
 * The current table, the process event, the periodic work, and the state of a forked child.
 *
 * With BLKIN_DEBUG set, the library reports at its first need whether LTTng is loaded and whether
 * there are rings. BLKIN_DEBUG=check also checks the use of spans. Set-user-ID programs ignore the
 * variable.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "blkin.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/thread.h"
#include "libblkin/base/service.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/ring/ring_early.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_provider.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin/usage/usage.h"
#include "lttng.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERIODIC_NS UINT64_C(1000000000)
/* The pause before the first retry. Later pauses double, up to PERIODIC_NS. */
#define PERIODIC_SOON_NS UINT64_C(500000)

/* ---- the table ---- */

/* The word of blkin_gate_ and of the original API's tracepoints while the library looks for the
 * agent's rings. The tracepoints have this word from the start. */
static const int process_awaits_rings = BLKIN_LOOKS_FOR_RINGS;
static blkin_record_fn process_record_by_lttng;
static const struct blkin_tracepoint process_awaiting[BLKIN_ORIGINAL_EVENTS] = {
    [0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&process_awaits_rings, process_record_by_lttng},
};

const struct blkin_tracepoint *blkin_original_tracepoints = process_awaiting;

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER; /* of process_load() */
static bool process_is_open;

/* Sets the current table. If two threads do so at once and the older state wins, the next periodic
 * work corrects it. */
static void process_publish(void)
{
    const struct blkin_provider *below = blkin_lttng_provider_in_use();
    const bool has_rings = ring_map() || ring_early_is_open();
    const bool looks = !ring_map() && ring_find_state() != RING_NEVER;
    const bool awaits = !has_rings && looks;
    const struct blkin_provider *table = has_rings ? ring_provider_use_over(below) : below;

    __atomic_store_n(&blkin_provider_table, table, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_original_tracepoints, awaits ? process_awaiting : table->zipkin,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_gate_,
                     looks ? &process_awaits_rings : table->events[BLKIN_EVENT_SPAN].enabled,
                     __ATOMIC_RELEASE);
}

_Static_assert(RING_RULES_MAX <= BLKIN_POLICY_TEXT_MAX, "the agent's rules have to fit");

/* Looks for rings, and takes the agent's rules of slow spans from their memory. */
static enum ring_found process_find_rings(void)
{
    const enum ring_found found = ring_find();
    const struct ring_map *map = ring_map();
    char rules[RING_RULES_MAX];

    if (map && ring_map_rules(map, rules))
        blkin_policy_offer(&blkin_slow_source, rules);
    return found;
}

static void process_open(bool is_at_start)
{
    const char *debug = secure_getenv("BLKIN_DEBUG");

    blkin_checks = debug && strcmp(debug, "check") == 0;
    blkin_clock_init();
    blkin_sampling_init();
    blkin_slow_init();
    ring_provider_init(&blkin_no_provider);
    ring_find_wait(is_at_start);
    (void)process_find_rings();
    if (debug) {
        blkin_lttng_report();
        ring_find_report();
    }
    process_publish();
    __atomic_store_n(&process_is_open, true, __ATOMIC_RELEASE);
}

static void process_load(bool is_at_start);

/* Prepares a thread that records for the first time. */
static void process_prepare_thread(void)
{
    process_load(false);
    blkin_provider()->init_thread();
    blkin_usage_thread_begin();
}

/*
 * Opens the library at its first need: starts clock and policies, and asks the agent for rings.
 * Waits for the agent up to 5 ms, or 0.3 s at the program's start. Later calls do nothing.
 * Thread-safe. Blocks signals: a handler that records must not wait for a lock of its own thread.
 */
static void process_load(bool is_at_start)
{
    static _Thread_local bool is_loading __attribute__((tls_model("initial-exec")));
    const int saved_errno = errno;
    sigset_t signals;
    int state;

    __atomic_store_n(&blkin_thread_prepare, process_prepare_thread, __ATOMIC_RELAXED);
    if (__atomic_load_n(&process_is_open, __ATOMIC_ACQUIRE)) {
        if (is_at_start)
            process_publish(); /* blkin_init() may just have loaded LTTng */
        return;
    }
    if (is_loading) /* called by the handler of a fault that occurred in this function */
        return;
    is_loading = true;
    blkin_block_signals(&signals);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    /* before the lock is taken: the agent can answer meanwhile, and the call takes libdl's lock,
     * which another thread may hold in a constructor that records */
    ring_find_begin();
    pthread_mutex_lock(&process_lock);
    if (!process_is_open)
        process_open(is_at_start);
    else
        process_publish();
    pthread_mutex_unlock(&process_lock);
    (void)pthread_setcancelstate(state, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &signals, NULL);
    is_loading = false;
    errno = saved_errno;
}

bool blkin_process_refresh(void)
{
    const enum ring_found found = process_find_rings();

    if (found != RING_NEVER || blkin_is_quiet)
        process_publish();
    return found == RING_SOON;
}

static void process_record_by_lttng(const struct blkin_trace *trace,
                                    const struct blkin_endpoint *endpoint,
                                    const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint =
        &blkin_lttng_provider_in_use()->zipkin[annotation->type];

    if (blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
    else
        blkin_missed_();
}

int blkin_init(void)
{
    blkin_lttng_load();
    process_load(true);
    return 0;
}

/* ---- the periodic work ---- */

static const char *process_version = "";
static uint64_t process_due_ticks;
/* Only the thread that does the work uses these two variables. The second one is the deadline of
 * process_do_other_work(). A search for rings may be due earlier. */
static uint64_t process_retry_ns = PERIODIC_SOON_NS;
static uint64_t process_other_due_ticks;

void blkin_set_version(const char *new_version)
{
    __atomic_store_n(&process_version, new_version ? new_version : "", __ATOMIC_RELEASE);
}

static void process_record_event(const struct blkin_provider *provider)
{
    struct blkin_thread *thread = blkin_this_thread();
    const struct blkin_process_event event = {
        .realtime = blkin_clock_read(CLOCK_REALTIME),
        .monotonic = blkin_monotonic_ns(),
        .thread = thread->number,
        .sequence = ++thread->sequence,
        .pid = blkin_pid(),
    };
    char payload[sizeof(event) + 384];
    char *at = payload;

    at = blkin_put_bytes(at, &event, sizeof(event));
    at = blkin_put_string(at, blkin_service_name(blkin_default_service()), SPAN_SERVICE_MAX);
    at = blkin_put_string(at, __atomic_load_n(&process_version, __ATOMIC_ACQUIRE), 100);
    at = blkin_put_string(at, blkin_sampling_text(), 150);
    blkin_record_event(provider, BLKIN_EVENT_PROCESS, payload, (size_t)(at - payload));
}

/* If another thread changes the usage level meanwhile, uses the new level. */
static void process_set_due(uint64_t due)
{
    uint32_t state;

    do {
        state = __atomic_load_n(&blkin_usage_state, __ATOMIC_SEQ_CST);
        __atomic_store_n(&blkin_wiped.periodic_due_ticks,
                         blkin_usage_is_on() || blkin_checks ? BLKIN_PERIODIC_ALWAYS : due,
                         __ATOMIC_SEQ_CST);
    } while (state != __atomic_load_n(&blkin_usage_state, __ATOMIC_SEQ_CST));
}

static void process_do_other_work(void)
{
    const struct blkin_provider *provider;
    const int saved_errno = errno;

    if (!blkin_is_quiet) {
        blkin_clock_recheck();
        blkin_policy_refresh(&blkin_sampling_source);
        blkin_slow_refresh();
    }
    errno = saved_errno;
    provider = blkin_provider();
    if (blkin_event_enabled(provider, BLKIN_EVENT_PROCESS))
        process_record_event(provider);
}

void blkin_do_periodic(uint64_t now_ticks)
{
    const int saved_errno = errno;
    uint64_t due = __atomic_load_n(&process_due_ticks, __ATOMIC_RELAXED);
    uint64_t next = now_ticks + blkin_ticks_of_ns(PERIODIC_NS), then = next;
    int cancel_state;

    if (!blkin_wiped.process_mark)
        blkin_forked_();
    /* the thread that changes the deadline does the work; other threads do not wait */
    if (!blkin_is_due(now_ticks, due) && !blkin_periodic_take_early()) {
        if (!blkin_usage_is_on() && !blkin_checks)
            process_set_due(due);
        return;
    }
    if (!__atomic_compare_exchange_n(&process_due_ticks, &due, next, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    process_set_due(next);
    /* reading files is a cancellation point: a cancelled thread would leave the work half done */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (blkin_process_refresh()) {
        then = now_ticks + blkin_ticks_of_ns(process_retry_ns);
        process_retry_ns = process_retry_ns < PERIODIC_NS / 2 ? process_retry_ns * 2 : PERIODIC_NS;
    } else {
        process_retry_ns = PERIODIC_SOON_NS;
    }
    errno = saved_errno;
    if (blkin_is_due(now_ticks, process_other_due_ticks)) {
        process_other_due_ticks = next;
        process_do_other_work();
    }
    /* stores even an unchanged deadline: the release makes this state visible to the next thread
     * that does the work */
    if (__atomic_compare_exchange_n(&process_due_ticks, &next, then, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED) &&
        then != next)
        process_set_due(then);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

uint64_t blkin_look_for_rings(void)
{
    uint64_t now_ticks;

    if (!__atomic_load_n(&process_is_open, __ATOMIC_ACQUIRE))
        process_load(false);
    now_ticks = blkin_ticks();
    blkin_do_periodic_if_due(now_ticks);
    return now_ticks;
}

void blkin_heartbeat(void)
{
    (void)blkin_look_for_rings();
}

void blkin_missed_(void)
{
    const struct ring_map *map = ring_map();

    if (map) /* they came in the meantime */
        ring_lose(map, 1, blkin_monotonic_ns());
    else if (ring_find_state() != RING_NEVER)
        ring_early_lose();
}

/* ---- threads, forks, filters ---- */

void blkin_server_begins_(void)
{
    process_load(true);
    blkin_do_periodic_if_due(blkin_ticks());
}

void blkin_before_chroot_(void)
{
    process_load(true);
    ring_find_before_chroot();
    process_publish();
}

void blkin_after_chroot_(void)
{
    if (ring_find_after_chroot())
        process_publish();
}

bool blkin_be_quiet_(void)
{
    process_load(true);
    if (ring_find() == RING_SOON) {
        ring_find_wait(true);
        (void)process_find_rings();
    }
    if (!ring_map())
        return false;
    blkin_lttng_leave("the program installs a seccomp filter");
    process_publish();
    (void)blkin_this_thread();
    blkin_quiet_begin();
    ring_find_end();
    (void)blkin_set_usage(0);
    return true;
}

void blkin_init_thread(void)
{
    process_load(false);
    (void)blkin_this_thread();
}

const uint32_t *blkin_process_mark_ = &blkin_wiped.process_mark;

static bool process_follows_forks;

/* Runs in each forked child, which has one thread. */
static void process_after_fork(void)
{
    blkin_wiped.process_mark = 1;
    blkin_thread.id_counter = BLKIN_ID_COUNTER_UNSEEDED;
    blkin_thread.number = 0;
    blkin_clock_after_fork();
    blkin_quiet_after_fork();
    /* another thread of the parent may have held the lock */
    (void)pthread_mutex_init(&process_lock, NULL);
    ring_find_after_fork();
    if (process_is_open)
        process_publish();
    blkin_policy_after_fork(&blkin_sampling_source);
    blkin_slow_after_fork();
    blkin_usage_after_fork();
}

void blkin_forked_(void)
{
    if (!process_follows_forks) /* called by another constructor, before process_start() */
        return;
    blkin_lttng_leave("this is a child of _Fork(3) or clone(2)");
    process_after_fork();
}

/* Runs when this library is loaded. A constructor of the program may have called the library
 * before: see blkin_forked_(). */
__attribute__((constructor)) static void process_start(void)
{
    process_follows_forks = true;
    blkin_wiped.process_mark = 1;
    (void)madvise(&blkin_wiped, sizeof(blkin_wiped), MADV_WIPEONFORK); /* Linux 4.14 */
    (void)pthread_atfork(NULL, NULL, process_after_fork);
    blkin_lttng_at_start();
}
