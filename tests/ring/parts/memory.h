/*
 * The other side of the rings, for tests: the memory, the socket, a reader.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RING_MEMORY_H
#define TESTS_RING_MEMORY_H

#include "tracepoints/format/ring.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- the memory ---- */

struct memory {
    int descriptor;
    struct ring_memory *head;
    struct ring_head *heads;
    char *data;
    uint32_t cpus;
    uint64_t event_bytes, alarm_bytes, bytes;
};

/* Sealed as the agent does it, with rings for all CPUs of this host. Ends the test if it fails. */
void memory_make(struct memory *memory, uint64_t event_bytes, uint64_t alarm_bytes);
void memory_close(struct memory *memory);

/* The bytes of ring number `ring`, and where they are. */
uint64_t memory_ring(const struct memory *memory, uint32_t ring, const char **data);

/* ---- a reader ---- */

struct record {
    uint32_t ring;
    uint64_t at; /* its position */
    uint32_t pid;
    unsigned event;
    const char *payload; /* of a copy: until the next walk */
    size_t length;
};

typedef void record_fn(void *context, const struct record *record);

struct walk {
    uint64_t records;
    uint64_t bad;            /* trailers that are none, where a whole record must be */
    uint64_t oldest, newest; /* what the rule lets one believe; of the last ring */
};

/* Copies one ring and calls for each record of it, from the newest to the oldest. */
void memory_walk(const struct memory *memory, uint32_t ring, struct walk *walk, record_fn *record,
                 void *context);

/* Of all rings. */
struct walk memory_walk_all(const struct memory *memory, record_fn *record, void *context);

/* How many records of the event (all: -1) are in the rings. */
unsigned memory_count(const struct memory *memory, int event);

/* ---- the agent's socket ---- */

struct agent {
    char folder[64], path[80];
    int listener;
    pthread_t thread;
    int stop[2];
    const struct memory *memory; /* NULL: it accepts and says nothing */
    uint64_t bytes;              /* that it says the memory has */
    unsigned asked;
    uid_t user; /* of the last who has asked */
};

/* Makes a folder and sets BLKIN_RINGS to the socket in it. */
void agent_prepare(struct agent *agent);
/* From now on there is a socket. */
void agent_start(struct agent *agent, const struct memory *memory);
void agent_give(struct agent *agent, const struct memory *memory);
unsigned agent_asked(const struct agent *agent);
void agent_stop(struct agent *agent);
void agent_remove(struct agent *agent);

#endif
