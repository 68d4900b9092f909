/*
 * An assembler that goes on as another one, in which its state was restored: with the same
 * counters, so that it can be compared with one that was left alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_MOVED_H
#define TESTS_PLUGIN_MOVED_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "babeltrace-plugin/spans/hold.h"

#include "check.h"

static inline bool append_bytes(void *context, const void *data, size_t length)
{
    struct buffer *buffer = context;

    if (!buffer_reserve(buffer, length))
        return false;
    memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    return true;
}

/* In memory of their own, which a text that is kept would outlive. */
static inline struct text saved_state(struct assembler *assembler, const struct hold *hold)
{
    struct buffer buffer = {.length = 0};
    struct state writer = {.write = append_bytes, .context = &buffer};

    assembler_save(assembler, false, &writer);
    if (hold)
        hold_save(hold, &writer);
    CHECK(!writer.has_failed);
    return (struct text){buffer.data, buffer.length};
}

/* hold may be NULL; else it goes on as another one, too. */
static inline struct assembler *moved(struct assembler *from, struct hold **hold)
{
    const struct text state = saved_state(from, hold ? *hold : NULL);
    struct state reader = {.left = state};
    struct assembler *to = assembler_new(&from->options, from->sink, from->sink_context);
    uint64_t open_bytes;

    assembler_restore(to, &reader);
    if (hold) {
        hold_free(*hold);
        *hold = hold_new(to);
        hold_restore(*hold, &reader);
    }
    CHECK(state_is_good(&reader) && reader.left.length == 0);
    state_free(&reader);
    free((char *)(uintptr_t)state.data);
    open_bytes = to->counts.open_bytes;
    CHECK(to->open.table.count == from->open.table.count);
    to->counts = from->counts;
    to->counts.open_bytes = open_bytes;
    assembler_free(from);
    return to;
}

#endif
