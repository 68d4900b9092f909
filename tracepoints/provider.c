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
#include "blkin_events.h"
#include "descriptors.h"
#include "fork.h"
#include "tracepoints/format/provider_table.h"

#include <errno.h>
#include <lttng/ust-thread.h>

#define RECORD(event)                                                                            \
    static void record_##event(const struct blkin_trace *trace,                                  \
                               const struct blkin_endpoint *endpoint,                            \
                               const struct blkin_annotation *annotation)                        \
    {                                                                                            \
        const int saved_errno = errno; /* LTTng wakes its consumer daemon up, who may be gone */ \
                                                                                                 \
        lttng_ust_do_tracepoint(zipkin, event, trace, endpoint, annotation);                     \
        errno = saved_errno;                                                                     \
    }

RECORD(keyval_string)
RECORD(keyval_integer)
RECORD(timestamp)

_Static_assert(BLKIN_ORIGINAL_EVENTS == ANNOT_TIMESTAMP + 1, "an event is missing");

/* With the word that lttng_ust_tracepoint_enabled() reads. */
#define ORIGINAL(event)                                              \
    {                                                                \
        &lttng_ust_tracepoint_zipkin___##event.state, record_##event \
    }

#define PACKED(event, name, level, fields) \
    [event] = {&blkin_events[event].tracepoint.state, &blkin_events[event]},

extern BLKIN_PUBLIC const struct blkin_provider blkin_lttng_provider;

/* Threads that open this object at the same time wait in ld.so, which ThreadSanitizer does not see.
 */
static bool is_ready;

static bool follow_forks(bool at_once, char *timeout_ms)
{
    if (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE))
        return false;
    __atomic_store_n(&fork_provider, &blkin_lttng_provider, __ATOMIC_RELAXED);
    return fork_follow(at_once, timeout_ms);
}

const struct blkin_provider blkin_lttng_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {[ANNOT_STRING] = ORIGINAL(keyval_string),
               [ANNOT_INTEGER] = ORIGINAL(keyval_integer),
               [ANNOT_TIMESTAMP] = ORIGINAL(timestamp)},
    .events = {BLKIN_EACH_EVENT(PACKED)},
    .record = packed_record,
    .follow_forks = follow_forks,
    .registration = fork_registration,
    .register_process = fork_register,
    .is_registered = fork_is_registered,
    .init_thread = lttng_ust_init_thread,
    .after_bare_fork = fork_after_bare,
    .find_descriptor = descriptors_find,
};

/*
 * After LTTng's own constructors, which its headers put into this file: they find the functions
 * that registration needs.
 */
__attribute__((constructor)) static void register_blkin_events(void)
{
    packed_register("blkin", blkin_events, BLKIN_EVENTS);
    __atomic_store_n(&is_ready, true, __ATOMIC_RELEASE);
}
