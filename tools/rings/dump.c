/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/spans/event.h"
#include "ring_event.h"
#include "tracepoints/format/fields.h"
#include "tracepoints/format/provider_table.h"
#include "babeltrace-plugin/base/file.h"
#include "tracepoints/format/ring.h"
#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "ring_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <stdint.h>

#define CTF_MAGIC      UINT32_C(0xc1fc1fc1)
#define CTF_PACKET_MAX ((size_t)256 << 10)
#define CTF_HOST_MAX   256
#define CTF_NS_PER_S   INT64_C(1000000000)

/*
 * A trace folder in the Common Trace Format 1.8, as LTTng would record BlkKin's events.
 * babeltrace2, Trace Compass and BlkKin's sink read the folder.
 */
struct ctf {
    const char *path; /* must outlive the struct */
    int folder;
    unsigned char uuid[16];
};

/* A stream: events in the order of their times by CLOCK_MONOTONIC. */
struct ctf_stream {
    const struct ctf *ctf;
    const char *name; /* of the file; must outlive the stream */
    int fd;
    uint32_t cpu;
    uint64_t begin_ns, end_ns; /* of `packet` */
    uint64_t packets;          /* the number of packets before `packet` */
    uint64_t discarded;        /* the number of missing events so far */
    struct buffer packet;
};

/* ---- the folder ------------------------------------------------------------------------------ */

static bool ctf_fail(const struct ctf *ctf, const char *name, struct error *error)
{
    return error_set(error, "%s/%s: cannot write a trace there: %s", ctf->path, name,
                     strerror(errno));
}

/* Makes the folder, which must not exist. Returns false with error set. */
static bool ctf_open(struct ctf *ctf, const char *path, struct error *error)
{
    *ctf = (struct ctf){.path = path, .folder = -1};
    if (getrandom(ctf->uuid, sizeof(ctf->uuid), 0) == (ssize_t)sizeof(ctf->uuid) &&
        mkdir(path, 0700) == 0)
        ctf->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (ctf->folder >= 0)
        return true;
    return error_set(error, "%s: cannot make this folder: %s; name one that does not exist yet",
                     path, strerror(errno));
}

static void ctf_close(struct ctf *ctf)
{
    if (ctf->folder >= 0)
        (void)close(ctf->folder);
    ctf->folder = -1;
}

static int ctf_create(const struct ctf *ctf, const char *name)
{
    return openat(ctf->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* ---- the metadata ---------------------------------------------------------------------------- */

/* Escapes the host's name for the metadata. */
static void ctf_put_host(char text[4 * CTF_HOST_MAX + 1], const char *host)
{
    char *at = text;

    *at = '\0';
    for (unsigned i = 0; i < CTF_HOST_MAX && host[i]; i++) {
        const unsigned char c = (unsigned char)host[i];
        const bool is_plain = c > ' ' && c < 0x7f && c != '"' && c != '\\';

        at += sprintf(at, is_plain ? "%c" : "\\%03o", c);
    }
}

static void ctf_describe_trace(FILE *out, const struct ctf *ctf, const char *host,
                               int64_t offset_ns)
{
    static const char description[] =
#include "tools/rings/metadata.txt.inc"
        ;
    const int64_t rest = (offset_ns % CTF_NS_PER_S + CTF_NS_PER_S) % CTF_NS_PER_S;
    char uuid[37], shown_host[4 * CTF_HOST_MAX + 1], *at = uuid;

    for (unsigned i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", ctf->uuid[i]);
    ctf_put_host(shown_host, host);
    (void)fprintf(out, description, uuid, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "le" : "be",
                  shown_host, (long long)((offset_ns - rest) / CTF_NS_PER_S), (long long)rest);
}

static void ctf_describe_event(FILE *out, const char *name, unsigned class, int level)
{
    (void)fprintf(out,
                  "\nevent {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n"
                  "\tloglevel = %d;\n\tfields := struct {\n",
                  name, class, level);
}

static void ctf_describe_packed(FILE *out, const char *name, unsigned class, int level,
                                const struct packed_field *fields, size_t count)
{
    static const char *const types[] = {
        [PACKED_U16] = "uint16_t",  [PACKED_U32] = "uint32_t",  [PACKED_U64] = "uint64_t",
        [PACKED_HEX64] = "hex64_t", [PACKED_STRING] = "string",
    };
    char whole[64];

    (void)snprintf(whole, sizeof(whole), "blkin:%s", name);
    ctf_describe_event(out, whole, class, level);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(out, "\t\t%s _%s;\n", types[fields[i].type], fields[i].name);
    (void)fputs("\t};\n};\n", out);
}

/* See tracepoints/zipkin_trace.h. */
static void ctf_describe_original(FILE *out, const char *name, unsigned type, const char *fields)
{
    const int warning = 4;

    ctf_describe_event(out, name, RING_ORIGINAL + type, warning);
    (void)fprintf(out,
                  "\t\tstring _trace_name;\n\t\tstring _service_name;\n\t\tint32_t _port_no;\n"
                  "\t\tstring _ip;\n\t\tint64_t _trace_id;\n\t\tint64_t _span_id;\n"
                  "\t\tint64_t _parent_span_id;\n%s\t};\n};\n",
                  fields);
}

#define CTF_DESCRIBE(event, name, level, fields) \
    ctf_describe_packed(out, name, event, level, fields, sizeof(fields) / sizeof((fields)[0]));

/* Writes the metadata. Called after all streams, because a folder without metadata is no trace.
 * offset_ns: CLOCK_REALTIME less CLOCK_MONOTONIC. Returns false with error set. */
static bool ctf_describe(const struct ctf *ctf, const char *host, int64_t offset_ns,
                         struct error *error)
{
    const int fd = ctf_create(ctf, "metadata");
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool is_whole;

    if (!out) {
        (void)ctf_fail(ctf, "metadata", error);
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    ctf_describe_trace(out, ctf, host, offset_ns);
    BLKIN_EACH_EVENT(CTF_DESCRIBE)
    /* in the order of enum blkin_annotation_type */
    ctf_describe_original(out, "zipkin:keyval_string", 0, "\t\tstring _key;\n\t\tstring _val;\n");
    ctf_describe_original(out, "zipkin:keyval_integer", 1, "\t\tstring _key;\n\t\tint64_t _val;\n");
    ctf_describe_original(out, "zipkin:timestamp", 2, "\t\tstring _event;\n");
    is_whole = !ferror(out);
    return (fclose(out) == 0 && is_whole) || ctf_fail(ctf, "metadata", error);
}

/* ---- packets --------------------------------------------------------------------------------- */

struct ctf_packet_head {
    uint32_t magic;
    unsigned char uuid[16];
    uint32_t stream_id;
    uint64_t begin_ns, end_ns;
    uint64_t content_bits, packet_bits;
    uint64_t number, discarded;
    uint32_t cpu;
} __attribute__((packed));

struct ctf_event_head {
    uint8_t class;
    uint64_t time_ns;
    uint32_t pid, pid_namespace;
} __attribute__((packed));

static void ctf_begin_packet(struct ctf_stream *stream, uint64_t time_ns)
{
    stream->begin_ns = stream->end_ns = time_ns;
    stream->packet.length = sizeof(struct ctf_packet_head);
}

static bool ctf_end_packet(struct ctf_stream *stream, struct error *error)
{
    const uint64_t bits = stream->packet.length * UINT64_C(8);
    struct ctf_packet_head head = {
        .magic = CTF_MAGIC,
        .begin_ns = stream->begin_ns,
        .end_ns = stream->end_ns,
        .content_bits = bits,
        .packet_bits = bits,
        .number = stream->packets++,
        .discarded = stream->discarded,
        .cpu = stream->cpu,
    };

    if (!bits)
        return true;
    memcpy(head.uuid, stream->ctf->uuid, sizeof(head.uuid));
    memcpy(stream->packet.data, &head, sizeof(head));
    if (!write_all(stream->fd, stream->packet.data, stream->packet.length))
        return ctf_fail(stream->ctf, stream->name, error);
    stream->packet.length = 0;
    return true;
}

/* Returns false with error set. */
static bool ctf_stream_open(struct ctf_stream *stream, const struct ctf *ctf, const char *name,
                            uint32_t cpu, struct error *error)
{
    *stream = (struct ctf_stream){.ctf = ctf, .name = name, .cpu = cpu};
    stream->fd = ctf_create(ctf, name);
    if (stream->fd < 0)
        return ctf_fail(ctf, name, error);
    if (buffer_reserve(&stream->packet, CTF_PACKET_MAX))
        return true;
    error_set(error, "out of memory");
    (void)close(stream->fd);
    return false;
}

/* Must be the first call after opening. Writes an empty packet, with which readers compare the
 * later packet numbers. lacks_some: skips a packet number, so readers see that an unknown number of
 * events is missing between these times. Returns false with error set. */
static bool ctf_stream_begin(struct ctf_stream *stream, bool lacks_some, uint64_t begin_ns,
                             uint64_t end_ns, struct error *error)
{
    ctf_begin_packet(stream, lacks_some ? begin_ns : end_ns);
    if (!ctf_end_packet(stream, error))
        return false;
    stream->packets += lacks_some;
    return true;
}

/* Makes room for `size` bytes in the packet, and extends the packet to the time. */
static bool ctf_extend(struct ctf_stream *stream, uint64_t time_ns, size_t size,
                       struct error *error)
{
    if (stream->packet.length + size > CTF_PACKET_MAX && !ctf_end_packet(stream, error))
        return false;
    if (!stream->packet.length)
        ctf_begin_packet(stream, time_ns);
    stream->end_ns = time_ns;
    return true;
}

/* Adds an event. payload: the fields in LTTng's layout. Returns false with error set. */
static bool ctf_stream_add(struct ctf_stream *stream, uint64_t time_ns,
                           const struct ring_entry *entry, struct buffer payload,
                           struct error *error)
{
    const struct ctf_event_head head = {(uint8_t)entry->event, time_ns, entry->pid,
                                        entry->pid_namespace};

    if (!ctf_extend(stream, time_ns, sizeof(head) + payload.length, error))
        return false;
    buffer_put(&stream->packet, (const char *)&head, sizeof(head));
    buffer_put(&stream->packet, payload.data, payload.length);
    return true;
}

/* Counts one missing event. */
static void ctf_stream_add_discarded(struct ctf_stream *stream, uint64_t time_ns)
{
    struct error ignored;

    stream->discarded++;
    (void)ctf_extend(stream, time_ns, 0, &ignored);
}

/* Must also be called after a failure. Returns false with error set if a write failed. */
static bool ctf_stream_close(struct ctf_stream *stream, struct error *error)
{
    bool is_whole = ctf_end_packet(stream, error);

    buffer_free(&stream->packet);
    if (close(stream->fd) == 0 || !is_whole)
        return is_whole;
    return ctf_fail(stream->ctf, stream->name, error);
}

/* ---- payloads in LTTng's layout -------------------------------------------------------------- */

struct dump_form {
    const struct packed_field *fields;
    size_t count;
};

#define DUMP_FORM(event, name, level, fields) \
    [event] = {fields, sizeof(fields) / sizeof((fields)[0])},

static const struct dump_form dump_forms[BLKIN_EVENTS] = {BLKIN_EACH_EVENT(DUMP_FORM)};

/* Returns the length of the fields in the payload; 0: the payload is too short. */
static size_t dump_length(const struct dump_form *form, const struct ring_entry *entry)
{
    static const size_t sizes[] = {
        [PACKED_U16] = 2,
        [PACKED_U32] = 4,
        [PACKED_U64] = 8,
        [PACKED_HEX64] = 8,
    };
    size_t at = 0;

    for (size_t i = 0; i < form->count; i++) {
        const enum packed_type type = form->fields[i].type;
        const size_t left = entry->length - at;
        const char *nul = type == PACKED_STRING ? memchr(entry->payload + at, '\0', left) : NULL;

        if (type == PACKED_STRING ? !nul : left < sizes[type])
            return 0;
        at = type == PACKED_STRING ? (size_t)(nul + 1 - entry->payload) : at + sizes[type];
    }
    return at;
}

static void dump_put_text(struct buffer *payload, struct text text)
{
    buffer_put(payload, text.data, text.length);
    buffer_put(payload, "", 1);
}

#define DUMP_PUT(payload, type, value)                        \
    do {                                                      \
        const type put = (type)(value);                       \
        buffer_put(payload, (const char *)&put, sizeof(put)); \
    } while (0)

/* The payload has room for twice the largest record. */
static void dump_put_original(struct buffer *payload, const struct event *event)
{
    dump_put_text(payload, event->span_name);
    dump_put_text(payload, event->service);
    DUMP_PUT(payload, int32_t, event->port);
    dump_put_text(payload, event->ip);
    DUMP_PUT(payload, uint64_t, event->trace_id);
    DUMP_PUT(payload, uint64_t, event->span_id);
    DUMP_PUT(payload, uint64_t, event->parent_id);
    if (event->kind != EVENT_TIMESTAMP)
        dump_put_text(payload, event->key);
    if (event->kind == EVENT_KEYVAL_INTEGER)
        DUMP_PUT(payload, int64_t, event->integer);
    else
        dump_put_text(payload, event->value);
}

/* Returns the payload of the event. The length is 0 if the record is no valid event of BlkKin. */
static struct buffer dump_payload(const struct ring_entry *entry, char room[2 * RING_RECORD_MAX])
{
    static const struct ring_clock no_clock = {0, 0, 0};
    struct buffer payload = {.data = room};
    struct event event;

    if (entry->event < BLKIN_EVENTS) {
        payload.data = (char *)(uintptr_t)entry->payload;
        payload.length = dump_length(&dump_forms[entry->event], entry);
    } else if (ring_event(entry, &no_clock, &event) == DECODED) {
        dump_put_original(&payload, &event);
    }
    return payload;
}

/* ---- the order of records -------------------------------------------------------------------- */

struct dump_record {
    int64_t time_ns;
    struct ring_entry entry;
};

struct dump_ring {
    struct ring_reader reader;
    struct dump_record *records;
    size_t count;
};

/* Reads the time of an alarm, which ring_event() does not decode. */
static int64_t dump_time_of_alarm(const struct ring_entry *entry, const struct ring_clock *clock)
{
    struct ring_alarm alarm;
    int64_t age;

    if (ring_alarm(entry, &alarm) != DECODED_ALARM ||
        !moment_age((uint64_t)clock->now_ns, alarm.event.monotonic, 64, &age) ||
        clock->now_ns - age < clock->after_ns)
        return clock->after_ns;
    return clock->now_ns - age;
}

/* Returns the record's time: not before the previous record, unless the event has only one time. */
static int64_t dump_time(const struct ring_entry *entry, const struct ring_clock *clock)
{
    struct event event;

    switch (ring_event(entry, clock, &event)) {
    case DECODED: /* a program in another time namespace may have any time */
        return event.time_ns < 0 ? clock->after_ns : event.time_ns;
    case DECODED_ALARM:
        return dump_time_of_alarm(entry, clock);
    default:
        return clock->after_ns;
    }
}

static int dump_compare(const void *a, const void *b)
{
    const struct dump_record *one = a, *other = b;

    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    return one->entry.payload < other->entry.payload ? -1
                                                     : one->entry.payload > other->entry.payload;
}

/* Sorts by time. Records at the beginning without a time get the first time that a record has. */
static void dump_sort(struct dump_ring *ring, int64_t now_ns)
{
    struct ring_clock clock = {.now_ns = now_ns};
    bool is_sorted = true;
    size_t untimed = 0;

    for (size_t i = 0; i < ring->count; i++) {
        struct dump_record *record = &ring->records[i];

        record->time_ns = dump_time(&record->entry, &clock);
        is_sorted = is_sorted && record->time_ns >= clock.after_ns;
        if (record->time_ns > clock.after_ns)
            clock.after_ns = record->time_ns;
        untimed += clock.after_ns == 0;
    }
    for (size_t i = 0; i < untimed; i++)
        ring->records[i].time_ns = untimed < ring->count ? ring->records[untimed].time_ns : now_ns;
    if (!is_sorted)
        qsort(ring->records, ring->count, sizeof(ring->records[0]), dump_compare);
}

/* ---- a ring ---------------------------------------------------------------------------------- */

static bool dump_collect(struct dump_ring *ring)
{
    struct ring_entry entry;
    size_t room = 0;

    for (; ring_peek(&ring->reader, &entry); ring_pass(&ring->reader)) {
        if (!ARRAY_FITS(ring->records, room, ring->count))
            return false;
        ring->records[ring->count++].entry = entry;
    }
    return true;
}

static bool dump_write_records(struct ctf_stream *stream, const struct dump_ring *ring,
                               struct dump_counts *counts, struct error *error)
{
    char room[2 * RING_RECORD_MAX];

    for (size_t i = 0; i < ring->count; i++) {
        const struct dump_record *record = &ring->records[i];
        const struct buffer payload = dump_payload(&record->entry, room);
        const uint64_t time_ns = (uint64_t)record->time_ns;

        counts->records++;
        if (!payload.length) {
            counts->left_out++;
            ctf_stream_add_discarded(stream, time_ns);
            continue;
        }
        if (!ctf_stream_add(stream, time_ns, &record->entry, payload, error))
            return false;
        counts->events++;
    }
    return true;
}

static bool dump_write_ring(const struct ctf *ctf, const struct dump_memory *from, uint32_t number,
                            const struct dump_ring *ring, struct dump_counts *counts,
                            struct error *error)
{
    const struct ring_counts *read = &ring->reader.counts;
    const uint32_t cpus = from->memory->size.cpus, cpu = number % cpus;
    const int64_t first_ns = ring->count ? ring->records[0].time_ns : clock_ns();
    struct ctf_stream stream;
    char name[100];
    bool is_whole;

    (void)snprintf(name, sizeof(name), "%s-%" PRIu32 "-%u_%" PRIu32,
                   number < cpus ? "events" : "alarms", from->user, counts->streams, cpu);
    if (!ctf_stream_open(&stream, ctf, name, cpu, error))
        return false;
    counts->streams++;
    is_whole =
        ctf_stream_begin(&stream, read->overwritten + read->damaged + read->jumps != 0,
                         (uint64_t)clock_earlier((int64_t)from->memory->created_ns, first_ns),
                         (uint64_t)first_ns, error) &&
        dump_write_records(&stream, ring, counts, error);
    return ctf_stream_close(&stream, error) && is_whole;
}

static bool dump_ring(const struct ctf *ctf, const struct dump_memory *from, uint32_t number,
                      struct dump_counts *counts, struct error *error)
{
    struct dump_ring ring = {.count = 0};
    bool is_whole;

    ring_reader_open(&ring.reader, memory_ring(from->memory, number), 0);
    is_whole = ring_read(&ring.reader) && dump_collect(&ring);
    if (!is_whole) {
        error_set(error, "out of memory: a ring has %" PRIu64 " bytes", ring.reader.ring.size);
    } else if (ring.reader.at || ring.reader.counts.jumps) {
        dump_sort(&ring, clock_ns());
        is_whole = dump_write_ring(ctf, from, number, &ring, counts, error);
    }
    counts->overwritten_bytes += ring.reader.counts.overwritten;
    counts->damaged_bytes += ring.reader.counts.damaged;
    free(ring.records);
    ring_reader_close(&ring.reader);
    return is_whole;
}

/* ---- all memories ---------------------------------------------------------------------------- */

bool dump_memories(const struct dump_memory *memories, unsigned count,
                   const struct dump_options *options, struct dump_counts *counts,
                   struct error *error)
{
    struct ctf ctf;
    bool is_whole;

    *counts = (struct dump_counts){.events = 0};
    is_whole = ctf_open(&ctf, options->folder, error);
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t ring = 0; is_whole && ring < memory_rings(memories[i].memory); ring++)
            is_whole = dump_ring(&ctf, &memories[i], ring, counts, error);
        counts->not_written += memory_lost(memories[i].memory);
    }
    is_whole = is_whole && ctf_describe(&ctf, options->host, options->offset_ns, error);
    ctf_close(&ctf);
    return is_whole;
}
