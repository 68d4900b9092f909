/*
 * Messages in the order of their posting: those that wait, those on their way, those that the hub
 * has and could lose.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXCHANGE_QUEUE_H
#define BLKIN_TOOLS_EXCHANGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_MAX 32

struct item {
    struct item *next;
    int64_t at_ms;           /* when it was posted first */
    char boot[BOOT_MAX + 1]; /* of the hub that took it */
    uint64_t number;         /* it has no higher one there */
    size_t length;
    char *text;
};

struct items {
    struct item *first, *last;
    size_t count, bytes;
};

/* Puts it at the end. */
void items_put(struct items *queue, struct item *item);
/* Takes the first out; NULL: there is none. */
struct item *items_take(struct items *queue);
void item_free(struct item *item);

/* All of `from`, in their order, before those of `to`. */
void items_put_before(struct items *to, struct items *from);

/* Moves those to the end of `to` that another hub than `boot` has taken. */
void items_move_foreign(struct items *from, const char *boot, struct items *to);

/* Frees those that this hub has given to all. */
void items_settle(struct items *queue, const char *boot, uint64_t settled);

/* Frees the first ones: those older than that, and those beyond max_bytes. Returns how many. */
size_t items_drop(struct items *queue, int64_t oldest_ms, size_t max_bytes);

#endif
