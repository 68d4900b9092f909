/*
 * Levels of usage, for test-usage.sh: needs a session that has blkin:span enabled. check_usage.py
 * knows the expected tags of each span.
 *
 *     usage_levels levels       sets each level; some spans are open while the level changes
 *     usage_levels off          level 0: the library reads no meter
 *     usage_levels descriptors  level 3: the library's descriptors of threads, also after fork(2),
 *                               and after the program has closed them
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "usage_spans.h"

/* ---- levels ---- */

TEST(levels)
{
    static const char *const names[] = {"level 0", "level 1", "level 2", "level 3"};
    struct blkin_span span;

    for (int level = 3; level >= 0; level--) {
        set_level(level);
        record_span_with_faults(names[level], NULL, 1);
        begin(&span, "open while it changes", NULL);
        (void)blkin_set_current(&span);
        set_level(level ? 0 : 3);
        set_level(level);
        (void)blkin_set_current(NULL);
        blkin_span_end(&span);
        begin(&span, "was current before it changes", NULL);
        (void)blkin_set_current(&span);
        (void)blkin_set_current(NULL);
        set_level(level ? 0 : 3);
        set_level(level);
        blkin_span_end(&span);
    }
    set_level(2);
    CHECK(blkin_set_sampling("always,usage=1") == 0);
    record_span_with_faults("level 1", NULL, 1);
    set_level(3); /* the policy overrides the call */
    record_span_with_faults("level 1", NULL, 1);
    CHECK(blkin_set_sampling("always") == 0); /* a policy without a level: the call counts */
    record_span_with_faults("level 3", NULL, 1);
    set_level(0);
    record_span_with_faults("level 0", NULL, 1);
}

TEST(off)
{
    struct blkin_span root, span;

    begin(&root, "root", NULL);
    for (int i = 0; i < 1000; i++) {
        begin(&span, "level 0", &root);
        {
            BLKIN_CURRENT_SCOPE(&span);
            record_span_with_faults("level 0", &span, 0);
        }
        blkin_span_end(&span);
    }
    blkin_span_end(&root);
    CHECK(cpu_reads == 0);
    CHECK(rusage_reads == 0);
    set_level(1);
    record_span_with_faults("level 1", NULL, 0);
    CHECK(cpu_reads == 2);
    CHECK(rusage_reads == 0);
}

/* ---- descriptors ---- */

/* Returns the number of this process's open schedstat files. Sets *one to a descriptor of one. */
static int open_files(int *one)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder))) {
        char path[300], target[300] = "";

        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "schedstat")) {
            *one = atoi(entry->d_name);
            count++;
        }
    }
    if (folder)
        closedir(folder);
    return count;
}

#define USAGE_THREADS 20

static pthread_barrier_t meet;

static void *record_and_wait(void *unused)
{
    record_span_with_faults("level 3", NULL, 1);
    (void)pthread_barrier_wait(&meet);
    (void)pthread_barrier_wait(&meet);
    return unused;
}

TEST(descriptors)
{
    pthread_t threads[USAGE_THREADS];
    int fd = -1, other;
    pid_t pid;

    set_level(2);
    record_span_with_faults("level 2", NULL, 1);
    CHECK(open_files(&fd) == 0);
    set_level(3);
    record_span_with_faults("level 3", NULL, 1);
    record_span_with_faults("level 3", NULL, 1);
    CHECK(open_files(&fd) == 1);

    (void)pthread_barrier_init(&meet, NULL, USAGE_THREADS + 1);
    for (int i = 0; i < USAGE_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, record_and_wait, NULL) == 0);
    (void)pthread_barrier_wait(&meet);
    CHECK(open_files(&other) == 1 + USAGE_THREADS);
    pid = fork();
    if (pid == 0) {
        CHECK(open_files(&other) == 0);
        record_span_with_faults("level 3", NULL, 1);
        CHECK(open_files(&other) == 1);
        _exit(check_failures);
    }
    CHECK(waitpid(pid, &other, 0) == pid && other == 0);
    (void)pthread_barrier_wait(&meet);
    for (int i = 0; i < USAGE_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK(open_files(&fd) == 1);

    /* the program closes the descriptor, which then is another file's, also of /proc */
    for (int i = 0; i < 2; i++) {
        CHECK(close(fd) == 0);
        other = i ? open("/proc/self/stat", O_RDONLY) : memfd_create("other", 0);
        CHECK(other == fd || dup2(other, fd) == fd);
        record_span_with_faults("level 3", NULL, 1);
        CHECK(fcntl(fd, F_GETFD) >= 0);
        CHECK(open_files(&other) == 1 && other != fd);
        fd = other;
    }

    /* no descriptor is free: the span has the usage of the other meters */
    CHECK(close(other) == 0);
    {
        struct rlimit limit, none;

        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        none = (struct rlimit){3, limit.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        errno = 4711;
        record_span_with_faults("level 2", NULL, 1);
        CHECK(errno == 4711);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
}

int main(int argc, char **argv)
{
    (void)blkin_init();
    record_span_with_faults("first", NULL, 0);
    return check_run_mode(argc > 1 ? argv[1] : NULL);
}
