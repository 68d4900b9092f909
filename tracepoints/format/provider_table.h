/*
 * What libblkin knows of the LTTng side: one table of function pointers and enable words.
 *
 * The provider is a shared object of its own, so that libblkin links no LTTng: libblkin opens it
 * with dlopen(3) and looks up one symbol, BLKIN_PROVIDER_SYMBOL. This header must never include an
 * LTTng header.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROVIDER_TABLE_H
#define BLKIN_PROVIDER_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct blkin_trace;
struct blkin_endpoint;
struct blkin_annotation;

#define BLKIN_PROVIDER_SYMBOL "blkin_lttng_provider"

/* Raised at every change of the table: libblkin refuses a provider of another version. */
#define BLKIN_PROVIDER_VERSION 11

typedef void blkin_record_fn(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                             const struct blkin_annotation *annotation);

/*
 * One tracepoint of the original API: *enabled is not 0 while some session records it (LTTng
 * changes the word at any time, from its own thread), and record() may be called only then.
 */
struct blkin_tracepoint {
    const int *enabled;
    blkin_record_fn *record;
};

#define BLKIN_ORIGINAL_EVENTS 3 /* by blkin_annotation_type */

/* The events of provider "blkin": see events.h for what is in them. */
enum blkin_packed_event {
    BLKIN_EVENT_SPAN,
    BLKIN_EVENT_BEGIN,
    BLKIN_EVENT_TAG,
    BLKIN_EVENT_END,
    BLKIN_EVENT_PROCESS,
    BLKIN_EVENT_SLOW,
    BLKIN_EVENT_ANNOTATION, /* + severity: eight events */
    BLKIN_EVENT_METRIC = BLKIN_EVENT_ANNOTATION + 8,
    BLKIN_EVENTS
};

struct packed_event;

struct blkin_event {
    const int *enabled;
    struct packed_event *event;
};

struct blkin_provider {
    unsigned version;
    struct blkin_tracepoint zipkin[BLKIN_ORIGINAL_EVENTS];
    struct blkin_event events[BLKIN_EVENTS];
    /*
     * Records an event whose payload is laid out already; only while it is enabled. *thread_slot is
     * the provider's, one for each thread, NULL at first.
     */
    void (*record)(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot);
    /* Allocates what LTTng keeps of the calling thread. */
    void (*init_thread)(void);
    /* The calling thread has left record() by longjmp(3): nobody has to wait for its end. */
    void (*leave)(void);
    /* Around fork(2), as lttng/ust-fork.h has it. Calls may be nested. */
    void (*before_fork)(void);
    void (*after_fork_parent)(void);
    void (*after_fork_child)(void);
    /* close(2) and close_range(2) of the program's, by the real ones, but for LTTng's own
     * descriptors. */
    int (*close)(int fd, int (*real)(int fd));
    int (*close_range)(unsigned first, unsigned last, int flags,
                       int (*real)(unsigned first, unsigned last, int flags));
};

#endif
