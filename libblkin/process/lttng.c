/* SPDX-License-Identifier: BSD-2-Clause */
#include "lttng.h"

#include "libblkin/base/debug.h"
#include "libblkin/base/provider.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_provider.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>

#define LTTNG_PROVIDER_FILE "libblkin-lttng.so.1"
#define LTTNG_SOCKETS       "lttng-ust-sock-" /* LTTng appends the version of its ABI */

static bool lttng_is_decided;
static const struct blkin_provider *lttng_provider = &blkin_no_provider;
static bool lttng_follows_forks;
/*
 * LTTng keeps pointers to these variables of the environment, and reads them again in each child.
 * Programs such as nginx overwrite the strings of the environment. So while libblkin loads LTTng,
 * the environment has copies of the strings.
 */
static struct variable {
    const char *name, *default_value; /* NULL: no default */
    char *copy, *given;               /* "NAME=VALUE": the copy, and the program's own string */
} lttng_variables[] = {
    /* in ms: how long LTTng waits for a session daemon; LTTng's own default is 3 s */
    {.name = "LTTNG_UST_REGISTER_TIMEOUT", .default_value = "1000"},
    {.name = "LTTNG_HOME"},
    {.name = "HOME"},
};
#define LTTNG_VARIABLES (sizeof(lttng_variables) / sizeof(lttng_variables[0]))
static char lttng_reason[300] =
    "blkin_init() was not called by this program, which has libblkin.a linked in";

const struct blkin_provider *blkin_lttng_provider_in_use(void)
{
    return __atomic_load_n(&lttng_provider, __ATOMIC_ACQUIRE);
}

const struct blkin_provider *blkin_lttng_(void)
{
    const struct blkin_provider *provider = blkin_lttng_provider_in_use();

    return provider == &blkin_no_provider ? NULL : provider;
}

/* Stores the reason of the decision. Always returns false. */
__attribute__((format(printf, 1, 2))) static bool lttng_note(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(lttng_reason, sizeof(lttng_reason), format, values);
    va_end(values);
    return false;
}

void blkin_lttng_report(void)
{
    blkin_debug_say("libblkin: LTTng is %sloaded: %s", blkin_lttng_() ? "" : "not ", lttng_reason);
}

/* ---- the decision ---- */

/* Returns true if the folder has a session daemon's socket. The folder's path is directory and
 * below, joined. */
static bool lttng_has_socket(const char *directory, const char *below)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    bool found = false;
    DIR *folder;

    if (!directory || snprintf(path, sizeof(path), "%s%s", directory, below) >= (int)sizeof(path) ||
        !(folder = opendir(path)))
        return false;
    while (!found && (entry = readdir(folder)))
        found = strncmp(entry->d_name, LTTNG_SOCKETS, sizeof(LTTNG_SOCKETS) - 1) == 0;
    (void)closedir(folder);
    return found;
}

static bool lttng_has_session_daemon(void)
{
    const char *home = secure_getenv("LTTNG_HOME");

    return lttng_has_socket(secure_getenv("LTTNG_UST_APP_PATH"), "") ||
           lttng_has_socket("/var/run/lttng", "") ||
           lttng_has_socket(home ? home : secure_getenv("HOME"), "/.lttng");
}

static bool lttng_has_limit(int resource, const char *name, rlim_t least)
{
    struct rlimit limit;

    return getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur >= least ||
           lttng_note("%s is %llu, and LTTng needs %llu", name, (unsigned long long)limit.rlim_cur,
                      (unsigned long long)least);
}

/* If LTTng cannot start its threads, it hangs at its start and crashes at its end. */
static bool lttng_has_room_for_threads(void)
{
    const rlim_t stacks = (rlim_t)64 << 20;

    return lttng_has_limit(RLIMIT_NPROC, "RLIMIT_NPROC", 4) &&
           lttng_has_limit(RLIMIT_DATA, "RLIMIT_DATA", stacks) &&
           lttng_has_limit(RLIMIT_AS, "RLIMIT_AS", 4 * stacks);
}

static bool lttng_finds_rings(void)
{
    ring_find_begin();
    ring_find_wait(true);
    return ring_find() == RING_FOUND;
}

static bool lttng_is_wanted(bool rings_come_first)
{
    const char *choice = secure_getenv("BLKIN_LTTNG");

    if (strcmp(program_invocation_short_name, "setpriv") == 0)
        return lttng_note(
            "setpriv would abort: it changes its user and then its groups, and glibc ends a "
            "program whose threads have different rights");
    if (choice && strcmp(choice, "no") == 0)
        return lttng_note("BLKIN_LTTNG=no is in the environment");
    if (choice && strcmp(choice, "yes") == 0) {
        (void)lttng_note("BLKIN_LTTNG=yes is in the environment");
        return lttng_has_room_for_threads();
    }
    if (!lttng_has_session_daemon())
        return lttng_note(
            "no LTTng session daemon was there when this program started: restart the program, "
            "or set BLKIN_LTTNG=yes");
    if (rings_come_first && lttng_finds_rings())
        return lttng_note("the agent's rings are there: blkin run --lttng loads LTTng, too");
    (void)lttng_note("a session daemon was there when this program started");
    return lttng_has_room_for_threads();
}

/* ---- the file ---- */

/* Returns this shared object, or NULL. Its name is "" in a program with libblkin.a. */
static struct link_map *lttng_find_this_object(void)
{
    struct link_map *object = NULL;
    Dl_info self;

    return dladdr1(&lttng_is_decided, &self, (void **)&object, RTLD_DL_LINKMAP) ? object : NULL;
}

/* Returns false in a namespace of dlmopen(3), where LTTng crashes. */
static bool lttng_is_in_base_namespace(struct link_map *object)
{
    Lmid_t id;

    return !object || dlinfo(object, RTLD_DI_LMID, &id) != 0 || id == LM_ID_BASE ||
           lttng_note("this is a namespace of dlmopen(3), in which LTTng crashes");
}

/* RTLD_NODELETE: LTTng keeps pointers into a provider, so the provider must stay mapped. */
#define LTTNG_OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

/*
 * Opens the provider in the folder of this shared object, if the path is trustworthy. Returns NULL
 * on failure, and without a try in three cases: in a program with libblkin.a, where the name is
 * empty; if the path is relative to the working directory; and in a set-user-ID program, where only
 * ld.so knows the trusted folders.
 */
static void *lttng_open_beside(const struct link_map *object)
{
    char path[PATH_MAX];
    int length;

    if (getauxval(AT_SECURE) || !object || object->l_name[0] != '/')
        return NULL;
    length = snprintf(path, sizeof(path), "%.*s/%s",
                      (int)(strrchr(object->l_name, '/') - object->l_name), object->l_name,
                      LTTNG_PROVIDER_FILE);
    return length < 0 || (size_t)length >= sizeof(path) ? NULL : dlopen(path, LTTNG_OPEN_FLAGS);
}

static const struct blkin_provider *lttng_open_provider(const struct link_map *object)
{
    const char *chosen = secure_getenv("BLKIN_PROVIDER");
    const char *file = chosen ? chosen : LTTNG_PROVIDER_FILE;
    const struct blkin_provider *provider;
    void *handle = chosen ? NULL : lttng_open_beside(object);

    if (!handle && !(handle = dlopen(file, LTTNG_OPEN_FLAGS))) {
        const char *error = dlerror();

        (void)lttng_note("%s", error ? error : file);
        return &blkin_no_provider;
    }
    provider = dlsym(handle, BLKIN_PROVIDER_SYMBOL);
    if (!provider || provider->version != BLKIN_PROVIDER_VERSION) {
        (void)lttng_note("%s is of another version than this libblkin", file);
        return &blkin_no_provider;
    }
    return provider;
}

/* ---- loading ---- */

/* Returns true if liblttng-ust-fork.so is loaded. That library does the same as the handlers below;
 * LTTng deadlocks if both act. */
static bool lttng_fork_is_wrapped(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "fork");
    Dl_info info;

    return symbol && dladdr(symbol, &info) && info.dli_fname &&
           strstr(info.dli_fname, "liblttng-ust-fork");
}

static void lttng_before_fork(void)
{
    if (lttng_follows_forks)
        blkin_lttng_provider_in_use()->before_fork();
}

static void lttng_after_fork_parent(void)
{
    if (lttng_follows_forks)
        blkin_lttng_provider_in_use()->after_fork_parent();
}

static void lttng_after_fork_child(void)
{
    if (lttng_follows_forks)
        blkin_lttng_provider_in_use()->after_fork_child();
}

/* NOLINTBEGIN(concurrency-mt-unsafe,clang-analyzer-unix.Malloc): there is one thread */

static void lttng_set_copy(struct variable *variable)
{
    char *const given = getenv(variable->name);
    const char *const value = given ? given : variable->default_value;

    if (!value || asprintf(&variable->copy, "%s=%s", variable->name, value) < 0) {
        variable->copy = NULL; /* the environment keeps the program's own string */
        return;
    }
    variable->given = given ? given - strlen(variable->name) - 1 : NULL;
    (void)putenv(variable->copy);
}

/* Restores the program's own string. */
static void lttng_unset_copy(const struct variable *variable)
{
    if (variable->given)
        (void)putenv(variable->given);
    else if (variable->copy)
        (void)unsetenv(variable->name);
}

/* NOLINTEND(concurrency-mt-unsafe,clang-analyzer-unix.Malloc) */

static void lttng_load(const struct link_map *object, bool may_set_environment)
{
    const struct blkin_provider *provider;

    /* LTTng starts threads in a child: all handlers that are already registered run before that */
    (void)pthread_atfork(lttng_before_fork, lttng_after_fork_parent, lttng_after_fork_child);
    for (size_t i = 0; may_set_environment && i < LTTNG_VARIABLES; i++)
        lttng_set_copy(&lttng_variables[i]);
    provider = lttng_open_provider(object);
    for (size_t i = 0; may_set_environment && i < LTTNG_VARIABLES; i++)
        lttng_unset_copy(&lttng_variables[i]);
    if (provider == &blkin_no_provider)
        return;
    /* makes this library stay loaded, too: its handlers of forks call LTTng */
    if (object && object->l_name[0])
        (void)dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    lttng_follows_forks = !lttng_fork_is_wrapped();
    ring_provider_init(provider);
    __atomic_store_n(&lttng_provider, provider, __ATOMIC_RELEASE);
}

static void lttng_decide(bool is_asked, bool rings_come_first)
{
    const int saved_errno = errno;
    const bool is_alone = __libc_single_threaded;
    struct link_map *object;

    if (__atomic_load_n(&lttng_is_decided, __ATOMIC_ACQUIRE))
        return;
    object = lttng_find_this_object();
    if (!is_asked && !is_alone)
        (void)lttng_note("the program had threads already when libblkin was loaded, and has not "
                         "called blkin_init()");
    else if ((is_asked || (object && object->l_name[0])) &&
             !__atomic_exchange_n(&lttng_is_decided, true, __ATOMIC_ACQ_REL) &&
             lttng_is_in_base_namespace(object) && lttng_is_wanted(rings_come_first))
        lttng_load(object, is_alone);
    errno = saved_errno;
}

void blkin_lttng_load(void)
{
    lttng_decide(true, false);
}

void blkin_lttng_start_(bool may_load)
{
    if (may_load)
        lttng_decide(false, true);
    else
        blkin_lttng_leave("the program was started under a seccomp filter");
}

void blkin_lttng_at_start(void)
{
    if (!&blkin_preload_decides_)
        lttng_decide(false, false);
}

void blkin_lttng_leave(const char *reason)
{
    lttng_follows_forks = false;
    (void)lttng_note("%s", reason);
    __atomic_store_n(&lttng_is_decided, true, __ATOMIC_RELEASE);
    __atomic_store_n(&lttng_provider, &blkin_no_provider, __ATOMIC_RELEASE);
}
