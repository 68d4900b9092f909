/* SPDX-License-Identifier: BSD-2-Clause */
#include "shares.h"

#include <stdlib.h>

#define SHARES_FIRST_BYTES (UINT64_C(8) << 20) /* the most bytes of events in a first memory */
#define SHARES_GROWTH      4 /* a memory has at most this many times the bytes of its predecessor */
#define SHARES_RESERVE     8 /* the reserve is 1/8 of max_bytes */
#define SHARES_USERS       4 /* a payer may have memories for 1/4 of max_users */

struct memory_size shares_first_size(const struct memory_size *full)
{
    struct memory_size first = *full;

    while (first.event_bytes > RING_BYTES_MIN &&
           first.event_bytes * first.cpus > SHARES_FIRST_BYTES)
        first.event_bytes /= 2;
    return first;
}

uint64_t shares_reserve(const struct holder_options *options)
{
    return options->max_bytes / SHARES_RESERVE;
}

/* ---- division -------------------------------------------------------------------------------- */

static int shares_compare(const void *a, const void *b)
{
    const struct share *one = a, *other = b;

    return one->payer < other->payer ? -1 : one->payer > other->payer;
}

static int shares_compare_wants(const void *a, const void *b)
{
    const struct share *one = a, *other = b;

    return one->wants < other->wants ? -1 : one->wants > other->wants;
}

/* Returns the size that the memory would have without a limit. */
static struct memory_size shares_wanted(const struct held *held,
                                        const struct holder_options *options)
{
    struct memory_size wanted = options->size;
    const uint64_t first = shares_first_size(&options->size).event_bytes;
    const uint64_t now = held->memory.size.event_bytes;

    if (!held->is_busy && now < wanted.event_bytes)
        wanted.event_bytes = now < first ? first : now;
    /* a small one is made soon: before a fast program has filled the first one */
    if (now < wanted.event_bytes / SHARES_GROWTH)
        wanted.event_bytes = now * SHARES_GROWTH;
    return wanted;
}

static void shares_collect(struct shares *shares, const struct held *all,
                           const struct holder_options *options)
{
    unsigned count = 0;

    for (const struct held *held = all; held; held = held->next) {
        const struct memory_size wanted = shares_wanted(held, options);

        if (!held->is_left)
            shares->list[shares->count++] =
                (struct share){held->payer, 1, held->memory.bytes, memory_bytes(&wanted)};
    }
    qsort(shares->list, shares->count, sizeof(shares->list[0]), shares_compare);
    for (unsigned i = 0; i < shares->count; i++) {
        const struct share *next = &shares->list[i];
        struct share *last = count ? &shares->list[count - 1] : NULL;

        if (last && last->payer == next->payer) {
            last->memories++;
            last->bytes += next->bytes;
            last->wants += next->wants;
        } else {
            shares->list[count++] = *next;
        }
    }
    shares->count = count;
}

/* Returns the highest level at which the sum of all shares fits into `bytes` (water filling). */
static uint64_t shares_find_level(struct share *list, unsigned count, uint64_t bytes)
{
    qsort(list, count, sizeof(list[0]), shares_compare_wants);
    for (unsigned i = 0; i < count; i++) {
        if (list[i].wants > bytes / (count - i))
            return bytes / (count - i);
        bytes -= list[i].wants;
    }
    return UINT64_MAX;
}

bool shares_divide(struct shares *shares, const struct held *all,
                   const struct holder_options *options)
{
    size_t room = 1;

    for (const struct held *held = all; held; held = held->next)
        room++;
    *shares = (struct shares){.list = calloc(room, sizeof(struct share))};
    if (!shares->list)
        return false;
    shares_collect(shares, all, options);
    shares->level = shares_find_level(shares->list, shares->count,
                                      options->max_bytes - shares_reserve(options));
    qsort(shares->list, shares->count, sizeof(shares->list[0]), shares_compare);
    return true;
}

void shares_free(struct shares *shares)
{
    free(shares->list);
    *shares = (struct shares){.count = 0};
}

/* Returns NULL if the payer has no memory. */
static const struct share *shares_of(const struct shares *shares, uint32_t payer)
{
    const struct share key = {.payer = payer};

    return bsearch(&key, shares->list, shares->count, sizeof(key), shares_compare);
}

/* ---- results --------------------------------------------------------------------------------- */

bool shares_allow(const struct shares *shares, uint32_t payer, uint64_t bytes,
                  const struct holder_options *options)
{
    const struct share *share = shares_of(shares, payer);
    const uint64_t fair = (options->max_bytes - shares_reserve(options)) / (shares->count + 1);

    return !share ||
           (share->memories < options->max_users / SHARES_USERS && share->bytes + bytes <= fair);
}

struct memory_size shares_size(const struct shares *shares, const struct held *held,
                               const struct holder_options *options)
{
    const struct share *share = shares_of(shares, held->payer);
    const struct memory_size first = shares_first_size(&options->size);
    struct memory_size size = shares_wanted(held, options);
    const uint64_t others = share ? share->bytes - held->memory.bytes : 0;
    const uint64_t most = shares->level > others ? shares->level - others : 0;

    while (size.event_bytes > first.event_bytes && memory_bytes(&size) > most)
        size.event_bytes /= 2;
    if (memory_bytes(&size) > most && share && share->memories > 1)
        size.event_bytes = 0;
    return size;
}
