/*
 * Spans across threads and processes, for test-threads.sh: needs a session that has events of blkin
 * enabled.
 *
 *     threads handover    spans that begin on one thread and end on another
 *     threads crowd       threads that record at once, the first spans of the process included
 *     threads nested      50000 spans with a child each, some with cold caches
 *     threads family      children that several threads begin while another thread uses the parent,
 *                         and after the parent's end
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_REQUESTS 1000
#define THREADS          4
#define THREADS_SPANS    1000

/* ---- handover: an I/O completion ---- */

struct threads_request {
    struct blkin_span span;
    struct threads_request *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct threads_request *queue;

/*
 * Keeps the thread on one of the processors, so that each thread records into its own buffers. The
 * root ends last, and its buffer has room that the other spans cannot take.
 */
static void stay_on(unsigned which)
{
    cpu_set_t all, one;

    CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && seen++ == (int)which % CPU_COUNT(&all))
            CPU_SET(cpu, &one);
    }
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

static void *complete(void *unused)
{
    (void)unused;
    stay_on(1);
    CHECK(blkin_current() == NULL); /* the root is the current span of another thread */
    for (int i = 0; i < THREADS_REQUESTS; i++) {
        struct threads_request *request;

        pthread_mutex_lock(&lock);
        while (!queue)
            pthread_cond_wait(&more, &lock);
        request = queue;
        queue = request->next;
        pthread_mutex_unlock(&lock);
        blkin_step_end(&request->span);
        blkin_span_annotate(&request->span, "completed");
        blkin_span_end(&request->span);
        free(request);
    }
    return NULL;
}

TEST(handover)
{
    struct blkin_span root;
    pthread_t thread;

    blkin_span_begin(&root, "root", BLKIN_SERVER, NULL);
    CHECK(blkin_span_is_recorded(&root));
    CHECK(blkin_set_current(&root) == NULL);
    CHECK(pthread_create(&thread, NULL, complete, NULL) == 0);
    stay_on(0);
    for (int i = 0; i < THREADS_REQUESTS; i++) {
        struct threads_request *request = malloc(sizeof(*request));

        if (!request)
            abort();
        blkin_span_begin(&request->span, "request", BLKIN_INTERNAL, blkin_current());
        blkin_span_tag_int64(&request->span, "number", i);
        blkin_step_begin(&request->span, "queued", BLKIN_INTERNAL);
        pthread_mutex_lock(&lock);
        request->next = queue;
        queue = request;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&lock);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(blkin_set_current(NULL) == &root);
    CHECK(blkin_current() == NULL);
    blkin_span_end(&root);
}

/* ---- crowd ---- */

static pthread_barrier_t barrier;

static void *record(void *name)
{
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS_SPANS; i++) {
        struct blkin_span root, child;

        errno = 4711;
        blkin_span_begin(&root, name, BLKIN_SERVER, NULL);
        blkin_span_begin(&child, "child", BLKIN_INTERNAL, &root);
        blkin_span_tag_string(&child, "key", "value");
        blkin_span_annotate(&child, "text");
        blkin_span_end(&child);
        blkin_heartbeat();
        blkin_span_end(&root);
        CHECK(errno == 4711);
    }
    return NULL;
}

TEST(crowd)
{
    pthread_t threads[THREADS];

    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, record, "crowd") == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&barrier);
}

/* ---- nested: many threads, whose caches lose the library's data now and then ---- */

#define NESTING_THREADS 8
#define PAIRS           6250
#define CACHE           (4 << 20)

static void *nest(void *unused)
{
    volatile char *memory = malloc(CACHE);

    (void)unused;
    if (!memory)
        abort();
    for (int i = 0; i < PAIRS; i++) {
        struct blkin_span parent, child;

        for (size_t at = 0; i % 16 == 0 && at < CACHE; at += 64)
            memory[at]++;
        blkin_span_begin(&parent, "parent", BLKIN_SERVER, NULL);
        blkin_span_begin(&child, "child", BLKIN_INTERNAL, &parent);
        if (i % 2)
            blkin_span_annotate(&child, "text");
        blkin_span_end(&child);
        blkin_span_end(&parent);
    }
    free((void *)memory);
    return NULL;
}

TEST(nested)
{
    pthread_t threads[NESTING_THREADS];

    for (int i = 0; i < NESTING_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, nest, NULL) == 0);
    for (int i = 0; i < NESTING_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- family: one parent, whose children several threads begin ---- */

#define CHILDREN 1000

static struct blkin_span shared;

static void *have_children(void *unused)
{
    struct blkin_context context = {0};

    (void)unused;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CHILDREN; i++) {
        struct blkin_span child;

        context = *blkin_span_context(&shared);
        CHECK(context.trace_id != 0);
        blkin_span_begin(&child, "child", BLKIN_INTERNAL, &shared);
        CHECK(blkin_span_is_recorded(&child));
        CHECK(child.context.parent_span_id == context.span_id);
        blkin_span_end(&child);
    }
    return NULL;
}

TEST(family)
{
    pthread_t threads[THREADS];

    blkin_span_begin(&shared, "root", BLKIN_SERVER, NULL);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, have_children, NULL) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CHILDREN; i++) {
        blkin_span_annotate(&shared, "meanwhile");
        blkin_span_tag_int64(&shared, "i", i);
        blkin_span_set_name(&shared, "root of them");
        blkin_step_begin(&shared, "step", BLKIN_INTERNAL);
        if (i % 100 == 0)
            blkin_span_error(&shared, "EIO");
        blkin_step_end(&shared);
    }
    blkin_span_end(&shared);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&barrier);
    (void)pthread_barrier_init(&barrier, NULL, 1);
    have_children(NULL); /* the parent has ended */
    pthread_barrier_destroy(&barrier);
}

int main(int argc, char **argv)
{
    return check_run_mode(argc > 1 ? argv[1] : NULL);
}
