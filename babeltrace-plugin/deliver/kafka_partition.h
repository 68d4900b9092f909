/*
 * The partition of a trace: FNV-1a of the 32 hex digits of its id. OpenTelemetry's exporter
 * (partition_traces_by_id), and librdkafka's partitioner "fnv1a" with that key, choose the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_KAFKA_PARTITION_H
#define BLKIN_OUTPUT_KAFKA_PARTITION_H

#include <stdint.h>

static inline uint32_t kafka_hash_half(uint32_t hash, uint64_t half)
{
    for (int shift = 60; shift >= 0; shift -= 4) {
        hash ^= (unsigned char)"0123456789abcdef"[(half >> shift) & 15];
        hash *= UINT32_C(0x01000193);
    }
    return hash;
}

/* count: how many partitions there are, not 0. */
static inline uint32_t kafka_partition(uint64_t high, uint64_t low, uint32_t count)
{
    /* the hash of 16 zeros is a constant, as most of our ids begin with them */
    const uint32_t first =
        high ? kafka_hash_half(UINT32_C(0x811c9dc5), high) : UINT32_C(0xae9fd905);
    const uint32_t hash = kafka_hash_half(first, low);

    /* those two take the hash for a signed number, and use its absolute value */
    return (hash >> 31 ? -hash : hash) % count;
}

#endif
