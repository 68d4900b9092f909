/*
 * Interactions: a request and its response on a connection, as a span of the side that this process
 * is.
 *
 * A message is a sequence of bytes in one direction, with no bytes in the other direction between
 * them. An interaction begins with the first byte of its request and ends with the last byte of its
 * response. Which byte is the last is certain only when the next request comes or the connection is
 * closed. Until then the interaction is held, for at most HOLD_NS after the last byte and the end
 * of its own calls. Its span then ends at the time of the last byte.
 *
 * The interaction at hand belongs to the connection. If several threads share a connection, each
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
 * An answer that pauses for longer seems to be complete. Less than a second, as struct timeval and
 * timespec have it; and less than the sink's join-wait-ms, as only one half may be held so long.
 */
#define HOLD_NS     UINT64_C(900000000)
#define PREFIX_KEPT 39 /* bytes of a request that are compared */

#define OPEN_MAX 512
#define HELD_MAX 512 /* a power of two */

enum phase {
    PHASE_NEW,      /* a client's, nothing of which is sent: its span is not begun */
    PHASE_REQUEST,  /* being received or worked on; being sent or waited for */
    PHASE_ANSWERED, /* at least a part of the response has passed */
    PHASE_OVER,     /* recorded or dropped */
};

struct interaction {
    struct pool_item item; /* references: connection, thread's work, lists, what it caused */
    uint8_t phase;         /* looked at without a reference, too: changed by atomic stores only */
    uint8_t cause;         /* the first of what interaction_make() clears */
    bool is_worked_for;    /* a thread's work */
    bool is_partial;       /* the last write was not complete, or more is to follow */
    bool is_ambiguous;     /* a call was made that may have been its own or another one's */
    bool has_called;       /* or may have */
    bool is_past_call;     /* it surely has called, or the thread has, right after reading it */
    uint8_t head_length;
    struct connection *connection; /* referenced */
    struct interaction *owner;     /* of a client's: what has certainly caused it; referenced */
    struct interaction *likely;    /* or perhaps; referenced */
    struct worker *worker;         /* of the thread that has begun it; only to be compared */
    uint32_t writers;              /* threads that are sending the answer just now */
    uint32_t calls;                /* that it has made and that are not answered */
    uint32_t calls_held;           /* that it has made and that are not over */
    uint32_t open_at;              /* where in the thread's list, plus 1; 0: it is not */
    uint64_t start_ns, last_ns;
    uint64_t offset;              /* of the request's first byte */
    uint64_t requested, answered; /* bytes */
    uint64_t round;               /* of its thread, when it was last heard of */
    struct file_totals files;     /* of its thread, at the begin */
    char head[PRELOAD_PAYLOAD_MAX];
    struct blkin_span span;
} __attribute__((aligned(64)));

/* What a thread that has had an interaction keeps of them. */
struct worker {
    struct pool_item item;

    /*
     * The interactions that this thread has taken and that are neither answered nor waiting for the
     * answer to a call of their own: what may have caused its next call. Referenced. Changed by
     * interaction.c.
     */
    struct interaction *open[OPEN_MAX];
    unsigned open_count;
    bool has_overflowed; /* some found no room since open was empty: nothing is certain */

    /*
     * The answered ones, which are held until they are certainly over, the eldest first. Other
     * threads look at them, too. Changed by interaction_held.c.
     */
    pool_name held[HELD_MAX];
    uint64_t held_until[HELD_MAX];
    uint32_t held_first, held_end;
} __attribute__((aligned(64)));

/* The calling thread's. */
struct interaction_thread {
    struct interaction *work; /* the one that this thread works for, or NULL; referenced */
    struct interaction *lent; /* was current when the program set a span of its own; referenced */
    struct worker *worker;    /* NULL: it has had no interaction */
    uint64_t round;           /* of waiting for events of many descriptors; 0: it never has */
    pool_name heard;          /* the request that it has read last, and done nothing else since */
    pool_name called;         /* for which it has called in this round, right after reading it */
    bool has_one_event;       /* this round has one event, for which it has slept */
    bool is_in_order;         /* has it ever read the next request after the call for the last? */
    bool is_out_of_order;     /* or called for a request after it had done something else? */
};

extern __thread struct interaction_thread interaction_thread
    __attribute__((tls_model("initial-exec")));

/* The first bytes of what is sent or was received; NULL: not known, as with sendfile(2). */
struct bytes {
    const char *first;
    size_t length;
};

/* ---- their life ---- */

/* The calling thread's, made at the first call; NULL: no memory. */
struct worker *interaction_worker(void);

/* With a reference; NULL: that one is gone. */
struct interaction *interaction_find(pool_name name);

/* Of all threads', the one of this index, with a reference; NULL: it is no request that waits for
 * its answer. is_there: there may be one of the next index. */
struct interaction *interaction_requested(uint32_t index, bool *is_there);

void interaction_hold(struct interaction *interaction);
void interaction_let_go(struct interaction *interaction);

/* What is in a place of the connection's, with a reference, or NULL. */
struct interaction *interaction_in(struct interaction *const *place);
/* The interaction at hand on the connection, with a reference, or NULL. */
struct interaction *interaction_at_hand(struct connection *connection);

/* One with a reference, whose span is not begun. */
struct interaction *interaction_make(struct connection *connection, struct worker *worker,
                                     uint64_t offset, uint64_t now_ns);
/* Becomes the one at hand, with another reference. False if another thread's is that. */
bool interaction_put_at_hand(struct interaction *interaction);
void interaction_set_endpoints(struct interaction *interaction);
void interaction_add_head(struct interaction *interaction, struct bytes head);

/* All there is of the span is what its end records: not what it uses, nor what happens as it does.
 */
bool interaction_is_plain(const struct blkin_span *span);

/* The interaction is over and awaits no answer. Called once, by the thread that has changed its
 * phase. */
void interaction_stop_waiting(struct interaction *interaction);
void interaction_is_not_held(struct interaction *interaction);

/* Takes the reference out of a place, if it is still there. */
void interaction_clear(struct interaction **place, struct interaction *interaction);

/* In a child of fork(2). */
void interaction_forget_all(void);

/* The process ends: a request that has caused calls is recorded, as nobody will answer it. */
void interaction_end_unanswered(void);

/* Room for those of a quiet process: pool_reserve(). */
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

void interaction_opens(struct worker *worker, struct interaction *interaction);
void interaction_closes(struct worker *worker, struct interaction *interaction);

/* Removes from the open ones those that another thread has answered, or that have ended. */
void interaction_tidy(struct worker *worker);

/* ---- what a thread works for ---- */

/*
 * The calling thread's on this connection, with a reference: the one that it works for, else one
 * that it has taken and still has to answer, else the one at hand.
 */
struct interaction *interaction_own(struct connection *connection);

/* One thread works for an interaction. The program's own current span stays what it is. */
void interaction_work_for(struct interaction *interaction);
void interaction_stop_work(void);

/* The thread reads or writes what is not of the request that it has read last. */
static inline void interaction_hears_else(void)
{
    interaction_thread.heard = 0;
}

/* ---- the end ---- */

/* No longer the one at hand, the thread's work or open. The caller has a reference. */
void interaction_detach(struct interaction *interaction);
/* Records an answered one. The caller has a reference. */
void interaction_finish(struct interaction *interaction);
/* There will be no answer. */
void interaction_give_up(struct interaction *interaction);

/* ---- held: interaction_held.c ---- */

/* A part of the answer: it is held from the first one on. */
void interaction_add_answer(struct interaction *interaction, size_t count);

/* Ends those that are over at now_ns; UINT64_MAX: all whose response is complete so far. */
void interaction_finish_held(struct worker *worker, uint64_t now_ns);

/* Is the answer complete? Not while a thread sends it, nor while a call may bring more of it. */
static inline bool interaction_is_whole(const struct interaction *interaction)
{
    return !__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&interaction->calls_held, __ATOMIC_ACQUIRE) &&
           interaction_phase(interaction) == PHASE_ANSWERED && !interaction_is_partial(interaction);
}

/* The thread is about to wait for a new connection. */
void interaction_waits(void);
/* It waits for events; it has had interactions. Returns true if something is held by it. */
bool interaction_waits_for_events(void);
/* It waits, or has waited, for whatever comes next, and not in the middle of a request. */
void interaction_begin_round(void);
/* It has waited for HOLD_NS, and there were none. */
void interaction_is_idle(void);

/* Of all threads that run. */
void interaction_for_each_worker(void (*look)(void *worker));

/* Records all that is answered: the process ends; the thread does. */
void interaction_flush_all(void);
void interaction_thread_ends(void);
/* The thread has ended, or will have none of what it has. */
void interaction_drop_worker(void);

/* While tracing is off: all that this thread, which has had some, works for and holds is given up.
 */
void interaction_drop_held(void);

#endif
