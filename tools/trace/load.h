/*
 * Reading of Zipkin v2 spans from a file or a server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LOAD_H
#define BLKIN_TOOLS_LOAD_H

#include "read.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Texts are never NULL, unless it says so; they live as long as the list. */
struct json_span {
    char trace_id[33]; /* 16 or 32 digits, lower case */
    char id[17];
    char parent[17];     /* "": a root */
    bool shared;         /* the server's half of a span that its client has begun */
    int64_t start_ns;    /* since 1970; 0: not known */
    int64_t duration_ns; /* 0: not known */
    const char *kind;
    const char *name;
    const char *service;
    const char *remote_service;
    const char *error;  /* the tag of this name; NULL: no error */
    const json_t *json; /* for the rest: annotations, tags, endpoints */
};

struct span_list {
    struct json_span *spans;
    size_t count;
    size_t room;
    json_t *documents;
};

/*
 * The spans of what read_source() has read. Reports what is wrong with it by itself and returns
 * false; a list without spans is wrong, too. spans_free() is for both cases.
 */
bool spans_parse(const struct buffer *bytes, const char *source, struct span_list *list);
void spans_free(struct span_list *list);

/*
 * Lower-cases the hexadecimal digits of text and pads them to 16, or 32. An id whose upper half is
 * zero has 16 digits, as in Zipkin. False if the text is no id.
 */
bool id_parse(const char *text, char id[33]);

#endif
