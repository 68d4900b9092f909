/*
 * Messages in the order of their posting.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static void item_free(struct item *item)
{
    free(item->text);
    free(item);
}

void items_put(struct items *queue, struct item *item)
{
    item->next = NULL;
    if (queue->last)
        queue->last->next = item;
    else
        queue->first = item;
    queue->last = item;
    queue->count++;
    queue->bytes += item->length;
}

struct item *items_take(struct items *queue)
{
    struct item *item = queue->first;

    if (!item)
        return NULL;
    queue->first = item->next;
    if (!queue->first)
        queue->last = NULL;
    queue->count--;
    queue->bytes -= item->length;
    return item;
}

void items_put_before(struct items *to, struct items *from)
{
    struct items all = *from;

    if (!all.first)
        return;
    all.last->next = to->first;
    if (to->first)
        all.last = to->last;
    all.count += to->count;
    all.bytes += to->bytes;
    *to = all;
    *from = (struct items){NULL, NULL, 0, 0};
}

void items_move_foreign(struct items *from, const char *boot, struct items *to)
{
    struct items all = *from;
    struct item *item;

    *from = (struct items){NULL, NULL, 0, 0};
    while ((item = items_take(&all)))
        items_put(strcmp(item->boot, boot) == 0 ? from : to, item);
}

size_t items_drop(struct items *queue, int64_t oldest_ms, size_t max_bytes)
{
    size_t count = 0;

    while (queue->first && (queue->first->at_ms < oldest_ms || queue->bytes > max_bytes)) {
        item_free(items_take(queue));
        count++;
    }
    return count;
}

void items_settle(struct items *queue, const char *boot, uint64_t settled)
{
    struct items all = *queue;
    struct item *item;

    *queue = (struct items){NULL, NULL, 0, 0};
    while ((item = items_take(&all))) {
        if (item->number <= settled && strcmp(item->boot, boot) == 0)
            item_free(item);
        else
            items_put(queue, item);
    }
}
