/*
 * A growing byte buffer with a hard limit.
 *
 * Writers reserve room once for a whole piece of output and then write without further checks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BUFFER_H
#define BLKIN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *data;
    size_t length;
    size_t capacity;
    size_t limit; /* length never passes this; 0: no limit */
};

/* Makes room for size more bytes. Returns false, buffer as it was, at the limit or out of memory.
 */
static inline bool buffer_reserve(struct buffer *buffer, size_t size)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 4096;
    char *data;

    if (size <= buffer->capacity - buffer->length)
        return true;
    if (buffer->limit && size > buffer->limit - buffer->length)
        return false;
    while (capacity - buffer->length < size)
        capacity *= 2;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    capacity = buffer->length + size; /* who reserves too little is caught at once */
#endif
    data = realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

/* Appends without a check: there is room. */
static inline void buffer_put(struct buffer *buffer, const char *data, size_t length)
{
    if (length)
        memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
}

static inline void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.limit = buffer->limit};
}

#endif
