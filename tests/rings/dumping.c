/*
 * For test-dump.sh: programs record into rings, and the service that holds the rings is killed.
 * Then a follower and a dump read the rings.
 *
 *     usage: dumping FOLDER
 *
 * Makes FOLDER/followed.json with the events of the follower, and the trace FOLDER/dump with the
 * same.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/blkin.h"
#include "libblkin/metric/metric.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/zipkin_c.h"
#include "piped.h"
#include "served.h"
#include "tools/rings/dump.h"
#include "tools/rings/fdstore.h"

#include <sys/utsname.h>

#define DUMPING_TIMES       100
#define DUMPING_EVENT_BYTES (UINT64_C(1) << 24)
#define MAX_MEMORIES        8

static char output[200], folder[200];
static struct served served;
static struct error error;

/* ---- the program ----------------------------------------------------------------------------- */

static void record_span(int number)
{
    struct blkin_span failed;
    BLKIN_SCOPE(span, "request", BLKIN_SERVER, NULL);

    blkin_span_set_service(&span, "osd.12", "10.0.0.1", 6789);
    blkin_span_set_remote(&span, "client", "10.0.0.2", 80);
    blkin_span_annotate(&span, "queued");
    blkin_span_tag_int64(&span, "number", number);
    blkin_span_tag_string(&span, "text", "a \"value\" of \xff bytes");
    blkin_span_tag_double(&span, "share", 0.25);
    for (int i = 0; i < number; i++) { /* the log of the span has no room for many of them */
        BLKIN_STEP_SCOPE(&span, "step", BLKIN_INTERNAL);
        blkin_span_log(&span, BLKIN_WARNING, "in a step, of which there are many");
    }
    blkin_span_begin(&failed, "failed", BLKIN_CLIENT, &span);
    blkin_span_error(&failed, "no");
    blkin_span_end(&failed);
}

static void record_original(int number)
{
    static const struct blkin_endpoint endpoint = {
        .ip = "10.0.0.1", .port = (int16_t)50000, .name = "osd"};
    struct blkin_trace trace, child;
    char text[RING_TEXT_MAX + 2] = "";

    (void)memset(text, 'x', RING_TEXT_MAX + (number % 10 == 0)); /* every tenth text is cut */
    blkin_init_new_trace(&trace, "original", &endpoint);
    BLKIN_TIMESTAMP(&trace, NULL, "sr");
    blkin_init_child(&child, &trace, NULL, "child");
    BLKIN_KEYVAL_STRING(&child, NULL, "key", text);
    BLKIN_KEYVAL_INTEGER(&child, NULL, "number", number);
    BLKIN_TIMESTAMP(&child, NULL, "cs");
    BLKIN_TIMESTAMP(&trace, NULL, "ss");
}

/* Returns the number of bytes in the rings; 0: no rings yet. */
static uint64_t written(void)
{
    const struct ring_map *map = ring_map();
    uint64_t bytes = 0;

    for (uint64_t i = 0; map && i < map->parts[RING_EVENTS].cpus; i++)
        bytes += __atomic_load_n(&map->parts[RING_EVENTS].heads[i].committed, __ATOMIC_RELAXED);
    return bytes;
}

static int record(void)
{
    const uint64_t values[] = {1, 2};

    blkin_init();
    if (blkin_set_slow("failed>1ns") != 0)
        return 1;
    /* the first is the process's own event */
    for (int64_t end_ms = 0; !blkin_metric_is_on() || written() == 0;) {
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            return 1;
        blkin_heartbeat();
    }
    for (int i = 0; i < DUMPING_TIMES; i++) {
        record_span(i);
        record_original(i);
        blkin_metric_record(&(struct blkin_metric){.group = "cpu",
                                                   .instance = "",
                                                   .names = "busy:ns:c idle:ns:c",
                                                   .period_ms = 1000,
                                                   .monotonic = (uint64_t)i,
                                                   .values = values,
                                                   .count = 2});
    }
    return 0;
}

static void run_both(void)
{
    int status = 1;
    pid_t program;

    served_begin(&served, folder, DUMPING_EVENT_BYTES);
    CHECK(served_await_all(&served, DUMPING_EVENT_BYTES));
    program = served_program(&served, (char *[]){"dumping", folder, "record", NULL});
    CHECK(waitpid(program, &status, 0) == program && status == 0);
    served_kill_service(&served);
}

/* ---- the rings of the program ---------------------------------------------------------------- */

/* A user's first memory is small: a second one follows when it is full. */
static struct memory memories[MAX_MEMORIES];
static struct dump_memory dumped[MAX_MEMORIES];
static unsigned memory_count;

static void take(void *context, int fd, const char *name)
{
    struct dump_memory *from = &dumped[memory_count];
    uint64_t number;

    (void)context;
    CHECK(memory_count < MAX_MEMORIES && fdstore_is_name(name, &from->user, &number));
    from->memory = &memories[memory_count];
    CHECK(memory_open(&memories[memory_count++], fd, &error));
}

static void follow_it(int64_t offset_ns)
{
    const struct follow_calls calls = {piped_event, piped_loss, NULL};
    /* older records have no order between rings, and the kernel moves the program between CPUs */
    const int64_t grace_ns = INT64_C(3600000000000);
    struct follow *follow = follow_new(&calls, clock_ns(), grace_ns, offset_ns);

    CHECK(served_kept(&served, take, NULL));
    (void)snprintf(output, sizeof(output), "file:%s/followed.json", folder);
    piped_open(output);
    CHECK(memory_count > 0);
    for (unsigned i = 0; i < memory_count; i++)
        CHECK(follow_add(follow, &memories[i], false));
    (void)follow_look_at_all(follow);
    piped.intake.counts.events = piped_events;
    pipeline_end(&piped);
    CHECK(pipeline_counts(&piped).output.cut == DUMPING_TIMES / 10);
    pipeline_close(&piped);
    follow_free(follow);
}

static void dump_it(int64_t offset_ns)
{
    const struct dump_options options = {output, piped_host, offset_ns};
    struct dump_counts counts;

    (void)snprintf(output, sizeof(output), "%s/dump", folder);
    if (!dump_memories(dumped, memory_count, &options, &counts, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
    CHECK(counts.records == counts.events && counts.left_out == 0 && counts.not_written == 0);
    CHECK(counts.overwritten_bytes == 0 && counts.damaged_bytes == 0);
    printf("events %llu\nstreams %u\nfollowed %llu\n", (unsigned long long)counts.events,
           counts.streams, (unsigned long long)piped_events);
    CHECK(!dump_memories(dumped, memory_count, &options, &counts,
                         &error)); /* the folder exists already */
    CHECK(strstr(error.text, "name one that does not exist yet"));
}

int main(int argc, char *argv[])
{
    struct utsname host;
    int64_t offset_ns;
    size_t length;

    if (argc < 2 || uname(&host) != 0)
        return 2;
    length = strlen(argv[1]);
    if (length > sizeof(folder) - 20)
        return 2;
    (void)strcpy(folder, argv[1]);
    if (argc == 3)
        return record();
    run_both();
    offset_ns = ring_clock_offset();
    piped_host = host.nodename;
    piped_clock = offset_ns;
    follow_it(offset_ns);
    dump_it(offset_ns);
    served_kill_keeper(&served);
    return check_status();
}
