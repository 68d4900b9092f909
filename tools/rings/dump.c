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
 * A trace folder in the Common Trace Format 1.8. Events and fields have the names that LTTng gives
 * them. babeltrace2, Trace Compass and BlkKin's sink read the folder.
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

/* The layout of an event: the ring's payload, as a trace has it. */
struct dump_form {
    const char *name;
    int level; /* LTTng's number of the log level */
    const struct packed_field *fields;
    size_t count;
};

/* clang-format off */
/* The members of struct ring_original, and the texts after it. Names: tracepoints/zipkin_trace.h */
#define ORIGINAL_FIELDS(integer) \
    {"monotonic", PACKED_U64}, {"trace_id", PACKED_S64}, {"span_id", PACKED_S64}, \
    {"parent_span_id", PACKED_S64}, {integer, PACKED_S64}, {"port_no", PACKED_U16}, \
    {"trace_name", PACKED_STRING}, {"service_name", PACKED_STRING}, {"ip", PACKED_STRING}

static const struct packed_field original_text[] = {
    ORIGINAL_FIELDS("unused"), {"key", PACKED_STRING}, {"val", PACKED_STRING}};
static const struct packed_field original_integer[] = {
    ORIGINAL_FIELDS("val"), {"key", PACKED_STRING}};
static const struct packed_field original_timestamp[] = {
    ORIGINAL_FIELDS("unused"), {"event", PACKED_STRING}};

#define DUMP_FORMS (RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS)
#define DUMP_FORM(event, name, level, fields) \
    [event] = {name, level, fields, sizeof(fields) / sizeof((fields)[0])},
#define DUMP_BLKIN(event, name, level, fields) DUMP_FORM(event, "blkin:" name, level, fields)

/* The original's events have the level of warnings. */
static const struct dump_form dump_forms[DUMP_FORMS] = {
    BLKIN_EACH_EVENT(DUMP_BLKIN)
    /* in the order of enum blkin_annotation_type */
    DUMP_FORM(RING_ORIGINAL, "zipkin:keyval_string", 4, original_text)
    DUMP_FORM(RING_ORIGINAL + 1, "zipkin:keyval_integer", 4, original_integer)
    DUMP_FORM(RING_ORIGINAL + 2, "zipkin:timestamp", 4, original_timestamp)
};
/* clang-format on */

static void ctf_describe_event(FILE *out, unsigned event)
{
    static const char *const types[] = {
        [PACKED_U16] = "uint16_t", [PACKED_U32] = "uint32_t",  [PACKED_U64] = "uint64_t",
        [PACKED_S64] = "int64_t",  [PACKED_HEX64] = "hex64_t", [PACKED_STRING] = "string",
    };
    const struct dump_form *form = &dump_forms[event];

    (void)fprintf(out,
                  "\nevent {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n"
                  "\tloglevel = %d;\n\tfields := struct {\n",
                  form->name, event, form->level);
    for (size_t i = 0; i < form->count; i++)
        (void)fprintf(out, "\t\t%s _%s;\n", types[form->fields[i].type], form->fields[i].name);
    (void)fputs("\t};\n};\n", out);
}

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
    for (unsigned event = 0; event < DUMP_FORMS; event++)
        if (dump_forms[event].name)
            ctf_describe_event(out, event);
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

/* Adds an event. length: of the fields in the payload. Returns false with error set. */
static bool ctf_stream_add(struct ctf_stream *stream, uint64_t time_ns,
                           const struct ring_entry *entry, size_t length, struct error *error)
{
    const struct ctf_event_head head = {(uint8_t)entry->event, time_ns, entry->pid,
                                        entry->pid_namespace};

    if (!ctf_extend(stream, time_ns, sizeof(head) + length, error))
        return false;
    buffer_put(&stream->packet, (const char *)&head, sizeof(head));
    buffer_put(&stream->packet, entry->payload, length);
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

/* Returns the length of the fields in the payload; 0: it is too short, or no event of BlkKin. */
static size_t dump_length(const struct ring_entry *entry)
{
    static const struct dump_form unknown = {.count = 0};
    const struct dump_form *form = entry->event < DUMP_FORMS ? &dump_forms[entry->event] : &unknown;
    static const size_t sizes[] = {
        [PACKED_U16] = 2, [PACKED_U32] = 4, [PACKED_U64] = 8, [PACKED_S64] = 8, [PACKED_HEX64] = 8,
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

/* Returns the record's time. Only the time of an event without an age may be before
 * clock->after_ns. */
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
    for (size_t i = 0; i < ring->count; i++) {
        const struct dump_record *record = &ring->records[i];
        const size_t length = dump_length(&record->entry);
        const uint64_t time_ns = (uint64_t)record->time_ns;

        counts->records++;
        if (!length) {
            counts->left_out++;
            ctf_stream_add_discarded(stream, time_ns);
            continue;
        }
        if (!ctf_stream_add(stream, time_ns, &record->entry, length, error))
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
