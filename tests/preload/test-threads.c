/*
 * The end of threads: of the thread that a child of fork(2) inherits from its parent, and of a
 * thread that is in the middle of this library's code.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/preload/interaction.h"
#include "libblkin/preload/preload.h"
#include "libblkin/preload/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct connection server = {.item = {.word = UINT64_C(1) << 32 | 1000000},
                                   .role = ROLE_SERVER};

/* Makes a request that this thread has taken. */
static struct interaction *make_request(void)
{
    struct interaction *taken = interaction_make(&server, interaction_worker(), 0, blkin_now());

    __atomic_store_n(&taken->phase, PHASE_REQUEST, __ATOMIC_RELEASE);
    interaction_add_open(interaction_thread.worker, taken);
    return taken;
}

static void count(enum preload_count what, int times)
{
    CHECK(thread_follow());
    while (times-- > 0)
        preload_count(what);
}

/* ---- a child of fork(2) ---- */

static void *calls_once(void *unused)
{
    count(PRELOAD_CALLED, 1);
    return unused;
}

/* The child's account has the work of its own threads, not what the inherited thread did before. */
static void *continue_in_child(void *parents_thread)
{
    char said[1024] = "";
    const int file = memfd_create("said", 0), own = dup(STDERR_FILENO);
    pthread_t other;

    CHECK(pthread_join(*(pthread_t *)parents_thread, NULL) == 0);
    count(PRELOAD_SERVED, 5);
    CHECK(pthread_create(&other, NULL, calls_once, NULL) == 0 && pthread_join(other, NULL) == 0);
    (void)dup2(file, STDERR_FILENO);
    thread_end_process();
    (void)dup2(own, STDERR_FILENO);
    CHECK(pread(file, said, sizeof(said) - 1, 0) > 0);
    CHECK(strstr(said, " served 5 called 1 "));
    if (check_status())
        fprintf(stderr, "%s", said);
    _exit(check_status());
}

TEST(test_forked)
{
    static pthread_t own, other;
    int status;
    pid_t child;

    (void)setenv("BLKIN_DEBUG", "1", 1);
    count(PRELOAD_SERVED, 3);
    child = fork();
    if (child == 0) {
        own = pthread_self();
        CHECK(pthread_create(&other, NULL, continue_in_child, &own) == 0);
        pthread_exit(NULL);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    (void)unsetenv("BLKIN_DEBUG");
}

/* ---- a thread that ends in the middle of this library's code ---- */

/* Ends in the state in which a signal handler may interrupt interaction_remove_open(). */
static void *ends_in_the_middle(void *unused)
{
    struct interaction_worker *worker;

    for (int i = 0; i < 3; i++)
        (void)make_request();
    worker = interaction_thread.worker;
    worker->open[0] = worker->open[--worker->open_count];
    preload_thread.inside_at = __builtin_frame_address(0);
    preload_thread.is_inside = true;
    return unused;
}

TEST(test_end_in_the_middle)
{
    struct timespec until;
    pthread_t thread;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    CHECK(pthread_create(&thread, NULL, ends_in_the_middle, NULL) == 0);
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        CHECK(!"the thread ends");
        _exit(check_status());
    }
}

CHECK_MAIN
