/*
 * A program opens a plug-in, lets the plug-in record and closes it, again and again, for
 * test-dlopen.sh. Only the plug-in links libblkin. This file is built twice: as the program, and
 * with -DPLUGIN -shared as the plug-in.
 *
 *     usage: plugin FILE TIMES
 *            plugin FILE          only opens the plug-in
 *
 * Prints the number of the plug-in's recorded spans. Fails if the address space grows.
 *
 * With -DPATIENT the plug-in calls blkin_init(), and waits for the agent however busy the machine
 * is. With -DCONSTRUCTOR the plug-in records in its constructor, too, while the first span of
 * another thread loads LTTng. Each of the two threads has a lock that the other one may need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifdef PLUGIN

#include <blkin/blkin.h>

int work(void);

#ifdef PATIENT
#include "waits.h"

static void await_agent(void)
{
    struct blkin_span span;
    int64_t end_ms = 0;

    (void)blkin_init();
    do { /* until the agent answers, records wait, and are forgotten if none answers */
        blkin_span_begin(&span, "dropped", BLKIN_INTERNAL, NULL);
        blkin_span_drop(&span);
    } while (*blkin_gate_ != 1 && wait_up_to(PATIENCE_MS, &end_ms));
}
#endif

#ifdef CONSTRUCTOR
#include "waits.h"

#include <pthread.h>
#include <unistd.h>

static pid_t recorder; /* the recording thread; -1: the thread has ended */

static void *record(void *unused)
{
    __atomic_store_n(&recorder, gettid(), __ATOMIC_RELEASE);
    (void)work();
    __atomic_store_n(&recorder, -1, __ATOMIC_RELEASE);
    return unused;
}

static bool waits_or_has_ended(void)
{
    const pid_t id = __atomic_load_n(&recorder, __ATOMIC_ACQUIRE);

    return id < 0 || (id > 0 && is_asleep(id));
}

/* ld.so holds its lock, for which the thread that loads LTTng waits. */
__attribute__((constructor)) static void record_early(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, record, NULL) == 0)
        (void)pthread_detach(thread);
    for (int64_t end_ms = 0; !waits_or_has_ended() && wait_up_to(PATIENCE_MS, &end_ms);)
        ;
    (void)work();
}
#endif

int work(void)
{
#ifdef PATIENT
    await_agent();
#endif
    BLKIN_SCOPE(span, "plugged", BLKIN_INTERNAL, NULL);

    BLKIN_ANNOTATE(&span, "text");
    return blkin_span_is_recorded(&span);
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *run(void *function)
{
    int (*work)(void) = *(int (**)(void))function;

    return work() ? function : NULL;
}

/* Records on this thread, and on a thread that ends before the plug-in is closed. */
static int recorded_by(int (*work)(void))
{
    pthread_t thread;
    void *by_thread = NULL;
    int recorded = work();

    if (pthread_create(&thread, NULL, run, &work) == 0)
        pthread_join(thread, &by_thread);
    return recorded + (by_thread != NULL);
}

/* Returns this process's address space in bytes. */
static long address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!file || fscanf(file, "%ld", &pages) != 1)
        return -1;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

#define ROUNDS_BEFORE 10        /* in these rounds LTTng and malloc(3) take permanent memory */
#define MAY_STAY      (4 << 20) /* less than a memory of rings */

int main(int argc, char **argv)
{
    long before = 0;
    int recorded = 0;

    if (argc == 2)
        return dlopen(argv[1], RTLD_NOW) == NULL;
    if (argc != 3)
        return 2;
    for (int i = 0; i < atoi(argv[2]); i++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*work)(void) = NULL;

        if (plugin)
            *(void **)&work = dlsym(plugin, "work");
        if (!work) {
            fprintf(stderr, "round %d: %s\n", i, dlerror());
            return 1;
        }
        recorded += recorded_by(work);
        dlclose(plugin);
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
            fprintf(stderr, "round %d: the plug-in is still loaded\n", i);
            return 1;
        }
        if (i == ROUNDS_BEFORE)
            before = address_space();
        /* a fork would call handlers of the plug-in if they remained */
        if (i % 10 == 0) {
            const pid_t child = fork();
            int status = 1;

            if (child == 0)
                _exit(0);
            if (waitpid(child, &status, 0) != child || status)
                return 1;
        }
    }
    if (address_space() > before + MAY_STAY) {
        fprintf(stderr, "%ld bytes of address space stay\n", address_space() - before);
        return 1;
    }
    printf("%d\n", recorded);
    return 0;
}

#endif
