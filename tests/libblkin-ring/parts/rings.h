/*
 * The agent's side of the rings, for tests of libblkin: the memory, the socket, a reader.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_LIBBLKIN_RING_RINGS_H
#define TESTS_LIBBLKIN_RING_RINGS_H

#include "tools/rings/ring_read.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Ends a child. exit(3) writes gcov's counts, too. */
#ifdef __SANITIZE_ADDRESS__ /* LeakSanitizer needs the user and the namespaces of the parent */
#define end_process _exit
#else
#define end_process exit
#endif

/* ---- the memory ---- */

struct rings {
    struct memory memory;
    int descriptor;
    struct ring_memory *head;
    struct ring_head *heads;
    uint32_t cpus;
    uint64_t bytes;
};

/* Makes rings for all CPUs of this host. Ends the test on failure. */
void rings_make(struct rings *rings, uint64_t event_bytes, uint64_t alarm_bytes);
void rings_close(struct rings *rings);

/* ---- a reader of the memory ---- */

struct rings_record {
    uint32_t ring;
    uint64_t at; /* position in the ring */
    struct ring_entry entry;
};

typedef void record_fn(void *context, const struct rings_record *record);

struct rings_walker {
    uint64_t records;
    uint64_t bad;         /* how often the ring has bytes that are no record */
    uint64_t overwritten; /* bytes that newer records have overwritten */
};

/* Calls record() for each record of a ring, from the oldest to the newest. */
void rings_walk(const struct rings *rings, uint32_t ring, struct rings_walker *walk,
                record_fn *record, void *context);

/* Walks all rings. */
struct rings_walker rings_walk_all(const struct rings *rings, record_fn *record, void *context);

/* Returns the number of the event's records in the rings. */
unsigned rings_count(const struct rings *rings, unsigned event);

/* ---- the agent's socket ---- */

struct rings_agent {
    char folder[64], path[80];
    int listener; /* -1: the agent does not run */
    pthread_t thread;
    int stop[2];
    const struct rings *rings; /* NULL: accepts, and does not answer */
    uint64_t bytes;            /* the memory's size in the answer */
    unsigned asked, answered;  /* connections; a program may connect again */
    uid_t user;                /* of the last program that asked */
    bool is_quiet;             /* writes no beats, which show that it reads */
    bool is_busy;              /* does not accept */
    bool stays; /* keeps the last connection, and answers once more for each message */
};

/* Makes a folder and sets BLKIN_RINGS to the socket in it. */
void agent_prepare(struct rings_agent *agent);
/* Makes the socket, and serves it in a thread. */
void agent_start(struct rings_agent *agent, const struct rings *rings);
/* Gives this memory to the next programs. */
void agent_give(struct rings_agent *agent, const struct rings *rings);
unsigned agent_asked(const struct rings_agent *agent);
void agent_stop(struct rings_agent *agent);
void agent_remove(struct rings_agent *agent);

#endif
