/*
 * Keeps a process traceable across fork(2) and daemon(3), with no LD_PRELOAD.
 *
 * Without this, a child has no LTTng listener thread: sessions that start later never see it, and
 * its events bear the parent's pid. lttng_ust_before_fork() takes a lock, so it must not run twice
 * for one fork: where liblttng-ust-fork.so is preloaded it already wraps fork(), and a program that
 * calls lttng_ust_before_fork() itself says so with BLKIN_FORK=off in its environment.
 *
 * Registering takes ms, and a thread or two: more than most servers need for a connection that they
 * give to a child. So a child goes on with what its parent has: the buffers are shared memory, the
 * same for all processes of a user, and which events are wanted was copied with the rest. It only
 * gets LTTng's locks back, and forgets the parent's other threads and the parent's ids. What it
 * cannot see is what session daemons command later. The parent can: it counts their commands in a
 * word that both share. Once that word has changed, or the parent has ended, the child registers,
 * as LTTng does it after a fork.
 *
 * The parent here is the process that is registered. A server that forks twice (vsftpd) has an
 * unregistered process in between, whose end does not matter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fork.h"

#include "blkin_events.h"
#include "descriptors.h"
#include "tracepoints/start/lttng_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <lttng/urcu/urcu-ust.h>
#include <lttng/ust-fork.h>

static _Thread_local sigset_t saved_signals;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows, after forks */
static bool is_pending;                                  /* this child is not registered */
static pid_t registered_parent;                          /* this process itself, where it is */
static bool is_bare;                                     /* nor has it LTTng's locks */
static uint32_t *commands;    /* shared: only who is registered counts them */
static pthread_mutex_t *life; /* shared, see parent_lives(); NULL: could not be made */
static uint32_t commands_at_fork;
static struct timespec forked_at;
static char *timeout_ms;

/* ---- what a process shares with its children ---- */

/* Locks it for as long as this thread lives. */
static bool begin_life(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    bool result;

    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    result = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
             pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
             pthread_mutex_init(mutex, &attributes) == 0 && pthread_mutex_lock(mutex) == 0;
    (void)pthread_mutexattr_destroy(&attributes);
    return result;
}

static void share_commands(void)
{
    struct {
        uint32_t commands;
        pthread_mutex_t life;
    } *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const bool is_shared = shared != MAP_FAILED;

    commands = is_shared ? &shared->commands : NULL;
    life = is_shared && begin_life(&shared->life) ? &shared->life : NULL;
    __atomic_store_n(&descriptors_commands, commands, __ATOMIC_RELEASE);
    registered_parent = getpid();
}

/*
 * A thread of the registered process holds the robust mutex. The kernel marks the mutex when that
 * thread ends, also by a signal or by exec. So this tells a dead process from another one that has
 * got the same pid since, works from another pid namespace, and makes no system call.
 *
 * That thread may end before its process does: a child of that process asks for its pid then, and a
 * grandchild registers itself.
 */
static bool parent_lives(void)
{
    const int held = life ? pthread_mutex_trylock(life) : 0;

    if (held == EOWNERDEAD)
        (void)pthread_mutex_unlock(life); /* from now on nobody can lock it */
    return held == EBUSY || getppid() == registered_parent;
}

/* Is what this child has of its parent as good as what it would get itself? */
static bool parent_suffices(void)
{
    return commands && parent_lives() &&
           __atomic_load_n(commands, __ATOMIC_ACQUIRE) == commands_at_fork &&
           descriptors_are_intact();
}

bool fork_is_registered(void)
{
    return descriptors_have_sockets();
}

/* ---- forks ---- */

static void before_fork(void)
{
    const int saved_errno = errno;

    descriptors_enter();
    lttng_ust_before_fork(&saved_signals);
    if (!is_pending && commands)
        commands_at_fork = __atomic_load_n(commands, __ATOMIC_ACQUIRE);
    errno = saved_errno;
}

static void after_fork_parent(void)
{
    lttng_ust_after_fork_parent(&saved_signals);
    descriptors_leave();
}

static void after_fork_child(void)
{
    lttng_ust_after_fork_child(&saved_signals);
    descriptors_leave();
}

/*
 * LTTng calls this in lttng_ust_after_fork_child(), after it has forgotten the parent's ids and
 * before it throws all else away. It takes the place of the function of liblttng-ust-common, which
 * is right only where no other thread lives.
 */
static enum { AS_LTTNG_DOES, FORGET_IDS_ONLY, KEEP_THREADS } way;
static jmp_buf ids_are_forgotten;
static void (*forget_other_threads)(void);

__attribute__((visibility("default"))) void lttng_ust_urcu_after_fork_child(void)
{
    switch (way) {
    case FORGET_IDS_ONLY:
        longjmp(ids_are_forgotten, 1); /* NOLINT(cert-err52-cpp) */
    case KEEP_THREADS:
        lttng_ust_urcu_after_fork_parent();
        break;
    case AS_LTTNG_DOES:
        forget_other_threads();
        break;
    }
}

static void forget_ids(void)
{
    descriptors_commands = NULL;
    way = FORGET_IDS_ONLY;
    if (setjmp(ids_are_forgotten) == 0)
        lttng_ust_after_fork_child(&saved_signals);
    way = AS_LTTNG_DOES;
}

static void after_fork_child_go_on(void)
{
    const int saved_errno = errno;
    sigset_t all;

    (void)sigfillset(&all);
    forget_ids();
    lttng_ust_after_fork_parent(&all);
    lttng_ust_urcu_before_fork();
    forget_other_threads();
    descriptors_close_sockets();
    descriptors_leave();
    (void)pthread_mutex_init(&lock, NULL);
    is_pending = true;
    clock_gettime(CLOCK_MONOTONIC, &forked_at);
    errno = saved_errno;
    (void)pthread_sigmask(SIG_SETMASK, &saved_signals, NULL);
}

/* LTTng's locks are as they were in the parent: nothing that takes one can be done. */
void fork_after_bare(void)
{
    if (!is_pending && commands)
        commands_at_fork = __atomic_load_n(commands, __ATOMIC_ACQUIRE);
    forget_ids();
    is_pending = is_bare = true;
}

/* Other threads of this child may be recording: LTTng waits for them, as when a session ends. */
static bool register_child(bool may_wait)
{
    const int saved_errno = errno;
    const bool is_possible =
        !is_bare && lttng_start_prepare(timeout_ms, may_wait) && descriptors_take_back();

    if (is_possible) {
        before_fork();
        share_commands();
        way = KEEP_THREADS;
        after_fork_child();
        way = AS_LTTNG_DOES;
        __atomic_store_n(&is_pending, false, __ATOMIC_RELEASE);
    }
    lttng_start_done(timeout_ms);
    errno = saved_errno;
    return is_possible;
}

const struct blkin_provider *fork_provider;

/* Does any session record events here? */
static bool is_recording(void)
{
    for (int i = 0; i < BLKIN_EVENTS; i++) {
        if (blkin_events[i].tracepoint.state)
            return true;
    }
    for (int i = 0; i <= ANNOT_TIMESTAMP; i++) {
        if (*fork_provider->zipkin[i].enabled)
            return true;
    }
    return false;
}

/* Most children that serve one connection end before they are a second old. */
static bool is_young(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - forked_at.tv_sec) * 1000 + (now.tv_nsec - forked_at.tv_nsec) / 1000000 <
           1000;
}

enum blkin_registration fork_registration(void)
{
    bool records;

    if (!__atomic_load_n(&is_pending, __ATOMIC_ACQUIRE))
        return BLKIN_REGISTERED;
    records = is_recording();
    if (records ? parent_suffices() : is_young() && parent_lives())
        return records ? BLKIN_REGISTERED : BLKIN_NOT_WANTED_YET;
    return BLKIN_UNREGISTERED;
}

bool fork_register(bool may_wait)
{
    bool result;

    pthread_mutex_lock(&lock);
    result = !is_pending || register_child(may_wait);
    pthread_mutex_unlock(&lock);
    return result;
}

/* False where the preload is not loaded. */
static bool ask_preload(const char *function)
{
    bool (*tell)(void) = (bool (*)(void))dlsym(RTLD_DEFAULT, function);

    return tell && tell();
}

/* Under a seccomp filter no system call is to be made. */
static bool is_filtered(void)
{
    return ask_preload("blkin_preload_is_filtered");
}

/* LTTng is not to cancel what it takes for its threads. */
static bool threads_are_spared(void)
{
    return ask_preload("blkin_preload_spare_threads");
}

static bool has_threads(void)
{
    struct stat tasks;

    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3;
}

/*
 * Before the destructor of LTTng, which cancels its listener threads: those of the parent, in a
 * child that has not registered. The C library has given their place to the first threads of the
 * child. And it aborts where its descriptors are closed. The preload keeps LTTng from cancelling;
 * without it a child with threads registers, which takes ms.
 */
__attribute__((destructor)) static void leave_threads_alone(void)
{
    if (!is_pending || is_filtered())
        return;
    if (has_threads() && !threads_are_spared() && register_child(false))
        return;
    descriptors_enter();
    (void)descriptors_take_back();
    descriptors_leave();
}

static bool fork_is_wrapped(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "fork");

    return symbol && dladdr(symbol, &info) && info.dli_fname &&
           strstr(info.dli_fname, "liblttng-ust-fork");
}

enum { UNDECIDED, NOT_FOLLOWED, FOLLOWED_AT_ONCE, FOLLOWED_LATER };

static int choose(bool at_once)
{
    const char *choice = secure_getenv("BLKIN_FORK");

    if ((choice && strcmp(choice, "off") == 0) || fork_is_wrapped())
        return NOT_FOLLOWED;
    return at_once || (choice && strcmp(choice, "now") == 0) ? FOLLOWED_AT_ONCE : FOLLOWED_LATER;
}

bool fork_follow(bool at_once, char *timeout)
{
    static int decided;
    const int choice = choose(at_once);
    int before = UNDECIDED;

    __atomic_store_n(&forget_other_threads,
                     (void (*)(void))dlsym(RTLD_NEXT, "lttng_ust_urcu_after_fork_child"),
                     __ATOMIC_RELEASE);
    if (!__atomic_compare_exchange_n(&decided, &before, choice, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return before == FOLLOWED_LATER;
    timeout_ms = timeout;
    if (choice == FOLLOWED_LATER) {
        /* What follows of the start's last command, as the dump of mapped files, is counted, too: a
         * child that is forked just now would take it for a new command. */
        if (ask_preload("blkin_preload_begins_server"))
            descriptors_settle();
        share_commands();
    }
    if (choice != NOT_FOLLOWED)
        (void)pthread_atfork(before_fork, after_fork_parent,
                             choice == FOLLOWED_LATER ? after_fork_child_go_on : after_fork_child);
    return choice == FOLLOWED_LATER;
}
