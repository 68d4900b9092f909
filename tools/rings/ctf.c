/*
 * Writes packets and the metadata.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ctf.h"

#include "babeltrace-plugin/base/file.h"
#include "tracepoints/format/fields.h"
#include "tracepoints/format/provider_table.h"
#include "tracepoints/format/ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define CTF_MAGIC      UINT32_C(0xc1fc1fc1)
#define CTF_PACKET_MAX ((size_t)256 << 10)
#define CTF_HOST_MAX   256
#define CTF_NS_PER_S   INT64_C(1000000000)

/* ---- the folder ------------------------------------------------------------------------------ */

static bool ctf_fail(const struct ctf *ctf, const char *name, struct error *error)
{
    return error_set(error, "%s/%s: cannot write a trace there: %s", ctf->path, name,
                     strerror(errno));
}

bool ctf_open(struct ctf *ctf, const char *path, struct error *error)
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

void ctf_close(struct ctf *ctf)
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

bool ctf_describe(const struct ctf *ctf, const char *host, int64_t offset_ns, struct error *error)
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

bool ctf_stream_open(struct ctf_stream *stream, const struct ctf *ctf, const char *name,
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

/* Writes an empty packet, with which readers compare the later packet numbers. If events are
 * missing, skips a packet number. */
bool ctf_stream_begin(struct ctf_stream *stream, bool lacks_some, uint64_t begin_ns,
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

bool ctf_stream_add(struct ctf_stream *stream, uint64_t time_ns, const struct ring_entry *entry,
                    struct buffer payload, struct error *error)
{
    const struct ctf_event_head head = {(uint8_t)entry->event, time_ns, entry->pid,
                                        entry->pid_namespace};

    if (!ctf_extend(stream, time_ns, sizeof(head) + payload.length, error))
        return false;
    buffer_put(&stream->packet, (const char *)&head, sizeof(head));
    buffer_put(&stream->packet, payload.data, payload.length);
    return true;
}

void ctf_stream_add_discarded(struct ctf_stream *stream, uint64_t time_ns)
{
    struct error ignored;

    stream->discarded++;
    (void)ctf_extend(stream, time_ns, 0, &ignored);
}

bool ctf_stream_close(struct ctf_stream *stream, struct error *error)
{
    bool is_whole = ctf_end_packet(stream, error);

    buffer_free(&stream->packet);
    if (close(stream->fd) == 0 || !is_whole)
        return is_whole;
    return ctf_fail(stream->ctf, stream->name, error);
}
