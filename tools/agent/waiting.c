/* SPDX-License-Identifier: BSD-2-Clause */
#include "waiting.h"

#include "babeltrace-plugin/deliver/spool_log.h"
#include "tools/otlp/otlp_decode.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of records that one call reads. The service's loop does no other work while it reads. */
#define WAITING_BYTES (UINT64_C(4) << 20)

struct waiting_state {
    json_t *spans;
    struct encoder *encoder; /* to Zipkin's JSON */
    struct endpoint_table *endpoints;
    struct body zipkin;
    struct span whole; /* reused for each span */
    uint64_t bytes;    /* of the records that were read */
};

static void waiting_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    struct waiting_state *waiting = context;
    bool is_cut;

    if (otlp_decode_span(origin, span, waiting->endpoints, &waiting->whole))
        (void)body_add(&waiting->zipkin, waiting->encoder, &waiting->whole, &is_cut);
}

static struct text waiting_frame(struct body *body, const struct encoder *encoder)
{
    struct framed framed;

    body_frame((struct body_run){.body = body, .end = body->count}, encoder, &framed);
    return framed.payload.text;
}

/* Adds the spans of a batch. */
static void waiting_take_batch(struct waiting_state *waiting, enum protocol_format format,
                               struct text batch)
{
    json_t *spans;

    if (format == FORMAT_OTLP) {
        body_reset(&waiting->zipkin);
        (void)otlp_decode(batch, waiting_take_span, waiting);
        if (!waiting->zipkin.count)
            return;
        batch = waiting_frame(&waiting->zipkin, waiting->encoder);
    }
    spans = json_loadb(batch.data, batch.length, JSON_ALLOW_NUL, NULL);
    (void)json_array_extend(waiting->spans, spans);
    json_decref(spans);
}

static void waiting_read_file(struct waiting_state *waiting, int fd, uint64_t end)
{
    struct body body = {.buffer = {.limit = RECORD_LENGTH_MAX}};
    struct record_head head;
    enum record_found found;
    uint64_t at = 0, where;

    while (waiting->bytes < WAITING_BYTES &&
           (found = record_next(fd, &at, end, &head, &where)) != RECORD_END) {
        const enum protocol_format format = (enum protocol_format)(head.format + FORMAT_ZIPKIN);
        struct encoder *encoder;

        if (found != RECORD_COMPLETE || head.state != RECORD_WAITS || head.format >= FORMATS - 1)
            continue;
        encoder = protocol_of(format, NULL)->encoder_new();
        if (encoder && record_load(fd, where, &head, encoder, &body) == RECORD_LOADED)
            waiting_take_batch(waiting, format, waiting_frame(&body, encoder));
        if (encoder)
            encoder->free(encoder);
        waiting->bytes += head.length;
    }
    body_destroy(&body);
}

static int waiting_is_segment(const struct dirent *entry)
{
    const char *suffix = strrchr(entry->d_name, '.');

    return suffix && strcmp(suffix, ".spool") == 0;
}

json_t *waiting_spans(const char *folder)
{
    struct waiting_state waiting = {.spans = json_array(),
                                    .encoder = zipkin_protocol.encoder_new(),
                                    .endpoints = endpoint_table_new(),
                                    .zipkin = {.buffer = {.limit = RECORD_LENGTH_MAX}}};
    struct dirent **names = NULL;
    int count = folder[0] ? scandir(folder, &names, waiting_is_segment, alphasort) : 0;
    struct stat status;
    char path[4352];

    for (int i = 0; i < count; i++) {
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && waiting.encoder && waiting.endpoints && fstat(fd, &status) == 0)
            waiting_read_file(&waiting, fd, (uint64_t)status.st_size);
        if (fd >= 0)
            (void)close(fd);
        free(names[i]);
    }
    free(names);
    body_destroy(&waiting.zipkin);
    if (waiting.encoder)
        waiting.encoder->free(waiting.encoder);
    endpoint_table_free(waiting.endpoints);
    free(waiting.whole.log);
    return waiting.spans;
}
