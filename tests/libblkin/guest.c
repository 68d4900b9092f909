/*
 * Effects on the host program that the library must not have, for test-guest.sh.
 *
 *     guest forks THREADS CHILDREN AT-ONCE
 *
 * Threads record from their first instruction on. Meanwhile children are forked, AT-ONCE at a time,
 * which record a span and call exit(3). Fails if no child ends for a minute.
 *
 *     guest environ
 *
 * A thread changes the environment while the library starts in another thread. No change is undone,
 * and no variable of the library remains.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"
#include "waits.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(const char *name)
{
    BLKIN_SCOPE(span, name, BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "text");
}

/* ---- forks ---- */

#define THREADS_MAX 16

static int must_stop;

static void *record_all_the_time(void *unused)
{
    while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED)) {
        record("of a thread");
        pause_us(50);
    }
    return unused;
}

/* Waits for the end of a child. Returns false if none ends within PATIENCE_MS. */
static bool one_ends(void)
{
    int status = -1;
    pid_t child = 0;

    for (int64_t end_ms = 0; (child = waitpid(-1, &status, WNOHANG)) == 0;)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            return false;
    CHECK(child > 0 && status == 0);
    return true;
}

static int forks(int threads, int children, int at_once)
{
    pthread_t ids[THREADS_MAX];
    int running = 0;

    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&ids[i], NULL, record_all_the_time, NULL) == 0);
    for (int i = 0; i < children || running > 0;) {
        if (i < children && running < at_once) {
            const pid_t child = fork();

            if (child == 0) {
                record("of a child");
                exit(check_status());
            }
            CHECK(child > 0);
            running += child > 0;
            i++;
        } else if (one_ends()) {
            running--;
        } else {
            fprintf(stderr, "%d children hang after %d forks\n", running, i);
            (void)signal(SIGTERM, SIG_IGN);
            (void)kill(0, SIGTERM);
            return 1;
        }
    }
    __atomic_store_n(&must_stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    return check_status();
}

/* ---- the environment ---- */

static int starts;

static void *start(void *unused)
{
    __atomic_store_n(&starts, 1, __ATOMIC_SEQ_CST);
    record("first");
    (void)blkin_init();
    __atomic_store_n(&starts, 2, __ATOMIC_SEQ_CST);
    return unused;
}

static int change_environment(void)
{
    char text[32] = "0";
    pthread_t thread;
    bool is_over;

    CHECK(!getenv("LTTNG_UST_REGISTER_TIMEOUT"));
    CHECK(setenv("MODE", "0", 1) == 0 && setenv("SECRET", "x", 1) == 0);
    CHECK(pthread_create(&thread, NULL, start, NULL) == 0);
    while (!__atomic_load_n(&starts, __ATOMIC_SEQ_CST))
        continue;
    CHECK(unsetenv("SECRET") == 0);
    for (int i = 0; !check_failures; i++) {
        is_over = __atomic_load_n(&starts, __ATOMIC_SEQ_CST) == 2;
        CHECK(!getenv("SECRET"));
        CHECK_TEXT(getenv("MODE"), text);
        (void)snprintf(text, sizeof(text), "%d", i);
        CHECK(setenv("MODE", text, 1) == 0);
        if (is_over)
            break;
    }
    (void)pthread_join(thread, NULL);
    CHECK_TEXT(getenv("MODE"), text);
    return check_status();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "forks") == 0 && argc == 5 && atoi(argv[2]) <= THREADS_MAX)
        return forks(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    if (strcmp(what, "environ") == 0)
        return change_environment();
    return 2;
}
