/*
 * The files of the threads that read their run delay.
 *
 * A program may close descriptors that it does not know, as daemons do at start, and open others in
 * their place. So no number is trusted: before each use fstat(2) says whether it is still our file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "run_delay.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MAX 1024 /* that have such a file at once */

/* In one table, so that a child of fork can close them all. */
struct file {
    int fd_plus_1; /* 0: free; -1: taken, and not open yet */
    dev_t device;
    ino_t inode;
};

static struct file files[THREADS_MAX];
static unsigned files_used; /* all that have ever been taken are before this */
static _Thread_local struct file *own;
static pthread_key_t at_thread_end;
static bool has_key;

/* ---- the table ---- */

/* Or none, if it is negative. */
static int fd_of(const struct file *file)
{
    return __atomic_load_n(&file->fd_plus_1, __ATOMIC_RELAXED) - 1;
}

static bool is_still_ours(const struct file *file)
{
    struct stat status;

    return fd_of(file) >= 0 && fstat(fd_of(file), &status) == 0 && status.st_dev == file->device &&
           status.st_ino == file->inode;
}

static void give_back(struct file *file)
{
    if (is_still_ours(file))
        close(fd_of(file));
    __atomic_store_n(&file->fd_plus_1, 0, __ATOMIC_RELEASE);
}

static struct file *take_file(void)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        unsigned used = __atomic_load_n(&files_used, __ATOMIC_RELAXED);
        int none = 0;

        if (!__atomic_compare_exchange_n(&files[i].fd_plus_1, &none, -1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        while (used <= i && !__atomic_compare_exchange_n(&files_used, &used, i + 1, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        return &files[i];
    }
    return NULL;
}

static bool open_file(struct file *file)
{
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return false;
    /* not in the place of a standard stream that the program has closed */
    if (fd <= STDERR_FILENO || fstat(fd, &status) < 0) {
        close(fd);
        return false;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    __atomic_store_n(&file->fd_plus_1, fd + 1, __ATOMIC_RELEASE);
    return true;
}

/* ---- reading ---- */

static bool second_number(const char *text, const char *end, uint64_t *number)
{
    while (text < end && *text != ' ')
        text++;
    *number = 0;
    for (text++; text < end && *text >= '0' && *text <= '9'; text++)
        *number = *number * 10 + (uint64_t)(*text - '0');
    return text < end; /* something follows it: it is whole */
}

static bool read_file(const struct file *file, uint64_t *ns)
{
    char text[80];
    const ssize_t length = pread(fd_of(file), text, sizeof(text), 0);

    return length > 0 && second_number(text, text + length, ns);
}

static bool is_open(void)
{
    if (!own) {
        if (!has_key || pthread_setspecific(at_thread_end, files) != 0)
            return false;
        own = take_file();
    }
    return own && (is_still_ours(own) || open_file(own));
}

bool blkin_run_delay(uint64_t *ns)
{
    const int saved_errno = errno;
    const bool is_read = is_open() && read_file(own, ns);

    errno = saved_errno;
    return is_read;
}

/* ---- begin and end ---- */

static void end_of_thread(void *unused)
{
    (void)unused;
    if (own)
        give_back(own);
    own = NULL;
}

/* What this may have to allocate is there then for a signal handler. */
void blkin_run_delay_thread_begin(void)
{
    if (has_key)
        (void)pthread_setspecific(at_thread_end, files);
}

void blkin_run_delay_after_fork(void)
{
    for (unsigned i = 0; i < files_used; i++)
        give_back(&files[i]);
    files_used = 0;
    own = NULL;
}

__attribute__((constructor)) static void begin(void)
{
    has_key = pthread_key_create(&at_thread_end, end_of_thread) == 0;
}

/* A plug-in that is closed takes the library along, not the threads that have used it. */
__attribute__((destructor)) static void end(void)
{
    if (!has_key)
        return;
    has_key = false;
    (void)pthread_key_delete(at_thread_end);
    for (unsigned i = 0; i < files_used; i++)
        give_back(&files[i]);
}
