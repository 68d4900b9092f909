/*
 * The log of a span: its name, annotations and tags in one growing block.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include <stdlib.h>

#define LOG_FIRST_BYTES 192

const struct span_entry *span_find_tag(const struct span *span, struct text key)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if ((entry->type == SPAN_TAG_TEXT || entry->type == SPAN_TAG_INTEGER) &&
            text_equal(span_entry_key(entry), key))
            return entry;
    }
    return NULL;
}

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

__attribute__((noinline)) static bool span_grow(struct span *span, size_t needed)
{
    size_t capacity = span->log_capacity ? span->log_capacity : LOG_FIRST_BYTES;
    char *log;

    if (needed > SPAN_LOG_MAX)
        return false;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > SPAN_LOG_MAX)
        capacity = SPAN_LOG_MAX;
    log = realloc(span->log, capacity);
    if (!log)
        return false;
    span->log = log;
    span->log_capacity = (uint32_t)capacity;
    return true;
}

static inline bool span_make_room(struct span *span, size_t size)
{
    const size_t needed = span->log_length + size;

    return needed <= span->log_capacity || span_grow(span, needed);
}

bool span_set_name(struct span *span, struct text name)
{
    size_t size = padded(name.length);

    /* also for an empty log: log is never NULL */
    if (!span_make_room(span, size ? size : 1))
        return false;
    (void)text_copy(span->log, name);
    span->name_length = (uint32_t)name.length;
    span->first_entry = (uint32_t)size;
    span->log_length = (uint32_t)size;
    return true;
}

bool span_add(struct span *span, enum span_entry_type type, struct text key, struct text value,
              int64_t integer)
{
    size_t size;
    struct span_entry *entry;

    if (key.length > SPAN_LOG_MAX || value.length > SPAN_LOG_MAX)
        return false;
    size = padded(sizeof(*entry) + key.length + value.length);
    if (!span_make_room(span, size))
        return false;

    entry = (struct span_entry *)(void *)(span->log + span->log_length);
    *entry = (struct span_entry){
        .type = type,
        .key_length = (uint32_t)key.length,
        .value_length = (uint32_t)value.length,
        .size = (uint32_t)size,
        .integer = integer,
    };
    (void)text_copy(text_copy((char *)(entry + 1), key), value);
    span->log_length += (uint32_t)size;
    return true;
}

bool span_change_name(struct span *span, struct text name)
{
    const size_t size = padded(name.length);
    const size_t entries = span->log_length - span->first_entry;

    if (size > SPAN_LOG_MAX ||
        (size > span->first_entry && !span_make_room(span, size - span->first_entry)))
        return false;
    memmove(span->log + size, span->log + span->first_entry, entries);
    (void)text_copy(span->log, name);
    span->name_length = (uint32_t)name.length;
    span->first_entry = (uint32_t)size;
    span->log_length = (uint32_t)(size + entries);
    return true;
}

bool span_add_link(struct span *span, const struct span_link *link)
{
    return span_add(span, SPAN_LINK, (struct text){NULL, 0},
                    (struct text){(const char *)link, sizeof(*link)}, 0);
}

struct span_copy *span_copy_new(const struct span *span, size_t spare)
{
    struct span_copy *kept = malloc(sizeof(*kept) + span->log_length + spare);

    if (!kept)
        return NULL;
    kept->next = NULL;
    kept->since_ns = 0;
    kept->span = *span;
    kept->span.log = kept->log;
    kept->span.log_capacity = span->log_length + (uint32_t)spare;
    if (span->log_length)
        memcpy(kept->log, span->log, span->log_length);
    return kept;
}

static void shift_annotations(struct span *span, int64_t by_ns)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        /* unsigned: an annotation may have any time */
        if (entry->type == SPAN_ANNOTATION)
            ((struct span_entry *)(uintptr_t)entry)->integer =
                (int64_t)((uint64_t)entry->integer + (uint64_t)by_ns);
    }
}

bool span_shift(struct span *span, int64_t by_ns)
{
    int64_t start_ns, end_ns;

    if (__builtin_add_overflow(span->start_ns, by_ns, &start_ns) ||
        __builtin_add_overflow(span->end_ns, by_ns, &end_ns))
        return false;
    span->start_ns = start_ns;
    span->end_ns = end_ns;
    shift_annotations(span, by_ns);
    return true;
}
