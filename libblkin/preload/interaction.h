/*
 * Interactions: a request and its response on a connection, as a span of the side that this process
 * is.
 *
 * A message is the bytes that go in one direction with none in the other one between them. An
 * interaction begins with the first byte of its request and is over with the last one of its
 * response, which is certain only when the next request comes, the connection is closed, or nothing
 * more was sent for HOLD_NS; until then it is held, and its span then ends where the last byte was.
 *
 * The one at hand is the connection's. Where several threads share a connection, each with a
 * request of its own, an interaction is that of the thread that has read it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_INTERACTION_H
#define BLKIN_PRELOAD_INTERACTION_H

#include "connection.h"
#include "file.h"
#include "thread.h"

#define HOLD_NS     UINT64_C(50000000)
#define PREFIX_KEPT 39 /* bytes of a request that are compared */

enum phase {
    PHASE_NEW,      /* a client's, nothing of which is sent: its span is not begun */
    PHASE_REQUEST,  /* being received or worked on; being sent or waited for */
    PHASE_ANSWERED, /* at least a part of the response has passed */
    PHASE_OVER,     /* recorded or dropped */
};

struct interaction {
    struct pool_item item; /* references: connection, thread's work, lists, what it caused */
    struct connection *connection; /* referenced */
    struct interaction *owner;     /* of a client's: what has certainly caused it; referenced */
    struct interaction *likely;    /* or perhaps; referenced */
    struct thread *thread;         /* that has begun it; only to be compared */
    uint32_t writers;              /* threads that are sending the answer just now */
    uint32_t calls;                /* that it has made and that are not answered */
    uint32_t open_at;              /* where in the thread's list, plus 1; 0: it is not */
    uint8_t phase;
    uint8_t cause;
    bool is_worked_for; /* a thread's work */
    bool is_partial;    /* the last write was not complete, or more is to follow */
    bool is_ambiguous;  /* a call was made that may have been its own or another one's */
    bool has_called;
    uint8_t head_length;
    uint64_t start_ns, last_ns;
    uint64_t offset;              /* of the request's first byte */
    uint64_t requested, answered; /* bytes */
    uint64_t round;               /* of its thread, when it was last heard of */
    struct file_totals files;     /* of its thread, at the begin */
    char head[PRELOAD_PAYLOAD_MAX];
    struct blkin_span span;
} __attribute__((aligned(64)));

/* ---- what the wrappers tell: between preload_enter() and preload_leave() ---- */

/* The first bytes of what is sent or was received; NULL: not known, as with sendfile(2). */
struct bytes {
    const char *first;
    size_t length;
};

/* A thread is about to read: what was answered is over. */
void interaction_before_read(struct connection *connection);
void interaction_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
/* The peer has closed its side, or the connection. */
void interaction_has_read_end(struct connection *connection);

/*
 * A client's request is known before it is sent, as another thread may read the answer; and what a
 * server answers, as another thread may read the next request. Returns what has_written is given.
 */
pool_name interaction_before_write(struct connection *connection, int fd);
/* Of wanted bytes count were written; 0 if the call has failed. */
void interaction_has_written(struct connection *connection, pool_name written, struct bytes head,
                             size_t count, size_t wanted);
/* The same, but another thread has closed the connection meanwhile. */
void interaction_has_written_last(pool_name written, size_t count, size_t wanted);
/* No more will be written. */
void interaction_stops_sending(struct connection *connection);

/* A connection is being made for the request that certainly has caused this, if there is one. */
void interaction_connects(struct connection *connection);

/* The last descriptor is closed, or was behind our back. */
void interaction_connection_ends(struct connection *connection);

/* The thread is about to wait for a new connection. */
void interaction_waits(void);
/*
 * It waits for events: of many descriptors, for whatever comes next; of one, it may be in the
 * middle of a request. It has had interactions. Returns true if something is held by it.
 */
bool interaction_waits_for_events(bool of_many);
/* It has waited for HOLD_NS, and there were none. */
void interaction_is_idle(void);

/* Records all that is answered: the process ends; the thread does. */
void interaction_flush_all(void);
void interaction_thread_ends(struct thread *thread);

/* In a child of fork(2). */
void interaction_forget_all(void);

/* While tracing is off: an interaction at hand cannot be told any more. */
void interaction_abandon(struct connection *connection);
/* And all that this thread, which has had some, works for and holds. */
void interaction_drop_held(void);

/* ---- within this library ---- */

/* With a reference; NULL: that one is gone. */
struct interaction *interaction_find(pool_name name);

/* Of all threads', the one of this index, with a reference; NULL: it is no request that waits for
 * its answer. is_there: there may be one of the next index. */
struct interaction *interaction_requested(uint32_t index, bool *is_there);

void interaction_hold(struct interaction *interaction);
void interaction_let_go(struct interaction *interaction);

static inline bool interaction_is_partial(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->is_partial, __ATOMIC_RELAXED);
}

static inline uint8_t interaction_phase(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->phase, __ATOMIC_ACQUIRE);
}

#endif
