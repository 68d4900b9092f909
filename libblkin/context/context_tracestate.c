/*
 * W3C Trace Context: tracestate, a list "key=value,key=value" that is checked and passed on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin_context.h"

#include <errno.h>
#include <string.h>

#define MEMBERS_MAX 32
#define KEY_MAX     256
#define VALUE_MAX   256
#define ENTRY_LARGE 128 /* larger ones are the first to go */

struct entry {
    uint32_t start;
    uint32_t length; /* of "key=value"; 0: dropped */
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int is_key_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int is_key_char(char c)
{
    return is_key_start(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

static int is_value_char(char c)
{
    return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

static size_t skip_blanks(const char *text, size_t length, size_t at)
{
    while (at < length && is_blank(text[at]))
        at++;
    return at;
}

/* Reads "key=value" at the given place. Spaces behind the value are not part of it. */
static int read_entry(const char *text, size_t length, size_t at, struct entry *entry)
{
    size_t start = at, value;

    if (!is_key_start(text[at]))
        return -EINVAL;
    while (at < length && is_key_char(text[at]))
        at++;
    if (at - start > KEY_MAX || at == length || text[at] != '=')
        return -EINVAL;
    entry->start = (uint32_t)start;

    value = ++at;
    while (at < length && is_value_char(text[at]))
        at++;
    while (at > value && text[at - 1] == ' ')
        at--;
    if (at == value || at - value > VALUE_MAX)
        return -EINVAL;
    entry->length = (uint32_t)(at - start);
    return 0;
}

/*
 * Returns the number of entries, or -EINVAL. Empty members count towards the limit. A key that
 * comes twice is a matter of who changes the list: we pass it on.
 */
static int read_list(const char *text, size_t length, struct entry entries[MEMBERS_MAX])
{
    size_t at = 0;
    int count = 0;

    if (length > BLKIN_TRACESTATE_MAX)
        return -EINVAL;
    for (int members = 0; members < MEMBERS_MAX; members++, at++) {
        at = skip_blanks(text, length, at);
        if (at < length && text[at] != ',') {
            struct entry *entry = &entries[count];

            if (read_entry(text, length, at, entry))
                return -EINVAL;
            count++;
            at = skip_blanks(text, length, entry->start + entry->length);
        }
        if (at == length)
            return count;
        if (text[at] != ',')
            return -EINVAL;
    }
    return -EINVAL;
}

int blkin_context_set_tracestate(struct blkin_context *context, const char *text, size_t length)
{
    struct entry entries[MEMBERS_MAX];
    int count;

    if (!context || !text || !blkin_context_has_ids(context))
        return -EINVAL;
    count = read_list(text, length, entries);
    if (count < 0)
        return count;
    context->tracestate = count ? text : NULL;
    context->tracestate_length = count ? (uint32_t)length : 0;
    return 0;
}

/* Drops entries longer than the limit, from the last, until the total fits. Returns the total. */
static size_t drop_entries(struct entry *entries, int count, size_t limit, size_t total,
                           size_t size)
{
    for (int i = count - 1; i >= 0 && total > size; i--) {
        if (entries[i].length > limit) {
            total -= entries[i].length + 1;
            entries[i].length = 0;
        }
    }
    return total;
}

static int write_truncated(const char *text, size_t length, char *buffer, size_t size)
{
    struct entry entries[MEMBERS_MAX];
    int count = read_list(text, length, entries);
    size_t total = 0; /* each entry with the comma, or the final NUL, behind it */
    char *end = buffer;

    if (count < 0)
        return count;
    for (int i = 0; i < count; i++)
        total += entries[i].length + 1;
    total = drop_entries(entries, count, ENTRY_LARGE, total, size);
    drop_entries(entries, count, 0, total, size);

    for (int i = 0; i < count; i++) {
        if (!entries[i].length)
            continue;
        if (end != buffer)
            *end++ = ',';
        memcpy(end, text + entries[i].start, entries[i].length);
        end += entries[i].length;
    }
    *end = '\0';
    return (int)(end - buffer);
}

int blkin_context_to_tracestate(const struct blkin_context *context, char *buffer, size_t size)
{
    size_t length;

    if (!context || !buffer || size == 0 || !blkin_context_has_ids(context))
        return -EINVAL;
    length = context->tracestate ? context->tracestate_length : 0;
    if (length >= size || length > BLKIN_TRACESTATE_MAX)
        return write_truncated(context->tracestate, length, buffer, size);
    if (length)
        memcpy(buffer, context->tracestate, length);
    buffer[length] = '\0';
    return (int)length;
}
