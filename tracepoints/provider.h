/*
 * What libblkin knows of the LTTng side: one table of function pointers and enable words.
 *
 * The provider is a shared object of its own, so that libblkin links no LTTng: libblkin opens it
 * with dlopen(3) and looks up one symbol, BLKIN_PROVIDER_SYMBOL. This header must never include an
 * LTTng header.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROVIDER_H
#define BLKIN_PROVIDER_H

#include "zipkin_c.h"

#include <stdbool.h>
#include <stddef.h>

#define BLKIN_PROVIDER_SYMBOL "blkin_lttng_provider"

/* Raised at every change of the table: libblkin refuses a provider of another version. */
#define BLKIN_PROVIDER_VERSION 8

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
    struct blkin_tracepoint zipkin[ANNOT_TIMESTAMP + 1]; /* by blkin_annotation_type */
    struct blkin_event events[BLKIN_EVENTS];
    /*
     * Records an event whose payload is laid out already; only while it is enabled. *thread_slot is
     * the provider's, one for each thread, NULL at first.
     */
    void (*record)(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot);
    /*
     * From now on, children of fork(2) are registered with LTTng: at once, or (returns true) when
     * register_process() is called in the child, to be done before anything else here is. The first
     * call decides.
     */
    bool (*follow_forks)(bool at_once);
    /* Registers a child of fork(2) where that is still to be done. Takes ms. Thread-safe. */
    void (*register_process)(void);
    /* Has a session daemon taken this process in? Slow. */
    bool (*is_registered)(void);
    /* Allocates what LTTng keeps of the calling thread. */
    void (*init_thread)(void);
};

#endif
