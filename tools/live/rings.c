/*
 * The service: memories, events, the pipeline. The pipeline's account has the statistics file and
 * the page of metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rings.h"

#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/pipeline.h"
#include "tools/base/notify.h"
#include "tools/base/reader_account.h"
#include "tools/base/say.h"
#include "tools/config/sink_params.h"
#include "tools/rings/asker.h"
#include "tools/rings/follow.h"
#include "tools/rings/holder.h"
#include "tools/rings/ring_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RINGS_GRACE_NS INT64_C(5000000)
#define RINGS_LEFT_MS  5000 /* programs write for 2 s at most into a memory that is left */
#define RINGS_DEFAULT  (UINT64_C(4) << 20)

struct live_rings {
    struct frame *frame;
    struct utsname host;
    struct pipeline pipeline;
    struct follow *follow;
    struct holder *holder; /* NULL: another process holds the memories, and */
    struct asker *asker;   /* has given that of our user */
    struct timer look;
    char *endpoint;
    int64_t start_ns, offset_ns;
    uint64_t given; /* events, to the assembler */
    bool is_ending, has_said_lost;
    char vault[256]; /* the path of its socket */
    int status;
};

/* ---- events ---------------------------------------------------------------------------------- */

static void rings_set_origin(const struct live_rings *rings, struct origin *origin)
{
    origin->host = text_of(rings->host.nodename);
    origin->clock = rings->offset_ns;
    origin->process = (struct text){"", 0};
    origin->tid = 0;
}

static void rings_take_event(void *context, struct event *event)
{
    struct live_rings *rings = context;

    rings_set_origin(rings, &event->origin);
    rings->given++;
    assembler_add(rings->pipeline.assembler, event);
}

static void rings_have_lost(void *context, int64_t begin_ns, int64_t end_ns)
{
    struct live_rings *rings = context;
    struct loss loss = {.has_times = true, .begin_ns = begin_ns, .end_ns = end_ns};

    rings_set_origin(rings, &loss.origin);
    assembler_note_loss(rings->pipeline.assembler, &loss);
    if (!rings->has_said_lost)
        say(BK2070, "events were overwritten before they were read: ring-bytes is too small for "
                    "ring-poll-ms, or this host is too busy; from now on they are only counted");
    rings->has_said_lost = true;
}

/* The account has all that was read up to now. */
static void rings_count(struct live_rings *rings, int64_t time_ns)
{
    const struct follow_counts counts = follow_counts(rings->follow);
    struct input_counts *input = &rings->pipeline.intake.counts;

    input->foreign = counts.foreign;
    input->unreadable = counts.unreadable;
    input->newer = counts.newer;
    input->events = rings->given + counts.foreign + counts.unreadable + counts.newer;
    input->trace_time_ns = time_ns;
}

static void rings_fail(struct live_rings *rings, const struct error *error)
{
    say(BK2071, "%s", error->text);
    rings->status = 1;
}

static void rings_look(void *context)
{
    struct live_rings *rings = context;
    const int64_t time_ns = follow_look(rings->follow);
    struct error error;

    assembler_advance(rings->pipeline.assembler, time_ns);
    rings_count(rings, time_ns);
    if (!pipeline_go_on(&rings->pipeline, &error) && !rings->status) {
        rings_fail(rings, &error);
        loop_stop(rings->frame->loop);
    }
    timer_set(rings->frame->loop, &rings->look,
              follow_next_ms(rings->follow, config_integer(rings->frame->config, "ring-poll-ms")));
}

/* ---- memories -------------------------------------------------------------------------------- */

/* What was written before we began is nobody's loss: a live session begins now, too. */
static void rings_memory_came(void *context, struct memory *memory)
{
    struct live_rings *rings = context;

    if (!follow_add(rings->follow, memory, true))
        say(BK2072, "out of memory: rings of %" PRIu64 " bytes are not read", memory->bytes);
}

static void rings_memory_goes(void *context, struct memory *memory)
{
    struct live_rings *rings = context;

    follow_drop(rings->follow, memory);
}

static void rings_held_came(void *context, struct held *held)
{
    rings_memory_came(context, &held->memory);
}

static void rings_held_goes(void *context, struct held *held)
{
    rings_memory_goes(context, &held->memory);
}

static bool rings_options(const struct config *config, struct holder_options *options,
                          struct error *error)
{
    if (!ring_options(config, RINGS_DEFAULT, options, error))
        return false;
    options->left_ms = RINGS_LEFT_MS;
    return true;
}

/* ---- how it is ------------------------------------------------------------------------------- */

static json_t *rings_memories_json(const struct live_rings *rings)
{
    const struct memory *asked = rings->asker ? asker_memory(rings->asker) : NULL;
    const struct held *held = rings->holder ? holder_first(rings->holder) : NULL;
    json_t *memories = json_array();

    if (asked)
        (void)json_array_append_new(memories, ring_memory_json(asked, geteuid(), false));
    for (; held; held = held->next)
        (void)json_array_append_new(memories,
                                    ring_memory_json(&held->memory, held->user, held->is_left));
    return memories;
}

static json_t *rings_json(const struct live_rings *rings)
{
    const struct holder_counts held =
        rings->holder ? holder_counts(rings->holder) : (struct holder_counts){.given = 0};
    const struct follow_counts read = follow_counts(rings->follow);

    return json_pack("{ss, sb, ss, so, sI, sI, sI, sI, sI, sI, sI, sI, sI, sI, sI, so}", "socket",
                     config_text(rings->frame->config, "ring-socket"), "holds_them",
                     rings->holder != NULL, "reads", rings->holder ? "all users" : "own user",
                     "outlive_a_kill", holder_outlives(&held), "bytes", (json_int_t)held.bytes,
                     "users", (json_int_t)held.users, "given", (json_int_t)held.given, "refused",
                     (json_int_t)held.refused, "refused_unknown_users", (json_int_t)held.unknown,
                     "taken_over", (json_int_t)held.taken_over, "records",
                     (json_int_t)read.rings.records, "read_bytes", (json_int_t)read.rings.read,
                     "overwritten_bytes", (json_int_t)read.rings.overwritten, "damaged_bytes",
                     (json_int_t)read.rings.damaged, "jumps", (json_int_t)read.rings.jumps,
                     "memories", rings_memories_json(rings));
}

static json_t *rings_status(void *context)
{
    struct live_rings *rings = context;
    const struct counts counts = pipeline_counts(&rings->pipeline);

    return json_pack("{ss, ss, so, ss, so, so, so}", "state",
                     rings->is_ending ? "ending" : "running", "from", "rings", "started",
                     json_time(rings->start_ns), "endpoint", rings->endpoint, "trace_time",
                     json_time(counts.input.trace_time_ns), "rings", rings_json(rings), "counters",
                     counts_json(&counts));
}

static json_t *rings_ask(void *context, const char *request)
{
    struct live_rings *rings = context;

    return strcmp(request, "statistics") == 0 ? sources_json(pipeline_statistics(&rings->pipeline))
                                              : NULL;
}

/* ---- what the pipeline calls ----------------------------------------------------------------- */

static bool rings_are_interrupted(void *context)
{
    const struct live_rings *rings = context;

    return rings->is_ending;
}

static void rings_say(void *context, bt_logging_level level, const char *message)
{
    (void)context;
    if (level >= BT_LOGGING_LEVEL_ERROR)
        say(BK2075, "%s", message);
    else if (level >= BT_LOGGING_LEVEL_WARNING)
        say(BK2074, "%s", message);
    else
        say(BK2073, "%s", message);
}

static void rings_print_summary(void *context, const struct counts *counts)
{
    char line[COUNTS_LINE_MAX];

    (void)context;
    if (say_level() == BT_LOGGING_LEVEL_NONE)
        return;
    counts_line(counts, LINE_WHOLE, line);
    say_account(BK1002, "%s", line);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void rings_end(void *context)
{
    struct live_rings *rings = context;

    rings->is_ending = true;
    loop_stop(rings->frame->loop);
}

/* Delivery is set up once: a key of it that has changed would not hold. */
static bool rings_take(void *context, struct config **config, struct error *error)
{
    struct live_rings *rings = context;
    json_t *before = config_sink_json(rings->frame->config), *now = config_sink_json(*config);
    const bool is_same = before && now && json_equal(before, now);
    struct holder_options options;

    json_decref(before);
    json_decref(now);
    if (!is_same)
        return error_set(error, "with from=rings, keys of spans and their delivery need a restart");
    if (!rings_options(*config, &options, error))
        return false;
    say_open(rings->frame->calls->title, config_text(*config, "log-level"));
    if (rings->holder)
        holder_reload(rings->holder, &options);
    return true;
}

static bool rings_open_pipeline(struct live_rings *rings, struct error *error)
{
    struct pipeline *pipeline = &rings->pipeline;
    const struct config *config = rings->frame->config;
    struct params params;

    if (!config_sink_params(config, &params, error) || !params_fit(&params, error))
        return false;
    /* a collector that is away at the start is waited for like one that goes */
    if (strcmp(config_origin(config, "require-collector"), "default") == 0)
        params.exporter.require_collector = false;
    pipeline->calls =
        (struct pipeline_calls){rings_are_interrupted, rings_say, rings_print_summary, rings};
    pipeline->shows_progress = say_level() <= BT_LOGGING_LEVEL_INFO;
    if (!pipeline_open(pipeline, &params, error))
        return false;
    pipeline_set_live(pipeline);
    rings->endpoint = endpoint_shown(exporter_endpoint(&params.exporter));
    return rings->endpoint != NULL;
}

/* Where nobody else does, this process holds the memories of all users. */
static bool rings_find_memories(struct live_rings *rings, const struct holder_options *options,
                                struct error *error)
{
    const struct asker_options asked = {options->path, options->left_ms};
    const struct asker_callbacks of_asker = {rings_memory_came, rings_memory_goes, rings};
    const struct holder_callbacks of_holder = {rings_held_came, rings_held_goes, rings};

    rings->asker = asker_open(rings->frame->loop, &asked, &of_asker, error);
    if (rings->asker)
        say(BK2076,
            "another process holds the rings, and gives this one only those of its own user: only "
            "programs of user %u are read",
            geteuid());
    else
        rings->holder = holder_open(rings->frame->loop, options, &of_holder, error);
    return rings->asker || rings->holder;
}

static bool rings_open(struct live_rings *rings, struct error *error)
{
    const struct follow_calls calls = {rings_take_event, rings_have_lost, rings};
    struct holder_options options;

    if (!rings_options(rings->frame->config, &options, error) || !frame_open(rings->frame, error) ||
        !rings_open_pipeline(rings, error))
        return false;
    (void)snprintf(rings->vault, sizeof(rings->vault), "%s/rings.vault",
                   config_text(rings->frame->config, "runtime-dir"));
    options.vault = rings->vault;
    rings->offset_ns = ring_clock_offset();
    rings->follow = follow_new(&calls, RINGS_GRACE_NS, rings->offset_ns);
    if (!rings->follow)
        return error_set(error, "out of memory");
    return rings_find_memories(rings, &options, error);
}

/* All that programs have written by now is read and delivered. */
static void rings_finish(struct live_rings *rings)
{
    struct error error;
    const int64_t time_ns = follow_look_at_all(rings->follow);

    assembler_advance(rings->pipeline.assembler, time_ns);
    rings_count(rings, time_ns);
    pipeline_end(&rings->pipeline);
    if (!pipeline_is_stored(&rings->pipeline, &error))
        rings_fail(rings, &error);
}

static void rings_free(struct live_rings *rings)
{
    asker_close(rings->asker);
    holder_close(rings->holder);
    follow_free(rings->follow);
    pipeline_close(&rings->pipeline);
    frame_close(rings->frame);
    free(rings->endpoint);
    free(rings);
}

static int rings_run(struct live_rings *rings)
{
    struct error error;

    if (uname(&rings->host) != 0 || !rings_open(rings, &error)) {
        say(BK1010, "%s", error.text);
        return 1;
    }
    rings->look = (struct timer){.due = rings_look, .context = rings};
    rings_look(rings);
    notify("READY=1\nSTATUS=reads the rings of programs that ask at %s",
           config_text(rings->frame->config, "ring-socket"));
    if (!frame_run(rings->frame))
        rings->status = 1;
    rings_finish(rings);
    return rings->status;
}

int live_rings(struct frame *frame)
{
    static const struct frame_calls calls = {.name = "live",
                                             .title = "blkin live",
                                             .status = rings_status,
                                             .take = rings_take,
                                             .ask = rings_ask,
                                             .end = rings_end};
    struct live_rings *rings = calloc(1, sizeof(*rings));
    int status;

    if (!rings) {
        say(BK1010, "out of memory");
        frame_close(frame);
        return 1;
    }
    rings->frame = frame;
    rings->start_ns = wall_clock_ns();
    frame->calls = &calls;
    frame->context = rings;
    say_open(frame->calls->title, config_text(frame->config, "log-level"));
    status = rings_run(rings);
    rings_free(rings);
    return status;
}
