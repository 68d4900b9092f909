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
    bool is_left;    /* programs are not given this memory any more */
    /* of holding.c: bytes at its last look, in all rings and in each CPU's (NULL: not looked) */
    uint64_t looked_at, *rings_looked_at;
    struct held *next;
    /* of the holder */
    bool is_stored;
    bool is_busy;     /* in less than hold_ms, half a ring's size was written to all rings */
    uint32_t payer;   /* see shares.h */
    uint64_t written; /* at the last look */
    int64_t since_ms; /* since when `written` is the same */
    int64_t used_ms;  /* when a program last had the memory */
    uint64_t begun_written;
    int64_t begun_ms; /* start of the interval that is_busy measures */
};

/* The holder's configuration. */
struct holder_options {
    const char *path;
    const char *fdserver;    /* the path of its socket; NULL: use systemd's store only */
    struct memory_size size; /* the largest memory */
    unsigned max_users;
    uint64_t max_bytes; /* of all memories, with the left ones that are not dropped yet */
    int64_t left_ms;    /* drop a left memory when nothing was written for this long */
    int64_t idle_ms;    /* drop a memory when no program has had it for this long */
    int64_t hold_ms;    /* the memory should be large enough for the records of this time */
};

/* The memory that programs of the user are given; NULL: none. */
struct held *held_find(struct held *list, uint32_t user);

/* The number of memories that are not left. */
unsigned held_users(const struct held *list);

/* The memory that has been unused for longest; NULL: programs have all of them. */
struct held *held_longest_idle(struct held *list);

/* From now on, programs are not given this memory. */
void held_leave(struct held *held);

/* Leaves all but the newest memory of each user. Left memories are still read to their ends. */
void held_leave_older(struct held *list);

/* Copies the host's slow rules to all memories, where programs read them. */
void held_set_rules(const struct held *list);

/* Initializes a new element of the list. */
void held_begin(struct held *held);

/* Updates the holder's members: bytes written, and whether a program has the memory. */
void held_look(struct held *held, int64_t hold_ms);

#endif
