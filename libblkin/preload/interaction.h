/*
 * Interactions: a request and its response on a connection. An interaction becomes a span of this
 * process's side.
 *
 * A message is a sequence of bytes in one direction, with no bytes in the other direction between
 * them. An interaction begins with the first byte of its request and ends with the last byte of its
 * response. Which byte is the last is certain only when the next request comes or the connection is
 * closed. Until then the interaction is held, for at most INTERACTION_HOLD_NS after the last byte
 * and the end of its own calls. Its span then ends at the time of the last byte.
 *
 * The connection has its current interaction. If several threads share a connection, each
 * with its own request, an interaction belongs to the thread that has read its request.
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
 * An answer that pauses for longer counts as complete. Less than a second, for struct timeval and
 * timespec. Also less than the sink's join-wait-ms, because one half alone may be held this long.
 */
#define INTERACTION_HOLD_NS UINT64_C(900000000)
#define PREFIX_KEPT         39 /* first bytes of a request that are compared */

#define OPEN_MAX 512
#define HELD_MAX 512 /* a power of two */

enum phase {
    PHASE_NEW,      /* a client's, before its first byte is sent; no span yet */
    PHASE_REQUEST,  /* being received, sent, worked on or waited for */
    PHASE_ANSWERED, /* a part of the response was sent or received */
    PHASE_OVER,     /* recorded or dropped */
};

struct interaction {
    struct pool_item item; /* referenced by connection, thread, lists and its calls */
    uint8_t phase;         /* also read without a reference: change it only by atomic stores */
    uint8_t cause;         /* the first member that interaction_make() clears */
    bool is_worked_for;    /* a thread works for it */
    bool is_partial;       /* the last write was incomplete, or more will follow */
    bool is_ambiguous;     /* a call may have been for this or for another request */
    bool has_called;       /* a call was made, perhaps for it */
    bool is_past_call;     /* it has certainly called, or its thread has, right after reading it */
    uint8_t head_length;
    struct connection *connection;     /* referenced */
    struct interaction *owner;         /* for a client's: the certain cause; referenced */
    struct interaction *likely;        /* for a client's: the guessed cause; referenced */
    struct interaction_worker *worker; /* the thread that began it; only for comparison */
    uint32_t writers;                  /* threads that are sending the answer */
    uint32_t calls;                    /* its unanswered calls */
    uint32_t calls_held;               /* its calls that are not over */
    uint32_t open_at;                  /* index in the thread's list, plus 1; 0: not in it */
    uint64_t start_ns, last_ns;
    uint64_t offset;              /* of the request's first byte */
    uint64_t requested, answered; /* bytes */
    uint64_t round;               /* the thread's round when it last heard of it */
    struct file_totals files;     /* of its thread, from the begin on */
    char head[PRELOAD_PAYLOAD_MAX];
    struct blkin_span span;
} __attribute__((aligned(64)));

/* A thread with interactions. */
struct interaction_worker {
    struct pool_item item;

    /* Requests that this thread has read, that are not answered and do not wait for a call of their
     * own: each may cause the next call. Referenced. Changed by interaction.c. */
    struct interaction *open[OPEN_MAX];
    unsigned open_count;
    bool has_overflowed; /* some requests found no room since the list was empty: nothing is certain
                          */

    /* Answered interactions that are held until they are certainly over, the oldest first. Also
     * read by other threads. Changed by interaction_held.c. */
    pool_name held[HELD_MAX];
    uint64_t held_until[HELD_MAX];
    uint32_t held_first, held_end;
} __attribute__((aligned(64)));

/* The interactions of the calling thread. */
struct interaction_thread {
    struct interaction *work;     /* the request that the thread works for, or NULL; referenced */
    struct interaction *shadowed; /* was current when the program set its own span; referenced */
    struct interaction_worker *worker; /* NULL: no interaction so far */
    uint64_t round;     /* counts waits for events of several descriptors; 0: none so far */
    pool_name heard;    /* the request just read, while the thread has done nothing else */
    pool_name called;   /* the request for which it called right after reading it, in this round */
    bool has_one_event; /* the wait of this round has returned one event, after sleeping */
    bool is_in_order;   /* it once read another request after the call for the last */
    bool is_out_of_order; /* it once called for a request after doing something else */
};

extern __thread struct interaction_thread interaction_thread
    __attribute__((tls_model("initial-exec")));

/* The first bytes of a message; NULL: unknown, as with sendfile(2). */
struct bytes {
    const char *first;
    size_t length;
};

/* ---- life ---- */

/* Makes the calling thread's at the first call. NULL: out of memory. */
struct interaction_worker *interaction_worker(void);

/* Returns a reference; NULL: the interaction is gone. */
struct interaction *interaction_find(pool_name name);

/* Returns the interaction with this index, of any thread, with a reference; NULL: not a request
 * that waits for its answer. has_index: higher indexes may exist. */
struct interaction *interaction_requested(uint32_t index, bool *has_index);

void interaction_hold(struct interaction *interaction);
void interaction_release(struct interaction *interaction);

/* Returns the interaction in a member of the connection, with a reference, or NULL. */
struct interaction *interaction_in(struct interaction *const *member);
/* Returns the current interaction of the connection, with a reference, or NULL. */
struct interaction *interaction_current(struct connection *connection);

/* Makes an interaction with a reference; its span has not begun. */
struct interaction *interaction_make(struct connection *connection,
                                     struct interaction_worker *worker, uint64_t offset,
                                     uint64_t now_ns);
/* Makes it the connection's current one, with another reference. Returns false if another thread's
 * is current. */
bool interaction_set_current(struct interaction *interaction);
void interaction_set_endpoints(struct interaction *interaction);
void interaction_add_head(struct interaction *interaction, struct bytes head);

/* Returns true if the end of the span records everything: no usage and no stream. */
bool span_has_only_record(const struct blkin_span *span);

/* Counts one call less for the request that caused this call. Called once, by the thread that
 * changed its phase. */
void interaction_stop_waiting(struct interaction *interaction);
/* Counts one held call less for the request that caused this call. */
void interaction_leave_owner_held(struct interaction *interaction);

/* Clears the member if it still has this interaction, and drops its reference. */
void interaction_clear(struct interaction **member, struct interaction *interaction);

/* In a child of fork(2). */
void interaction_forget_all(void);

/* At the end of the process: records requests that have caused calls, which nobody will answer. */
void interaction_end_unanswered(void);

/* Reserves memory for a quiet process. */
void interaction_reserve(void);

static inline bool interaction_is_partial(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->is_partial, __ATOMIC_RELAXED);
}

static inline uint8_t interaction_phase(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->phase, __ATOMIC_ACQUIRE);
}

/* ---- the open ones of the calling thread, whose worker is given ---- */

void interaction_opens(struct interaction_worker *worker, struct interaction *interaction);
void interaction_closes(struct interaction_worker *worker, struct interaction *interaction);

/* Removes requests that another thread has answered, or that have ended. */
void interaction_tidy(struct interaction_worker *worker);

/* ---- the current work of a thread ---- */

/* Returns the calling thread's interaction on this connection, with a reference: the one that it
 * works for, or one that it has read and must answer, or the connection's current one, perhaps of
 * another thread. */
struct interaction *interaction_find_own_or_open(struct connection *connection);

/* One thread at a time works for an interaction. The program's own current span does not change. */
void interaction_work_for(struct interaction *interaction);
void interaction_stop_work(void);

/* The thread reads or writes something other than the request that it has read last. */
static inline void interaction_hears_else(void)
{
    interaction_thread.heard = 0;
}

/* ---- the end ---- */

/* The interaction is no longer current, open, or the thread's work. The caller has a reference. */
void interaction_detach(struct interaction *interaction);
/* Records an answered interaction. The caller has a reference. */
void interaction_finish(struct interaction *interaction);
/* There will be no answer. */
void interaction_give_up(struct interaction *interaction);

/* ---- held: interaction_held.c ---- */

/* Adds a part of the answer. From the first part on, the interaction is held. */
void interaction_add_answer(struct interaction *interaction, size_t count);

/* Ends interactions that are over at now_ns; UINT64_MAX: all with a complete response so far. */
void interaction_finish_held(struct interaction_worker *worker, uint64_t now_ns);

/* Returns true if the answer is complete: no thread is sending it, and no call may bring more of
 * it. */
static inline bool interaction_is_whole(const struct interaction *interaction)
{
    return !__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&interaction->calls_held, __ATOMIC_ACQUIRE) &&
           interaction_phase(interaction) == PHASE_ANSWERED && !interaction_is_partial(interaction);
}

/* The thread waits for a new connection. */
void interaction_waits(void);
/* The thread, which has had interactions, waits for events. True: it holds some. */
bool interaction_waits_for_events(void);
/* The thread waits for the next event of any request. */
void interaction_begin_round(void);
/* The thread has waited for INTERACTION_HOLD_NS without an event. */
void interaction_is_idle(void);

/* Of all threads that run. */
void interaction_for_each_worker(void (*look)(void *worker));

/* Records everything that is answered: of the process, of the thread. */
void interaction_flush_all(void);
void interaction_thread_ends(void);
/* The thread has ended, or forgets its interactions. */
void interaction_drop_worker(void);

/* Tracing is off: gives up everything that this thread works for and holds. */
void interaction_drop_held(void);

#endif
