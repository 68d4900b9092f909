/*
 * libblkin-lttng.so: the LTTng-UST events, and the table of provider_table.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define LTTNG_UST_COMPAT_API_VERSION 1
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
/*
 * Inlines the RCU read side, which saves three calls: a tenth of an event's time. liburcu and
 * LTTng-UST allow this for code whose licence is compatible with the LGPL. Only libblkin-lttng.so
 * contains such code.
 */
#define _LGPL_SOURCE
#include "zipkin_trace.h"
#include "tracepoints/format/fields.h"
#include "tracepoints/format/provider_table.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <lttng/ust-events.h>
#include <lttng/ust-fork.h>
#include <lttng/ust-ringbuffer-context.h>
#include <lttng/ust-thread.h>

#define RECORD(event)                                                                  \
    static void record_##event(const struct blkin_trace *trace,                        \
                               const struct blkin_endpoint *endpoint,                  \
                               const struct blkin_annotation *annotation)              \
    {                                                                                  \
        const int saved_errno = errno; /* LTTng may change errno: it wakes a daemon */ \
                                                                                       \
        lttng_ust_do_tracepoint(zipkin, event, trace, endpoint, annotation);           \
        errno = saved_errno;                                                           \
    }

RECORD(keyval_string)
RECORD(keyval_integer)
RECORD(timestamp)

_Static_assert(BLKIN_ORIGINAL_EVENTS == ANNOT_TIMESTAMP + 1, "an event is missing");

/* The tracepoint's state word, which lttng_ust_tracepoint_enabled() reads, and the function that
 * records. */
#define ORIGINAL(event)                                              \
    {                                                                \
        &lttng_ust_tracepoint_zipkin___##event.state, record_##event \
    }

/*
 * ---- packed events: LTTng-UST events whose payload the caller has already written ----
 *
 * LTTng's own macros write each field with a call, and a span has seven fields. One write of the
 * whole payload costs one call. So this file describes the events to LTTng by hand, with the
 * structures of <lttng/ust-events.h> that the macros also use. Filters, triggers and readers see
 * named fields as in any other event.
 */

#define BLKIN_EVENTS_PROVIDER "blkin"

/* For functions without arrays: stack protection would only cost time. */
#if __has_attribute(no_stack_protector)
#define NO_PROTECTOR __attribute__((no_stack_protector))
#else
#define NO_PROTECTOR
#endif

#define PACKED_FIELDS_MAX 20

struct packed_event {
    const char *name;
    int loglevel;
    const struct packed_field *fields;
    unsigned field_count;

    /* set by packed_describe() */
    struct lttng_ust_tracepoint tracepoint;
    const int *loglevel_pointer;
    struct lttng_ust_event_field descriptions[PACKED_FIELDS_MAX];
    const struct lttng_ust_event_field *description_pointers[PACKED_FIELDS_MAX];
    struct lttng_ust_tracepoint_class tracepoint_class;
    struct lttng_ust_event_desc desc;
};

_Static_assert(sizeof(slow_fields) / sizeof(slow_fields[0]) <= PACKED_FIELDS_MAX,
               "an event has too many fields");

/* Byte-aligned on every architecture, so that the payload has no padding. */
#define INTEGER_TYPE(bits, print_base)                                                        \
    {                                                                                         \
        .parent = {.type = lttng_ust_type_integer},                                           \
        .struct_size = sizeof(struct lttng_ust_type_integer), .size = (bits), .alignment = 8, \
        .base = (print_base),                                                                 \
    }

static const struct lttng_ust_type_integer integer_types[] = {
    [PACKED_U16] = INTEGER_TYPE(16, 10),
    [PACKED_U32] = INTEGER_TYPE(32, 10),
    [PACKED_U64] = INTEGER_TYPE(64, 10),
    [PACKED_HEX64] = INTEGER_TYPE(64, 16),
};

static const struct lttng_ust_type_string string_type = {
    .parent = {.type = lttng_ust_type_string},
    .struct_size = sizeof(struct lttng_ust_type_string),
    .encoding = lttng_ust_string_encoding_UTF8,
};

/* The arguments of packed_probe() after the first. Must be the same for a tracepoint and its probe.
 */
static const char packed_signature[] =
    "struct packed_event *, event, const void *, payload, size_t, length";

/* A field as filters and captures see it. */
union stack_entry {
    uint64_t integer;
    const char *string;
};

_Static_assert(sizeof(union stack_entry) == 8, "LTTng looks for 8 bytes per field");

/* The size is a constant, so memcpy() compiles to one load. */
#define LOAD(type)                              \
    do {                                        \
        type value;                             \
        memcpy(&value, payload, sizeof(value)); \
        entry->integer = value;                 \
        payload += sizeof(value);               \
    } while (0)

/* Stores the values of all fields in the form that filters and captures read. */
static void packed_fill_stack(union stack_entry *entry, const struct packed_event *event,
                              const char *payload)
{
    for (unsigned i = 0; i < event->field_count; i++, entry++) {
        switch (event->fields[i].type) {
        case PACKED_U16:
            LOAD(uint16_t);
            break;
        case PACKED_U32:
            LOAD(uint32_t);
            break;
        case PACKED_U64:
        case PACKED_S64: /* only in dumps of rings */
        case PACKED_HEX64:
            LOAD(uint64_t);
            break;
        case PACKED_STRING:
            entry->string = payload;
            if (i + 1 < event->field_count) /* the end of the last field is not needed */
                payload += strlen(payload) + 1;
            break;
        }
    }
}

static inline __attribute__((always_inline)) void
packed_write(struct lttng_ust_event_recorder *recorder, struct lttng_ust_probe_ctx *probe_ctx,
             const void *payload, size_t length)
{
    struct lttng_ust_channel_buffer *channel = recorder->chan;
    struct lttng_ust_ring_buffer_ctx ctx;

    lttng_ust_ring_buffer_ctx_init(&ctx, recorder, length, 1, probe_ctx);
    if (channel->ops->event_reserve(&ctx) < 0)
        return; /* LTTng has counted the event as discarded */
    channel->ops->event_write(&ctx, payload, length, 1);
    channel->ops->event_commit(&ctx);
}

/* Notifies a trigger: "lttng add-trigger --condition=event-rule-matches". */
static void packed_notify(struct lttng_ust_event_notifier *notifier,
                          struct lttng_ust_probe_ctx *probe_ctx, const char *stack)
{
    struct lttng_ust_notification_ctx ctx = {
        .struct_size = sizeof(ctx),
        .eval_capture = CMM_ACCESS_ONCE(notifier->eval_capture),
    };

    notifier->notification_send(notifier, stack, probe_ctx, &ctx);
}

static bool packed_session_records(const struct lttng_ust_event_recorder *recorder)
{
    const struct lttng_ust_channel_common *channel = recorder->chan->parent;

    return CMM_ACCESS_ONCE(channel->session->active) && CMM_ACCESS_ONCE(channel->enabled);
}

static inline bool packed_is_recorder(const struct lttng_ust_event_common *common)
{
    return __builtin_expect(common->type == LTTNG_UST_EVENT_TYPE_RECORDER, 1);
}

static inline bool packed_is_wanted(const struct lttng_ust_event_common *common)
{
    return (!packed_is_recorder(common) || packed_session_records(common->child)) &&
           CMM_ACCESS_ONCE(common->enabled);
}

/* Records the event for a session with a filter, or for a trigger: both look at values. */
static void packed_record_by_values(struct lttng_ust_event_common *common, const char *stack,
                                    const void *payload, size_t length)
{
    struct lttng_ust_probe_ctx probe_ctx = {.struct_size = sizeof(probe_ctx), .ip = NULL};

    if (!packed_is_wanted(common))
        return;
    if (CMM_ACCESS_ONCE(common->eval_filter) &&
        common->run_filter(common, stack, &probe_ctx, NULL) != LTTNG_UST_EVENT_FILTER_ACCEPT)
        return;
    if (packed_is_recorder(common))
        packed_write(common->child, &probe_ctx, payload, length);
    else if (common->type == LTTNG_UST_EVENT_TYPE_NOTIFIER)
        packed_notify(common->child, &probe_ctx, stack);
}

/* Records the event for `each` and all sessions after it. Unpacks the values once for all of
 * them. */
__attribute__((noinline)) static void
packed_record_rest_by_values(const struct lttng_ust_tracepoint_probe *each,
                             const struct packed_event *event, const void *payload, size_t length)
{
    union stack_entry stack[PACKED_FIELDS_MAX];

    packed_fill_stack(stack, event, payload);
    for (; each->func; each++)
        packed_record_by_values(each->data, (const char *)stack, payload, length);
}

/* Records the event for a session that does not look at values. For any other session, and for a
 * trigger, records nothing and returns false. */
static inline __attribute__((always_inline)) bool
packed_record_plainly(struct lttng_ust_event_common *common, const void *payload, size_t length)
{
    struct lttng_ust_probe_ctx probe_ctx = {.struct_size = sizeof(probe_ctx), .ip = NULL};

    if (!packed_is_wanted(common))
        return true;
    if (!packed_is_recorder(common) || __builtin_expect(CMM_ACCESS_ONCE(common->eval_filter), 0))
        return false;
    packed_write(common->child, &probe_ctx, payload, length);
    return true;
}

/* LTTng's probe: called for each session or trigger that wants the event. packed_record() does the
 * same without the call. */
static void packed_probe(void *data, struct packed_event *event, const void *payload, size_t length)
{
    union stack_entry stack[PACKED_FIELDS_MAX];

    packed_fill_stack(stack, event, payload);
    packed_record_by_values(data, (const char *)stack, payload, length);
}

/* Enters the read side of LTTng's RCU, like LTTng's inline functions. Stores the address of the
 * thread's variable in *thread_slot, which saves four calls each time. */
static inline struct lttng_ust_urcu_reader *packed_read_lock(void **thread_slot)
{
    struct lttng_ust_urcu_reader **variable = *thread_slot;
    struct lttng_ust_urcu_reader *reader;
    unsigned long nesting;

    if (__builtin_expect(!variable, 0))
        *thread_slot = variable = &URCU_TLS(lttng_ust_urcu_reader);
    reader = *variable;
    if (__builtin_expect(!reader, 0)) {
        lttng_ust_urcu_register();
        reader = *variable;
    }
    cmm_barrier();
    nesting = reader->ctr; /* NOLINT(clang-analyzer-core.NullDereference): it is registered now */
    if (__builtin_expect(nesting & LTTNG_UST_URCU_GP_CTR_NEST_MASK, 0)) {
        CMM_STORE_SHARED(reader->ctr, nesting + LTTNG_UST_URCU_GP_COUNT);
    } else {
        CMM_STORE_SHARED(reader->ctr, CMM_LOAD_SHARED(lttng_ust_urcu_gp.ctr));
        lttng_ust_urcu_smp_mb_slave();
    }
    return reader;
}

static inline void packed_read_unlock(struct lttng_ust_urcu_reader *reader)
{
    lttng_ust_urcu_smp_mb_slave();
    CMM_STORE_SHARED(reader->ctr, reader->ctr - LTTNG_UST_URCU_GP_COUNT);
    cmm_barrier();
}

/* Records the event in each session that has it enabled: see struct blkin_provider. */
NO_PROTECTOR static void packed_record(struct packed_event *event, const void *payload,
                                       size_t length, void **thread_slot)
{
    int *const error = &errno; /* LTTng may change errno: it wakes a daemon */
    const int saved_errno = *error;
    struct lttng_ust_urcu_reader *reader = packed_read_lock(thread_slot);
    const struct lttng_ust_tracepoint_probe *each =
        lttng_ust_tp_rcu_dereference(event->tracepoint.probes);

    for (; each && each->func; each++) {
        /* each->func is always packed_probe(), so it need not be called */
        if (!packed_record_plainly(each->data, payload, length)) {
            packed_record_rest_by_values(each, event, payload, length);
            break;
        }
    }
    packed_read_unlock(reader);
    *error = saved_errno;
}

/* Called when the thread has left packed_record() by longjmp(3), or by exit(3) in a signal handler:
 * LTTng does not wait for that record any more. */
static void packed_leave(void)
{
    struct lttng_ust_urcu_reader *reader = URCU_TLS(lttng_ust_urcu_reader);

    if (reader)
        CMM_STORE_SHARED(reader->ctr, 0);
}

static void packed_describe_fields(struct packed_event *event)
{
    for (unsigned i = 0; i < event->field_count; i++) {
        const struct packed_field *field = &event->fields[i];

        event->descriptions[i] = (struct lttng_ust_event_field){
            .struct_size = sizeof(struct lttng_ust_event_field),
            .name = field->name,
            .type = field->type == PACKED_STRING ? &string_type.parent
                                                 : &integer_types[field->type].parent,
        };
        event->description_pointers[i] = &event->descriptions[i];
    }
}

static void packed_describe(struct packed_event *event,
                            const struct lttng_ust_probe_desc *probe_desc)
{
    static int provider_is_here;

    packed_describe_fields(event);
    event->tracepoint = (struct lttng_ust_tracepoint){
        .struct_size = sizeof(event->tracepoint),
        .provider_name = BLKIN_EVENTS_PROVIDER,
        .event_name = event->name,
        .tracepoint_provider_ref = &provider_is_here,
        .signature = packed_signature,
    };
    event->tracepoint_class = (struct lttng_ust_tracepoint_class){
        .struct_size = sizeof(event->tracepoint_class),
        .fields = event->description_pointers,
        .nr_fields = event->field_count,
        .probe_callback = (void (*)(void))packed_probe,
        .signature = packed_signature,
        .probe_desc = probe_desc,
    };
    event->loglevel_pointer = &event->loglevel;
    event->desc = (struct lttng_ust_event_desc){
        .struct_size = sizeof(event->desc),
        .event_name = event->name,
        .probe_desc = probe_desc,
        .tp_class = &event->tracepoint_class,
        .loglevel = &event->loglevel_pointer,
    };
}

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

/* Runs after the constructors that LTTng's headers define in this file: they look up the functions
 * for registration. Nothing unregisters the events. */
__attribute__((constructor)) static void packed_register(void)
{
    static struct lttng_ust_probe_desc probe_desc;
    static const struct lttng_ust_event_desc *descs[BLKIN_EVENTS];
    static struct lttng_ust_tracepoint *tracepoints[BLKIN_EVENTS];

    for (unsigned i = 0; i < BLKIN_EVENTS; i++) {
        packed_describe(&blkin_events[i], &probe_desc);
        descs[i] = &blkin_events[i].desc;
        tracepoints[i] = &blkin_events[i].tracepoint;
    }
    probe_desc = (struct lttng_ust_probe_desc){
        .struct_size = sizeof(probe_desc),
        .provider_name = BLKIN_EVENTS_PROVIDER,
        .event_desc = descs,
        .nr_events = BLKIN_EVENTS,
        .major = LTTNG_UST_PROVIDER_MAJOR,
        .minor = LTTNG_UST_PROVIDER_MINOR,
    };
    if (lttng_ust_probe_register(&probe_desc) && lttng_ust_tracepoint_dlopen_ptr &&
        lttng_ust_tracepoint_dlopen_ptr->lttng_ust_tracepoint_module_register)
        (void)lttng_ust_tracepoint_dlopen_ptr->lttng_ust_tracepoint_module_register(tracepoints,
                                                                                    BLKIN_EVENTS);
    /* a second registration, so that LTTng's destructor does not unregister the zipkin events */
    lttng_ust__events_init__zipkin();
}

/* ---- forks ---- */

/* Counts nested calls: LTTng deadlocks if its functions are called twice for one fork. A program
 * with libblkin.a that runs under libblkin-preload.so calls them twice: it has libblkin.so, too. */
static _Thread_local struct {
    unsigned depth;
    sigset_t signals;
} provider_fork;

static void provider_before_fork(void)
{
    const int saved_errno = errno;

    if (provider_fork.depth++ == 0)
        lttng_ust_before_fork(&provider_fork.signals);
    errno = saved_errno;
}

static void provider_after_fork_parent(void)
{
    if (provider_fork.depth && --provider_fork.depth == 0)
        lttng_ust_after_fork_parent(&provider_fork.signals);
}

static void provider_after_fork_child(void)
{
    if (provider_fork.depth && --provider_fork.depth == 0)
        lttng_ust_after_fork_child(&provider_fork.signals);
}

/* ---- descriptors ---- */

/* Functions of liblttng-ust-common, called as liblttng-ust-fd.so does. LTTng has no header for
 * them. Both hold LTTng's lock of descriptors, and do not close LTTng's own descriptors. */
int lttng_ust_safe_close_fd(int fd, int (*close_fd)(int fd));
int lttng_ust_safe_closefrom_fd(int lowest, int (*close_fd)(int fd));

/* The descriptors [first, next) are not LTTng's, and not closed yet. */
static _Thread_local struct {
    unsigned first, next, last;
    int flags, result;
    int (*real)(unsigned first, unsigned last, int flags);
} closing_range;

static void close_range_until(unsigned last)
{
    if (closing_range.first <= last &&
        closing_range.real(closing_range.first, last, closing_range.flags) < 0)
        closing_range.result = -1;
    closing_range.flags = 0; /* only the first call has the program's flags */
}

/* LTTng calls this function for each descriptor that is not LTTng's, in ascending order. */
static int close_range_see_free(int fd)
{
    if ((unsigned)fd > closing_range.last)
        return 0;
    if ((unsigned)fd > closing_range.next) {
        if (closing_range.next > closing_range.first)
            close_range_until(closing_range.next - 1);
        closing_range.first = (unsigned)fd;
    }
    closing_range.next = (unsigned)fd + 1;
    return 0;
}

static int provider_close_range(unsigned first, unsigned last, int flags,
                                int (*real)(unsigned first, unsigned last, int flags))
{
    if (first > last || first > INT_MAX)
        return real(first, last, flags);
    closing_range.first = closing_range.next = first;
    closing_range.last = last;
    closing_range.flags = flags;
    closing_range.result = 0;
    closing_range.real = real;
    (void)lttng_ust_safe_closefrom_fd((int)first, close_range_see_free);
    close_range_until(last);
    return closing_range.result;
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
    .before_fork = provider_before_fork,
    .after_fork_parent = provider_after_fork_parent,
    .after_fork_child = provider_after_fork_child,
    .close = lttng_ust_safe_close_fd,
    .close_range = provider_close_range,
};

/* Runs before LTTng's destructors, which wait for the end of each record. After a siglongjmp(3) out
 * of a record, they would wait for ever. */
__attribute__((destructor)) static void packed_leave_at_exit(void)
{
    packed_leave();
}
