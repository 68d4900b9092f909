/*
 * Interactions: a request and its response on a connection. This process records an interaction as
 * a span of its own side.
 *
 * A message is a sequence of bytes in one direction, with no bytes in the other direction between
 * them. An interaction begins with the first byte of its request and ends with the last byte of its
 * response. Only the next request, or the end of the connection, shows which byte was the last.
 * Until then the library holds the interaction, for at most INTERACTION_HOLD_NS after the last byte
 * and the end of the interaction's own calls. The span ends at the time of the last byte.
 *
 * A connection has one current interaction. Several threads may share a connection, each with its
 * own request: then an interaction belongs to the thread that has read its request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_INTERACTION_H
#define BLKIN_PRELOAD_INTERACTION_H

#include "config.h"
#include "connection.h"
#include "file_sums.h"
#include "pool.h"

/*
 * An answer that pauses for longer counts as complete. The value fits tv_usec of struct timeval and
 * tv_nsec of struct timespec. The value is less than the sink's join-wait-ms, because the sink may
 * wait for a half that is held here.
 */
#define INTERACTION_HOLD_NS UINT64_C(900000000)
#define PREFIX_MAX          39 /* number of a request's first bytes that are compared */

#define OPEN_MAX 512
#define HELD_MAX 512 /* a power of two */

enum phase {
    PHASE_NEW,      /* of a client, before the first byte is sent; no span yet */
    PHASE_REQUEST,  /* no part of the response was sent or received yet */
    PHASE_ANSWERED, /* a part of the response was sent or received */
    PHASE_OVER,     /* recorded or dropped */
};

struct interaction {
    struct pool_item item; /* referenced by connection, thread, lists and its calls */
    uint8_t phase;         /* also read without a reference: change it only by atomic stores */
    uint8_t cause;         /* enum preload_cause; the first member that interaction_make() clears */
    bool is_worked_for;    /* a thread works for this request */
    bool is_partial;       /* the last write was incomplete, or more will follow */
    bool is_ambiguous;     /* a call may have been for this or for another request */
    bool has_called;       /* a call was made, perhaps for this request */
    bool is_past_call;     /* a call was certainly for this request, or made right after its read */
    uint8_t head_length;
    struct connection *connection;     /* referenced */
    struct interaction *owner;         /* of a client: the certain cause; referenced */
    struct interaction *likely;        /* of a client: the guessed cause; referenced */
    struct interaction_worker *worker; /* the thread that began it; only for comparison */
    uint32_t writers;                  /* threads that are sending the answer */
    uint32_t calls;                    /* number of its calls without an answer so far */
    uint32_t calls_unended;            /* number of its calls that are not in PHASE_OVER */
    uint32_t open_at;                  /* index in worker->open, plus 1; 0: not in the list */
    uint64_t start_ns, last_ns;
    uint64_t offset;              /* of the request's first byte */
    uint64_t requested, answered; /* bytes */
    uint64_t round;               /* the thread's round when it last read for this request */
    struct file_totals files;     /* of its thread, from the start on */
    char head[PRELOAD_PAYLOAD_MAX];
    struct blkin_span span;
} __attribute__((aligned(64)));

/* A thread with interactions. */
struct interaction_worker {
    struct pool_item item;

    /* Open requests: this thread has read the requests, and they wait neither for an answer nor for
     * a call. Each request may cause the next call. Referenced. Only interaction.c changes the
     * list. */
    struct interaction *open[OPEN_MAX];
    unsigned open_count;
    bool has_overflowed; /* the list was full since it was last empty: no cause is certain */

    /* Answered interactions that are held, the oldest first. Other threads read them, too. Changed
     * by interaction_held.c. */
    pool_name held[HELD_MAX];
    uint64_t held_until[HELD_MAX];
    uint32_t held_first, held_end;
} __attribute__((aligned(64)));

/* The interactions of the calling thread. */
struct interaction_thread {
    struct interaction *work;     /* the request that the thread works for, or NULL; referenced */
    struct interaction *shadowed; /* the work that the program replaced by a span; referenced */
    struct interaction_worker *worker; /* NULL: no interaction so far */
    uint64_t round;                    /* number of waits for events of several descriptors */
    pool_name heard;      /* the request just read, while the thread has done nothing else */
    pool_name called;     /* the request of this round's last call that came right after a read */
    bool has_one_event;   /* the wait of this round has slept and returned one event */
    bool is_in_order;     /* the thread once called for a request before it read the next one */
    bool is_out_of_order; /* the thread once did other work between a read and its call */
};

extern __thread struct interaction_thread interaction_thread
    __attribute__((tls_model("initial-exec")));

/* The first bytes of a message; NULL: unknown, as with sendfile(2). */
struct bytes {
    const char *first;
    size_t length;
};

/* ---- life ---- */

/* Returns the calling thread's worker, which the first call makes. NULL: out of memory. */
struct interaction_worker *interaction_worker(void);

/* Returns a reference; NULL: the interaction is gone. */
struct interaction *interaction_find(pool_name name);

/* Returns the interaction with this index, of any thread, with a reference. NULL: it does not wait
 * for an answer. has_index becomes false if no interaction was ever made with this index. */
struct interaction *interaction_request_at(uint32_t index, bool *has_index);

void interaction_ref(struct interaction *interaction);
void interaction_release(struct interaction *interaction);

/* Returns the interaction in a member of the connection, with a reference, or NULL. */
struct interaction *interaction_ref_member(struct interaction *const *member);
/* Returns the connection's current interaction, with a reference, or NULL. */
struct interaction *interaction_current(struct connection *connection);

/* Makes an interaction with a reference. The span is not started. NULL: out of memory. */
struct interaction *interaction_make(struct connection *connection,
                                     struct interaction_worker *worker, uint64_t offset,
                                     uint64_t now_ns);
/* Makes the interaction the current one of its connection, with another reference, unless the
 * connection has one. */
void interaction_set_current(struct interaction *interaction);
void interaction_set_endpoints(struct interaction *interaction);
void interaction_add_head(struct interaction *interaction, struct bytes head);

/* Returns true if the span is recorded without usage and without streaming events. */
bool interaction_has_only_record(const struct blkin_span *span);

/* The first function subtracts this call from its owner's calls without an answer, the second from
 * the owner's calls not in PHASE_OVER. The thread that changed the phase calls each one once. */
void interaction_tell_owner_answered(struct interaction *interaction);
void interaction_tell_owner_ended(struct interaction *interaction);

/* Clears the member if it still has this interaction, and drops its reference. */
void interaction_clear(struct interaction **member, struct interaction *interaction);

/* Called in a child of fork(2). */
void interaction_forget_all(void);

/* Called at the end of the process. Records the requests that this process, as a server, has not
 * answered, and that have caused calls. */
void interaction_end_unanswered(void);

/* Maps memory before the process becomes quiet, and may map none. */
void interaction_reserve(void);

static inline bool interaction_is_partial(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->is_partial, __ATOMIC_RELAXED);
}

static inline uint8_t interaction_phase(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->phase, __ATOMIC_ACQUIRE);
}

/* ---- the open requests of the calling thread; worker: that of the thread ---- */

void interaction_add_open(struct interaction_worker *worker, struct interaction *interaction);
void interaction_remove_open(struct interaction_worker *worker, struct interaction *interaction);

/* Removes requests that are answered or over. */
void interaction_prune_open(struct interaction_worker *worker);

/* ---- the current work of a thread ---- */

/* Returns an interaction of this connection, with a reference, or NULL: the calling thread's work,
 * or an open request of the thread, or the connection's current interaction. */
struct interaction *interaction_own_or_current(struct connection *connection);

/* Makes the interaction the thread's work, unless another thread works for it. A current span of
 * the program stays current. */
void interaction_work_for(struct interaction *interaction);
void interaction_stop_work(void);

/* Called when the thread reads or writes something other than the request that it has read last. */
static inline void interaction_clear_heard(void)
{
    interaction_thread.heard = 0;
}

/* ---- the end ---- */

/* Removes the interaction from the connection, the open requests and the thread's work. The caller
 * has a reference. */
void interaction_detach(struct interaction *interaction);
/* Records an answered interaction. The caller has a reference. */
void interaction_finish(struct interaction *interaction);
/* Ends and detaches an interaction that gets no answer. The caller has a reference. */
void interaction_give_up(struct interaction *interaction);

/* Calls a function for the worker of each thread. */
void interaction_for_each_worker(void (*look)(void *worker));
/* Called after interaction_end_thread(). Releases the thread's worker. */
void interaction_drop_worker(void);

/* ---- held: interaction_held.c ---- */

/* Adds `count` bytes of the answer. From the first part on, the interaction is held. */
void interaction_add_answer(struct interaction *interaction, size_t count);

/* Ends the worker's held interactions whose time is over at now_ns. UINT64_MAX: all whose answer is
 * complete so far. */
void interaction_finish_held(struct interaction_worker *worker, uint64_t now_ns);

/* Returns true if the answer is complete so far: no thread is sending a part of the answer, and no
 * call may bring another part. */
static inline bool interaction_is_complete(const struct interaction *interaction)
{
    return !__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&interaction->calls_unended, __ATOMIC_ACQUIRE) &&
           interaction_phase(interaction) == PHASE_ANSWERED && !interaction_is_partial(interaction);
}

/* Called before the thread waits for a new connection. */
void interaction_before_accept(void);
/* Called before the thread waits for events. The thread has a worker. Returns true if interactions
 * are held. */
bool interaction_before_wait(void);
/* Called when the thread waits, or has waited, for events of any request. */
void interaction_begin_round(void);
/* Called when the thread has waited for INTERACTION_HOLD_NS without an event. */
void interaction_after_idle(void);

/* Records all answered interactions that are held. */
void interaction_flush_all(void);
/* Called at the end of the calling thread. Records its answered interactions that are held. */
void interaction_end_thread(void);

/* Called when tracing is off. Ends the thread's work, and gives up its held interactions. */
void interaction_drop_held(void);

#endif
