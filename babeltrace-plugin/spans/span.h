/*
 * The finished span: the seam between what assembles spans and what encodes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_SPAN_H
#define BLKIN_CORE_SPAN_H

#include "babeltrace-plugin/base/text.h"
#include "endpoint.h"

#include <stdint.h>

enum span_kind {
    SPAN_LOCAL, /* no kind */
    SPAN_CLIENT,
    SPAN_SERVER,
    SPAN_PRODUCER,
    SPAN_CONSUMER,
};

enum span_entry_type {
    SPAN_ANNOTATION,  /* integer is its time in ns since the Unix epoch, value its text, key its
                         severity as syslog names it, empty for info and for none */
    SPAN_TAG_TEXT,    /* key, value */
    SPAN_TAG_INTEGER, /* key, integer */
    SPAN_LINK, /* value holds a struct span_link: see span_entry_link(); key is empty, or what
                  follows its ids in Zipkin's tag of a foreign link */
    /*
     * A foreign span as it came in OTLP, for back ends of OTLP. For others, the entries before
     * these two say the same; those behind them were added to it.
     */
    SPAN_ORIGIN,  /* key: of its ResourceSpans the fields before the spans: the Resource, maybe a
                     schema  URL; value: the same of its ScopeSpans */
    SPAN_MESSAGE, /* value: the message Span. Name and kind are as in there; ids and times of the
                     struct are newer */
};

/* Another span that this one has to do with. */
struct span_link {
    uint64_t trace_id_high; /* 0: a 64-bit trace id */
    uint64_t trace_id;
    uint64_t span_id;
};

/* One annotation or tag. Lies in the span's log, followed by the bytes of key and value. */
struct span_entry {
    uint32_t type;
    uint32_t key_length;
    uint32_t value_length;
    uint32_t size; /* of the whole entry, a multiple of 8 */
    int64_t integer;
};

/*
 * Who owns what a span points to is one rule for all sources of spans:
 *
 * - The log belongs to the source. chain_take() and exporter_add() copy the log.
 * - The endpoints belong to a table (endpoint.h). The chain and the exporter keep pointers to them,
 *   so the owner frees the table after chain_free() and exporter_free(). Spans that go into a
 *   pipeline have endpoints of its assembler's table (assembler_endpoints()), which
 *   pipeline_close() frees in this order. A source that has an exporter of its own, and no
 *   pipeline, frees the exporter before the table.
 */
struct span {
    uint64_t trace_id_high; /* 0: a 64-bit trace id */
    uint64_t trace_id;
    uint64_t id;
    uint64_t parent_id; /* 0: none */
    const struct endpoint *endpoint;
    const struct endpoint *remote; /* NULL: not known */
    enum span_kind kind;
    bool debug;          /* recorded against sampling */
    bool shared;         /* a server's half, under the id that the client's half has too */
    uint8_t mark;        /* see marks.h; 0: none */
    bool is_cut;         /* a text of it is only the beginning of what the program had */
    bool is_foreign;     /* of another tracer: its tags are OpenTelemetry's, and keep their keys */
    int64_t start_ns;    /* since the Unix epoch */
    int64_t end_ns;      /* >= start_ns */
    int64_t recorded_ns; /* when its last event was, by the trace's clock; 0: not known */

    /* The name, then the entries in the order of their events: one allocation for all. */
    char *log;
    uint32_t log_length;
    uint32_t log_capacity;
    uint32_t name_length;
    uint32_t first_entry; /* offset of the first entry */
};

static inline struct text span_name(const struct span *span)
{
    return (struct text){span->log, span->name_length};
}

static inline const struct span_entry *span_entries_end(const struct span *span)
{
    return (const struct span_entry *)(const void *)(span->log + span->log_length);
}

static inline const struct span_entry *span_first_entry(const struct span *span)
{
    return (const struct span_entry *)(const void *)(span->log + span->first_entry);
}

static inline const struct span_entry *span_next_entry(const struct span_entry *entry)
{
    return (const struct span_entry *)(const void *)((const char *)entry + entry->size);
}

#define SPAN_FOR_EACH_ENTRY(span, entry)                                                          \
    for (const struct span_entry *entry = span_first_entry(span); entry < span_entries_end(span); \
         entry = span_next_entry(entry))

static inline struct text span_entry_key(const struct span_entry *entry)
{
    return (struct text){(const char *)(entry + 1), entry->key_length};
}

static inline struct text span_entry_value(const struct span_entry *entry)
{
    return (struct text){(const char *)(entry + 1) + entry->key_length, entry->value_length};
}

static inline struct span_link span_entry_link(const struct span_entry *entry)
{
    struct span_link link;

    memcpy(&link, span_entry_value(entry).data, sizeof(link));
    return link;
}

/*
 * Filling a span; used by the assembler. All but the last two return false, and leave the span as
 * it was, when out of memory or when the log would pass SPAN_LOG_MAX bytes. The name is set first,
 * once; it may be changed later.
 */
#define SPAN_LOG_MAX (1U << 20)

bool span_set_name(struct span *span, struct text name);
bool span_change_name(struct span *span, struct text name);
bool span_add_link(struct span *span, const struct span_link *link);
bool span_add(struct span *span, enum span_entry_type type, struct text key, struct text value,
              int64_t integer);

/* A span that outlives the call that it was given in: it and its log are one allocation. */
struct kept_span {
    struct kept_span *next; /* its keeper's, */
    int64_t since_ns;       /* as is this */
    struct span span;
    char log[];
};

/* With room for so many more bytes of log; for free(). Returns NULL when out of memory. */
struct kept_span *span_keep(const struct span *span, size_t spare);

/* Adds by_ns to all times of the span; false, and nothing is changed, if one would not fit. */
bool span_shift(struct span *span, int64_t by_ns);

#endif
