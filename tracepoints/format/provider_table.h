/*
 * The interface between libblkin and its LTTng provider: a table of function pointers and of
 * pointers to enable words.
 *
 * The provider is a shared object of its own, so that libblkin does not link LTTng. The library
 * opens the provider with dlopen(3) and looks up the symbol BLKIN_PROVIDER_SYMBOL. So this header
 * must never include an LTTng header.
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

/* Incremented at every change of the table: libblkin refuses other versions. */
#define BLKIN_PROVIDER_VERSION 11

typedef void blkin_record_fn(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                             const struct blkin_annotation *annotation);

/* A tracepoint of the original API. The word *enabled is not 0 while a session records the event;
 * LTTng's thread may change it at any time. Callers call record() only while the word is not 0. */
struct blkin_tracepoint {
    const int *enabled;
    blkin_record_fn *record;
};

#define BLKIN_ORIGINAL_EVENTS 3 /* one for each blkin_annotation_type */

/* The events of provider "blkin": see events.h. */
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
    /* Records an event whose payload is complete. Called only while the event is enabled.
     * *thread_slot is one pointer for each thread, NULL at first, that the provider uses. */
    void (*record)(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot);
    /* Allocates LTTng's state of the calling thread. */
    void (*init_thread)(void);
    /* Called when the thread has left record() by longjmp(3): LTTng must not wait for its end. */
    void (*leave)(void);
    /* Called around fork(2), as in lttng/ust-fork.h. Calls may be nested. */
    void (*before_fork)(void);
    void (*after_fork_parent)(void);
    void (*after_fork_child)(void);
    /* Called in place of the program's close(2) and close_range(2). They call the real functions,
     * except for LTTng's descriptors. */
    int (*close)(int fd, int (*real)(int fd));
    int (*close_range)(unsigned first, unsigned last, int flags,
                       int (*real)(unsigned first, unsigned last, int flags));
};

#endif
