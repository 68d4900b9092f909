/*
 * Takes the place of two parts of liblttng-ust-common: its table of descriptors, and its counter of
 * disabled cancellation. The dynamic loader binds liblttng-ust to these functions, since the object
 * that is opened comes before what it needs.
 *
 * LTTng gets the lowest free numbers, as everybody does, and believes that they are its own for
 * ever. A program that closes all numbers, as by closefrom(3), gets them again for its own files,
 * and LTTng would read, write or close these. So LTTng's go to numbers from FIRST on; the wrappers
 * of `blkin run` do not close them; and a child of fork(2) checks them before it lets LTTng go on.
 *
 * Where the program has loaded liblttng-ust itself, LTTng uses its own functions, and this table
 * stays empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Not higher: fork(2) copies the table of descriptors as far as it is used, here 8 KB.
 */
#define FIRST 768
#define ROOM  4096

static struct {
    ino_t inode; /* 0: not LTTng's */
    dev_t device;
    bool is_socket;
    bool is_closed; /* in a child: from now on the number may be the program's */
} table[ROOM];

static int first; /* number of table[0], once there was one */
static int used;  /* of the table */

#define PUBLIC __attribute__((visibility("default")))

/* Of LTTng's locks, and of what it does meanwhile. */
static _Thread_local struct {
    int depth;   /* of the locks */
    int state;   /* the program's, of cancellation */
    int ours;    /* of this library's own calls of LTTng */
    int sockets; /* to session daemons, that this thread has made */
    bool had_socket;
    bool is_command;
} inside;

/* ---- the table ---- */

static int choose_first(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > FIRST + FIRST / 3)
        return FIRST;
    return (int)(limit.rlim_cur - limit.rlim_cur / 4);
}

static bool is_lttngs(int index)
{
    return __atomic_load_n(&table[index].inode, __ATOMIC_ACQUIRE) != 0;
}

static bool is_same(int index, const struct stat *status)
{
    return status->st_ino == table[index].inode && status->st_dev == table[index].device;
}

static bool leads_to_session_daemon(int fd)
{
    struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
    socklen_t length = sizeof(peer) - 1;

    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sun_family == AF_UNIX;
}

static void note(int fd)
{
    const int index = fd - first;
    struct stat status;

    if (index < 0 || index >= ROOM || fstat(fd, &status) < 0)
        return;
    if (index >= used)
        used = index + 1;
    table[index].device = status.st_dev;
    table[index].is_socket = S_ISSOCK(status.st_mode) && leads_to_session_daemon(fd);
    table[index].is_closed = false;
    inside.sockets += table[index].is_socket;
    __atomic_store_n(&table[index].inode, status.st_ino, __ATOMIC_RELEASE);
}

/* Called with LTTng's lock of descriptors. */
PUBLIC int lttng_ust_add_fd_to_tracker(int fd);
int lttng_ust_add_fd_to_tracker(int fd)
{
    int high;

    if (!first)
        first = choose_first();
    high = fcntl(fd, F_DUPFD_CLOEXEC, first);
    if (high < 0 && fd <= STDERR_FILENO) /* as LTTng has it: these three are the program's */
        high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (high >= 0) {
        (void)close(fd);
        fd = high;
    }
    note(fd);
    return fd;
}

PUBLIC void lttng_ust_delete_fd_from_tracker(int fd);
void lttng_ust_delete_fd_from_tracker(int fd)
{
    if (fd < first || fd >= first + used)
        return;
    if (is_lttngs(fd - first) && table[fd - first].is_socket && inside.sockets > 0)
        inside.sockets--;
    __atomic_store_n(&table[fd - first].inode, 0, __ATOMIC_RELEASE);
}

bool descriptors_are_intact(void)
{
    struct stat status;

    for (int i = 0; i < used; i++) {
        if (is_lttngs(i) && !table[i].is_socket &&
            (fstat(first + i, &status) < 0 || !is_same(i, &status)))
            return false;
    }
    return true;
}

/* The number is free: taken, unless another thread has just got it. */
static bool take_number(int fd)
{
    const int event = eventfd(0, EFD_CLOEXEC); /* there is no /dev/null everywhere */
    int taken = event;

    if (event >= 0 && event != fd) {
        taken = fcntl(event, F_DUPFD_CLOEXEC, fd);
        (void)close(event);
        if (taken >= 0 && taken != fd)
            (void)close(taken);
    }
    return taken == fd;
}

bool descriptors_take_back(void)
{
    struct stat status;
    bool all = true;

    for (int i = 0; i < used; i++) {
        if (!is_lttngs(i))
            continue;
        if (fstat(first + i, &status) == 0)
            all = all && is_same(i, &status);
        else if (errno == EBADF) /* a seccomp filter has others */
            all = take_number(first + i) && all;
    }
    return all;
}

bool descriptors_have_sockets(void)
{
    for (int i = 0; i < used; i++) {
        if (is_lttngs(i) && table[i].is_socket)
            return true;
    }
    return false;
}

/* ---- who asks? ---- */

uint32_t *descriptors_commands;

static int under_way;  /* commands of session daemons, and what follows of them */
static uint32_t ended; /* of these */

/* LTTng calls the two around its locks, and so around all it does with descriptors. */
PUBLIC int lttng_ust_cancelstate_disable_push(void);
int lttng_ust_cancelstate_disable_push(void)
{
    if (inside.depth++ == 0) {
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &inside.state);
        inside.is_command = !inside.ours;
        inside.had_socket = inside.sockets > 0;
        if (inside.is_command)
            (void)__atomic_add_fetch(&under_way, 1, __ATOMIC_ACQ_REL);
    }
    return 0;
}

PUBLIC int lttng_ust_cancelstate_disable_pop(void);
int lttng_ust_cancelstate_disable_pop(void)
{
    uint32_t *commands;

    if (--inside.depth > 0)
        return 0;
    commands = __atomic_load_n(&descriptors_commands, __ATOMIC_ACQUIRE);
    /* a thread that only looks for a session daemon has no command */
    if (commands && !inside.ours && (inside.had_socket || inside.sockets > 0))
        (void)__atomic_add_fetch(commands, 1, __ATOMIC_RELEASE);
    if (inside.is_command) {
        (void)__atomic_add_fetch(&ended, 1, __ATOMIC_ACQ_REL);
        (void)__atomic_sub_fetch(&under_way, 1, __ATOMIC_ACQ_REL);
    }
    inside.is_command = false;
    (void)pthread_setcancelstate(inside.state, NULL);
    return 0;
}

#define SETTLED_MS 10
#define SETTLE_MS  200 /* at most */

void descriptors_settle(void)
{
    uint32_t before = 0;
    int quiet_ms = 0;

    if (!descriptors_have_sockets())
        return;
    for (int ms = 0; ms < SETTLE_MS && quiet_ms < SETTLED_MS; ms++) {
        const uint32_t now = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);

        quiet_ms =
            now == before && !__atomic_load_n(&under_way, __ATOMIC_ACQUIRE) ? quiet_ms + 1 : 0;
        before = now;
        (void)usleep(1000);
    }
}

void descriptors_enter(void)
{
    inside.ours++;
}

void descriptors_leave(void)
{
    inside.ours--;
}

int descriptors_find(unsigned from, unsigned to)
{
    const unsigned low = (unsigned)first;

    if (!low || to < low)
        return -1;
    for (unsigned fd = from > low ? from : low; fd <= to && fd < low + (unsigned)used; fd++) {
        if (is_lttngs((int)(fd - low)) && !table[fd - low].is_closed)
            return inside.depth > 0 || inside.ours ? -1 : (int)fd;
    }
    return -1;
}

void descriptors_close_sockets(void)
{
    for (int i = 0; i < used; i++) {
        if (!is_lttngs(i) || !table[i].is_socket || table[i].is_closed)
            continue;
        (void)close(first + i);
        table[i].is_closed = true;
    }
}
