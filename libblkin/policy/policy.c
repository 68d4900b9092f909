/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy.h"

#include "libblkin/base/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS "0123456789"

/* Reading the file is a cancellation point: a thread that is cancelled there would keep the lock.
 */
static int policy_disable_cancel(void)
{
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static void policy_unlock(struct blkin_policy_source *source, int state)
{
    pthread_mutex_unlock(&source->lock);
    (void)pthread_setcancelstate(state, NULL);
}

int blkin_policy_set(struct blkin_policy_source *source, const char *text)
{
    const char *wrong;
    int state;

    if (!text)
        return -EINVAL;
    state = policy_disable_cancel();
    pthread_mutex_lock(&source->lock);
    wrong = source->take(text);
    source->is_own |= !wrong;
    policy_unlock(source, state);
    return wrong ? -EINVAL : 0;
}

/* If another thread of the parent was writing a policy, that policy is not current in the child,
 * and the next one overwrites its slot. */
void blkin_policy_after_fork(struct blkin_policy_source *source)
{
    (void)pthread_mutex_init(&source->lock, NULL);
}

/* ---- environment and file ---- */

/* Applies a text. Returns false if it is invalid: reports it, and the program continues with the
 * policy that it had. */
static bool policy_apply(struct blkin_policy_source *source, const char *where, const char *text)
{
    const char *wrong = source->take(text);

    if (wrong && (source->always_reports || secure_getenv("BLKIN_DEBUG")))
        blkin_debug_say("libblkin: %s: \"%s\" is not %s, all in less than %d bytes", where, wrong,
                        source->expected, BLKIN_POLICY_TEXT_MAX);
    return !wrong;
}

static bool policy_read_text(int fd, char *text, size_t size, bool has_lines)
{
    const ssize_t length = read(fd, text, size - 1);

    if (length < 0)
        return false;
    text[length] = '\0';
    if (!has_lines)
        text[strcspn(text, "\r\n")] = '\0';
    return true;
}

static bool policy_is_unchanged(const struct blkin_policy_source *source, const struct stat *status)
{
    return status->st_ino == source->inode && status->st_size == source->size &&
           status->st_ctim.tv_sec == source->changed.tv_sec &&
           status->st_ctim.tv_nsec == source->changed.tv_nsec;
}

/* Returns true if only root, or the user that the program runs as, can write the file. */
static bool policy_is_trusted(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static void policy_report_refused(const struct blkin_policy_source *source,
                                  const struct stat *status)
{
    if (source->always_reports || secure_getenv("BLKIN_DEBUG"))
        blkin_debug_say("libblkin: %s: not read, because it is of user %u with mode %o: it must "
                        "belong to root or to user %u, and nobody else may write to it (chown, "
                        "chmod go-w)",
                        source->path, (unsigned)status->st_uid, (unsigned)status->st_mode & 07777U,
                        (unsigned)geteuid());
}

static void policy_apply_file(struct blkin_policy_source *source, int fd)
{
    char text[BLKIN_POLICY_TEXT_MAX + 1]; /* has room for a text that is too long, to refuse it */

    if (policy_read_text(fd, text, sizeof(text), source->has_lines) &&
        policy_apply(source, source->path, text))
        source->is_own = true;
}

/* A file that is missing or invalid changes nothing. A refused file is checked each time, because
 * the program may have become its owner meanwhile. */
static void policy_read_file(struct blkin_policy_source *source)
{
    struct stat status;
    bool is_known;
    int fd;

    if (!source->path[0] || stat(source->path, &status) < 0 ||
        (policy_is_unchanged(source, &status) && !source->is_refused))
        return;
    fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    /* checks the open file: the name may refer to another file by now */
    if (fstat(fd, &status) == 0 && !S_ISCHR(status.st_mode)) { /* /dev/null: no file */
        is_known = policy_is_unchanged(source, &status);
        source->is_refused = !policy_is_trusted(&status);
        if (!source->is_refused)
            policy_apply_file(source, fd);
        else if (!is_known)
            policy_report_refused(source, &status);
        source->inode = status.st_ino;
        source->size = status.st_size;
        source->changed = status.st_ctim; /* not st_mtim, which programs can preserve */
    }
    close(fd);
}

void blkin_policy_refresh(struct blkin_policy_source *source)
{
    const int state = policy_disable_cancel();

    if (pthread_mutex_trylock(&source->lock) == 0) {
        policy_read_file(source);
        pthread_mutex_unlock(&source->lock);
    }
    (void)pthread_setcancelstate(state, NULL);
}

void blkin_policy_offer(struct blkin_policy_source *source, const char *text)
{
    const int state = policy_disable_cancel();

    if (pthread_mutex_trylock(&source->lock) == 0) {
        if (!source->is_own && strcmp(text, source->offered) != 0) {
            strcpy(source->offered, text); /* NOLINT(clang-analyzer-security*): see policy.h */
            policy_apply(source, "the agent's rules", text);
        }
        pthread_mutex_unlock(&source->lock);
    }
    (void)pthread_setcancelstate(state, NULL);
}

void blkin_policy_init(struct blkin_policy_source *source)
{
    const char *path = secure_getenv(source->file_variable);
    const char *text = secure_getenv(source->variable);
    int state;

    source->is_own = path || text;
    if (!path)
        path = source->default_file;
    state = policy_disable_cancel();
    pthread_mutex_lock(&source->lock);
    if (strlen(path) < sizeof(source->path))
        strcpy(source->path, path);
    if (text && text[0])
        policy_apply(source, source->variable, text);
    policy_read_file(source);
    policy_unlock(source, state);
}

/* ---- parts of texts ---- */

bool blkin_policy_number(const char *text, double *number, const char **end)
{
    const size_t whole = strspn(text, DIGITS);
    const size_t fraction = text[whole] == '.' ? strspn(text + whole + 1, DIGITS) : 0;
    double scale = 1;

    *number = 0;
    for (size_t i = 0; i < whole; i++)
        *number = *number * 10 + (text[i] - '0');
    for (size_t i = 0; i < fraction; i++)
        *number += (text[whole + 1 + i] - '0') * (scale /= 10);
    *end = text + whole + (text[whole] == '.') + fraction;
    return whole + fraction > 0;
}

/* ---- rates ---- */

/* The longest delay of a thread between its reading of the clock and its use of the rate. */
#define CLOCK_DELAY_MAX_NS UINT64_C(1000000000)

bool blkin_within_rate(struct blkin_rate *rate, uint64_t burst_ns, uint64_t now_ns)
{
    uint64_t next = __atomic_load_n(&rate->next_ns, __ATOMIC_RELAXED);
    uint64_t start;

    do {
        start = next > now_ns ? next : now_ns;
        if (start - now_ns > burst_ns + rate->period_ns + CLOCK_DELAY_MAX_NS)
            start = now_ns; /* the clock has stepped back: the process was restored elsewhere */
        if (start - now_ns > burst_ns)
            return false;
    } while (!__atomic_compare_exchange_n(&rate->next_ns, &next, start + rate->period_ns, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}
