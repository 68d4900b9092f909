/*
 * Takes spans of any OpenTelemetry SDK: OTLP over HTTP with protobuf, on loopback and at a Unix
 * socket. Holds the newest ones in memory, tells which are slow or have failed as they come, and
 * gives the spans of wanted traces as they came, with their resources and scopes.
 *
 *     requests = taken + refused, by cause + cut off
 *     spans in = held + overwritten + refused
 *
 * Everything happens in the loop's thread. Nothing here waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_H
#define BLKIN_TOOLS_FOREIGN_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "store.h"
#include "tools/base/loop.h"

#include <jansson.h>

/* Texts live as long as what is opened with them. A 0 in place of a number: the value in brackets.
 */
struct foreign_options {
    const char *listen;     /* "[ADDRESS:]PORT", such as "127.0.0.1:4318"; NULL or "": none */
    const char *socket;     /* the path of a Unix socket; NULL or "": none */
    uint64_t store_bytes;   /* memory for spans (64 MiB) */
    uint64_t message_bytes; /* of a request after decompression, at most (8 MiB) */
    uint64_t connections;   /* at once (256): beyond that, the one that is idle for longest goes */
    uint64_t spans_per_s;   /* 0: no limit. A sender beyond it is told to try again later */
};

/* A span that is slow or has failed. Texts live until the call returns; any bytes, any length. */
struct foreign_alarm {
    uint64_t trace_id_high, trace_id; /* both 0: it only tells of `dropped` */
    uint64_t span_id;
    uint64_t duration_ns;
    int64_t end_ns;   /* since 1970 */
    uint32_t dropped; /* alarms of this rule that the limit has held back since the last one */
    struct text why;  /* the rule */
    struct text name, service;
};

struct foreign_callbacks {
    void (*alarm)(void *context, const struct foreign_alarm *alarm);
    void *context;
};

struct foreign_counts {
    uint64_t requests;
    uint64_t requests_taken;
    uint64_t requests_cut_off;  /* the other end went, or took too long */
    uint64_t refused_page;      /* another path or method, or a web page has sent it */
    uint64_t refused_type;      /* not protobuf, or another compression than gzip */
    uint64_t refused_too_large; /* longer than message_bytes */
    uint64_t refused_broken;    /* no OTLP: spans before the fault were taken */
    uint64_t refused_rate;      /* too many spans per second */
    uint64_t refused_memory;    /* no memory, or too many requests on their way */
    uint64_t connections;       /* ever */
    uint64_t hung_up;           /* connections that were too many, or took too long */
    uint64_t bytes;             /* of bodies, as they came over the network */
    uint64_t spans_in;
    uint64_t spans_invalid;     /* refused: without ids */
    uint64_t spans_too_large;   /* refused: the store has no place for so large a span */
    uint64_t spans_overwritten; /* the others are held */
    uint64_t alarms;
    uint64_t alarms_held_back; /* by the rules' limit */
};

struct foreign;

/* Listens. Returns NULL with error set. */
struct foreign *foreign_open(struct loop *loop, const struct foreign_options *options,
                             const struct foreign_callbacks *callbacks, struct error *error);
/* NULL is allowed. */
void foreign_close(struct foreign *foreign);

/* Other limits of messages, connections and spans per second, from the next request on. Addresses
 * and the size of the memory stay as they are: they need a restart. */
void foreign_reload(struct foreign *foreign, const struct foreign_options *options);

/*
 * Gives the spans of these traces that were not given before; see store.h. SDKs send a span up to
 * some seconds after its end, so a trace is asked for again until nothing more is to be expected.
 * Each call gets a span and its origin, as otlp_decode_span() wants them.
 */
void foreign_take(const struct foreign *foreign, struct foreign_wanted *wanted, size_t count,
                  otlp_span_fn *call, void *context);

/* Gives all spans that were open at any time from from_ns until until_ns, since 1970. */
void foreign_copy(const struct foreign *foreign, int64_t from_ns, int64_t until_ns,
                  otlp_span_fn *call, void *context);

struct foreign_counts foreign_counts(const struct foreign *foreign);
struct foreign_held foreign_held(const struct foreign *foreign);

/* "http://127.0.0.1:4318"; "": it listens at no port. */
const char *foreign_url(const struct foreign *foreign);

/* For the status: where it listens, what it holds and since when, the rules in force, and all
 * counts. NULL: out of memory. */
json_t *foreign_json(const struct foreign *foreign);

/* For the page of metrics: blkin_record_otlp_*. */
void foreign_print(const struct foreign *foreign, struct printer *printer);

#endif
