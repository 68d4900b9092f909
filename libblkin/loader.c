/*
 * Opens libblkin-lttng.so once per process, or finds that tracing is not to be had.
 *
 * The environment variable BLKIN_PROVIDER names another file, or "none" for no tracing at all.
 * With BLKIN_DEBUG set, a provider that cannot be opened is reported on stderr; else it is not an
 * error: a host without LTTng runs the same daemon. Set-user-ID programs heed neither.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loader.h"

#include "blkin.h"
#include "clock.h"
#include "sampling.h"
#include "slow.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

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

static bool follow_no_forks(bool at_once)
{
    (void)at_once;
    return false;
}

static bool is_not_registered(void)
{
    return false;
}

static void do_nothing(void)
{
}

/* All but the original's tracepoints. */
#define WITHOUT_LTTNG                                                                           \
    .version = BLKIN_PROVIDER_VERSION, .events = {[0 ... BLKIN_EVENTS - 1] = {&never, NULL}},   \
    .record = record_no_event, .follow_forks = follow_no_forks, .register_process = do_nothing, \
    .is_registered = is_not_registered, .init_thread = do_nothing

static const struct blkin_provider absent = {
    .zipkin = {{&never, record_nothing}, {&never, record_nothing}, {&never, record_nothing}},
    WITHOUT_LTTNG,
};

static const struct blkin_provider not_loaded = {
    .zipkin = {{&not_known_yet, load_and_record},
               {&not_known_yet, load_and_record},
               {&not_known_yet, load_and_record}},
    WITHOUT_LTTNG,
};

const struct blkin_provider *blkin_provider_table = &not_loaded;

static bool is_debugged(void)
{
    return secure_getenv("BLKIN_DEBUG") != NULL;
}

/* ---- the file ---- */

/* RTLD_NODELETE: LTTng keeps pointers into a provider, which must never be unmapped. */
static void *open_file(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!handle && is_debugged())
        fprintf(stderr, "libblkin: tracing is off: %s\n", dlerror());
    return handle;
}

/*
 * Beside the shared object that this is a part of, if its path is one that nobody else can bend: a
 * program's own path is argv[0], a relative one depends on the working directory, and in a
 * set-user-ID program it is ld.so alone who knows what is to be trusted.
 */
static void *open_beside(void)
{
    char path[PATH_MAX];
    Dl_info self;
    struct link_map *object = NULL;
    int length;

    if (getauxval(AT_SECURE) || !dladdr1(&not_loaded, &self, (void **)&object, RTLD_DL_LINKMAP) ||
        !object || object->l_name[0] != '/') /* "": the program itself */
        return NULL;
    length = snprintf(path, sizeof(path), "%.*s/%s",
                      (int)(strrchr(object->l_name, '/') - object->l_name), object->l_name,
                      PROVIDER_FILE);
    if (length < 0 || (size_t)length >= sizeof(path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static void *open_default(void)
{
    void *handle = open_beside();

    return handle ? handle : open_file(PROVIDER_FILE);
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
        if (is_debugged())
            fprintf(stderr, "libblkin: tracing is off: %s is of another version of BlkKin\n",
                    chosen ? chosen : PROVIDER_FILE);
        return &absent;
    }
    return provider;
}

/* ---- loading ---- */

static void say_if_not_registered(const struct blkin_provider *provider)
{
    if (provider != &absent && !provider->is_registered())
        fputs("libblkin: no LTTng session daemon has answered: nothing is recorded until one runs "
              "that this user may use, root's or the user's own (lttng-sessiond --daemonize)\n",
              stderr);
}

static const struct blkin_provider *opened; /* NULL: that was not tried yet */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * A child of fork(2) until it is registered with LTTng: what has been begun goes on, what begins
 * finds that nothing is known.
 */
static struct blkin_provider of_child;
static bool is_child_late; /* is a child registered at its first need? */

/* Has the program tracepoints of its own? Those of a child may be met before ours. */
static bool has_own_lttng(void)
{
    void *handle = dlopen("liblttng-ust.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return handle && dlclose(handle) == 0;
}

static void open_first(void)
{
    const bool at_once = has_own_lttng();
    const struct blkin_provider *provider = open_provider();

    blkin_clock_init();
    blkin_sampling_init();
    blkin_slow_init();
    is_child_late = provider->follow_forks(at_once);
    of_child = *provider;
    memcpy(of_child.zipkin, not_loaded.zipkin, sizeof(of_child.zipkin));
    if (is_debugged())
        say_if_not_registered(provider);
    opened = provider;
}

static void load(void)
{
    if (opened)
        opened->register_process();
    else
        open_first();
    __atomic_store_n(&blkin_provider_table, opened, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_gate_, opened->events[BLKIN_EVENT_SPAN].enabled, __ATOMIC_RELEASE);
}

/* Ten times what dlopen(3) and the start of LTTng have been seen to need. */
#define STACK_SIZE (size_t)(256 * 1024)

/* Not so on the stack of a coroutine either, of which nothing is known. */
static bool has_enough_stack(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    uintptr_t left;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    (void)pthread_attr_getstack(&attributes, &lowest, &size);
    (void)pthread_attr_destroy(&attributes);
    left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest;
    return left >= STACK_SIZE && left <= size;
}

/* The first span may come where the stack is small: then on a stack of its own. */
static void load_on_enough_stack(void)
{
    struct {
        ucontext_t here, there;
    } * contexts;
    char *stack;

    if (has_enough_stack()) {
        load();
        return;
    }
    stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                 -1, 0);
    if (stack == MAP_FAILED) {
        opened = &absent;
        load();
        return;
    }
    contexts = (void *)stack;
    if (getcontext(&contexts->there) == 0) {
        contexts->there.uc_stack.ss_sp = stack + sizeof(*contexts);
        contexts->there.uc_stack.ss_size = STACK_SIZE - sizeof(*contexts);
        contexts->there.uc_link = &contexts->here;
        makecontext(&contexts->there, load, 0);
        (void)swapcontext(&contexts->here, &contexts->there);
    }
    (void)munmap(stack, STACK_SIZE);
}

void blkin_provider_load(void)
{
    const int saved_errno = errno;

    (void)pthread_once(&once, load_on_enough_stack);
    errno = saved_errno;
}

void blkin_provider_after_fork(void)
{
    /* another thread of the parent may have been loading: then that is begun again */
    once = PTHREAD_ONCE_INIT;
    if (opened && is_child_late) {
        blkin_provider_table = &of_child;
        blkin_gate_ = &not_known_yet;
    }
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
