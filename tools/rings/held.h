/*
 * The list of memories of a holder (holder.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HELD_H
#define BLKIN_TOOLS_RINGS_HELD_H

#include "memory.h"

struct held {
    struct memory memory;
    uint32_t user;
    uint64_t number; /* unique among the user's memories, also after a restart */
    bool is_left;    /* programs do not get this memory any more */
    /* Of the holder's owner: the bytes written at its last look, to the memory and to each CPU's
     * ring of events (NULL: no look yet). The holder frees the array. */
    uint64_t looked_at, *rings_looked_at;
    bool is_watched; /* of the holder's owner: the alarms are read */
    struct held *next;
    /* of the holder */
    bool is_stored;
    bool is_known;          /* the owner knows the memory: see holder_callbacks.added */
    bool is_busy;           /* programs wrote at least half of a ring's size within hold_ms */
    uint32_t payer;         /* see shares.h */
    uint64_t written;       /* all bytes written until the last look */
    int64_t since_ms;       /* `written` has not changed since this time */
    int64_t used_ms;        /* the last time at which a program had the memory */
    int64_t given_ms;       /* the last time at which a program got the memory; 0: none so far */
    uint64_t begun_written; /* `written` at begun_ms */
    int64_t begun_ms;       /* the start of the interval that is_busy measures */
};

/* The holder's configuration. */
struct holder_options {
    const char *path;        /* of the socket */
    const char *fdserver;    /* the path of the fdserver's socket; NULL: use only systemd */
    int answer_ms;           /* how long the start waits for each message of the fdserver */
    struct memory_size size; /* of the largest memory */
    unsigned max_users;
    uint64_t max_bytes; /* of all memories, also of left memories that are not dropped yet */
    /* a left memory is dropped if nothing was written for this time, and a replaced one if no
     * program has had it for this time */
    int64_t left_ms;
    int64_t idle_ms; /* any memory is dropped if no program has had it for this time */
    int64_t hold_ms; /* the memory should be large enough for the records of this time */
};

/* Returns the memory for programs of the user; NULL: none. */
struct held *held_find(struct held *list, uint32_t user);

/* Returns true if the list has this memory. */
bool held_has(const struct held *list, uint32_t user, uint64_t number);

/* Returns the number of memories that are not left. */
unsigned held_users(const struct held *list);

/* Returns the memory that has been unused for longest; NULL: programs have all memories. */
struct held *held_longest_idle(struct held *list);

/* Returns true if programs that cannot ask again still write to this memory. */
bool held_is_replaced(const struct held *held);

/* Returns the replaced memory to which nothing was written for longest, of those since since_ms or
 * before. bytes: the bytes of all these memories. */
struct held *held_oldest_replaced(struct held *list, int64_t since_ms, uint64_t *bytes);

/* Marks the memory as RING_LEFT or RING_REPLACED: programs that ask get another one. */
void held_leave(struct held *held, enum ring_state state);

/* Sets is_left for all memories of each user except the newest one. The states of the memories stay
 * unchanged. Left memories are still read to their ends. */
void held_leave_older(struct held *list);

/* Copies the host's slow rules to all memories, where programs read them, if the rules have
 * changed. known: the number of the last change; 0 at first. */
void held_refresh_rules(const struct held *list, unsigned *known);

/* Initializes a new element of the list. */
void held_begin(struct held *held);

/* Updates the holder's members: bytes written, and whether a program has the memory. */
void held_look(struct held *held, int64_t hold_ms);

/* Called between two looks, because a fast program fills a first memory in less time. Sets is_busy
 * early for memories that are smaller than the largest ones (event_bytes). Returns true if the
 * function has set is_busy of a memory. Reads only memories to which a program has written lately,
 * or which a program has got lately. */
bool held_find_busy(struct held *list, uint64_t event_bytes);

#endif
