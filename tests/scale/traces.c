/*
 * The traces of the load: see traces.h. A write goes to one store, which lets two others replicate
 * it at the same time; a read comes from one of the three.
 *
 * Trace ids: "b1c1", the seed in 16 bits, the template's number, and the trace's number through a
 * bijection. The id of span k is the lower half plus k + 1 through the same bijection.
 * tests/scale/check.py decodes the ids.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traces.h"

#include "babeltrace-plugin/base/hash.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_NS      INT64_C(60000000) /* at least; fast traces take a sixth of it at most */
#define SCALE_FAILED "EIO"
#define INTERNAL     1
#define AT_SERVER    2
#define AT_CLIENT    3

enum { CLIENT_HOST, GATEWAY, MAPPER, STORE };
enum { TRACE_ID, SPAN_ID, PARENT_ID, TIME };

struct plan {
    const char *name;
    unsigned service;
    int parent;
    unsigned kind;
    bool is_beside; /* begins together with the span before it, which has the same parent */
};

static const struct plan write_plan[] = {
    {"write", CLIENT_HOST, -1, AT_CLIENT, false},
    {"handle write", GATEWAY, 0, AT_SERVER, false},
    {"map", MAPPER, 1, AT_SERVER, false},
    {"store write", STORE, 1, AT_SERVER, false},
    {"replicate", STORE + 1, 3, AT_SERVER, false},
    {"replicate", STORE + 2, 3, AT_SERVER, true},
    {"journal write", STORE, 3, INTERNAL, false},
    {"journal write", STORE + 1, 4, INTERNAL, false},
    {"journal write", STORE + 2, 5, INTERNAL, false},
    {"commit", STORE, 3, INTERNAL, false},
};
static const struct plan read_plan[] = {
    {"read", CLIENT_HOST, -1, AT_CLIENT, false}, {"handle read", GATEWAY, 0, AT_SERVER, false},
    {"map", MAPPER, 1, AT_SERVER, false},        {"store read", STORE, 1, AT_SERVER, false},
    {"disk read", STORE, 3, INTERNAL, false},
};

const char *service_name(unsigned service)
{
    static const char *const names[SCALE_SERVICES] = {"client",  "gateway", "mapper",
                                                      "store-1", "store-2", "store-3"};
    return names[service];
}

/* ---- the parts of a trace -------------------------------------------------------------------- */

/* Returns a time from 20 us to 800 us, every octave with the same probability. */
static int64_t some_time(uint64_t random)
{
    const unsigned octave = (unsigned)(random % 5);
    const int64_t least = INT64_C(20000) << octave;

    return least + (int64_t)(hash_mix(random) % (uint64_t)(octave < 4 ? least : least * 3 / 2));
}

/* Sets durations: a span's own time and the time with an open child. */
static void set_durations(struct template *template, const struct plan *plan)
{
    for (unsigned k = template->spans; k-- > 0;) {
        int64_t beside_ns = 0;

        for (unsigned child = k + 1; child < template->spans; child++) {
            if (template->span[child].parent != (int)k)
                continue;
            if (!plan[child].is_beside) {
                template->span[k].duration_ns += beside_ns;
                beside_ns = 0;
            }
            if (template->span[child].duration_ns > beside_ns)
                beside_ns = template->span[child].duration_ns;
        }
        template->span[k].duration_ns += beside_ns + template->span[k].self_ns;
    }
}

/* Sets starts: half of the own time before the first child, the rest after the last one. */
static void set_starts(struct template *template, const struct plan *plan)
{
    for (unsigned k = 0; k < template->spans; k++) {
        const struct made_span *span = &template->span[k];
        int64_t from_ns = span->start_ns + span->self_ns / 2, to_ns = from_ns;

        for (unsigned child = k + 1; child < template->spans; child++) {
            struct made_span *of = &template->span[child];

            if (of->parent != (int)k)
                continue;
            if (!plan[child].is_beside)
                from_ns = to_ns;
            of->start_ns = from_ns;
            if (from_ns + of->duration_ns > to_ns)
                to_ns = from_ns + of->duration_ns;
        }
    }
}

static void plan_trace(struct template *template, unsigned number)
{
    const uint64_t random = hash_mix(number + 1);
    const bool is_write = number % 2 == 0;
    const struct plan *plan = is_write ? write_plan : read_plan;

    template->spans = is_write ? sizeof(write_plan) / sizeof(*write_plan)
                               : sizeof(read_plan) / sizeof(*read_plan);
    for (unsigned k = 0; k < template->spans; k++) {
        unsigned service = plan[k].service;

        if (service >= STORE)
            service = STORE + (unsigned)((service - STORE + random % 3) % 3);
        template->span[k] = (struct made_span){.name = plan[k].name,
                                               .service = service,
                                               .parent = plan[k].parent,
                                               .kind = plan[k].kind,
                                               .self_ns = some_time(hash_mix(random + k + 1))};
    }
    if (number % 256 == 7 || number % 256 == 132) { /* the last span of a read, of a write */
        struct made_span *failed = &template->span[template->spans - 1];

        failed->is_error = true;
        template->span[failed->parent].is_error = true;
    }
    if (number % 128 == 3 || number % 256 == 50)
        template->span[4].self_ns += SLOW_NS + (int64_t)(random % 1000) * 100000;
    set_durations(template, plan);
    set_starts(template, plan);
}

/* ---- the bytes of a trace -------------------------------------------------------------------- */

static void put_byte(struct scale_piece *piece, unsigned byte)
{
    piece->bytes[piece->length++] = (char)byte;
}

/* Writes a length of two bytes, so that its size is known in advance. */
static void put_length(char *to, size_t length)
{
    to[0] = (char)(length | 0x80);
    to[1] = (char)(length >> 7);
}

static void put_text(struct scale_piece *piece, unsigned tag, const char *text)
{
    put_byte(piece, tag);
    put_byte(piece, (unsigned)strlen(text)); /* all below 128 */
    memcpy(piece->bytes + piece->length, text, strlen(text));
    piece->length += strlen(text);
}

static void put_patch(struct scale_piece *piece, unsigned tag, unsigned what, unsigned span,
                      int64_t time_ns)
{
    const size_t length = what == TRACE_ID ? 16 : 8;

    put_byte(piece, tag);
    if (what != TIME)
        put_byte(piece, (unsigned)length);
    piece->patch[piece->patches++] =
        (struct patch){(uint16_t)piece->length, (uint8_t)what, (uint8_t)span, time_ns};
    piece->length += length;
}

static void put_event(struct scale_piece *piece, const char *name, int64_t time_ns)
{
    put_byte(piece, 0x5a);
    put_byte(piece, (unsigned)(9 + 2 + strlen(name)));
    put_patch(piece, 0x09, TIME, 0, time_ns);
    put_text(piece, 0x12, name);
}

static void put_attribute(struct scale_piece *piece, const char *key, const char *value)
{
    put_byte(piece, 0x4a);
    put_byte(piece, (unsigned)(2 + strlen(key) + 2 + 2 + strlen(value)));
    put_text(piece, 0x0a, key);
    put_byte(piece, 0x12);
    put_byte(piece, (unsigned)(2 + strlen(value)));
    put_text(piece, 0x0a, value);
}

static void put_status(struct scale_piece *piece)
{
    put_byte(piece, 0x7a);
    put_byte(piece, (unsigned)(2 + strlen(SCALE_FAILED) + 2));
    put_text(piece, 0x12, SCALE_FAILED);
    put_byte(piece, 0x18);
    put_byte(piece, 2);
}

static void put_flags(struct scale_piece *piece, bool is_parent_remote)
{
    put_byte(piece, 0x85);
    put_byte(piece, 0x01);
    put_byte(piece, 0x01);
    put_byte(piece, is_parent_remote ? 0x03 : 0x01);
    put_byte(piece, 0);
    put_byte(piece, 0);
}

static void put_span(struct template *template, unsigned k, unsigned number)
{
    const struct made_span *span = &template->span[k];
    struct scale_piece *piece = &template->piece[span->service];
    const int64_t end_ns = span->start_ns + span->duration_ns;
    char object[32];
    size_t length_at;

    piece->spans++;
    put_byte(piece, 0x12);
    length_at = piece->length;
    piece->length += 2;
    put_patch(piece, 0x0a, TRACE_ID, 0, 0);
    put_patch(piece, 0x12, SPAN_ID, k, 0);
    if (span->parent >= 0)
        put_patch(piece, 0x22, PARENT_ID, (unsigned)span->parent, 0);
    put_text(piece, 0x2a, span->name);
    put_byte(piece, 0x30);
    put_byte(piece, span->kind);
    put_patch(piece, 0x39, TIME, 0, span->start_ns);
    put_patch(piece, 0x41, TIME, 0, end_ns);
    (void)snprintf(object, sizeof(object), "rbd_data.102a74b0dc51.%07x", number * 37 & 0xfffffff);
    put_attribute(piece, "object", object);
    put_attribute(piece, "pool", "rbd-ssd-01");
    put_event(piece, "queued", span->start_ns + span->self_ns / 4);
    put_event(piece, "committed", end_ns - span->self_ns / 4);
    if (span->is_error)
        put_status(piece);
    put_flags(piece, span->parent >= 0 && template->span[span->parent].service != span->service);
    put_length(piece->bytes + length_at, piece->length - length_at - 2);
}

struct template *templates_new(void)
{
    struct template *templates = calloc(TEMPLATES, sizeof(*templates));

    if (!templates)
        return NULL;
    for (unsigned number = 0; number < TEMPLATES; number++) {
        plan_trace(&templates[number], number);
        for (unsigned k = 0; k < templates[number].spans; k++)
            put_span(&templates[number], k, number);
    }
    return templates;
}

size_t piece_write(char *to, const struct scale_piece *piece, const struct scale_trace *trace)
{
    memcpy(to, piece->bytes, piece->length);
    for (unsigned i = 0; i < piece->patches; i++) {
        const struct patch *patch = &piece->patch[i];
        uint64_t value;

        switch (patch->what) {
        case TRACE_ID:
            value = htobe64(trace->id_high);
            memcpy(to + patch->at, &value, sizeof(value));
            value = htobe64(trace->id_low);
            memcpy(to + patch->at + 8, &value, sizeof(value));
            continue;
        case TIME:
            value = htole64((uint64_t)(trace->start_ns + patch->time_ns));
            break;
        default:
            value = htobe64(hash_mix(trace->id_low + patch->span + 1));
        }
        memcpy(to + patch->at, &value, sizeof(value));
    }
    return piece->length;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Writes a length of four bytes, see message_close(). */
static void put_long_length(char *to, size_t length)
{
    for (unsigned i = 0; i < 3; i++, length >>= 7)
        to[i] = (char)(length | 0x80);
    to[3] = (char)length;
}

/* ResourceSpans { resource { service.name }, ScopeSpans { scope { name } spans... } } */
size_t message_open(char *to, unsigned service)
{
    struct scale_piece resource = {.length = 0};
    size_t length;

    put_byte(&resource, 0x0a);
    put_byte(&resource, (unsigned)(2 + 12 + 2 + 2 + strlen(service_name(service))));
    put_text(&resource, 0x0a, "service.name");
    put_byte(&resource, 0x12);
    put_byte(&resource, (unsigned)(2 + strlen(service_name(service))));
    put_text(&resource, 0x0a, service_name(service));
    to[0] = 0x0a; /* message_close() sets this length, and that of 0x12 */
    to[5] = 0x0a;
    to[6] = (char)resource.length;
    memcpy(to + 7, resource.bytes, resource.length);
    length = 7 + resource.length;
    to[length] = 0x12;
    memcpy(to + length + 5,
           "\x0a\x07\x0a\x05"
           "blkin",
           9);
    return length + 5 + 9;
}

void message_close(char *message, size_t length)
{
    const size_t scope = 7 + (size_t)message[6];

    put_long_length(message + 1, length - 5);
    put_long_length(message + scope + 1, length - scope - 5);
}

/* ---- template and partition of a trace ------------------------------------------------------- */

/* FNV-1a of the id's hex digits, by which exporters choose a partition. */
static uint32_t hash_of(uint64_t high, uint64_t low)
{
    uint32_t hash = UINT32_C(2166136261);

    for (unsigned i = 0; i < 32; i++) {
        const unsigned digit = (unsigned)((i < 16 ? high : low) >> (60 - i % 16 * 4) & 15);

        hash = (hash ^ (uint32_t) "0123456789abcdef"[digit]) * UINT32_C(16777619);
    }
    return hash;
}

struct scale_trace trace_of(uint32_t seed, uint64_t n, uint32_t partitions)
{
    const uint64_t low = hash_mix(n + 1 + ((uint64_t)seed << 40));
    const uint32_t template = (uint32_t)(hash_mix(low) % TEMPLATES);
    const uint64_t high = UINT64_C(0xb1c1) << 48 | (uint64_t)(seed & 0xffff) << 32 | template;

    return (struct scale_trace){.id_high = high,
                                .id_low = low,
                                .template = template,
                                .partition = hash_of(high, low) % partitions};
}

void templates_print(FILE *out, const struct template *templates, const uint64_t *made)
{
    (void)fprintf(out, "\"templates\":[");
    for (unsigned number = 0; number < TEMPLATES; number++) {
        const struct template *template = &templates[number];

        (void)fprintf(out, "%s\n{\"made\":%" PRIu64 ",\"spans\":[", number ? "," : "",
                      made[number]);
        for (unsigned k = 0; k < template->spans; k++) {
            const struct made_span *span = &template->span[k];

            (void)fprintf(out, "%s[\"%s\",\"%s\",%" PRId64 ",%" PRId64 ",%d,%d]", k ? "," : "",
                          service_name(span->service), span->name, span->duration_ns, span->self_ns,
                          span->is_error, span->parent);
        }
        (void)fprintf(out, "]}");
    }
    (void)fprintf(out, "]");
}
