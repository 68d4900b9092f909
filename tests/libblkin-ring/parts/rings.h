/*
 * The other side of the rings, for tests of libblkin's: the memory, the socket, a reader.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_LIBBLKIN_RING_RINGS_H
#define TESTS_LIBBLKIN_RING_RINGS_H

#include "tools/rings/ring_read.h"

#include <pthread.h>
#include <sys/types.h>

/* ---- the memory ---- */

struct rings {
    struct memory memory;
    int descriptor;
    struct ring_memory *head;
    struct ring_head *heads;
    uint32_t cpus;
    uint64_t bytes;
};

/* With rings for all CPUs of this host. Ends the test if it fails. */
void rings_make(struct rings *rings, uint64_t event_bytes, uint64_t alarm_bytes);
void rings_close(struct rings *rings);

/* ---- reading it ---- */

struct record {
    uint32_t ring;
    uint64_t at; /* its position */
    struct ring_entry entry;
};

typedef void record_fn(void *context, const struct record *record);

struct walk {
    uint64_t records;
    uint64_t bad;         /* bytes that are no record, where a whole one must be */
    uint64_t overwritten; /* bytes before what was read */
};

/* Calls for each record of a ring, from the oldest to the newest. */
void rings_walk(const struct rings *rings, uint32_t ring, struct walk *walk, record_fn *record,
                void *context);

/* Of all rings. */
struct walk rings_walk_all(const struct rings *rings, record_fn *record, void *context);

/* How many records of the event are in the rings. */
unsigned rings_count(const struct rings *rings, unsigned event);

/* ---- the agent's socket ---- */

struct agent {
    char folder[64], path[80];
    int listener;
    pthread_t thread;
    int stop[2];
    const struct rings *rings; /* NULL: it accepts and says nothing */
    uint64_t bytes;            /* that it says the memory has */
    unsigned asked;
    uid_t user;    /* of the last who has asked */
    bool is_quiet; /* does not raise the number of beats */
    bool is_busy;  /* accepts nobody */
    bool stays;    /* keeps the last connection, and answers once more for each message */
};

/* Makes a folder and sets BLKIN_RINGS to the socket in it. */
void agent_prepare(struct agent *agent);
/* From now on there is a socket. */
void agent_start(struct agent *agent, const struct rings *rings);
void agent_give(struct agent *agent, const struct rings *rings);
unsigned agent_asked(const struct agent *agent);
void agent_stop(struct agent *agent);
void agent_remove(struct agent *agent);

#endif
