/* Sorts loaded spans into traces, passes a trace to the model, and splits the time of threads.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACES_H
#define BLKIN_TOOLS_TRACES_H

#include "babeltrace-plugin/model/model.h"
#include "read.h"

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

/* Times in ns. */
struct trace {
    const char *id;
    const struct json_span **spans; /* by time; spans without a time last */
    size_t count;
    int64_t start_ns; /* of the first span with a time; 0: unknown */
    int64_t end_ns;
    size_t errors;
};

struct trace_list {
    struct trace *traces; /* by time */
    size_t count;
    const struct json_span **spans; /* of all traces */
};

/* Returns false when out of memory. */
bool traces_sort(const struct span_list *spans, struct trace_list *list);
void traces_free(struct trace_list *list);

static inline const struct json_span *span_of(const struct trace_model *model, uint32_t node)
{
    return model->spans[node].of;
}

/* Loads the trace into the model and links it. Returns false when out of memory. */
bool trace_link(const struct trace *trace, struct names *names, struct trace_model *model);

/* Returns the server's span if the node's self time is the time of the network; else TRACE_NONE. */
uint32_t trace_other_side(const struct trace_model *model, uint32_t node);

/* Formats a member of a span as "store 10.0.0.1:9000". Returns false if the span has none. */
bool trace_endpoint(const struct json_span *span, const char *member, char text[256]);

/* Returns the number of different services in the trace. */
size_t trace_services(const struct trace *trace);

/* ---- the time of a span's thread: on a CPU, waiting for one, blocked (tags usage.*,
 * doc/library.md)
 */

struct thread_time {
    bool is_known;
    bool is_apart; /* waiting and blocked are separate; false: blocked_us has both */
    int64_t on_cpu_us;
    int64_t waiting_us; /* for a CPU */
    int64_t blocked_us;
};

struct thread_time thread_time_of(const struct json_span *span);

#define THREAD_TIME_PARTS 4

struct thread_time_part {
    const char *what;
    int64_t us;
};

/*
 * Splits a node's self time into its known parts, the longest first. The rest is time without a
 * thread. A step or another child has no usage tags: then *around is the enclosing span of the same
 * service, and the parts are of its whole time. Returns the number of parts; 0: unknown.
 */
size_t thread_time_split(const struct trace_model *model, uint32_t node, uint32_t *around,
                         struct thread_time_part parts[THREAD_TIME_PARTS]);

#endif
