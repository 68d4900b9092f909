/*
 * Spans that one thread begins and another one ends, while settings change: none is lost. "make
 * check-tsan" runs this under ThreadSanitizer, which sees every access that lacks its order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 4

static struct blkin_span *handed; /* from one thread to any other */
static unsigned long ended;
static int is_over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct blkin_span *exchange(struct blkin_span *mine)
{
    struct blkin_span *other;

    pthread_mutex_lock(&mutex);
    other = handed;
    handed = mine;
    pthread_mutex_unlock(&mutex);
    return other;
}

static void finish(struct blkin_span *span)
{
    if (!span)
        return;
    blkin_span_annotate(span, "completed");
    blkin_span_end(span);
    free(span);
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

static void *work(void *parent)
{
    for (unsigned i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        struct blkin_span *span = malloc(sizeof(*span));

        if (!span)
            abort();
        blkin_span_begin(span, "write", BLKIN_INTERNAL, i % 2 ? parent : NULL);
        blkin_span_tag_int64(span, "offset", i);
        blkin_span_annotate(span, "queued");
        finish(exchange(span));
    }
    return NULL;
}

static void *change_settings(void *nothing)
{
    static const struct blkin_endpoint services[] = {{.name = "osd.1", .ip = "10.0.0.1"},
                                                     {.name = "osd.2", .ip = "10.0.0.2"}};

    /* long enough for what is due once a second */
    for (unsigned i = 0; i < 150; i++) {
        if (i % 50 == 0) { /* seldom, as the library asks for */
            blkin_set_service(&services[i % 100 == 0]);
            blkin_set_sampling(i % 100 == 0 ? "always" : "ratio=1");
        }
        blkin_heartbeat();
        usleep(10000);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    return nothing;
}

/* Beside this program. */
static void *open_provider(const char *program)
{
    const char *slash = strrchr(program, '/');
    char path[4096];

    snprintf(path, sizeof(path), "%.*s/provider/counting.so", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    setenv("BLKIN_PROVIDER", path, 1);
    return dlopen(path, RTLD_NOW);
}

static unsigned long ask(void *provider, const char *function)
{
    unsigned long (*counter)(void);

    *(void **)&counter = dlsym(provider, function);
    return counter ? counter() : ~0UL;
}

int main(int argc, char **argv)
{
    void *provider = open_provider(argv[0]);
    struct blkin_span parent;
    pthread_t threads[THREADS + 1];

    (void)argc;
    CHECK(provider != NULL);
    if (!provider)
        return check_status();
    blkin_span_begin(&parent, "request", BLKIN_SERVER, NULL);
    CHECK(blkin_span_is_recorded(&parent));
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &parent) == 0);
    CHECK(pthread_create(&threads[THREADS], NULL, change_settings, NULL) == 0);
    for (unsigned i = 0; i < THREADS + 1; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    finish(exchange(NULL));
    blkin_span_end(&parent);
    CHECK(ended > 0);
    CHECK(ask(provider, "counted_spans") == ended + 1);
    CHECK(ask(provider, "broken_spans") == 0);
    return check_status();
}
