/*
 * Waits for conditions: checks a condition every ms, and gives up after a minute.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_WAITS_H
#define TESTS_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define PATIENCE_MS 60000

/* Sleeps: for the pace of a load, or until a random moment. WAIT_UNTIL() waits for conditions. */
static inline void pause_us(int64_t us)
{
    (void)nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000},
                    NULL);
}

/* Sleeps until that time of CLOCK_MONOTONIC, for the pace of a load. */
static inline void sleep_until(int64_t ns)
{
    const struct timespec until = {ns / 1000000000, ns % 1000000000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

/* Returns the time of CLOCK_MONOTONIC. */
static inline int64_t monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sleeps for a ms. Returns false when limit_ms have passed since the first call, for which *end_ms
 * is 0. */
static inline bool wait_up_to(int64_t limit_ms, int64_t *end_ms)
{
    const int64_t now_ms = monotonic_ns() / 1000000;

    if (*end_ms == 0)
        *end_ms = now_ms + limit_ms;
    pause_us(1000);
    return now_ms < *end_ms;
}

/* Is this process, or thread, in a call that waits? */
static inline bool is_asleep(pid_t id)
{
    char path[40], text[200] = "";
    const char *end;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)id);
    file = fopen(path, "re");
    if (!file)
        return false;
    end = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
    (void)fclose(file);
    return end && strncmp(end, ") S", 3) == 0;
}

/* Does a process listen at this Unix socket? The socket's file exists a moment earlier. The
 * function makes no connection, because some listeners serve only one. */
static inline bool is_listening(const char *path)
{
    FILE *sockets = fopen("/proc/net/unix", "re");
    char line[300];
    bool is_found = false;

    while (sockets && fgets(line, sizeof(line), sockets))
        is_found |= strstr(line, path) && strstr(line, " 00010000 "); /* __SO_ACCEPTCON */
    if (sockets)
        (void)fclose(sockets);
    return is_found;
}

/* Repeats the work, a statement, until the condition holds. The file must include check.h, too. */
#define WORK_UNTIL(condition, work)                                             \
    do {                                                                        \
        for (int64_t end_ = 0; !(condition) && wait_up_to(PATIENCE_MS, &end_);) \
            work;                                                               \
        CHECK(condition);                                                       \
    } while (0)

#define WAIT_UNTIL(condition) WORK_UNTIL(condition, continue)

#endif
