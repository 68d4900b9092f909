/*
 * The contents of the load: traces of a small storage cluster. For every span, the duration, the
 * self time and the failure are known.
 *
 * There are TEMPLATES different traces. The spans of each are encoded once, as OTLP, by service.
 * A trace of a template is the same bytes with other ids and times. So a million spans a second
 * cost little, and the expected result is a sum over the templates.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SCALE_TRACES_H
#define TESTS_SCALE_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEMPLATES       256
#define SCALE_SERVICES  6
#define SCALE_SPANS_MAX 10
#define PIECE_SPANS     4 /* of one service in one trace, at most */
#define PATCHES_MAX     (PIECE_SPANS * 7)
#define PIECE_MAX       (PIECE_SPANS * 400)
#define OPENING_MAX     128

/* All times are since the trace's beginning. */
struct made_span {
    const char *name;
    unsigned service;
    int parent; /* -1: none */
    unsigned kind;
    int64_t start_ns;
    int64_t duration_ns;
    int64_t self_ns;
    bool is_error;
};

/* The encoded spans of one service in one trace. */
struct scale_piece {
    unsigned spans;
    size_t length;
    unsigned patches;
    struct patch {
        uint16_t at;
        uint8_t what; /* enum in traces.c */
        uint8_t span;
        int64_t time_ns;
    } patch[PATCHES_MAX];
    char bytes[PIECE_MAX];
};

struct template
{
    unsigned spans;
    struct made_span span[SCALE_SPANS_MAX];
    struct scale_piece piece[SCALE_SERVICES];
};

/* A trace: its id has its template, and the ids of its spans follow from it. */
struct scale_trace {
    uint64_t id_high;
    uint64_t id_low;
    int64_t start_ns; /* since 1970 */
    uint32_t template;
    uint32_t partition;
};

/* Returns TEMPLATES templates, which are the same for every seed. */
struct template *templates_new(void);

/* Returns trace number n of the seed. */
struct scale_trace trace_of(uint32_t seed, uint64_t n, uint32_t partitions);

/* Writes the piece with the trace's ids and times. `to` has room for PIECE_MAX bytes. Returns the
 * piece's length. */
size_t piece_write(char *to, const struct scale_piece *piece, const struct scale_trace *trace);

/*
 * Opens a message. A message is an opening and pieces of that service; message_close() then sets
 * the lengths in the opening. Returns the length of the opening, of OPENING_MAX at most.
 */
size_t message_open(char *to, unsigned service);
void message_close(char *message, size_t length);

const char *service_name(unsigned service);

/* Prints the templates as JSON, with the number of their traces. */
void templates_print(FILE *out, const struct template *templates, const uint64_t *made);

#endif
