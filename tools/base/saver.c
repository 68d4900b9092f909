/*
 * The thread that writes a service's state.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "saver.h"

#include "babeltrace-plugin/base/lock.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/store_name.h"
#include "babeltrace-plugin/base/thread.h"
#include "folders.h"
#include "say.h"
#include "totals.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Either a text, or a folder that is to be deleted. */
struct job {
    struct job *next;
    char *text;
    size_t length;
    saver_write_fn *write; /* NULL: file_write() */
    void *context;
    char *gone;   /* the folder's name until it is deleted */
    bool in_turn; /* not before what was given before */
    char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first; /* the thread is at none of these */
static int64_t begun_ms;                   /* of what it is at; 0: nothing */
static char begun_path[PATH_ROOM];
static bool has_thread;
static uint64_t given, done; /* how many jobs */
static struct error
    problem; /* of the thread's; it is said by the loop, as children are forked while the
              * thread runs, and must not inherit a lock of say() that it holds */

/* The loop's. */
static struct loop *looping;
static struct watched ended = {.fd = -1}; /* an eventfd */
static struct timer look;
static struct saver_wait *waits, **last_wait = &waits;
static int64_t said_ms; /* that the disk takes nothing */

#define LOOK_MS       5000
#define SLOW_MS       10000
#define SAID_AGAIN_MS 60000

static void free_job(struct job *job)
{
    if (job) {
        free(job->text);
        free(job->gone);
    }
    free(job);
}

/* It is not there as soon as it has another name: half of it is never read. */
static bool remove_folder(const char *path, const char *gone, struct error *error)
{
    if ((rename(path, gone) == 0 || errno == ENOENT) && (store_name(path) || errno == ENOENT) &&
        tree_remove(gone))
        return true;
    return error_set(error, "cannot delete %s: %s", path, strerror(errno));
}

static bool do_job(const struct job *job, struct error *error)
{
    if (job->gone)
        return remove_folder(job->path, job->gone, error);
    if (!job->text) /* a newer one comes */
        return true;
    if (job->write)
        return job->write(job->context, job->text, error);
    return file_write(job->path, job->text, job->length, error);
}

static void wake_loop(void)
{
    const uint64_t one = 1;

    if (ended.fd >= 0)
        (void)!write(ended.fd, &one, sizeof(one));
}

static void *saver_serve(void *context)
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
        path_set(begun_path, "%s", job->path);
        (void)pthread_mutex_unlock(&lock);
        (void)do_job(job, &error);
        free_job(job);
        (void)pthread_mutex_lock(&lock);
        if (error.text[0])
            problem = error;
        begun_ms = 0;
        done++;
        wake_loop();
        (void)pthread_cond_broadcast(&changed);
    }
    return context;
}

static bool saver_start(void)
{
    pthread_t thread;

    has_thread = has_thread || thread_start(&thread, saver_serve, NULL, "blkin-saver");
    return has_thread;
}

/* The newest. */
static struct job *saver_find(const char *path)
{
    struct job *found = NULL;

    for (struct job *job = first; job; job = job->next)
        found = strcmp(job->path, path) == 0 ? job : found;
    return found;
}

/* A newer text waits at the end. What is to be done in turn behind this one needs this one. */
static void saver_skip(struct job *older)
{
    const struct job *job = older->next;

    while (job && !job->in_turn)
        job = job->next;
    if (job)
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

    if (busy_ms < SLOW_MS || (said_ms && clock_ms() - said_ms < SAID_AGAIN_MS))
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
        timer_set(looping, &look, LOOK_MS);
}

static uint64_t done_until_now(void)
{
    LOCK_GUARD(&lock);

    return done;
}

/*
 * A function that is called may set its wait again. The wake-up is taken before it is asked what is
 * done: what is done after that wakes the loop once more.
 */
static void call_waits(void *context, short events)
{
    uint64_t count, until;

    (void)context;
    (void)events;
    (void)!read(ended.fd, &count, sizeof(count));
    until = done_until_now();
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
    ended = (struct watched){fd, POLLIN, call_waits, NULL, NULL};
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

static void has_left(void *context, const char *failure);

/* All that was given by now is awaited together. */
static void await_leaving(struct saver_leaving *leaving)
{
    if (!leaving->bytes || leaving->deleted.is_set)
        return;
    leaving->awaited = leaving->bytes;
    leaving->deleted.done = has_left;
    leaving->deleted.context = leaving;
    saver_then(&leaving->deleted);
}

static void has_left(void *context, const char *failure)
{
    struct saver_leaving *leaving = context;

    if (failure)
        say(BK1040, "%s", failure);
    leaving->bytes -= leaving->awaited;
    await_leaving(leaving);
}

void saver_leave(struct saver_leaving *leaving, uint64_t bytes)
{
    leaving->bytes += bytes;
    await_leaving(leaving);
}

/* Takes the job. Without a thread it is done here. */
static void saver_give(struct job *job)
{
    struct job *waiting;

    if (!waits)
        say_problem();
    say_if_slow();
    (void)pthread_mutex_lock(&lock);
    waiting = saver_find(job->path);
    if (waiting && waiting->text && job->text && (!job->in_turn || !waiting->next)) {
        char *text = waiting->text;

        waiting->text = job->text;
        waiting->length = job->length;
        job->text = text;
    } else if (!saver_start()) {
        (void)do_job(job, &problem);
        given++;
        done++;
        wake_loop();
    } else {
        if (waiting && job->text)
            saver_skip(waiting);
        job->next = NULL;
        *last = job;
        last = &job->next;
        job = NULL;
        given++;
        (void)pthread_cond_broadcast(&changed);
    }
    (void)pthread_mutex_unlock(&lock);
    free_job(job);
    if (looping)
        timer_set(looping, &look, LOOK_MS);
}

static struct job *job_new(const char *path)
{
    struct job *job = calloc(1, sizeof(*job) + strlen(path) + 1);

    if (job)
        memcpy(job->path, path, strlen(path) + 1);
    return job;
}

/* NULL: out of memory, which is said. */
static struct job *job_of_text(const char *path, char *text, size_t length)
{
    struct job *job = text ? job_new(path) : NULL;

    if (job) {
        job->text = text;
        job->length = length;
        return job;
    }
    say(BK1042, "%s is not saved: out of memory", path);
    free(text);
    return NULL;
}

void saver_write(const char *path, char *text, size_t length)
{
    struct job *job = job_of_text(path, text, length);

    if (job)
        saver_give(job);
}

void saver_write_in_turn(const char *path, char *text, size_t length)
{
    struct job *job = job_of_text(path, text, length);

    if (job) {
        job->in_turn = true;
        saver_give(job);
    }
}

void saver_write_by(const char *path, char *text, saver_write_fn *write, void *context)
{
    struct job *job = job_of_text(path, text, 0);

    if (job) {
        job->write = write;
        job->context = context;
        saver_give(job);
    }
}

void saver_remove(const char *path, const char *gone)
{
    struct job *job = job_new(path);

    if (job) {
        job->gone = strdup(gone);
        job->in_turn = true;
    }
    if (job && job->gone) {
        saver_give(job);
        return;
    }
    say(BK1043, "%s is not deleted: out of memory", path);
    free_job(job);
}

bool saver_finish(int64_t limit_ms)
{
    const int64_t until_ms = wall_clock_ns() / 1000000 + limit_ms;
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    LOCK_GUARD(&lock);

    while ((first || begun_ms) && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    return !first && !begun_ms;
}

bool saver_end(void)
{
    const bool is_done = saver_finish(SAVER_END_MS);

    say_problem();
    if (!is_done)
        say(BK1044, "the disk takes nothing: the last state is not on it");
    return is_done;
}

int64_t saver_busy_ms(void)
{
    LOCK_GUARD(&lock);

    return begun_ms ? clock_ms() - begun_ms : 0;
}
