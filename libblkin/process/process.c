/*
 * The process event, the chores of once a second, and what is new in a child of fork.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "process.h"

#include "blkin.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/base/quiet.h"
#include "libblkin/base/service.h"
#include "libblkin/base/thread.h"
#include "libblkin/base/usage_level.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/usage/usage.h"
#include "loader.h"
#include "lttng.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHORES_EVERY_NS UINT64_C(1000000000)
#define CHORES_SOON_NS  UINT64_C(500000) /* the first time; then twice as long, and so on */

static const char *version = "";
static uint64_t really_due_ticks;
/* Of whoever does the work. */
static uint64_t soon_ns = CHORES_SOON_NS;
static uint64_t rest_due_ticks; /* all but the provider's chores, which may come earlier */

void blkin_set_version(const char *new_version)
{
    __atomic_store_n(&version, new_version ? new_version : "", __ATOMIC_RELEASE);
}

static uint64_t realtime_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void record_process(const struct blkin_provider *provider)
{
    struct blkin_thread *thread = blkin_this_thread();
    const struct blkin_process_event event = {
        .realtime = realtime_ns(),
        .monotonic = blkin_monotonic_ns(),
        .thread = thread->number,
        .sequence = ++thread->sequence,
        .pid = blkin_pid(),
    };
    char payload[sizeof(event) + 384];
    char *at = payload;

    at = blkin_put_bytes(at, &event, sizeof(event));
    at = blkin_put_string(at, blkin_service_name(blkin_default_service()), SPAN_SERVICE_MAX);
    at = blkin_put_string(at, __atomic_load_n(&version, __ATOMIC_ACQUIRE), 100);
    at = blkin_put_string(at, blkin_sampling_text(), 150);
    blkin_record_event(provider, BLKIN_EVENT_PROCESS, payload, (size_t)(at - payload));
}

/* Whoever changes the usage's level at the same time has the last word. */
static void set_chores_due(uint64_t due)
{
    uint32_t state;

    do {
        state = __atomic_load_n(&blkin_usage_state, __ATOMIC_SEQ_CST);
        __atomic_store_n(&blkin_wiped.chores_due_ticks,
                         blkin_usage_is_on() || blkin_checks ? BLKIN_CHORES_ALWAYS : due,
                         __ATOMIC_SEQ_CST);
    } while (state != __atomic_load_n(&blkin_usage_state, __ATOMIC_SEQ_CST));
}

static void do_rest(void)
{
    const struct blkin_provider *provider;
    const int saved_errno = errno;

    if (!blkin_is_quiet) {
        blkin_clock_recheck();
        blkin_sampling_refresh();
        blkin_slow_refresh();
    }
    errno = saved_errno;
    provider = blkin_provider();
    if (blkin_event_enabled(provider, BLKIN_EVENT_PROCESS))
        record_process(provider);
}

void blkin_do_chores(uint64_t now_ticks)
{
    const int saved_errno = errno;
    uint64_t due = __atomic_load_n(&really_due_ticks, __ATOMIC_RELAXED);
    uint64_t next = now_ticks + blkin_ticks_of_ns(CHORES_EVERY_NS), then = next;
    int cancel_state;

    if (!blkin_wiped.process_mark)
        blkin_forked_();
    /* who moves the time on does the work: the others are not held up */
    if (!blkin_is_due(now_ticks, due)) {
        if (!blkin_usage_is_on() && !blkin_checks)
            set_chores_due(due);
        return;
    }
    if (!__atomic_compare_exchange_n(&really_due_ticks, &due, next, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    set_chores_due(next);
    /* reading files would be a place to be cancelled: half of the work would not be done */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (blkin_provider_refresh()) {
        then = now_ticks + blkin_ticks_of_ns(soon_ns);
        soon_ns *= 2;
    } else {
        soon_ns = CHORES_SOON_NS;
    }
    errno = saved_errno;
    if (blkin_is_due(now_ticks, rest_due_ticks)) {
        rest_due_ticks = next;
        do_rest();
    }
    /* also the same time again: who does the work next sees what we have written */
    if (__atomic_compare_exchange_n(&really_due_ticks, &next, then, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED) &&
        then != next)
        set_chores_due(then);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

void blkin_heartbeat(void)
{
    blkin_process_load();
    blkin_do_chores_if_due(blkin_ticks());
}

/* ---- threads and forks ---- */

void blkin_process_load(void)
{
    blkin_provider_load(false);
}

void blkin_process_start(void)
{
    blkin_lttng_load();
    blkin_provider_load(true);
}

void blkin_server_begins_(void)
{
    blkin_provider_load(true);
    blkin_do_chores_if_due(blkin_ticks());
}

void blkin_before_chroot_(void)
{
    blkin_provider_before_chroot();
}

bool blkin_be_quiet_(void)
{
    if (!blkin_provider_be_quiet())
        return false;
    (void)blkin_this_thread();
    blkin_quiet_begin();
    return true;
}

void blkin_init_thread(void)
{
    blkin_process_load();
    (void)blkin_this_thread();
}

const uint32_t *blkin_process_mark_ = &blkin_wiped.process_mark;

static bool is_following;

/* In each forked child, whose one thread is a copy of the parent's. */
static void after_fork(void)
{
    blkin_wiped.process_mark = 1;
    blkin_thread.id_counter = BLKIN_ID_COUNTER_UNSEEDED;
    blkin_thread.number = 0;
    blkin_clock_forked();
    blkin_quiet_after_fork();
    blkin_provider_after_fork();
    blkin_sampling_after_fork();
    blkin_slow_after_fork();
    blkin_usage_after_fork();
}

void blkin_forked_(void)
{
    if (!is_following) /* the constructor of another library calls, before follow_forks() has run */
        return;
    blkin_lttng_leave("this is a child of _Fork(3) or clone(2)");
    after_fork();
}

/* At load time, when no thread of this library can be in fork() yet. */
__attribute__((constructor)) static void follow_forks(void)
{
    is_following = true;
    blkin_wiped.process_mark = 1;
    (void)madvise(&blkin_wiped, sizeof(blkin_wiped), MADV_WIPEONFORK); /* Linux 4.14 */
    (void)pthread_atfork(NULL, NULL, after_fork);
    blkin_lttng_at_start();
}
