/*
 * Private declarations of the OTLP encoder.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ENCODE_OTLP_PARTS_H
#define BLKIN_ENCODE_OTLP_PARTS_H

#include "protobuf.h"
#include "encoder.h"

/* The tag of a unit that begins a group, and the tag of the ScopeSpans in that unit. */
#define OTLP_RESOURCE_SPANS PB_BYTES(1)
#define OTLP_SCOPE_SPANS    PB_BYTES(2)

/* The fields of an attribute, and of its value. */
#define OTLP_KEY        PB_BYTES(1)
#define OTLP_VALUE      PB_BYTES(2)
#define OTLP_VALUE_TEXT PB_BYTES(1)

#define OTLP_SPAN_LENGTH 2 /* bytes reserved for the length of a span; a longer length is rare */

/* ---- attributes ------------------------------------------------------------------------------ */

/* Writes an AnyValue in its field. */
static inline char *otlp_put_text_value(char *at, struct text text, size_t limit, bool *cut)
{
    at[0] = OTLP_VALUE;
    at[2] = OTLP_VALUE_TEXT;
    return pb_end(at + 1, pb_put_text(at + 3, text, limit, cut));
}

/* Begins an attribute whose key is unique. pb_end(begin + 1, ...) ends it. */
static inline char *otlp_begin_single(char *begin, char tag, struct text key)
{
    begin[0] = tag;
    begin[2] = OTLP_KEY;
    begin[3] = (char)key.length;
    return text_copy(begin + 4, key);
}

/* ---- the head of a group --------------------------------------------------------------------- */

/* The head of a group: made once for a resource, then copied. */
struct head {
    struct resource of; /* its texts are in data, behind the head */
    uint64_t number;    /* of the group; 0: no head is made */
    char *data;
    size_t length;
    size_t room;
    bool cut;
};

/* Makes all of the head except its number. Returns false when out of memory. */
bool otlp_make_head(struct head *head, const struct resource *resource);

/* Returns the upper limit of the length of a head. */
size_t otlp_head_size_limit(const struct resource *resource);

/* ---- batches: see struct encoder ------------------------------------------------------------- */

void otlp_frame(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length);
size_t otlp_head_length(const char *unit);
void otlp_trace_of(struct text unit, uint64_t id[2]);
void otlp_describe(struct text unit, char *line, size_t size);

/* ---- answers: see struct protocol ------------------------------------------------------------ */

void otlp_rejected(struct text answer, struct rejection *rejection);
bool otlp_is_answer(long status, struct text type, struct text body);
struct text otlp_reason(struct text answer);

#endif
