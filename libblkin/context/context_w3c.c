/*
 * W3C Trace Context: traceparent; tracestate, a list "key=value,key=value" that is checked and
 * passed on; both in the environment of a process. And the tables of hexadecimal digits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin_context.h"
#include "context_hex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const unsigned char blkin_hex_value[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13,
    ['4'] = 0x14, ['5'] = 0x15, ['6'] = 0x16, ['7'] = 0x17,
    ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1a, ['b'] = 0x1b,
    ['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f,
};

const char blkin_hex_pairs[513] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
    "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
    "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
    "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
    "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
/* clang-format on */

/* ---- traceparent ---- */

/* The offsets of version, trace id, span id and flags, which "-" separates. */
enum {
    PARENT_VERSION = 0,
    PARENT_TRACE_ID = 3,
    PARENT_SPAN_ID = 36,
    PARENT_FLAGS = 53,
    PARENT_LENGTH = 55
};

#define W3C_SAMPLED 1u
#define W3C_RANDOM  2u

int blkin_context_from_traceparent(struct blkin_context *context, const char *text, size_t length)
{
    unsigned version, flags, valid = 1;
    struct blkin_context read = {.flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_REMOTE};

    if (!context || !text || length < PARENT_LENGTH)
        return -EINVAL;
    version = (unsigned)blkin_hex_read(text + PARENT_VERSION, 2, &valid);
    read.trace_id_high = blkin_hex_read(text + PARENT_TRACE_ID, 16, &valid);
    read.trace_id = blkin_hex_read(text + PARENT_TRACE_ID + 16, 16, &valid);
    read.span_id = blkin_hex_read(text + PARENT_SPAN_ID, 16, &valid);
    flags = (unsigned)blkin_hex_read(text + PARENT_FLAGS, 2, &valid);
    if (!valid || text[PARENT_TRACE_ID - 1] != '-' || text[PARENT_SPAN_ID - 1] != '-' ||
        text[PARENT_FLAGS - 1] != '-')
        return -EINVAL;
    if (version == 0xff || !blkin_context_has_ids(&read))
        return -EINVAL;
    if (length > PARENT_LENGTH && (version == 0 || text[PARENT_LENGTH] != '-'))
        return -EINVAL;

    if (flags & W3C_SAMPLED)
        read.flags |= BLKIN_CONTEXT_SAMPLED;
    if (flags & W3C_RANDOM && version == 0)
        read.flags |= BLKIN_CONTEXT_RANDOM;
    *context = read;
    return 0;
}

int blkin_context_to_traceparent(const struct blkin_context *context, char *buffer)
{
    char *end = buffer;

    if (!context || !buffer || !blkin_context_has_ids(context))
        return -EINVAL;
    *end++ = '0';
    *end++ = '0';
    *end++ = '-';
    end = blkin_hex_write(end, context->trace_id_high);
    end = blkin_hex_write(end, context->trace_id);
    *end++ = '-';
    end = blkin_hex_write(end, context->span_id);
    *end++ = '-';
    *end++ = '0';
    *end++ = (char)('0' + (blkin_context_is_sampled(context) ? W3C_SAMPLED : 0) +
                    (context->flags & BLKIN_CONTEXT_RANDOM ? W3C_RANDOM : 0));
    *end = '\0';
    return PARENT_LENGTH;
}

/* ---- tracestate ---- */

#define MEMBERS_MAX 32
#define KEY_MAX     256
#define VALUE_MAX   256
#define ENTRY_LARGE 128 /* longer entries are removed first */

struct tracestate_entry {
    uint32_t start;
    uint32_t length; /* of "key=value"; 0: removed */
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

/* Reads "key=value" at this offset. Spaces behind the value do not belong to it. */
static int read_entry(const char *text, size_t length, size_t at, struct tracestate_entry *entry)
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
 * Reads a list. Returns the number of entries, or -EINVAL. Empty members count for the limit.
 * Duplicate keys are no error: each vendor removes duplicates of its own key.
 */
static int read_list(const char *text, size_t length, struct tracestate_entry entries[MEMBERS_MAX])
{
    size_t at = 0;
    int count = 0;

    if (length > BLKIN_TRACESTATE_MAX)
        return -EINVAL;
    for (int members = 0; members < MEMBERS_MAX; members++, at++) {
        at = skip_blanks(text, length, at);
        if (at < length && text[at] != ',') {
            struct tracestate_entry *entry = &entries[count];

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
    struct tracestate_entry entries[MEMBERS_MAX];
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

/* Removes entries longer than the limit, the last one first, until the total is at most `size`.
 * Returns the total. */
static size_t drop_entries(struct tracestate_entry *entries, int count, size_t limit, size_t total,
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
    struct tracestate_entry entries[MEMBERS_MAX];
    int count = read_list(text, length, entries);
    size_t total = 0; /* bytes of all entries, each with a comma or the final NUL */
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

/* ---- the environment ---- */

#define PARENT_NAME "TRACEPARENT"
#define STATE_NAME  "TRACESTATE"

int blkin_context_from_environment(struct blkin_context *context)
{
    const char *parent = secure_getenv(PARENT_NAME), *state = secure_getenv(STATE_NAME);
    int error;

    if (!context)
        return -EINVAL;
    if (!parent || !*parent)
        return -ENOENT;
    error = blkin_context_from_traceparent(context, parent, strlen(parent));
    if (!error && state)
        (void)blkin_context_set_tracestate(context, state, strlen(state));
    return error;
}

/* Writes the prefix into the room that the caller has left before a value of `length` bytes.
 * Returns the length of prefix and value. A `length` that is 0 (no value) or an error is returned
 * unchanged. */
static int put_variable(char *buffer, const char *prefix, int length)
{
    const int before = (int)strlen(prefix);

    if (length > 0)
        memcpy(buffer, prefix, (size_t)before);
    else if (length == 0)
        *buffer = '\0';
    return length > 0 ? length + before : length;
}

int blkin_context_to_traceparent_variable(const struct blkin_context *context, char *buffer)
{
    static const char prefix[] = PARENT_NAME "=";

    return buffer ? put_variable(buffer, prefix,
                                 blkin_context_to_traceparent(context, buffer + sizeof(prefix) - 1))
                  : -EINVAL;
}

int blkin_context_to_tracestate_variable(const struct blkin_context *context, char *buffer,
                                         size_t size)
{
    static const char prefix[] = STATE_NAME "=";

    if (!buffer || size < sizeof(prefix))
        return -EINVAL;
    return put_variable(buffer, prefix,
                        blkin_context_to_tracestate(context, buffer + sizeof(prefix) - 1,
                                                    size - sizeof(prefix) + 1));
}
