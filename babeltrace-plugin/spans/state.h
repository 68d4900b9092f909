/*
 * What is kept of an assembler from one run to the next, as bytes: save.c. How numbers and texts
 * are written, and read again.
 *
 * What is read comes from a file and is not trusted: a state that has nonsense is damaged, gives
 * zeros and empty texts from then on, and is asked once, at the end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_STATE_H
#define BLKIN_CORE_STATE_H

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/text.h"

#include <endian.h>
#include <stdlib.h>

/* Returns false if it cannot be written; then nothing more is. */
typedef bool state_write_fn(void *context, const void *data, size_t length);

/* What was read of a kind, by its numbers. */
struct state_numbered {
    const void **things;
    size_t count, room;
};

struct state {
    state_write_fn *write; /* NULL: it is read */
    void *context;
    bool has_failed;
    /*
     * Endpoints and sources are written where they are first referred to, and are numbered by that.
     * What has been written in this state has its serial.
     */
    uint64_t serial;
    uint32_t endpoints_written;
    uint32_t sources_written;

    struct text left; /* of one that is read, as is what follows */
    bool is_damaged;
    bool has_no_memory;
    struct state_numbered endpoints;
    struct state_numbered sources;
};

/* Returns false when out of memory. */
static inline bool state_number_thing(struct state_numbered *numbered, const void *thing)
{
    if (!ARRAY_FITS(numbered->things, numbered->room, numbered->count))
        return false;
    numbered->things[numbered->count++] = thing;
    return true;
}

static inline void state_free(struct state *state)
{
    free((void *)state->endpoints.things);
    free((void *)state->sources.things);
}

static inline void state_put(struct state *state, const void *data, size_t length)
{
    if (!state->has_failed && length)
        state->has_failed = !state->write(state->context, data, length);
}

static inline void state_put_number(struct state *state, uint64_t number)
{
    const uint64_t bytes = htole64(number);

    state_put(state, &bytes, sizeof(bytes));
}

static inline void state_put_signed(struct state *state, int64_t number)
{
    state_put_number(state, (uint64_t)number);
}

static inline void state_put_bool(struct state *state, bool flag)
{
    const char byte = flag;

    state_put(state, &byte, sizeof(byte));
}

static inline void state_put_text(struct state *state, struct text text)
{
    state_put_number(state, text.length);
    state_put(state, text.data, text.length);
}

static inline void state_set_damaged(struct state *state)
{
    state->is_damaged = true;
    state->left = (struct text){NULL, 0};
}

static inline void state_set_no_memory(struct state *state)
{
    state->has_no_memory = true;
    state->left = (struct text){NULL, 0};
}

static inline bool state_is_good(const struct state *state)
{
    return !state->is_damaged && !state->has_no_memory;
}

static inline struct text state_get(struct state *state, uint64_t length)
{
    const struct text taken = {state->left.data, length};

    if (length > state->left.length) {
        state_set_damaged(state);
        return (struct text){NULL, 0};
    }
    if (length)
        state->left = text_after(state->left, length);
    return taken;
}

static inline uint64_t state_get_number(struct state *state)
{
    const struct text bytes = state_get(state, sizeof(uint64_t));
    uint64_t number = 0;

    if (bytes.length)
        memcpy(&number, bytes.data, sizeof(number));
    return le64toh(number);
}

static inline int64_t state_get_signed(struct state *state)
{
    return (int64_t)state_get_number(state);
}

/* One that goes no further than max. */
static inline uint64_t state_get_limited(struct state *state, uint64_t max)
{
    const uint64_t number = state_get_number(state);

    if (number <= max)
        return number;
    state_set_damaged(state);
    return 0;
}

static inline bool state_get_bool(struct state *state)
{
    const struct text byte = state_get(state, 1);

    if (byte.length && (unsigned char)byte.data[0] > 1)
        state_set_damaged(state);
    return byte.length && byte.data[0] == 1;
}

static inline struct text state_get_text(struct state *state)
{
    return state_get(state, state_get_number(state));
}

/* ---- both ways: what is there is written, or read into its place ----------------------------- */

static inline void state_number(struct state *state, uint64_t *number)
{
    if (state->write)
        state_put_number(state, *number);
    else
        *number = state_get_number(state);
}

static inline void state_signed(struct state *state, int64_t *number)
{
    if (state->write)
        state_put_signed(state, *number);
    else
        *number = state_get_signed(state);
}

static inline void state_bool(struct state *state, bool *flag)
{
    if (state->write)
        state_put_bool(state, *flag);
    else
        *flag = state_get_bool(state);
}

static inline void state_bytes(struct state *state, struct text *text)
{
    if (state->write)
        state_put_text(state, *text);
    else
        *text = state_get_text(state);
}

/* A number of any type, which goes no further than max: for `x = state_limited(state, x, max)`. */
static inline uint64_t state_limited(struct state *state, uint64_t number, uint64_t max)
{
    if (!state->write)
        return state_get_limited(state, max);
    state_put_number(state, number);
    return number;
}

/* A time that is not before 1970. */
static inline void state_time(struct state *state, int64_t *time_ns)
{
    *time_ns = (int64_t)state_limited(state, (uint64_t)*time_ns, INT64_MAX);
}

#endif
