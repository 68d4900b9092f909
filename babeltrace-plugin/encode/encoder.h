/*
 * Encoders write a finished span as a unit of a body. A batch is a run of units with a frame.
 *
 * Any run of units becomes a batch once it is framed. The spool and the splitting after a refusal
 * rely on that. With most encoders a batch is `open`, then units with a separator between each two,
 * then `close`. An encoder with frame() lets neighbours of one group share the description of their
 * resource: see below.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ENCODE_ENCODER_H
#define BLKIN_ENCODE_ENCODER_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/spans/span.h"

#include <stdint.h>

/* Limits of one span. The encoder leaves out what exceeds a limit, and the tag blkin.left_out
 * counts the missing parts. A collector refuses a whole request of some MiB, and nobody reads more
 * of a span on a page. */

/* Bytes before escaping. */
#define LIMIT_NAME  1024U /* of a span or a service */
#define LIMIT_KEY   256U
#define LIMIT_VALUE 16384U /* of an annotation or a tag */

#define LIMIT_ANNOTATIONS 512U
#define LIMIT_TAGS        512U

/* A span of this many encoded bytes gets no further annotation or tag. */
#define LIMIT_SPAN (384U << 10)

struct encoder {
    struct text open; /* shorter than any unit */
    struct text separator;
    struct text close; /* shorter than any unit */

    /*
     * Appends the span's unit. *group is the group of the unit before, or 0 if this unit shares
     * nothing with that one; afterwards it is the group of this unit. *cut: parts of the span were
     * left out, see LIMIT_SPAN. Returns false if the buffer has no room: then buffer and *group
     * stay as they are. While the encoder lives, an endpoint must not change, and no other endpoint
     * may get its address.
     */
    bool (*encode)(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                   uint64_t *group, bool *cut);

    /*
     * Makes a batch of the units from first up to end (not included). starts[] are offsets in data,
     * and the last unit ends at length. The frame may overwrite bytes before the first unit, whose
     * start then moves to the left. May be NULL.
     */
    void (*frame)(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length);

    /* Returns the length of the unit's head; 0: the unit belongs to the group of the unit before.
     * May be NULL: units have no heads. */
    size_t (*head_length)(const char *unit);

    /* Returns the upper and the lower half of a unit's trace id. */
    void (*trace_of)(struct text unit, uint64_t id[2]);

    /* Describes the span in a few words that a terminal may show. */
    void (*describe)(struct text unit, char *line, size_t size);

    void (*free)(struct encoder *encoder);
};

static inline size_t encoder_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns true for a core annotation at the start or end of its span: the annotation says the same
 * as kind, timestamp and duration. */
static inline bool is_implied(const struct span *span, const struct span_entry *entry)
{
    const struct text value = span_entry_value(entry);

    if ((span->kind != SPAN_CLIENT && span->kind != SPAN_SERVER) || value.length != 2)
        return false;
    if (entry->integer == span->start_ns)
        return text_is(value, span->kind == SPAN_CLIENT ? "cs" : "sr");
    return entry->integer == span->end_ns &&
           text_is(value, span->kind == SPAN_CLIENT ? "cr" : "ss");
}

/* ---- resources ------------------------------------------------------------------------------- */

/*
 * The resource of a span in OTLP's sense: the entity that recorded the span. A port, a loopback
 * address and the address of one connection are no part of the resource, so a process has one
 * resource.
 *
 * A foreign span that is sent unchanged has its original resource and scope.
 */

/* The tags of a span that belong to its resource. */
#define RESOURCE_HOST_TAG    "lttng.host"
#define RESOURCE_VERSION_TAG "service.version"

/* The texts belong to the span and its endpoint. */
struct resource {
    struct text service;
    struct text host;
    struct text version;
    struct text ip;                   /* of the host; empty: not known, or loopback */
    const struct span_entry *tags[2]; /* the tags with host and version; may be NULL */
    bool has_logical_address;         /* the span has a tag server.address or client.address */
    /* Of a foreign span that is sent unchanged; then the members above are empty. */
    const struct span_entry *message; /* SPAN_MESSAGE; NULL: another span */
    struct text whole, scope;         /* as in SPAN_ORIGIN */
};

/* A longer message Resource or InstrumentationScope is not sent unchanged. */
#define RESOURCE_MESSAGE_MAX ((1U << 14) - 1)

struct resource resource_of(const struct span *span);

/* Does not compare the tags. */
bool resource_equal(const struct resource *a, const struct resource *b);

/* Equal resources have equal hashes. */
uint64_t resource_hash(uint64_t seed, const struct resource *resource);

/* Returns the address of an endpoint, IPv4 or IPv6; empty: none. */
static inline struct text endpoint_address(const struct endpoint *endpoint)
{
    return text_of(endpoint->ipv4[0] ? endpoint->ipv4 : endpoint->ipv6);
}

/* ---- the tag keys of a span, because an object must not have a key twice --------------------- */

#define TAG_KEYS_MAX   (LIMIT_TAGS + 16) /* with the keys that an encoder adds */
#define TAG_KEYS_SLOTS 2048              /* a power of two, well above TAG_KEYS_MAX */

/* Begins with count 0; the other members need no value. */
struct tag_keys {
    unsigned count;
    uint64_t seed;                  /* random */
    struct text keys[TAG_KEYS_MAX]; /* as written */
    uint16_t repeated[TAG_KEYS_MAX];
    uint16_t slots[TAG_KEYS_SLOTS]; /* hash table of index + 1; 0: free */
};

/* Adds the key that was written from start to at. A key that exists becomes key#2, or the next free
 * number. Returns the end of the key, at most JSON_INTEGER_MAX + 1 bytes further on. */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at);

/* The last key has moved by `by` bytes. */
static inline void tag_keys_moved(struct tag_keys *keys, size_t by)
{
    keys->keys[keys->count - 1].data += by;
}

/* ---- protocols ------------------------------------------------------------------------------- */

/*
 * Protocols: the form in which a back end takes spans, and the meaning of its answers. All details
 * of a back end are here and in its encoder: transports know no back end by name.
 */

/* The values of the parameter "format". */
enum protocol_format {
    FORMAT_AUTO, /* by the endpoint's path; else Zipkin's */
    FORMAT_ZIPKIN,
    FORMAT_OTLP,
    FORMATS /* a new format goes before this line, because a spool stores the number */
};

/* The spans of an accepted batch that the collector refuses for good. */
struct rejection {
    uint64_t spans;
    struct text why; /* a part of the answer, or of copy[]: any bytes */
    char copy[256];
};

struct protocol {
    enum protocol_format format;
    const char *name;     /* the parameter's value */
    const char *peer;     /* for messages: "a Zipkin collector" */
    const char *endpoint; /* the default endpoint */
    const char *path;     /* the default path of a URL */
    const char *content_type;
    struct text empty_batch; /* to see whether a collector accepts a batch */

    /*
     * The statuses of answers. 2xx: accepted, if is_answer() recognises the answer. 400: the
     * collector refuses the content of the batch. 413: the collector refuses the size. A status in
     * `again`: a retry is useful. A status in `suspect`, a part of `again`: the batch itself may be
     * the cause. Every other status is a refusal. Both lists end in 0.
     */
    const short *again;
    const short *suspect;
    /* status: 2xx; body: its first 2 KiB, any bytes. */
    bool (*is_answer)(long status, struct text type, struct text body);
    /* Reads the body of an accepted answer. The rejection is empty before. NULL: the whole batch is
     * accepted. */
    void (*rejected)(struct text answer, struct rejection *rejection);
    /* Returns the readable part of another answer's body. NULL: the whole body is readable. */
    struct text (*reason)(struct text answer);

    /* In a file: the text before the first batch, between two batches, and at the end. */
    struct text file_open;
    struct text file_joint;
    struct text file_close;

    struct encoder *(*encoder_new)(void); /* returns NULL when out of memory */
};

/* Returns the first byte of a body that is no white space; 0 if there is none. */
char protocol_first_byte(struct text body);

/* Returns true for the Content-Type of a page for people. */
bool protocol_is_page(struct text type);

extern const struct protocol zipkin_protocol;
extern const struct protocol otlp_protocol;

/* Returns the protocol of a format; for FORMAT_AUTO, that of the endpoint. endpoint NULL: none. */
const struct protocol *protocol_of(enum protocol_format format, const char *endpoint);

/* Returns the protocol with this name; Zipkin's for "auto" and NULL. */
const struct protocol *protocol_named(const char *name);

#endif
