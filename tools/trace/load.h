/*
 * Reading of Zipkin v2 spans from a file or a server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LOAD_H
#define BLKIN_TOOLS_LOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Texts live as long as the list. Only members with a comment about NULL may be NULL. */
struct json_span {
    char trace_id[33]; /* 16 or 32 digits, lower case */
    char id[17];
    char parent[17];     /* "": a root */
    bool shared;         /* the server's half of a client's span */
    int64_t start_ns;    /* since 1970; 0: unknown */
    int64_t duration_ns; /* 0: unknown */
    const char *kind;
    const char *name;
    const char *service;
    const char *remote_service;
    const char *error;  /* the tag "error"; NULL: no error */
    const json_t *json; /* the document, with annotations, tags and endpoints */
};

struct span_list {
    struct json_span *spans;
    size_t count;
    size_t room;
    json_t *documents;
};

/*
 * Parses the bytes of read_source(). Returns false after printing an error, also for a list without
 * spans. The caller calls spans_free() in any case.
 */
bool spans_parse(const struct buffer *bytes, const char *source, struct span_list *list);
void spans_free(struct span_list *list);

/* Converts an id to lower case and pads it to 16 or 32 digits. An id with an upper half of zeros
 * has 16 digits, as in Zipkin. Returns false if the text is no id. */
bool id_parse(const char *text, char id[33]);

#endif
