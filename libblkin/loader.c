/*
 * Opens libblkin-lttng.so once per process, or finds that tracing is not to be had.
 *
 * The environment variable BLKIN_PROVIDER names another file, or "none" for no tracing at all.
 * With BLKIN_DEBUG set, a provider that cannot be opened is reported on stderr; else it is not an
 * error: a host without LTTng runs the same daemon.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loader.h"

#include "blkin.h"
#include "clock.h"
#include "sampling.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVIDER_FILE "libblkin-lttng.so.1"

static const int never = 0;
static const int not_known_yet = 1;

static blkin_record_fn load_and_record;

static void record_nothing(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                           const struct blkin_annotation *annotation)
{
    (void)trace;
    (void)endpoint;
    (void)annotation;
}

static void record_no_event(struct packed_event *event, const void *payload, size_t length,
                            void **thread_slot)
{
    (void)event;
    (void)payload;
    (void)length;
    (void)thread_slot;
}

static const struct blkin_provider absent = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {{&never, record_nothing}, {&never, record_nothing}, {&never, record_nothing}},
    .events = {[0 ... BLKIN_EVENTS - 1] = {&never, NULL}},
    .record = record_no_event,
};

static const struct blkin_provider not_loaded = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {{&not_known_yet, load_and_record},
               {&not_known_yet, load_and_record},
               {&not_known_yet, load_and_record}},
    .events = {[0 ... BLKIN_EVENTS - 1] = {&never, NULL}},
    .record = record_no_event,
};

const struct blkin_provider *blkin_provider_table = &not_loaded;

/* RTLD_NODELETE: LTTng keeps pointers into a provider, which must never be unmapped. */
static void *open_file(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!handle && getenv("BLKIN_DEBUG"))
        fprintf(stderr, "libblkin: tracing is off: %s\n", dlerror());
    return handle;
}

/* Beside this library (or the program that has it linked in); else where ld.so looks. */
static void *open_default(void)
{
    char path[PATH_MAX];
    Dl_info self;
    const char *slash;

    if (dladdr(&not_loaded, &self) && self.dli_fname && (slash = strrchr(self.dli_fname, '/'))) {
        int length = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self.dli_fname),
                              self.dli_fname, PROVIDER_FILE);
        void *handle = NULL;

        if (length > 0 && (size_t)length < sizeof(path))
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle)
            return handle;
    }
    return open_file(PROVIDER_FILE);
}

static const struct blkin_provider *open_provider(void)
{
    const char *chosen = secure_getenv("BLKIN_PROVIDER");
    const struct blkin_provider *provider;
    void *handle;

    if (chosen && strcmp(chosen, "none") == 0)
        return &absent;
    handle = chosen ? open_file(chosen) : open_default();
    if (!handle)
        return &absent;
    provider = dlsym(handle, BLKIN_PROVIDER_SYMBOL);
    if (!provider || provider->version != BLKIN_PROVIDER_VERSION) {
        if (getenv("BLKIN_DEBUG"))
            fprintf(stderr, "libblkin: tracing is off: %s is of another version of BlkKin\n",
                    chosen ? chosen : PROVIDER_FILE);
        return &absent;
    }
    return provider;
}

static void load(void)
{
    const struct blkin_provider *provider = open_provider();

    blkin_clock_init();
    blkin_sampling_init();
    __atomic_store_n(&blkin_provider_table, provider, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_gate_, provider->events[BLKIN_EVENT_SPAN].enabled, __ATOMIC_RELEASE);
}

void blkin_provider_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int saved_errno = errno;

    (void)pthread_once(&once, load);
    errno = saved_errno;
}

static void load_and_record(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                            const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint;

    blkin_provider_load();
    tracepoint = &blkin_provider()->zipkin[annotation->type];
    if (blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
}
