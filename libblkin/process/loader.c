/*
 * Opens libblkin-lttng.so once per process, or finds that LTTng is not to be had; and lays the
 * provider of the recorder's rings over it while there are some.
 *
 * The environment variable BLKIN_PROVIDER names another file, or "none" for no LTTng at all.
 * With BLKIN_DEBUG set, a provider that cannot be opened is reported on stderr; else it is not an
 * error: a host without LTTng runs the same daemon. BLKIN_DEBUG=check also checks the use of spans.
 * Set-user-ID programs heed neither.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loader.h"

#include "blkin.h"
#include "libblkin/base/chores.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/debug.h"
#include "libblkin/base/gate.h"
#include "libblkin/base/quiet.h"
#include "libblkin/base/signals.h"
#include "libblkin/policy/sampling.h"
#include "libblkin/policy/slow.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_provider.h"
#include "libblkin/usage/usage.h"
#include "tracepoints/start/lttng_start.h"
#include "zipkin_c.h"

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
#include <unistd.h>

#define PROVIDER_FILE "libblkin-lttng.so.1"

static blkin_record_fn load_and_record;

/* They claim to be enabled, so that the first event of the original API loads the provider. */
static const struct blkin_tracepoint not_loaded[BLKIN_ORIGINAL_EVENTS] = {
    [0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&blkin_not_known_yet, load_and_record},
};

/* What they and blkin_gate_ say where only the recorder's rings may come. */
static const int awaits_rings = BLKIN_GATE_LOOKS;
static blkin_record_fn record_below;
static const struct blkin_tracepoint awaiting[BLKIN_ORIGINAL_EVENTS] = {
    [0 ... BLKIN_ORIGINAL_EVENTS - 1] = {&awaits_rings, record_below},
};

const struct blkin_tracepoint *blkin_original_tracepoints = not_loaded;

static bool is_debugged(void)
{
    return secure_getenv("BLKIN_DEBUG") != NULL;
}

/* ---- the file ---- */

/* In memory that stays: LTTng keeps a pointer to the value, also when libblkin is unloaded. */
static char *timeout_variable(void)
{
    static const char text[] = "LTTNG_UST_REGISTER_TIMEOUT=" LTTNG_START_TIMEOUT;
    static char *variable;
    char *none = NULL, *made;

    if (!__atomic_load_n(&variable, __ATOMIC_ACQUIRE) && (made = strdup(text)) &&
        !__atomic_compare_exchange_n(&variable, &none, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        free(made);
    return __atomic_load_n(&variable, __ATOMIC_ACQUIRE);
}

static char *timeout_in(char *variable)
{
    return variable ? strchr(variable, '=') + 1 : NULL;
}

/* The environment with one more variable, and behind its end the one that was made before. */
static char **environment_with(char *variable)
{
    static char **last;
    size_t count = 0;
    char **made;

    while (environ && environ[count])
        count++;
    made = malloc((count + 3) * sizeof(*made));
    if (made) {
        made[0] = variable;
        made[count + 1] = NULL;
        made[count + 2] = (char *)last;
        if (count)
            memcpy(made + 1, environ, count * sizeof(*made));
        last = made;
    }
    return made;
}

/*
 * LTTng finds the variable as it starts. Other threads may be reading the environment: so it is
 * not changed but replaced, by an array that stays. A program that has changed it meanwhile has
 * copied that array, and keeps the variable.
 */
static void *open_with_timeout(const char *file)
{
    static bool is_busy;
    char **before = environ, **made = NULL;
    void *handle;

    if (!getenv("LTTNG_UST_REGISTER_TIMEOUT") &&
        !__atomic_exchange_n(&is_busy, true, __ATOMIC_ACQ_REL) &&
        !(made = environment_with(timeout_variable())))
        __atomic_store_n(&is_busy, false, __ATOMIC_RELEASE);
    if (made)
        __atomic_store_n(&environ, made, __ATOMIC_RELEASE);
    /* RTLD_NODELETE: LTTng keeps pointers into a provider, which must never be unmapped */
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (made) {
        (void)__atomic_compare_exchange_n(&environ, &made, before, false, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED);
        __atomic_store_n(&is_busy, false, __ATOMIC_RELEASE);
    }
    return handle;
}

static void *open_file(const char *file)
{
    void *handle = open_with_timeout(file);

    if (!handle && is_debugged())
        blkin_debug_say("libblkin: LTTng records nothing: %s", dlerror());
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

    if (getauxval(AT_SECURE) || !dladdr1(not_loaded, &self, (void **)&object, RTLD_DL_LINKMAP) ||
        !object || object->l_name[0] != '/') /* "": the program itself */
        return NULL;
    length = snprintf(path, sizeof(path), "%.*s/%s",
                      (int)(strrchr(object->l_name, '/') - object->l_name), object->l_name,
                      PROVIDER_FILE);
    if (length < 0 || (size_t)length >= sizeof(path))
        return NULL;
    return open_with_timeout(path);
}

static void *open_default(void)
{
    void *handle = open_beside();

    return handle ? handle : open_file(PROVIDER_FILE);
}

static bool leaves_lttng;

void blkin_provider_leave_lttng(void)
{
    leaves_lttng = true;
}

static const struct blkin_provider *open_provider(char *timeout_ms)
{
    const char *chosen = secure_getenv("BLKIN_PROVIDER");
    const struct blkin_provider *provider;
    void *handle;

    if (leaves_lttng || (chosen && strcmp(chosen, "none") == 0))
        return &blkin_no_provider;
    if (!timeout_ms || !lttng_start_prepare(timeout_ms, true)) {
        if (is_debugged())
            blkin_debug_say(
                "libblkin: LTTng records nothing: this process cannot start the threads of LTTng");
        return &blkin_no_provider;
    }
    handle = chosen ? open_file(chosen) : open_default();
    if (!handle)
        return &blkin_no_provider;
    provider = dlsym(handle, BLKIN_PROVIDER_SYMBOL);
    if (!provider || provider->version != BLKIN_PROVIDER_VERSION) {
        if (is_debugged())
            blkin_debug_say(
                "libblkin: LTTng records nothing: %s has another version than this libblkin",
                chosen ? chosen : PROVIDER_FILE);
        return &blkin_no_provider;
    }
    return provider;
}

/* ---- loading ---- */

static void say_if_not_registered(const struct blkin_provider *provider)
{
    if (provider != &blkin_no_provider && !provider->is_registered())
        blkin_debug_say(
            "libblkin: no LTTng session daemon has answered: LTTng records nothing until one runs "
            "that this user may use, root's or the user's own (lttng-sessiond --daemonize)");
}

static const struct blkin_provider *opened_provider; /* NULL: that was not tried yet */

static inline const struct blkin_provider *opened(void)
{
    return __atomic_load_n(&opened_provider, __ATOMIC_ACQUIRE);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of that: never held in libdl */

static bool is_child_late; /* is a child asked about at its first need? */

/*
 * The provider in use, without rings. NULL: not loaded, or a child of fork(2) that does not know
 * yet how it records. Then open spans go on, and new ones find that nothing is known.
 */
static const struct blkin_provider *in_use;

/* Has the program tracepoints of its own? A child may reach those before ours. */
static bool has_own_lttng(void)
{
    void *handle = dlopen("liblttng-ust.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return handle && dlclose(handle) == 0;
}

/*
 * Another thread may be doing the same: it may be in here from a constructor, with libdl's lock,
 * which this one waits for. So there is no lock around what calls libdl, and it is done twice.
 */
static const struct blkin_provider *open_unlocked(bool *is_late)
{
    static int whose; /* 1: liblttng-ust was not there; 2: it was */
    int unknown = 0, found = 1 + has_own_lttng();
    char *timeout_ms = timeout_in(timeout_variable());
    const struct blkin_provider *provider;

    (void)__atomic_compare_exchange_n(&whose, &unknown, found, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE);
    provider = open_provider(timeout_ms);
    if (timeout_ms)
        lttng_start_done(timeout_ms);
    *is_late = provider->follow_forks(__atomic_load_n(&whose, __ATOMIC_ACQUIRE) == 2, timeout_ms);
    return provider;
}

/* Idempotent: who is overtaken by another thread is put right with the next chores. */
static void publish(const struct blkin_provider *provider)
{
    const bool has_rings = ring_map() != NULL;
    const bool awaits = !has_rings && ring_find_state() != RING_NEVER;
    const struct blkin_provider *table = has_rings ? ring_provider_over(provider) : provider;

    __atomic_store_n(&in_use, provider, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_provider_table, table, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_original_tracepoints, awaits ? awaiting : table->zipkin,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_gate_, awaits ? &awaits_rings : table->events[BLKIN_EVENT_SPAN].enabled,
                     __ATOMIC_RELEASE);
}

static bool is_at_start; /* of the program: no request waits */

static void open_first(void)
{
    bool is_late;
    const struct blkin_provider *provider;

    ring_find_begin(); /* the agent answers while LTTng starts */
    provider = open_unlocked(&is_late);
    pthread_mutex_lock(&lock);
    if (!opened_provider) {
        blkin_checks = is_debugged() && strcmp(secure_getenv("BLKIN_DEBUG"), "check") == 0;
        blkin_clock_init();
        blkin_sampling_init();
        blkin_slow_init();
        is_child_late = is_late;
        ring_provider_init(provider);
        if (is_debugged())
            say_if_not_registered(provider);
        __atomic_store_n(&opened_provider, provider, __ATOMIC_RELEASE);
    }
    ring_find_wait(__atomic_load_n(&is_at_start, __ATOMIC_RELAXED));
    (void)ring_find();
    publish(opened_provider);
    pthread_mutex_unlock(&lock);
}

/* What needs a stack. may_wait: at the first need. */
static void register_process(bool may_wait)
{
    publish(opened()->register_process(may_wait) ? opened() : &blkin_no_provider);
}

static void load(void)
{
    if (!opened())
        open_first();
    else
        register_process(true);
}

/* Ten times what dlopen(3) and the start of LTTng have been seen to need. */
#define STACK_SIZE (size_t)(256 * 1024)

/* Also false on the stack of a coroutine, whose size is unknown. */
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

/* Loads on a stack of its own if this one is small: the first span may come anywhere. */
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
        __atomic_store_n(&opened_provider, &blkin_no_provider, __ATOMIC_RELEASE);
        publish(&blkin_no_provider);
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

static void register_if_stack_is_enough(void)
{
    if (has_enough_stack())
        register_process(false);
}

/*
 * Libdl and LTTng allocate memory and take locks. A program may let its signals in only around the
 * call that loads them here, as PostgreSQL does around its wait for connections, and allocate or
 * fork in their handlers: these come when the work is done.
 */
static void with_signals_blocked(void (*work)(void))
{
    sigset_t before;

    blkin_block_signals(&before);
    work();
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Without libdl, and with no need of a stack: what most children do. */
static bool goes_on_as_it_is(void)
{
    switch (opened()->registration()) {
    case BLKIN_REGISTERED:
        publish(opened());
        return true;
    case BLKIN_NOT_WANTED_YET:
        if (ring_find_state() != RING_NEVER) /* what is wanted goes to the rings */
            publish(opened());
        return true;
    case BLKIN_UNREGISTERED:
        break;
    }
    return false;
}

/* Of the calling thread, which records for the first time. */
static void prepare_thread(void)
{
    blkin_provider_load();
    blkin_provider()->init_thread();
    blkin_usage_thread_begin();
}

void blkin_provider_load(void)
{
    static _Thread_local bool is_loading __attribute__((tls_model("initial-exec")));
    const bool is_open = opened() != NULL;
    const int saved_errno = errno;
    int state;

    __atomic_store_n(&blkin_thread_prepare, prepare_thread, __ATOMIC_RELAXED);
    if (is_loading) /* this is a constructor, or the handler of a fault */
        return;
    if (is_open && __atomic_load_n(&blkin_gate_, __ATOMIC_ACQUIRE) != &blkin_not_known_yet)
        return;
    is_loading = true;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (!is_open || !goes_on_as_it_is())
        with_signals_blocked(load_on_enough_stack);
    (void)pthread_setcancelstate(state, NULL);
    is_loading = false;
    errno = saved_errno;
}

void blkin_provider_load_at_start(void)
{
    __atomic_store_n(&is_at_start, true, __ATOMIC_RELAXED);
    blkin_provider_load();
    __atomic_store_n(&is_at_start, false, __ATOMIC_RELAXED);
}

bool blkin_provider_be_quiet(void)
{
    if (!opened()) {
        blkin_provider_leave_lttng();
        blkin_provider_load_at_start();
    }
    if (ring_find() == RING_SOON) {
        ring_find_wait(true);
        (void)ring_find();
    }
    if (ring_map())
        publish(&blkin_no_provider);
    return ring_map() != NULL;
}

/* Chores come with a span, on a stack that may be small; registering is for one that is not. */
bool blkin_provider_refresh(void)
{
    const struct blkin_provider *provider = __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
    enum ring_found found;

    if (!provider)
        return false;
    found = ring_find();
    if (provider == opened() && !goes_on_as_it_is())
        with_signals_blocked(register_if_stack_is_enough);
    else if (found != RING_NEVER || blkin_is_quiet)
        publish(provider);
    return found == RING_SOON;
}

void blkin_provider_after_bare_fork(void)
{
    if (opened() && is_child_late)
        opened()->after_bare_fork();
}

void blkin_provider_after_fork(void)
{
    (void)pthread_mutex_init(&lock, NULL); /* another thread of the parent may have been loading */
    ring_find_after_fork();
    if (opened() && is_child_late && !blkin_is_quiet) {
        in_use = NULL;
        blkin_original_tracepoints = not_loaded;
        blkin_gate_ = &blkin_not_known_yet;
    }
}

int blkin_lttng_descriptor_(unsigned from, unsigned to)
{
    const struct blkin_provider *provider = opened();

    return provider ? provider->find_descriptor(from, to) : -1;
}

static void record_below(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                         const struct blkin_annotation *annotation)
{
    const struct blkin_provider *provider = __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
    const struct blkin_tracepoint *tracepoint =
        provider ? &provider->zipkin[annotation->type] : NULL;

    if (tracepoint && blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
}

static void load_and_record(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                            const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint;

    blkin_provider_load();
    tracepoint = blkin_original_tracepoint(annotation);
    /* still not loaded: this is the handler of a fault in the thread that loads; its event is lost
     */
    if (tracepoint->record != load_and_record && blkin_tracepoint_enabled(tracepoint))
        tracepoint->record(trace, endpoint, annotation);
}
