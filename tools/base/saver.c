/*
 * The thread that writes a service's state.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "saver.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "folders.h"
#include "say.h"
#include "totals.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct job *next;
    char *text; /* NULL: a folder that is to be deleted */
    size_t length;
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first; /* the thread is at none of these */
static int64_t begun_ms;                   /* of what it is at; 0: nothing */
static bool has_thread;
static struct error
    problem;            /* of the thread's; it is said by the loop, as children are forked while the
                         * thread runs, and must not inherit a lock of say() that it holds */
static int64_t said_ms; /* that the disk takes nothing */

#define SLOW_MS       10000
#define SAID_AGAIN_MS 60000

static void free_job(struct job *job)
{
    if (job)
        free(job->text);
    free(job);
}

/* It is not there as soon as it has another name: half of it is never read. */
static bool remove_folder(const char *path, struct error *error)
{
    char gone[PATH_ROOM];

    path_set(gone, "%s.gone", path);
    if ((rename(path, gone) == 0 || errno == ENOENT) && tree_remove(gone))
        return true;
    error_set(error, "cannot delete %s: %s", path, strerror(errno));
    return false;
}

static bool do_job(const struct job *job, struct error *error)
{
    return job->text ? file_write(job->path, job->text, job->length, error)
                     : remove_folder(job->path, error);
}

static void *serve(void *context)
{
    (void)pthread_mutex_lock(&lock);
    for (;;) {
        struct job *job = first;
        struct error error = {""};

        if (!job) {
            (void)pthread_cond_wait(&changed, &lock);
            continue;
        }
        first = job->next;
        last = first ? last : &first;
        begun_ms = clock_ms();
        (void)pthread_mutex_unlock(&lock);
        (void)do_job(job, &error);
        free_job(job);
        (void)pthread_mutex_lock(&lock);
        if (error.text[0])
            problem = error;
        begun_ms = 0;
        (void)pthread_cond_broadcast(&changed);
    }
    return context;
}

/* Signals are the loop's. */
static bool start(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    has_thread = has_thread || pthread_create(&thread, NULL, serve, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return has_thread;
}

static struct job *find(const char *path)
{
    struct job *job = first;

    while (job && strcmp(job->path, path) != 0)
        job = job->next;
    return job;
}

static void say_problems(const char *path, const struct error *error, int64_t busy_ms)
{
    if (error->text[0])
        say(BT_LOGGING_LEVEL_ERROR, "%s", error->text);
    if (busy_ms < SLOW_MS || (said_ms && clock_ms() - said_ms < SAID_AGAIN_MS))
        return;
    said_ms = clock_ms();
    say(BT_LOGGING_LEVEL_ERROR, "the disk has taken nothing for %" PRId64 " s: %s waits",
        busy_ms / 1000, path);
}

/* Takes the job. Without a thread it is done here. */
static void give(struct job *job)
{
    const int64_t busy_ms = saver_busy_ms();
    struct job *waiting;
    struct error error;

    (void)pthread_mutex_lock(&lock);
    error = problem;
    problem.text[0] = '\0';
    say_problems(job->path, &error, busy_ms);
    waiting = find(job->path);
    if (waiting && waiting->text && job->text) {
        char *text = waiting->text;

        waiting->text = job->text;
        waiting->length = job->length;
        job->text = text;
    } else if (!start()) {
        (void)do_job(job, &problem);
    } else {
        job->next = NULL;
        *last = job;
        last = &job->next;
        job = NULL;
        (void)pthread_cond_broadcast(&changed);
    }
    (void)pthread_mutex_unlock(&lock);
    free_job(job);
}

static struct job *job_new(const char *path)
{
    struct job *job = calloc(1, sizeof(*job) + strlen(path) + 1);

    if (job)
        memcpy(job->path, path, strlen(path) + 1);
    else
        say(BT_LOGGING_LEVEL_ERROR, "%s is not saved: out of memory", path);
    return job;
}

void saver_write(const char *path, char *text, size_t length)
{
    struct job *job = job_new(path);

    if (job && text) {
        job->text = text;
        job->length = length;
        give(job);
        return;
    }
    if (job)
        say(BT_LOGGING_LEVEL_ERROR, "%s is not saved: out of memory", path);
    free(text);
    free_job(job);
}

void saver_remove(const char *path)
{
    struct job *job = job_new(path);

    if (job)
        give(job);
}

bool saver_finish(int64_t limit_ms)
{
    const int64_t until_ms = wall_clock_ns() / 1000000 + limit_ms;
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    bool is_done;

    (void)pthread_mutex_lock(&lock);
    while ((first || begun_ms) && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    is_done = !first && !begun_ms;
    (void)pthread_mutex_unlock(&lock);
    return is_done;
}

int64_t saver_busy_ms(void)
{
    int64_t busy_ms;

    (void)pthread_mutex_lock(&lock);
    busy_ms = begun_ms ? clock_ms() - begun_ms : 0;
    (void)pthread_mutex_unlock(&lock);
    return busy_ms;
}
