/*
 * The watch over a reader: one that works without getting anywhere is killed, no other one is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/reader/reader.h"
#include "tools/base/say.h"
#include "waits.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_MS 200
#define HANG_MS  600
#define BUSY_MS  2000 /* for those that must live on: a busy machine may not run them for long */
#define LONG_MS  (2 * BUSY_MS) /* more than enough to be killed in */
#define LIMIT_MS 15000
#define THREADS  15

static struct reader reader;
static int status_of_reader;

static void ended(void *context, int status)
{
    status_of_reader = status;
    stop(context);
}

static void *work(void *argument)
{
    (void)argument;
    for (;;)
        ;
    return NULL;
}

/* In many threads, so that it is seen at work on a busy machine, too. */
static int go_in_circles(const void *order, size_t size)
{
    pthread_t thread;

    for (int i = 0; i < THREADS; i++)
        (void)pthread_create(&thread, NULL, work, NULL);
    (void)size;
    (void)work((void *)(uintptr_t)order);
    return 0;
}

static int hang(void)
{
    pause_us(LONG_MS * 1000);
    return 42;
}

/* Locked up, before it has told anything. */
static int do_nothing(const void *order, size_t size)
{
    (void)order;
    (void)size;
    return hang();
}

/* Where its account is, is in the order. */
static void begin(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);

    (void)snprintf(reader.stats_file, sizeof(reader.stats_file), "%s",
                   text_in(json_object_get(order, "params"), "stats-file"));
    json_decref(order);
}

static bool tell(const char *counter, int value)
{
    char path[4200];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%.4000s.new", reader.stats_file);
    file = fopen(path, "we");
    return file &&
           fprintf(file, "{\"state\": \"running\", \"pid\": %d, \"counters\": {\"%s\": %d}}",
                   (int)getpid(), counter, value) > 0 &&
           fclose(file) == 0 && rename(path, reader.stats_file) == 0;
}

/* The collector takes nothing for longer than anything else may take. */
static int wait_for_collector(const void *order, size_t size)
{
    begin(order, size);
    if (!tell("spans_waiting", 7))
        return 1;
    return hang();
}

/* All was sent; it does not end. */
static int lock_up(const void *order, size_t size)
{
    begin(order, size);
    if (!tell("requests", 1))
        return 1;
    return hang();
}

/* At work all the time, and its account tells of it. */
static int make_progress(const void *order, size_t size)
{
    const int64_t until_ms = clock_ms() + LONG_MS;

    begin(order, size);
    for (int requests = 1; clock_ms() < until_ms; requests++) {
        if (!tell("requests", requests))
            return 1;
    }
    return 42;
}

/* One that is not killed in time ends otherwise. */
static void end_reader(void *context)
{
    (void)context;
    (void)kill(reader.child.pid, SIGTERM);
}

static const struct job circles_job = {.name = "circles", .run = go_in_circles};
static const struct job nothing_job = {.name = "nothing", .run = do_nothing};
static const struct job wait_job = {.name = "wait", .run = wait_for_collector};
static const struct job lock_up_job = {.name = "lock-up", .run = lock_up};
static const struct job progress_job = {.name = "progress", .run = make_progress};

static void run(const struct job *job)
{
    struct timer limit = {.due = end_reader};

    status_of_reader = -1;
    CHECK(reader_start(&reader, "chunk", job,
                       reader_order(&reader, json_object(), NULL, json_object())));
    timer_set(loop, &limit, LIMIT_MS);
    CHECK(loop_run(loop));
    timer_clear(loop, &limit);
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&circles_job, &nothing_job,  &wait_job,
                                             &lock_up_job, &progress_job, NULL};
    char folder[] = "/tmp/reader.XXXXXX";
    int status;

    if (job_is_done(argc, argv, jobs, &status))
        return status;
    say_open("test-reader", "warning");
    loop = loop_new(&signals);
    CHECK(loop && mkdtemp(folder));
    reader = (struct reader){.loop = loop,
                             .ended = ended,
                             .watch_ms = WATCH_MS,
                             .hang_ms = HANG_MS,
                             .silent_ms = HANG_MS};
    (void)snprintf(reader.stats_file, sizeof(reader.stats_file), "%s/stats", folder);
    reader_open(&reader);
    run(&circles_job);
    CHECK(WIFSIGNALED(status_of_reader) && WTERMSIG(status_of_reader) == SIGKILL);
    run(&nothing_job);
    CHECK(WIFSIGNALED(status_of_reader) && WTERMSIG(status_of_reader) == SIGKILL);
    run(&lock_up_job);
    CHECK(WIFSIGNALED(status_of_reader) && WTERMSIG(status_of_reader) == SIGKILL);
    reader.hang_ms = reader.silent_ms = BUSY_MS;
    run(&wait_job);
    CHECK(WIFEXITED(status_of_reader) && WEXITSTATUS(status_of_reader) == 42);
    run(&progress_job);
    CHECK(WIFEXITED(status_of_reader) && WEXITSTATUS(status_of_reader) == 42);
    (void)unlink(reader.stats_file);
    CHECK(rmdir(folder) == 0);
    loop_free(loop);
    return check_status();
}
