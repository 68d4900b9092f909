/*
 * Batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"

struct batch *batch_new(void)
{
    return calloc(1, sizeof(struct batch));
}

void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    buffer_free(&batch->buffer);
    free(batch);
}

void batch_reset(struct batch *batch)
{
    batch->next = NULL;
    batch->buffer.length = 0;
    batch->count = 0;
}

/* Of a span and its log, a multiple of 8. */
static size_t size_of(const struct span *span)
{
    return sizeof(*span) + ((span->log_length + 7) & ~(size_t)7);
}

bool batch_add(struct batch *batch, const struct span *span)
{
    const size_t size = size_of(span);
    struct span *copy;

    if (!buffer_reserve(&batch->buffer, size))
        return false;
    copy = (struct span *)(void *)(batch->buffer.data + batch->buffer.length);
    *copy = *span;
    if (span->log_length)
        memcpy(copy + 1, span->log, span->log_length);
    batch->buffer.length += size;
    batch->count++;
    return true;
}

const struct span *batch_span(struct batch *batch, size_t *offset)
{
    struct span *span = (struct span *)(void *)(batch->buffer.data + *offset);

    if (*offset == batch->buffer.length)
        return NULL;
    span->log = (char *)(span + 1); /* only now: the block moves when it grows */
    *offset += size_of(span);
    return span;
}
