/*
 * A simple writer of rings (tracepoints/format/ring.h). The writer has a lock for each ring, where
 * libblkin has a restartable sequence for each CPU.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_WRITER_H
#define TESTS_RINGS_WRITER_H

#include "tools/rings/memory.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lock is in memory that all writers of the ring share. */
struct writer {
    struct ring ring;
    int *lock;
};

/* Returns a writer for a ring to which only this process writes. */
static inline struct writer writer_alone(const struct memory *memory, uint32_t ring)
{
    static int lock;

    return (struct writer){memory_ring(memory, ring), &lock};
}

static inline uint64_t *writer_committed(const struct writer *writer)
{
    return (uint64_t *)(uintptr_t)writer->ring.committed;
}

static inline void writer_store(const struct writer *writer, uint64_t at, const void *bytes,
                                size_t length)
{
    memcpy((char *)(uintptr_t)writer->ring.bytes + (at & (writer->ring.size - 1)), bytes, length);
}

static inline void writer_end(const struct writer *writer, uint64_t at, unsigned event,
                              uint64_t length)
{
    const uint64_t trailer = ring_trailer(at, event, length);

    writer_store(writer, at, &trailer, sizeof(trailer));
    __atomic_store_n(writer_committed(writer), at + sizeof(trailer), __ATOMIC_RELEASE);
    /* later stores come after the store of `committed` */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Returns a memory whose rings of events have that many bytes. */
static inline struct memory writer_memory(uint32_t user, uint32_t cpus, uint64_t bytes)
{
    const struct memory_size size = {cpus, bytes, RING_BYTES_MIN};
    struct memory memory;
    struct error error;

    if (!memory_begin(&memory, user, &size, &error) ||
        !memory_fill(&memory, memory.bytes, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return memory;
}

/* Writes a record. Returns its size in the ring, in bytes. */
static inline uint64_t writer_put(const struct writer *writer, unsigned event, uint32_t pid,
                                  const void *payload, size_t payload_length)
{
    const struct ring_record head = {.pid = pid};
    const size_t length = sizeof(head) + payload_length;
    const uint64_t size = ring_record_size(length), mask = writer->ring.size - 1;
    uint64_t begin, at;

    while (__atomic_exchange_n(writer->lock, 1, __ATOMIC_ACQUIRE))
        (void)sched_yield();
    begin = at = *writer_committed(writer);
    if ((at & mask) + size > writer->ring.size) {
        const uint64_t left = writer->ring.size - (at & mask);

        writer_end(writer, at + left - RING_TRAILER_SIZE, RING_PAD, left - RING_TRAILER_SIZE);
        at += left;
    }
    writer_store(writer, at, &head, sizeof(head));
    writer_store(writer, at + sizeof(head), payload, payload_length);
    writer_end(writer, at + size - RING_TRAILER_SIZE, event, length);
    at += size;
    __atomic_store_n(writer->lock, 0, __ATOMIC_RELEASE);
    return at - begin;
}

/* Writes an event of the original API, whose span has that number. */
static inline void writer_put_original(const struct writer *writer, int64_t time_ns, uint64_t trace,
                                       uint64_t number)
{
    const struct ring_original head = {(uint64_t)time_ns, trace, number, 0, 0, 0};
    char payload[sizeof(head) + 20] = "";

    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), "name\0service\0\0event", 20);
    (void)writer_put(writer, RING_ORIGINAL + 2, 1, payload, sizeof(payload));
}

#endif
