/*
 * The memories that a holder has, as a list.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HELD_H
#define BLKIN_TOOLS_RINGS_HELD_H

#include "memory.h"

struct held {
    struct memory memory;
    uint32_t user;
    uint64_t number; /* of this user: tells several memories apart, also after a restart */
    bool is_left;    /* no program gets it any more */
    /* the receiver's: what was written at its last look, into all rings, and into that of each CPU
     * (NULL: it has not looked) */
    uint64_t looked_at, *rings_looked_at;
    struct held *next;
    /* the holder's own */
    bool is_stored;
    bool is_busy;     /* half of a ring was written in less than hold_ms, to whichever ring */
    uint32_t payer;   /* see shares.h */
    uint64_t written; /* when it was looked at last, */
    int64_t since_ms; /* and how long that has not changed */
    int64_t used_ms;  /* when a program had it last */
    uint64_t begun_written;
    int64_t begun_ms; /* of the time for which is_busy is found */
};

/* What the holder is configured with. */
struct holder_options {
    const char *path;
    const char *fdserver;    /* the path of its socket; NULL: no process of our own */
    struct memory_size size; /* the largest */
    unsigned max_users;
    uint64_t max_bytes; /* of all memories, with those that are left and not dropped yet */
    int64_t left_ms;    /* a memory that is left is dropped when nothing was written for so long */
    int64_t idle_ms;    /* and so is one that no program has had for so long */
    int64_t hold_ms;    /* a memory is to hold what is written in this time */
};

/* Of these, the one that programs of the user get; NULL: there is none. */
struct held *held_find(struct held *list, uint32_t user);

/* How many programs get. */
unsigned held_users(const struct held *list);

/* That no program has had for longest; NULL: programs have all of them. */
struct held *held_longest_idle(struct held *list);

/* No program gets it any more. */
void held_leave(struct held *held);

/* The newest of a user is the one to be given; the others are read to their ends. */
void held_leave_older(struct held *list);

/* The host's rules of slow spans, for all programs. */
void held_set_rules(const struct held *list);

/* A new one in the list. */
void held_begin(struct held *held);

/* Looks what was written to it, and whether a program has it. */
void held_look(struct held *held, int64_t hold_ms);

#endif
