/*
 * What is kept of an assembler from one run to the next, as bytes: save.h. How numbers and texts
 * are written, and read again.
 *
 * What is read comes from a file and is not trusted: a reader that finds nonsense is damaged, gives
 * zeros and empty texts from then on, and is asked once, at the end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_STATE_H
#define BLKIN_CORE_STATE_H

#include "babeltrace-plugin/base/text.h"

#include <endian.h>
#include <stdlib.h>

/* Returns false if it cannot be written; then nothing more is. */
typedef bool state_write_fn(void *context, const void *data, size_t length);

struct state_writer {
    state_write_fn *write;
    void *context;
    bool has_failed;
    /*
     * Endpoints and sources are written where they are first referred to, and are numbered by that.
     * What has been written in this state has its serial.
     */
    uint64_t serial;
    uint32_t endpoints;
    uint32_t sources;
};

/* What was read of a kind, by its numbers. */
struct state_numbered {
    const void **things;
    size_t count;
};

struct state_reader {
    struct text left;
    bool is_damaged;
    bool has_no_memory;
    struct state_numbered endpoints;
    struct state_numbered sources;
};

/* Returns false when out of memory. */
static inline bool state_reader_number(struct state_numbered *numbered, const void *thing)
{
    const size_t count = numbered->count;

    /* a power of two is full */
    if ((count & (count - 1)) == 0) {
        const void **things = (const void **)realloc((void *)numbered->things,
                                                     (count ? 2 * count : 1) * sizeof(thing));

        if (!things)
            return false;
        numbered->things = things;
    }
    numbered->things[numbered->count++] = thing;
    return true;
}

static inline void state_reader_free(struct state_reader *reader)
{
    free((void *)reader->endpoints.things);
    free((void *)reader->sources.things);
}

static inline void state_put(struct state_writer *writer, const void *data, size_t length)
{
    if (!writer->has_failed && length)
        writer->has_failed = !writer->write(writer->context, data, length);
}

static inline void state_put_number(struct state_writer *writer, uint64_t number)
{
    const uint64_t bytes = htole64(number);

    state_put(writer, &bytes, sizeof(bytes));
}

static inline void state_put_signed(struct state_writer *writer, int64_t number)
{
    state_put_number(writer, (uint64_t)number);
}

static inline void state_put_text(struct state_writer *writer, struct text text)
{
    state_put_number(writer, text.length);
    state_put(writer, text.data, text.length);
}

static inline void state_set_damaged(struct state_reader *reader)
{
    reader->is_damaged = true;
    reader->left = (struct text){NULL, 0};
}

static inline void state_set_no_memory(struct state_reader *reader)
{
    reader->has_no_memory = true;
    reader->left = (struct text){NULL, 0};
}

static inline bool state_is_good(const struct state_reader *reader)
{
    return !reader->is_damaged && !reader->has_no_memory;
}

static inline struct text state_get(struct state_reader *reader, uint64_t length)
{
    const struct text taken = {reader->left.data, length};

    if (length > reader->left.length) {
        state_set_damaged(reader);
        return (struct text){NULL, 0};
    }
    if (length)
        reader->left = (struct text){reader->left.data + length, reader->left.length - length};
    return taken;
}

static inline uint64_t state_get_number(struct state_reader *reader)
{
    const struct text bytes = state_get(reader, sizeof(uint64_t));
    uint64_t number = 0;

    if (bytes.length)
        memcpy(&number, bytes.data, sizeof(number));
    return le64toh(number);
}

static inline int64_t state_get_signed(struct state_reader *reader)
{
    return (int64_t)state_get_number(reader);
}

/* One that goes no further than max. */
static inline uint64_t state_get_limited(struct state_reader *reader, uint64_t max)
{
    const uint64_t number = state_get_number(reader);

    if (number <= max)
        return number;
    state_set_damaged(reader);
    return 0;
}

static inline bool state_get_bool(struct state_reader *reader)
{
    return state_get_limited(reader, 1);
}

/* A time that is not before 1970. */
static inline int64_t state_get_time(struct state_reader *reader)
{
    return (int64_t)state_get_limited(reader, INT64_MAX);
}

static inline struct text state_get_text(struct state_reader *reader)
{
    return state_get(reader, state_get_number(reader));
}

#endif
