/*
 * The slow path of ring records: the end of a ring, other clocks, the identity of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_write.h"

#include "libblkin/base/clock.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/thread.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/provider_table.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define RING_TRIES 16

bool ring_write_init(void) /* a C library before glibc 2.35 has no such symbols */
{
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

    if (!RING_HAS_SEQUENCES || !size || !offset || *size == 0)
        return false;
    ring_process.thread_at = *offset;
    return true;
}

/* ---- the writing process --------------------------------------------------------------------- */

static struct {
    bool is_known;
    uint32_t pid_namespace;
    uint64_t head;     /* like ring_process.head, but not 0 if moved_ns is not 0 */
    int64_t ahead_ns;  /* this process's clock minus the host's */
    uint64_t moved_ns; /* the agent's clock minus this process's: added to times */
} ring_identity;

void ring_write_set_identity(const struct ring_map *map)
{
    const int saved_errno = errno;
    uint32_t pid_namespace;

    if (!blkin_is_quiet) {
        pid_namespace = blkin_namespace("/proc/self/ns/pid");
        if (pid_namespace) /* else there is no /proc any more, as after chroot(2) */
            ring_identity.pid_namespace = pid_namespace;
        ring_identity.ahead_ns = blkin_clock_ahead_ns();
    }
    errno = saved_errno;
    ring_identity.moved_ns = (uint64_t)__atomic_load_n(&map->memory->ahead, __ATOMIC_RELAXED) -
                             (uint64_t)ring_identity.ahead_ns;
    ring_identity.head = (uint64_t)ring_identity.pid_namespace << 32 | blkin_pid();
    __atomic_store_n(&ring_identity.is_known, true, __ATOMIC_RELEASE);
    __atomic_store_n(&ring_process.head, ring_identity.moved_ns ? 0 : ring_identity.head,
                     __ATOMIC_RELEASE);
}

/* The replaced memory for which the process has looked for a new one: see ring_look_early(). */
static const struct ring_map *ring_looked_for;

void ring_write_after_fork(void)
{
    ring_process.head = 0;
    ring_identity.is_known = false;
    ring_looked_for = NULL;
}

/* ---- the moment in each payload, for a process whose clock is not the agent's:
 * time_namespaces(7). Durations, and times within a span, are differences, so they stay ---- */

#define MOMENT_SIZE 8 /* bytes of an integer, or digits of base 64 at the end of a packed head */

static void ring_move_digits(char *at, uint64_t by_ns)
{
    uint64_t moment = 0;

    for (int i = MOMENT_SIZE - 1; i >= 0; i--)
        moment = moment << 6 | ((unsigned)(at[i] - '0') & 63);
    (void)blkin_put_word_by(false, at, moment + by_ns);
}

static void ring_move_number(char *at, uint64_t by_ns)
{
    uint64_t moment;

    memcpy(&moment, at, sizeof(moment));
    moment += moment ? by_ns : 0; /* 0: an alarm that belongs to no span */
    memcpy(at, &moment, sizeof(moment));
}

static size_t ring_after_name(const char *payload, size_t at, size_t length)
{
    return at + strnlen(payload + at, length - at) + 1;
}

static void ring_move_time(unsigned event, char *payload, size_t length, uint64_t by_ns)
{
    size_t at, head_size = 0;

    if (event >= RING_ORIGINAL) {
        at = offsetof(struct ring_original, monotonic);
    } else if (event == BLKIN_EVENT_SLOW) {
        at = offsetof(struct blkin_slow_event, monotonic);
    } else if (event == BLKIN_EVENT_PROCESS) {
        at = offsetof(struct blkin_process_event, monotonic);
    } else if (event == BLKIN_EVENT_METRIC) {
        at = offsetof(struct blkin_metric_event, monotonic);
    } else if (event == BLKIN_EVENT_SPAN || event == BLKIN_EVENT_BEGIN) {
        at = event == BLKIN_EVENT_SPAN ? sizeof(struct blkin_span_event)
                                       : sizeof(struct blkin_begin_event);
        at = ring_after_name(payload, at, length);
        head_size = BLKIN_HEAD_SIZE;
    } else {
        at = sizeof(struct blkin_detail_event);
        head_size = BLKIN_DETAIL_HEAD_SIZE;
    }
    if (head_size && at + head_size <= length)
        ring_move_digits(payload + at + head_size - MOMENT_SIZE, by_ns);
    else if (!head_size)
        ring_move_number(payload + at, by_ns);
}

/* ---- the slow path --------------------------------------------------------------------------- */

/* Called before the oldest records of a ring are overwritten. If the agent has replaced the memory
 * by a larger one, the process looks for the new memory at once. A process looks once for each
 * memory, because the process may be unable to reach the agent. */
static void ring_look_early(void)
{
    const struct ring_map *map = __atomic_load_n(&ring_process.map, __ATOMIC_ACQUIRE);

    if (!map || ring_map_is_on(map) ||
        __atomic_exchange_n(&ring_looked_for, map, __ATOMIC_RELAXED) == map)
        return;
    blkin_periodic_hurry();
}

/* Fills the rest of the ring with padding, because the record does not fit there. */
static void ring_pad(uint32_t cpu, const struct ring_store *record, uint64_t left)
{
    (void)ring_commit(cpu, &(struct ring_store){
                               .committed = record->committed,
                               .head = record->head,
                               .before = record->before,
                               .to = record->to,
                               .size = left,
                               .trailer = ring_trailer(record->before + left - RING_TRAILER_SIZE,
                                                       RING_PAD, left - RING_TRAILER_SIZE),
                           });
}

static bool ring_try_slow(const struct ring_part *part, uint64_t kind, const void *payload,
                          size_t length)
{
    const uint32_t cpu = ring_this_cpu();
    struct ring_store store;
    uint64_t left;

    if (cpu >= part->cpus)
        return false;
    store = ring_store(part, cpu, __atomic_load_n(&part->heads[cpu].committed, __ATOMIC_RELAXED),
                       kind, payload, length);
    store.head = &ring_identity.head;
    left = ring_left(part, store.before);
    if (store.size > left) {
        ring_pad(cpu, &store, left);
        ring_look_early();
        return false;
    }
    return ring_commit(cpu, &store);
}

static bool ring_try_repeatedly(const struct ring_part *part, uint64_t kind, const void *payload,
                                size_t length)
{
    for (unsigned tries = 0; tries < RING_TRIES; tries++) {
        if (ring_try_slow(part, kind, payload, length))
            return true;
    }
    return false;
}

/* For a process whose clock is not the agent's. noinline: no other process needs the stack space.
 */
__attribute__((noinline)) static bool ring_write_moved(const struct ring_part *part, uint64_t kind,
                                                       const void *payload, size_t length)
{
    char moved[RING_PAYLOAD_MAX];

    memcpy(moved, payload, length);
    ring_move_time(ring_event_of(kind), moved, length, ring_identity.moved_ns);
    return ring_try_repeatedly(part, kind, moved, length);
}

void ring_lose(const struct ring_map *map, uint64_t records, uint64_t until_ns)
{
    uint64_t *until = &map->memory->missed_until_ns;
    uint64_t before = __atomic_load_n(until, __ATOMIC_RELAXED);

    until_ns += ring_identity.moved_ns;
    (void)__atomic_add_fetch(&map->memory->lost, records, __ATOMIC_RELAXED);
    while (before < until_ns && !__atomic_compare_exchange_n(until, &before, until_ns, true,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

bool ring_write(const struct ring_map *map, enum ring_which which, uint64_t kind,
                const void *payload, size_t length)
{
    const struct ring_part *part = &map->parts[which];
    bool is_written = false;

    if (!__atomic_load_n(&ring_identity.is_known, __ATOMIC_ACQUIRE))
        ring_write_set_identity(map);
    if (length >= RING_PAYLOAD_MIN && length <= RING_PAYLOAD_MAX)
        is_written = ring_identity.moved_ns ? ring_write_moved(part, kind, payload, length)
                                            : ring_try_repeatedly(part, kind, payload, length);
    if (!is_written)
        ring_lose(map, 1, blkin_monotonic_ns());
    return is_written;
}
