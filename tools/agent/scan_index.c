/* SPDX-License-Identifier: BSD-2-Clause */
#include "scan_index.h"

#include <stdlib.h>

struct scan_parts {
    struct scan_parts *next;
    uint64_t memory;
    uint32_t user, cpu;
    bool is_used;
    size_t max;
    struct scan_part *newest;
    struct scan_part *newer; /* than the part that was found last; NULL: none */
};

struct scan_index {
    struct scan_parts *first;
};

struct scan_index *scan_index_new(void)
{
    return calloc(1, sizeof(struct scan_index));
}

static void scan_part_free(struct scan_part *list)
{
    while (list) {
        struct scan_part *older = list->older;

        free(list);
        list = older;
    }
}

void scan_index_sweep(struct scan_index *index)
{
    struct scan_parts **at = &index->first, *parts;

    while ((parts = *at) != NULL) {
        if (parts->is_used) {
            parts->is_used = false;
            at = &parts->next;
            continue;
        }
        *at = parts->next;
        scan_part_free(parts->newest);
        free(parts);
    }
}

void scan_index_free(struct scan_index *index)
{
    if (!index)
        return;
    scan_index_sweep(index); /* now no ring is used */
    scan_index_sweep(index);
    free(index);
}

/* Removes the overwritten parts, and the oldest parts beyond parts->max. Removes all parts if the
 * ring's end was moved back: other records may be at their positions soon. */
static void scan_parts_trim(struct scan_parts *parts, const struct ring_back *back)
{
    const uint64_t oldest = ring_back_oldest(back);
    struct scan_part **at = &parts->newest;

    if (*at && (*at)->to <= back->end)
        for (size_t count = 0; *at && (*at)->from >= oldest && count < parts->max; count++)
            at = &(*at)->older;
    scan_part_free(*at);
    *at = NULL;
    parts->newer = NULL;
}

struct scan_parts *scan_index_ring(struct scan_index *index, uint32_t user, uint64_t memory,
                                   uint32_t cpu, const struct ring_back *back)
{
    struct scan_parts *parts = index->first;

    while (parts && (parts->user != user || parts->memory != memory || parts->cpu != cpu))
        parts = parts->next;
    if (!parts) {
        parts = malloc(sizeof(*parts));
        if (!parts)
            return NULL;
        *parts = (struct scan_parts){.next = index->first,
                                     .memory = memory,
                                     .user = user,
                                     .cpu = cpu,
                                     .max = 1 + back->ring.size / BACK_PIECE};
        index->first = parts;
    }
    parts->is_used = true;
    scan_parts_trim(parts, back);
    return parts;
}

/* Returns the link to the newest part that begins before the position. A scan goes backward: the
 * search continues where the last one has ended. */
static struct scan_part **scan_parts_seek(struct scan_parts *parts, uint64_t at)
{
    struct scan_part **link;

    if (parts->newer && parts->newer->from < at)
        parts->newer = NULL;
    link = parts->newer ? &parts->newer->older : &parts->newest;
    while (*link && (*link)->from >= at) {
        parts->newer = *link;
        link = &parts->newer->older;
    }
    return link;
}

const struct scan_part *scan_parts_find(struct scan_parts *parts, uint64_t at)
{
    return *scan_parts_seek(parts, at);
}

/* Joins two parts into one of them, `into`. filter: the filter of the part that is not `into`.
 * Returns false if the parts do not touch, or if they exceed BACK_PIECE together. */
static bool scan_part_join(struct scan_part *into, const struct scan_part *older,
                           const struct scan_part *newer, const struct scan_filter *filter)
{
    if (older->to != newer->from || newer->to - older->from > BACK_PIECE)
        return false;
    into->oldest_ns = older->oldest_ns;
    into->from = older->from;
    into->to = newer->to;
    for (size_t i = 0; i < sizeof(filter->bits) / sizeof(filter->bits[0]); i++)
        into->filter.bits[i] |= filter->bits[i];
    return true;
}

void scan_parts_add(struct scan_parts *parts, const struct scan_part *part)
{
    struct scan_part **at = scan_parts_seek(parts, part->to), *newer = parts->newer, *made;

    if ((newer && scan_part_join(newer, part, newer, &part->filter)) ||
        (*at && scan_part_join(*at, *at, part, &part->filter)))
        return;
    made = malloc(sizeof(*made));
    if (!made)
        return;
    *made = *part;
    made->older = *at;
    *at = made;
}
