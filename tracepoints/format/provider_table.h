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
#define BLKIN_PROVIDER_VERSION 9

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

enum blkin_registration {
    BLKIN_REGISTERED,     /* or as good as that: its parent is, and suffices */
    BLKIN_UNREGISTERED,   /* it has to be before anything can be recorded */
    BLKIN_NOT_WANTED_YET, /* no session wants events: ask again at the next one */
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
    /*
     * From now on, children of fork(2) are followed. at_once: they are registered in fork(2). Else
     * this returns true, and register_process() is to be called in a child before anything else
     * here is, and once a second from then on. The first call decides. timeout_ms: see
     * lttng_start.h; it stays.
     */
    bool (*follow_forks)(bool at_once, char *timeout_ms);
    /* How a child of fork(2) is known. Thread-safe, as what follows is. */
    enum blkin_registration (*registration)(void);
    /*
     * Registers it; takes ms. may_wait: until the session daemon has told what it wants; else that
     * comes into force later. False: nothing may be recorded in this process.
     */
    bool (*register_process)(bool may_wait);
    /* Has a session daemon taken this process in? Slow. */
    bool (*is_registered)(void);
    /* Allocates what LTTng keeps of the calling thread. */
    void (*init_thread)(void);
    /* In a child that was made without the handlers of fork(2): it never registers. */
    void (*after_bare_fork)(void);
    /* The lowest descriptor from..to that is LTTng's, or -1. */
    int (*find_descriptor)(unsigned from, unsigned to);
};

#endif
