/*
 * From the file "records" to the pipeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "records.h"

#include "babeltrace-plugin/pipeline.h"
#include "tools/base/child.h"
#include "tools/base/json.h"
#include "tools/base/say.h"
#include "tools/config/sink_params.h"
#include "tools/otlp/otlp_decode.h"
#include "tools/rings/ring_event.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RECORDS_STEP 1024 /* then other things are seen to */

struct records {
    const char *at, *end; /* what is left */
    struct ring_clock clock;
    struct origin origin;
    struct pipeline pipeline;
    bool is_quiet;
    stage_skip_fn *look; /* NULL: spans are sent */
    void *look_context;
};

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t records_must_end;

static void records_on_signal(int number)
{
    (void)number;
    records_must_end = 1;
}

static void records_take_signals(void)
{
    struct sigaction action = {.sa_handler = records_on_signal};

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    job_unblock_end();
}

/* ---- what the pipeline calls ----------------------------------------------------------------- */

static bool records_are_interrupted(void *context)
{
    (void)context;
    return records_must_end;
}

/* The agent says it again, with the name of the folder. */
static void records_say(void *context, bt_logging_level level, const char *message)
{
    (void)context;
    if (level >= BT_LOGGING_LEVEL_WARNING)
        (void)fprintf(stderr, "%s\n", message);
}

static void records_print_summary(void *context, const struct counts *counts)
{
    const struct records *records = context;
    char line[COUNTS_LINE_MAX];

    counts_line(counts, LINE_WHOLE, line);
    if (!records->is_quiet)
        (void)fprintf(stderr, "%s\n", line);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* All of a file, for reading. Returns false with errno set. */
static bool records_map_file(const char *path, struct text *file)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    void *at = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &status) == 0)
        at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    if (at == MAP_FAILED)
        return false;
    *file = (struct text){at, (size_t)status.st_size};
    return true;
}

/* Returns false with error set. */
static bool records_map(struct records *records, const char *path, struct error *error)
{
    struct records_head head = {.mark = 0};
    struct text file = {"", 0};
    const bool is_read = records_map_file(path, &file);

    if (is_read && file.length >= sizeof(head))
        memcpy(&head, file.data, sizeof(head));
    if (head.mark != RECORDS_MARK)
        return error_set(error, "cannot read %s: %s", path,
                         is_read ? "it is not a file of records" : strerror(errno));
    records->at = file.data + sizeof(head);
    records->end = file.data + file.length;
    records->clock = (struct ring_clock){INT64_MIN / 2, head.now_ns, head.offset_ns};
    return true;
}

/* Returns false at the end of the file. */
static bool records_next(struct records *records, struct ring_entry *entry)
{
    struct records_record record;
    const size_t left = (size_t)(records->end - records->at);

    if (left < sizeof(record))
        return false;
    memcpy(&record, records->at, sizeof(record));
    if (left - sizeof(record) < records_padded(record.length))
        return false;
    *entry = (struct ring_entry){record.event, record.pid, records->at + sizeof(record),
                                 record.length, record.pid_ns};
    records->at += sizeof(record) + records_padded(record.length);
    return true;
}

/* ---- its events ------------------------------------------------------------------------------ */

static bool records_are_of_span(const struct event *event)
{
    return event->kind != EVENT_PROCESS && event->kind != EVENT_METRIC;
}

static void records_give(struct records *records, const struct ring_entry *entry)
{
    struct pipeline *pipeline = &records->pipeline;
    struct input_counts *counts = &pipeline->intake.counts;
    struct event event = {.time_ns = 0};
    enum decoded decoded = ring_event(entry, &records->clock, &event);

    counts->events++;
    if (decoded == DECODED)
        only_note_time(pipeline->only, event.time_ns);
    if (decoded == DECODED && records_are_of_span(&event) &&
        !only_wants(pipeline->only, event.trace_id_high, event.trace_id, event.time_ns))
        decoded = DECODED_UNWANTED;
    if (decoded == DECODED_NEWER) {
        counts->newer++;
    } else if (decoded == DECODED_UNREADABLE) {
        counts->unreadable++;
    } else if (decoded == DECODED_UNWANTED) {
        counts->unwanted++;
    } else if (decoded != DECODED) {
        counts->foreign++;
    } else {
        const int64_t pid = event.origin.pid;
        const uint64_t pid_ns = event.origin.pid_ns;

        event.origin = records->origin;
        event.origin.pid = pid;
        event.origin.pid_ns = pid_ns;
        counts->trace_time_ns = event.time_ns;
        assembler_add(pipeline->assembler, &event);
    }
}

/* ---- foreign spans --------------------------------------------------------------------------- */

struct records_foreign {
    struct pipeline *pipeline;
    struct span whole;
};

bool records_take_foreign(struct pipeline *pipeline, struct span *whole,
                          const struct otlp_origin *origin, const struct otlp_span *span)
{
    if (!otlp_decode_span(origin, span, assembler_endpoints(pipeline->assembler), whole))
        return false;
    whole->recorded_ns = span->end_ns;
    chain_take(&pipeline->chain, whole, assembler_now(pipeline->assembler));
    return true;
}

static void records_give_foreign(void *context, const struct otlp_origin *origin,
                                 const struct otlp_span *span)
{
    struct records_foreign *foreign = context;

    if (records_take_foreign(foreign->pipeline, &foreign->whole, origin, span))
        return;
    foreign->pipeline->intake.counts.events++;
    foreign->pipeline->intake.counts.unreadable++;
}

/* Of a file that need not be there. Returns false with error set. */
static bool records_read_foreign(struct records *records, const char *path, struct error *error)
{
    struct records_foreign foreign = {.pipeline = &records->pipeline};
    struct otlp_decoding decoding;
    struct text file;

    if (!records_map_file(path, &file)) {
        error_set(error, "cannot read %s: %s", path, strerror(errno));
        return errno == ENOENT;
    }
    otlp_decode_begin(&decoding, file);
    (void)otlp_decode_some(&decoding, UINT64_MAX, records_give_foreign, &foreign);
    free(foreign.whole.log);
    return true;
}

static bool records_give_all(struct records *records, const char *foreign, struct error *error)
{
    struct ring_entry entry;
    uint64_t count = 0;

    while (!records_must_end && records_next(records, &entry)) {
        records_give(records, &entry);
        if (++count % RECORDS_STEP == 0) {
            assembler_advance(records->pipeline.assembler,
                              records->pipeline.intake.counts.trace_time_ns);
            if (!pipeline_go_on(&records->pipeline, error))
                return false;
        }
    }
    if (!records_must_end && !records_read_foreign(records, foreign, error))
        return false;
    if (!records_must_end)
        return pipeline_finish(&records->pipeline, error);
    error_set(error, "interrupted");
    pipeline_end(&records->pipeline);
    return false;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool records_open(struct records *records, const char *path, const json_t *order,
                         struct params *params, struct error *error)
{
    if (!records_map(records, path, error) ||
        !config_params_of(json_object_get(order, "params"), params, error) ||
        !params_fit(params, error))
        return false;
    records->pipeline.calls = (struct pipeline_calls){records_are_interrupted, records_say,
                                                      records_print_summary, records};
    if (!pipeline_open(&records->pipeline, params, error))
        return false;
    if (json_object_get(order, "tell-of"))
        only_tell_of(records->pipeline.only, (uint64_t)number_in(order, "tell-of"));
    if (records->look) {
        struct stage *stage = skip_stage_new("look", records->look, records->look_context);

        error_set(error, "out of memory");
        if (!stage)
            return false;
        chain_append(&records->pipeline.chain, stage);
    }
    return true;
}

int records_read(const char *path, const char *foreign, const json_t *order, stage_skip_fn *look,
                 void *context)
{
    struct records records = {.look = look, .look_context = context};
    struct params params;
    struct utsname host;
    struct error error;
    bool is_delivered;

    records_take_signals();
    records.is_quiet = number_in(order, "level") == BT_LOGGING_LEVEL_NONE;
    if (uname(&host) != 0)
        host.nodename[0] = '\0';
    is_delivered = records_open(&records, path, order, &params, &error);
    records.origin = (struct origin){
        .host = text_of(host.nodename), .clock = records.clock.offset_ns, .process = {"", 0}};
    is_delivered = is_delivered && records_give_all(&records, foreign, &error);
    if (!is_delivered)
        say(BK4054, "%s", error.text);
    pipeline_close(&records.pipeline);
    return is_delivered ? 0 : 1;
}
