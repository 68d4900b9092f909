/*
 * The finished span: the interface between the assembler and the encoders.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_SPAN_H
#define BLKIN_SPANS_SPAN_H

#include "babeltrace-plugin/base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- endpoints, each stored once: thousands of spans share a few services -------------------- */

/* A checked endpoint. port is 0 (not known) or 1..65535. At most one of ipv4 and ipv6 is not empty,
 * in the form of inet_ntop(3). */
struct endpoint {
    struct text service;
    char ipv4[16];
    char ipv6[46];
    uint16_t port;
    uint64_t hash; /* of the original values: the same in each run */
};

struct endpoint_table;

/* Returns NULL when out of memory. */
struct endpoint_table *endpoint_table_new(void);

/* Frees the endpoints, too: after the last span that refers to one. NULL is allowed. */
void endpoint_table_free(struct endpoint_table *table);

/*
 * Returns the table's endpoint of these values. ip is IPv4 or IPv6; a zone id is cut off, and an
 * IPv4-mapped address becomes IPv4. Any other ip, such as "NaN", is no address. A negative port is
 * a port that a signed 16-bit field wrapped. Returns NULL when out of memory.
 *
 * With half of ENDPOINTS_MAX, a new port is left out of the endpoint, and later an address, too.
 * Services beyond ENDPOINTS_MAX are one endpoint, with the service ENDPOINT_OVERFLOW. A service's
 * name is cut to ENDPOINT_TEXT_MAX bytes: more than an encoder writes, so the encoder sees that the
 * name is too long.
 */
#define ENDPOINTS_MAX     65536
#define ENDPOINT_TEXT_MAX 1100
#define ENDPOINT_OVERFLOW "blkin: too many services"

const struct endpoint *endpoint_get(struct endpoint_table *table, struct text service,
                                    struct text ip, int64_t port);

/* Returns true if the endpoint, of any table, has these values. */
bool endpoint_is(const struct endpoint *endpoint, struct text service, struct text ip,
                 int64_t port);

/* Returns how often endpoint_get() found no room since the last call: it left something out. */
uint64_t endpoint_take_merged(struct endpoint_table *table);

/* ---- spans ----------------------------------------------------------------------------------- */

enum span_kind {
    SPAN_LOCAL, /* no kind */
    SPAN_CLIENT,
    SPAN_SERVER,
    SPAN_PRODUCER,
    SPAN_CONSUMER,
};

enum span_entry_type {
    SPAN_ANNOTATION,  /* integer: its time in ns since the Unix epoch; value: its text; key: its
                         severity as in syslog, empty for info and for none */
    SPAN_TAG_TEXT,    /* key, value */
    SPAN_TAG_INTEGER, /* key, integer */
    SPAN_LINK, /* value: a struct span_link, see span_entry_link(); key: empty, or the tags of a
                  foreign link in Zipkin's form */
    /* A foreign span as it arrived in OTLP, for OTLP collectors. For other collectors, the entries
     * before these two entries have the same content. Later entries were added to the span. */
    SPAN_ORIGIN, /* key: the fields of ResourceSpans before its spans (Resource, schema URL); value:
                    the same fields of ScopeSpans */
    SPAN_MESSAGE, /* value: the OTLP message Span with name and kind; ids and times of the struct
                     are newer */
};

/* The ids of a linked span. */
struct span_link {
    uint64_t trace_id_high; /* 0: a 64-bit trace id */
    uint64_t trace_id;
    uint64_t span_id;
};

/* The head of an entry in the span's log. The bytes of key and value follow. */
struct span_entry {
    uint32_t type;
    uint32_t key_length;
    uint32_t value_length;
    uint32_t size; /* of the whole entry, a multiple of 8 */
    int64_t integer;
};

/*
 * Ownership of the memory behind a span:
 *
 * - The log belongs to the source: chain_take() and exporter_add() keep no pointer to it.
 *
 * - The endpoints belong to a struct endpoint_table. The chain and the exporter have pointers to
 * them, so the owner frees the table after chain_free() and exporter_free(). Spans of a pipeline
 * have endpoints of its assembler's table (assembler_endpoints()), and pipeline_close() frees all
 * in this order. Pipelines that share an exporter share a table, too (struct pipeline_shared). A
 * source with an exporter and no pipeline frees the exporter before the table.
 */
struct span {
    uint64_t trace_id_high; /* 0: a 64-bit trace id */
    uint64_t trace_id;
    uint64_t id;
    uint64_t parent_id; /* 0: none */
    const struct endpoint *endpoint;
    const struct endpoint *remote; /* NULL: not known */
    enum span_kind kind;
    bool debug;          /* recorded whatever sampling decides */
    bool shared;         /* a server's half under the id of the client's half */
    uint8_t mark;        /* see struct marks; 0: none */
    bool is_cut;         /* a text is only the beginning of the program's text */
    bool is_foreign;     /* of another tracer: its tags have OpenTelemetry's keys */
    bool is_joined;      /* its place among traces is known: see join_put_span() */
    int64_t start_ns;    /* since the Unix epoch */
    int64_t end_ns;      /* at least start_ns */
    int64_t recorded_ns; /* time of its last event by the trace's clock; 0: not known */

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

/* Returns the first tag of this key; NULL: none. */
const struct span_entry *span_find_tag(const struct span *span, struct text key);

/*
 * Fill a span. The assembler sets the name once, first, and may change the name later. Each
 * function returns false when out of memory, or when the log would exceed SPAN_LOG_MAX bytes: then
 * the span stays as it is.
 */
#define SPAN_LOG_MAX (1U << 20)

bool span_set_name(struct span *span, struct text name);
bool span_change_name(struct span *span, struct text name);
bool span_add_link(struct span *span, const struct span_link *link);
bool span_add(struct span *span, enum span_entry_type type, struct text key, struct text value,
              int64_t integer);

/* A copy of a span and its log, in one allocation. */
struct span_copy {
    struct span_copy *next; /* next and since_ns belong to the owner */
    int64_t since_ns;
    struct span span;
    char log[];
};

/* Copies a span, with spare bytes of room in the log, for free(). Returns NULL when out of memory.
 */
struct span_copy *span_copy_new(const struct span *span, size_t spare);

/* Adds by_ns to all times of the span. Returns false, without a change, if a time does not fit. */
bool span_shift(struct span *span, int64_t by_ns);

/* ---- marks ----------------------------------------------------------------------------------- */

/*
 * Marks: the part of a trace that need not be read again.
 *
 * A mark is a position in the trace. A span carries the number of the last mark before its first
 * event, until the exporter takes the span or a stage leaves it out. The mark counts such spans. If
 * a mark and all earlier marks count 0, all spans that began before the next mark were given out.
 *
 * marks_hold() and marks_release() accept NULL: no marks.
 */
/* The position after all events before time_ns, and after `events` events at time_ns. */
struct trace_position {
    int64_t time_ns;
    uint64_t events;
};

static inline bool position_is_before(const struct trace_position *a,
                                      const struct trace_position *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->events < b->events);
}

struct mark {
    struct trace_position at;
    uint64_t sent; /* when the mark was made: the spans whose sending had begun, at most */
    uint64_t open; /* spans that began between this mark and the next, and were not given out */
};

#define MARKS 64

struct marks {
    struct mark ring[MARKS];
    uint64_t first, last; /* numbers of the marks in use */
};

/* Counts a span at a mark; 0: at the newest mark. Returns the mark that the span carries. */
static inline uint8_t marks_hold(struct marks *marks, uint8_t mark)
{
    if (!marks)
        return 0;
    if (!mark)
        mark = (uint8_t)(marks->last % MARKS + 1);
    marks->ring[mark - 1].open++;
    return mark;
}

static inline void marks_release(struct marks *marks, uint8_t mark)
{
    if (marks && mark)
        marks->ring[mark - 1].open--;
}

/* Adds a mark at a position. Returns the mark before which all spans were given out. */
static inline const struct mark *marks_advance(struct marks *marks, const struct trace_position *at,
                                               uint64_t sent)
{
    const bool has_room = marks->last - marks->first < MARKS - 1;

    if (has_room && position_is_before(&marks->ring[marks->last % MARKS].at, at))
        marks->ring[++marks->last % MARKS] = (struct mark){.at = *at, .sent = sent};
    while (marks->first < marks->last && marks->ring[marks->first % MARKS].open == 0)
        marks->first++;
    return &marks->ring[marks->first % MARKS];
}

#endif
