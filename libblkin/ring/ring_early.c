/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_early.h"

#include "libblkin/base/clock.h"
#include "ring_write.h"

#include <string.h>

#define EARLY_BYTES (256 << 10) /* a few hundred requests; not resident before its first use */
#define EARLY_TRIES 10000       /* a signal handler may have interrupted the thread with the lock */

struct early_record {
    uint64_t kind;
    uint32_t which, length;
    char payload[];
};

static struct {
    bool is_open;
    bool is_busy; /* a lock of `used` and `room` */
    bool is_left; /* the records so far are of the user that the process was */
    size_t used;
    uint64_t lost, lost_ns; /* lost records, and the time of the last loss: CLOCK_MONOTONIC */
    char room[EARLY_BYTES] __attribute__((aligned(8)));
} early;

static bool early_enter(void)
{
    for (unsigned tries = 0; tries < EARLY_TRIES; tries++) {
        if (!__atomic_exchange_n(&early.is_busy, true, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

static void early_leave(void)
{
    __atomic_store_n(&early.is_busy, false, __ATOMIC_RELEASE);
}

static size_t early_size(size_t length)
{
    return sizeof(struct early_record) + ((length + 7) & ~(size_t)7);
}

static struct early_record *early_at(size_t at)
{
    return (struct early_record *)(void *)(early.room + at);
}

bool ring_early_is_open(void)
{
    return __atomic_load_n(&early.is_open, __ATOMIC_ACQUIRE);
}

void ring_early_open(void)
{
    __atomic_store_n(&early.is_open, true, __ATOMIC_RELEASE);
}

void ring_early_lose(void)
{
    __atomic_store_n(&early.lost_ns, blkin_monotonic_ns(), __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&early.lost, 1, __ATOMIC_RELAXED);
}

/* A thread that begins many spans notes only some of the lost ones: the last may be a little
 * later than lost_ns. */
#define EARLY_UNSURE_NS UINT64_C(100000000)

static void early_report(const struct ring_map *map)
{
    const uint64_t lost = __atomic_exchange_n(&early.lost, 0, __ATOMIC_RELAXED);

    if (lost)
        ring_lose(map, lost, __atomic_load_n(&early.lost_ns, __ATOMIC_RELAXED) + EARLY_UNSURE_NS);
}

bool ring_early_add(enum ring_which which, uint64_t kind, const void *payload, size_t length)
{
    const bool has_lock = early_enter(), is_open = ring_early_is_open();

    if (has_lock && is_open && length <= RING_PAYLOAD_MAX &&
        early_size(length) <= sizeof(early.room) - early.used) {
        struct early_record *record = early_at(early.used);

        *record = (struct early_record){kind, which, (uint32_t)length};
        memcpy(record->payload, payload, length);
        early.used += early_size(length);
    } else if (is_open) {
        ring_early_lose();
    }
    if (has_lock)
        early_leave();
    return is_open;
}

void ring_early_close(const struct ring_map *map)
{
    bool is_left;
    size_t size;

    __atomic_store_n(&early.is_open, false, __ATOMIC_RELEASE);
    if (map)
        early_report(map);
    if (!early_enter())
        return;
    is_left = __atomic_exchange_n(&early.is_left, false, __ATOMIC_RELAXED);
    for (size_t at = 0; at < early.used; at += size) {
        const struct early_record *record = early_at(at);

        size = early_size(record->length);
        if (map && !is_left)
            (void)ring_write(map, record->which, record->kind, record->payload, record->length);
        else
            ring_early_lose();
    }
    early.used = 0;
    early_leave();
}

void ring_early_leave_user(void)
{
    __atomic_store_n(&early.is_left, true, __ATOMIC_RELAXED);
    ring_early_close(NULL);
}

void ring_early_forget(void)
{
    early.is_open = early.is_busy = early.is_left = false;
    early.used = 0;
    early.lost = 0;
}
