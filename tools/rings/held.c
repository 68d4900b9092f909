/* SPDX-License-Identifier: BSD-2-Clause */
#include "held.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "libblkin/base/clock.h"
#include "tools/base/host_rules.h"
#include "users.h"

struct held *held_find(struct held *list, uint32_t user)
{
    while (list && (list->user != user || list->is_left))
        list = list->next;
    return list;
}

bool held_has(const struct held *list, uint32_t user, uint64_t number)
{
    while (list && (list->user != user || list->number != number))
        list = list->next;
    return list != NULL;
}

unsigned held_users(const struct held *list)
{
    unsigned users = 0;

    for (; list; list = list->next)
        users += !list->is_left;
    return users;
}

struct held *held_longest_idle(struct held *list)
{
    struct held *found = NULL;

    for (; list; list = list->next)
        if ((!found || list->used_ms < found->used_ms) && !memory_is_shared(&list->memory))
            found = list;
    return found;
}

bool held_is_replaced(const struct held *held)
{
    return held->is_left && memory_state(&held->memory) == RING_REPLACED;
}

struct held *held_oldest_replaced(struct held *list, int64_t since_ms, uint64_t *bytes)
{
    struct held *found = NULL;

    *bytes = 0;
    for (; list; list = list->next) {
        if (!held_is_replaced(list) || list->since_ms > since_ms)
            continue;
        *bytes += list->memory.bytes;
        if (!found || list->since_ms < found->since_ms)
            found = list;
    }
    return found;
}

void held_leave(struct held *held, enum ring_state state)
{
    held->is_left = true;
    held->since_ms = clock_ms();
    memory_set_state(&held->memory, state);
}

void held_leave_older(struct held *list)
{
    for (struct held *held = list; held; held = held->next)
        for (const struct held *other = list; other && !held->is_left; other = other->next)
            held->is_left = other->user == held->user && other->number > held->number;
}

void held_refresh_rules(const struct held *list, unsigned *known)
{
    const unsigned changes = host_rules_refresh();

    for (; changes != *known && list && host_rules(); list = list->next)
        memory_set_rules(&list->memory, host_rules());
    *known = changes;
}

void held_begin(struct held *held)
{
    memory_set_ahead(&held->memory, blkin_clock_ahead_ns());
    if (host_rules())
        memory_set_rules(&held->memory, host_rules());
    held->payer = users_owner(held->user);
    held->written = held->begun_written = memory_written(&held->memory);
    held->since_ms = held->used_ms = held->begun_ms = clock_ms();
}

static void held_set_busy(struct held *held, int64_t hold_ms, int64_t now_ms)
{
    const bool is_over = now_ms - held->begun_ms >= hold_ms;
    const bool is_busy = held->written - held->begun_written >= held->memory.size.event_bytes / 2;

    held->is_busy = is_busy || (held->is_busy && !is_over);
    if (is_over) {
        held->begun_ms = now_ms;
        held->begun_written = held->written;
    }
}

#define HELD_WRITTEN_MS 2000  /* at least two looks */
#define HELD_GIVEN_MS   10000 /* a program has started, and may write much soon */

static bool held_is_active(const struct held *held, int64_t now_ms)
{
    return now_ms - held->since_ms < HELD_WRITTEN_MS || now_ms - held->given_ms < HELD_GIVEN_MS;
}

bool held_find_busy(struct held *list, uint64_t event_bytes)
{
    const int64_t now_ms = clock_ms();
    bool has_found = false;

    for (struct held *held = list; held; held = held->next) {
        if (held->is_left || held->is_busy || held->memory.size.event_bytes >= event_bytes ||
            !held_is_active(held, now_ms))
            continue;
        held->is_busy = memory_written(&held->memory) - held->begun_written >=
                        held->memory.size.event_bytes / 2;
        has_found |= held->is_busy;
    }
    return has_found;
}

void held_look(struct held *held, int64_t hold_ms)
{
    const uint64_t written = memory_written(&held->memory);
    const int64_t now_ms = clock_ms();

    if (written != held->written)
        held->since_ms = held->used_ms = now_ms;
    if (memory_is_shared(&held->memory))
        held->used_ms = now_ms;
    held->written = written;
    held_set_busy(held, hold_ms, now_ms);
}
