/*
 * libblkin-lttng.so: the LTTng-UST probes behind the table of provider_table.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define LTTNG_UST_COMPAT_API_VERSION 1
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "zipkin_trace.h"
#include "packed.h"
#include "tracepoints/format/provider_table.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <lttng/ust-fork.h>
#include <lttng/ust-thread.h>

#define RECORD(event)                                                                           \
    static void record_##event(const struct blkin_trace *trace,                                 \
                               const struct blkin_endpoint *endpoint,                           \
                               const struct blkin_annotation *annotation)                       \
    {                                                                                           \
        const int saved_errno = errno; /* LTTng wakes its consumer daemon, which may be gone */ \
                                                                                                \
        lttng_ust_do_tracepoint(zipkin, event, trace, endpoint, annotation);                    \
        errno = saved_errno;                                                                    \
    }

RECORD(keyval_string)
RECORD(keyval_integer)
RECORD(timestamp)

_Static_assert(BLKIN_ORIGINAL_EVENTS == ANNOT_TIMESTAMP + 1, "an event is missing");

/* The state word of the tracepoint, which lttng_ust_tracepoint_enabled() reads, and the function
 * that records. */
#define ORIGINAL(event)                                              \
    {                                                                \
        &lttng_ust_tracepoint_zipkin___##event.state, record_##event \
    }

/* ---- the events of provider "blkin", as packed.h wants them ---- */

_Static_assert(LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG == 0 &&
                   LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO == 6 &&
                   LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG == BLKIN_LOGLEVEL_DEBUG,
               "LTTng counts log levels in another way");

#define EVENT(event, event_name, level, event_fields) \
    [event] = {.name = (event_name),                  \
               .loglevel = (level),                   \
               .fields = (event_fields),              \
               .field_count = sizeof(event_fields) / sizeof((event_fields)[0])},

static struct packed_event blkin_events[BLKIN_EVENTS] = {BLKIN_EACH_EVENT(EVENT)};

#define PACKED(event, name, level, fields) \
    [event] = {&blkin_events[event].tracepoint.state, &blkin_events[event]},

/* ---- forks ---- */

/* Counts nested calls: LTTng deadlocks if it is told of a fork twice. That would happen in a
 * program with libblkin.a that runs under libblkin-preload.so, which brings libblkin.so. */
static _Thread_local struct {
    unsigned depth;
    sigset_t signals;
} forking;

static void before_fork(void)
{
    const int saved_errno = errno;

    if (forking.depth++ == 0)
        lttng_ust_before_fork(&forking.signals);
    errno = saved_errno;
}

static void after_fork_parent(void)
{
    if (forking.depth && --forking.depth == 0)
        lttng_ust_after_fork_parent(&forking.signals);
}

static void after_fork_child(void)
{
    if (forking.depth && --forking.depth == 0)
        lttng_ust_after_fork_child(&forking.signals);
}

/* ---- descriptors ---- */

/* Functions of liblttng-ust-common, called as liblttng-ust-fd.so does; LTTng has no header for
 * them. Both hold LTTng's lock of descriptors and spare LTTng's own descriptors. */
int lttng_ust_safe_close_fd(int fd, int (*close_fd)(int fd));
int lttng_ust_safe_closefrom_fd(int lowest, int (*close_fd)(int fd));

/* The numbers [first, next) are not LTTng's, and not closed yet. */
static _Thread_local struct {
    unsigned first, next, last;
    int flags, result;
    int (*real)(unsigned first, unsigned last, int flags);
} range;

static void close_range_until(unsigned last)
{
    if (range.first <= last && range.real(range.first, last, range.flags) < 0)
        range.result = -1;
    range.flags = 0; /* the first call has applied them */
}

/* LTTng calls this function in ascending order for each number that is not LTTng's. */
static int see_number(int fd)
{
    if ((unsigned)fd > range.last)
        return 0;
    if ((unsigned)fd > range.next) {
        if (range.next > range.first)
            close_range_until(range.next - 1);
        range.first = (unsigned)fd;
    }
    range.next = (unsigned)fd + 1;
    return 0;
}

static int close_range_of_program(unsigned first, unsigned last, int flags,
                                  int (*real)(unsigned first, unsigned last, int flags))
{
    if (first > last || first > INT_MAX)
        return real(first, last, flags);
    range.first = range.next = first;
    range.last = last;
    range.flags = flags;
    range.result = 0;
    range.real = real;
    (void)lttng_ust_safe_closefrom_fd((int)first, see_number);
    close_range_until(last);
    return range.result;
}

/* ---- the table ---- */

BLKIN_PUBLIC const struct blkin_provider blkin_lttng_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {[ANNOT_STRING] = ORIGINAL(keyval_string),
               [ANNOT_INTEGER] = ORIGINAL(keyval_integer),
               [ANNOT_TIMESTAMP] = ORIGINAL(timestamp)},
    .events = {BLKIN_EACH_EVENT(PACKED)},
    .record = packed_record,
    .init_thread = lttng_ust_init_thread,
    .leave = packed_leave,
    .before_fork = before_fork,
    .after_fork_parent = after_fork_parent,
    .after_fork_child = after_fork_child,
    .close = lttng_ust_safe_close_fd,
    .close_range = close_range_of_program,
};

/* Runs after the constructors of LTTng's headers in this file, which find the functions for
 * registration. */
__attribute__((constructor)) static void register_blkin_events(void)
{
    packed_register("blkin", blkin_events, BLKIN_EVENTS);
    lttng_ust__events_init__zipkin(); /* a second registration, so that exit(3) does not unregister
                                         the events */
}

/* Runs before LTTng's destructors, which wait for all readers. After a siglongjmp(3) out of a
 * record, that wait would not end. */
__attribute__((destructor)) static void leave_at_exit(void)
{
    packed_leave();
}
