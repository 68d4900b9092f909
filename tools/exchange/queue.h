/*
 * A list of messages in the order of their posting.
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
    int64_t at_ms;           /* when the recorder posted it */
    char boot[BOOT_MAX + 1]; /* of the hub that took it */
    uint64_t number;         /* the hub's number of the message is not higher */
    size_t length;
    char *text;
};

struct items {
    struct item *first, *last;
    size_t count, bytes;
};

/* Appends the item. */
void items_put(struct items *queue, struct item *item);
/* Takes the first item out; NULL: there is none. */
struct item *items_take(struct items *queue);

/* Moves all items of `from` to the beginning of `to`. */
void items_put_before(struct items *to, struct items *from);

/* Moves items that another hub than `boot` took to the end of `to`. */
void items_move_foreign(struct items *from, const char *boot, struct items *to);

/* Frees the items that this hub has given to all hosts. */
void items_settle(struct items *queue, const char *boot, uint64_t settled);

/* Frees the oldest items: those before oldest_ms, and until the list has max_bytes at most. Returns
 * how many. */
size_t items_drop(struct items *queue, int64_t oldest_ms, size_t max_bytes);

#endif
