/*
 * Naive readers of the trace context formats: short to read, and slow. Each takes a text that ends
 * with a NUL and is cut up in place, and returns whether it is valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_NAIVE_CONTEXT_H
#define TESTS_FUZZ_NAIVE_CONTEXT_H

#include "tests/libblkin/context_checks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEX "0123456789abcdef"

static int naive_hex(const char *text, size_t digits, uint64_t *high, uint64_t *low)
{
    char half[17] = "";

    if (strlen(text) != digits || strspn(text, HEX) != digits)
        return 0;
    *high = 0;
    if (digits == 32) {
        memcpy(half, text, 16);
        *high = strtoull(half, NULL, 16);
    }
    *low = strtoull(text + digits - 16, NULL, 16);
    return 1;
}

/* Cuts text at the dashes. Returns the number of parts, at most 5. */
static int naive_split(char *text, char *parts[5])
{
    int count = 0;

    while (text && count < 5) {
        parts[count++] = text;
        text = strchr(text, '-');
        if (text)
            *text++ = '\0';
    }
    return count;
}

static int naive_traceparent(char *text, size_t length, struct blkin_context *context)
{
    char *parts[5], *rest = length > 55 ? text + 55 : NULL;
    uint64_t none;
    unsigned flags;

    if (length < 55 || (rest && (*rest != '-' || strncmp(text, "00", 2) == 0)))
        return 0;
    if (rest)
        *rest = '\0';
    if (strlen(text) != 55 || naive_split(text, parts) != 4)
        return 0;
    if (strlen(parts[0]) != 2 || strspn(parts[0], HEX) != 2 || strcmp(parts[0], "ff") == 0)
        return 0;
    if (!naive_hex(parts[1], 32, &context->trace_id_high, &context->trace_id) ||
        !naive_hex(parts[2], 16, &none, &context->span_id) || strspn(parts[3], HEX) != 2)
        return 0;
    flags = (unsigned)strtoul(parts[3], NULL, 16);
    context->flags = DECIDED | REMOTE | (flags & 1 ? SAMPLED : 0) |
                     (flags & 2 && strcmp(parts[0], "00") == 0 ? RANDOM : 0);
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

static int naive_decision(const char *text, uint32_t *flags)
{
    if (strcmp(text, "0") == 0)
        *flags |= DECIDED;
    else if (strcmp(text, "1") == 0)
        *flags |= DECIDED | SAMPLED;
    else if (strcmp(text, "d") == 0)
        *flags |= DECIDED | SAMPLED | DEBUG;
    else
        return 0;
    return 1;
}

static int naive_b3(char *text, size_t length, struct blkin_context *context)
{
    char *parts[5];
    uint64_t none;
    int count;

    context->flags = REMOTE;
    if (strlen(text) != length)
        return 0;
    count = naive_split(text, parts);
    if (count == 1)
        return naive_decision(parts[0], &context->flags);
    if (count > 4)
        return 0;
    if (!naive_hex(parts[0], 16, &context->trace_id_high, &context->trace_id) &&
        !naive_hex(parts[0], 32, &context->trace_id_high, &context->trace_id))
        return 0;
    if (!naive_hex(parts[1], 16, &none, &context->span_id))
        return 0;
    if (count == 3 && naive_hex(parts[2], 16, &none, &context->parent_span_id))
        count = 2;
    if (count > 2 && !naive_decision(parts[2], &context->flags))
        return 0;
    if (count > 3 && !naive_hex(parts[3], 16, &none, &context->parent_span_id))
        return 0;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

static int naive_opencensus(char *text, size_t length, struct blkin_context *context)
{
    static const size_t sizes[] = {16, 8, 1};
    unsigned char fields[3][16] = {{0}}, *bytes = (unsigned char *)text;
    size_t at = 1;
    int last = -1;

    context->flags = REMOTE;
    if (length == 0 || bytes[0] != 0)
        return 0;
    while (at < length && bytes[at] <= 2) {
        int id = bytes[at++];

        if (id <= last || length - at < sizes[id])
            return 0;
        memcpy(fields[id], bytes + at, sizes[id]);
        at += sizes[id];
        last = id;
    }
    for (int i = 0; i < 8; i++) {
        context->trace_id_high = context->trace_id_high << 8 | fields[0][i];
        context->trace_id = context->trace_id << 8 | fields[0][i + 8];
        context->span_id = context->span_id << 8 | fields[1][i];
    }
    if (fields[2][0] & 1)
        context->flags |= SAMPLED | DECIDED;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

/* The entries of a valid list; each ends with a NUL, in place. Returns how many, or -1. */
static int naive_tracestate(char *text, size_t length, char *entries[32])
{
    int members = 0, count = 0;

    if (strlen(text) != length)
        return -1;
    for (char *member = text, *next; member; member = next) {
        char *value;

        next = strchr(member, ',');
        if (next)
            *next++ = '\0';
        if (++members > 32)
            return -1;
        member += strspn(member, " \t");
        for (char *end = member + strlen(member); end > member && strchr(" \t", end[-1]); end--)
            end[-1] = '\0';
        if (!*member)
            continue;
        value = strchr(member, '=');
        if (!value || value == member || value - member > 256)
            return -1;
        for (char *c = member; c < value; c++)
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *c) &&
                (c == member || !strchr("_-*/@", *c)))
                return -1;
        value++;
        if (!*value || strlen(value) > 256)
            return -1;
        for (; *value; value++)
            if (*value < ' ' || *value > '~' || *value == '=')
                return -1;
        entries[count++] = member;
    }
    return count;
}

/* Writes what a buffer of the given size may hold, as the specification says. */
static void naive_truncate(char *entries[32], int count, size_t size, char *written)
{
    for (;;) {
        size_t total = 0;
        int victim = -1;

        for (int i = 0; i < count; i++)
            total += strlen(entries[i]) + (i ? 1 : 0);
        if (total < size)
            break;
        for (int i = 0; i < count; i++)
            if (strlen(entries[i]) > 128)
                victim = i;
        if (victim < 0)
            victim = count - 1;
        memmove(entries + victim, entries + victim + 1,
                (size_t)(count - victim - 1) * sizeof(*entries));
        count--;
    }
    *written = '\0';
    for (int i = 0; i < count; i++) {
        if (i)
            written = stpcpy(written, ",");
        written = stpcpy(written, entries[i]);
    }
}

/* Trace id, span id, parent, sampled, flags; NULL: it did not come. */
static int naive_fields(char *const texts[5], struct blkin_context *context)
{
    const char *trace = texts[0], *span = texts[1], *parent = texts[2], *sampled = texts[3];
    uint64_t none;

    context->flags = REMOTE;
    if (sampled) {
        if (strcmp(sampled, "true") == 0)
            sampled = "1";
        else if (strcmp(sampled, "false") == 0)
            sampled = "0";
        if (strcmp(sampled, "d") == 0 || !naive_decision(sampled, &context->flags))
            return 0;
    }
    if (texts[4] && strcmp(texts[4], "1") == 0)
        context->flags |= DECIDED | SAMPLED | DEBUG;
    if (!trace && !span && !parent)
        return context->flags != REMOTE;
    if (!trace || !span)
        return 0;
    if (!naive_hex(trace, 16, &context->trace_id_high, &context->trace_id) &&
        !naive_hex(trace, 32, &context->trace_id_high, &context->trace_id))
        return 0;
    if (!naive_hex(span, 16, &none, &context->span_id))
        return 0;
    if (parent && !naive_hex(parent, 16, &none, &context->parent_span_id))
        return 0;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

#endif
