/* SPDX-License-Identifier: BSD-2-Clause */
#include "saver.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/thread.h"
#include "folders.h"
#include "say.h"
#include "totals.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A job: a text to write to a file. */
struct save {
    struct save *next;
    char *text; /* NULL: a later job writes a newer text */
    size_t length;
    saver_write_fn *write; /* NULL: file_write() */
    void *context;
    bool in_turn; /* after all earlier jobs */
    bool often;   /* see saver_write_often() */
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct save *first, **last = &first; /* the waiting jobs */
static int64_t begun_ms;                    /* the start of the running job; 0: none */
static char begun_path[PATH_ROOM];
static bool has_thread;
static uint64_t given, done; /* numbers of jobs */

/* Used by the saver's thread while it runs a job, and with the lock when none runs: the files that
 * need fsync(2), and the time of that call. */
static char unsynced[SAVER_OFTEN_MAX][PATH_ROOM];
static size_t unsynced_count;
static int64_t sync_due_ms = CLOCK_NEVER;

#define SYNC_AT_ONCE 0 /* a time in the past */

/* The thread's last failure. The loop logs the failure: if the thread logged it, a child forked at
 * that moment would inherit the locked mutex of say(). */
static struct error problem;

/* Used by the loop's thread only. */
static struct loop *looping;
static struct watched ended = {.fd = -1}; /* an eventfd */
static struct timer look;
static struct saver_wait *waits, **last_wait = &waits;
static int64_t said_ms; /* the last message about a hanging disk */

#define SAVER_LOOK_MS      5000  /* between checks for a hanging disk */
#define SLOW_MS            10000 /* a longer job means that the disk hangs */
#define SAVER_LOG_AGAIN_MS 60000 /* between messages about the hanging disk */

static void save_free(struct save *save)
{
    if (save)
        free(save->text);
    free(save);
}

/* Returns false if the file needs fsync(2) now. */
static bool saver_sync_later(const char *path)
{
    size_t i = 0;

    while (i < unsynced_count && strcmp(unsynced[i], path) != 0)
        i++;
    if (i == SAVER_OFTEN_MAX)
        return false;
    if (!unsynced_count)
        sync_due_ms = clock_ms() + SAVER_SYNC_MS;
    if (i == unsynced_count)
        path_set(unsynced[unsynced_count++], "%s", path);
    return true;
}

static void saver_sync(struct error *error)
{
    sync_due_ms = CLOCK_NEVER;
    while (unsynced_count)
        file_sync(unsynced[--unsynced_count], error);
}

static bool save_run(const struct save *save, struct error *error)
{
    if (!save->text)
        return true;
    if (save->write)
        return save->write(save->context, save->text, error);
    return file_write(save->path, save->text, save->length,
                      !save->often || !saver_sync_later(save->path), error);
}

static void wake_loop(void)
{
    const uint64_t one = 1;

    if (ended.fd >= 0)
        (void)!write(ended.fd, &one, sizeof(one));
}

/* Waits for a job, or until fsync(2) is due. The caller holds the lock. Returns the job; NULL:
 * fsync(2) is due. */
static struct save *saver_wait_for_job(void)
{
    struct save *save;
    struct timespec until;

    while (!first && clock_ms() < sync_due_ms) {
        until = (struct timespec){sync_due_ms / 1000, sync_due_ms % 1000 * 1000000};
        if (sync_due_ms == CLOCK_NEVER)
            (void)pthread_cond_wait(&changed, &lock);
        else
            (void)pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
    }
    save = first;
    if (!save || clock_ms() >= sync_due_ms)
        return NULL;
    first = save->next;
    last = first ? last : &first;
    return save;
}

static void *saver_serve(void *context)
{
    (void)pthread_mutex_lock(&lock);
    for (;;) {
        struct save *save = saver_wait_for_job();
        struct error error = {""};

        begun_ms = clock_ms();
        path_set(begun_path, "%s", save ? save->path : unsynced[0]);
        (void)pthread_mutex_unlock(&lock);
        if (save)
            (void)save_run(save, &error);
        else
            saver_sync(&error);
        (void)pthread_mutex_lock(&lock);
        if (error.text[0])
            problem = error;
        begun_ms = 0;
        done += save != NULL;
        save_free(save);
        wake_loop();
        (void)pthread_cond_broadcast(&changed);
    }
    return context;
}

/* Frees a waiting text that the newest job replaces, unless a later job is in_turn. */
static void saver_skip(struct save *older)
{
    const struct save *save = older->next;

    while (save && !save->in_turn)
        save = save->next;
    if (save)
        return;
    free(older->text);
    older->text = NULL;
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static struct error take_problem(void)
{
    LOCK_GUARD(&lock);
    const struct error error = problem;

    problem.text[0] = '\0';
    return error;
}

static void say_problem(void)
{
    const struct error error = take_problem();

    if (error.text[0])
        say(BK1040, "%s", error.text);
}

static void say_if_slow(void)
{
    const int64_t busy_ms = saver_busy_ms();
    char path[PATH_ROOM];

    if (busy_ms < SLOW_MS || (said_ms && clock_ms() - said_ms < SAVER_LOG_AGAIN_MS))
        return;
    said_ms = clock_ms();
    (void)pthread_mutex_lock(&lock);
    path_set(path, "%s", begun_path);
    (void)pthread_mutex_unlock(&lock);
    say(BK1041, "the disk has taken nothing for %" PRId64 " s: %s waits", busy_ms / 1000, path);
}

static void look_again(void *context)
{
    (void)context;
    say_if_slow();
    if (saver_busy_ms())
        timer_set(looping, &look, SAVER_LOOK_MS);
}

/* Clears the eventfd before it reads `done`, so that a later job wakes the loop again. The called
 * functions may call saver_then(). */
static void call_waiting(void *context)
{
    uint64_t count, until;

    (void)context;
    (void)!read(ended.fd, &count, sizeof(count));
    (void)pthread_mutex_lock(&lock);
    until = done;
    (void)pthread_mutex_unlock(&lock);
    while (waits && waits->ticket <= until) {
        struct saver_wait *wait = waits;
        const struct error error = take_problem();

        waits = wait->next;
        last_wait = waits ? last_wait : &waits;
        wait->is_set = false;
        wait->done(wait->context, error.text[0] ? error.text : NULL);
    }
}

bool saver_open(struct loop *loop)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (fd < 0)
        return false;
    looping = loop;
    look = (struct timer){.due = look_again};
    ended = (struct watched){fd, POLLIN, call_waiting, NULL, NULL, 0};
    loop_watch(loop, &ended);
    return true;
}

void saver_then(struct saver_wait *wait)
{
    if (wait->is_set)
        return;
    (void)pthread_mutex_lock(&lock);
    wait->ticket = given;
    if (done == given)
        wake_loop();
    (void)pthread_mutex_unlock(&lock);
    wait->is_set = true;
    wait->next = NULL;
    *last_wait = wait;
    last_wait = &wait->next;
}

/* Takes ownership of the job. Replaces the text of a waiting job for the same path, or appends the
 * job to the queue. Runs the job at once if no thread can be started. */
static void saver_give(struct save *save)
{
    struct save *waiting = NULL;
    pthread_t thread;

    if (!waits)
        say_problem();
    say_if_slow();
    (void)pthread_mutex_lock(&lock);
    for (struct save *job = first; job; job = job->next)
        waiting = strcmp(job->path, save->path) == 0 ? job : waiting; /* the newest */
    if (waiting && waiting->text && save->text && (!save->in_turn || !waiting->next)) {
        char *text = waiting->text;

        waiting->text = save->text;
        waiting->length = save->length;
        save->text = text;
    } else if (!has_thread &&
               !(has_thread = thread_start(&thread, saver_serve, NULL, "blkin-saver"))) {
        save->often = false; /* without the thread, nobody would sync the file later */
        (void)save_run(save, &problem);
        given++;
        done++;
        wake_loop();
    } else {
        if (waiting && save->text)
            saver_skip(waiting);
        save->next = NULL;
        *last = save;
        last = &save->next;
        save = NULL;
        given++;
        (void)pthread_cond_broadcast(&changed);
    }
    (void)pthread_mutex_unlock(&lock);
    save_free(save);
    if (looping)
        timer_set(looping, &look, SAVER_LOOK_MS);
}

static void saver_put(const char *path, char *text, const struct save *how)
{
    struct save *save = text ? calloc(1, sizeof(*save) + strlen(path) + 1) : NULL;

    if (!save) {
        say(BK1042, "%s is not saved: out of memory", path);
        free(text);
        return;
    }
    *save = *how;
    save->text = text;
    strcpy(save->path, path);
    saver_give(save);
}

void saver_write(const char *path, char *text, size_t length)
{
    saver_put(path, text, &(struct save){.length = length});
}

void saver_write_often(const char *path, char *text, size_t length)
{
    saver_put(path, text, &(struct save){.length = length, .often = true});
}

void saver_write_in_turn(const char *path, char *text, size_t length)
{
    saver_put(path, text, &(struct save){.length = length, .in_turn = true, .often = true});
}

void saver_write_by(const char *path, char *text, saver_write_fn *write, void *context)
{
    saver_put(path, text, &(struct save){.write = write, .context = context});
}

/* The caller holds the lock. */
static bool saver_is_idle(void)
{
    return !first && !begun_ms && sync_due_ms != SYNC_AT_ONCE;
}

static bool saver_finish_until(int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    LOCK_GUARD(&lock);

    while (!saver_is_idle() &&
           pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    return saver_is_idle();
}

bool saver_finish(int64_t limit_ms)
{
    return saver_finish_until(clock_ms() + limit_ms);
}

/* No job runs or waits. Only the loop's thread, which calls this function, gives jobs. */
static void saver_sync_at_once(void)
{
    LOCK_GUARD(&lock);

    if (unsynced_count)
        sync_due_ms = SYNC_AT_ONCE;
    (void)pthread_cond_broadcast(&changed);
}

bool saver_end(void)
{
    const int64_t until_ms = clock_ms() + SAVER_END_MS;
    bool is_done = saver_finish_until(until_ms);

    if (is_done) {
        saver_sync_at_once();
        is_done = saver_finish_until(until_ms);
    }
    say_problem();
    if (!is_done)
        say(BK1044, "the disk takes nothing: the last state is not saved");
    return is_done;
}

int64_t saver_busy_ms(void)
{
    LOCK_GUARD(&lock);

    return begun_ms ? clock_ms() - begun_ms : 0;
}
