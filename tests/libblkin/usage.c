/*
 * Spans with a known usage of their threads, for test-usage.sh: needs a session that has blkin:span
 * enabled. check_usage.py knows the expected tags.
 *
 *     usage planted      spans that use CPU time, are blocked, cause page faults, or wait for a CPU
 *     usage charges      spans that are nested, current, handed over, overtaken
 *     usage storm        nested spans while signal handlers have spans of their own
 *     usage levels       sets each level; some spans are open while the level changes
 *     usage off          level 0: the library reads no meter
 *     usage descriptors  level 3: the library's descriptors of threads, also after fork(2), and
 *                        after the program has closed them
 *
 * The unit of usage is PAGES page faults, because their number is exact. The tags "expected.*" have
 * the program's own measurements.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "usage_spans.h"
#include "waits.h"

/* ---- four kinds of usage ---- */

static uint64_t run_delay_ns(void)
{
    char text[80] = "";
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY);
    const char *second;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || !(second = strchr(text, ' ')))
        abort();
    close(fd);
    return strtoull(second, NULL, 10);
}

static void planted_burn(void)
{
    struct blkin_span span;

    for (int i = 0; i < 300; i++) {
        begin(&span, "burns", NULL);
        burn(40000);
        blkin_span_end(&span);
    }
}

static void planted_sleep(void)
{
    struct blkin_span span;
    uint64_t start;

    for (int i = 0; i < 10; i++) {
        begin(&span, "sleeps", NULL);
        start = clock_ns(CLOCK_MONOTONIC);
        pause_us(10000);
        blkin_span_tag_uint64(&span, "expected.off_cpu_us",
                              (clock_ns(CLOCK_MONOTONIC) - start) / 1000);
        blkin_span_end(&span);
    }
}

#define USAGE_WAITS 5

static volatile bool is_enough;

static void *hog(void *unused)
{
    while (!is_enough)
        continue;
    return unused;
}

/* Both threads of the process run on one CPU: the span's thread gets half of the CPU. */
static void planted_wait(void)
{
    struct blkin_span span;
    pthread_t other;
    cpu_set_t one;
    uint64_t delay;

    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
    if (pthread_create(&other, NULL, hog, NULL) != 0)
        abort();
    for (int i = 0; i < USAGE_WAITS; i++) {
        begin(&span, "waits", NULL);
        delay = run_delay_ns();
        burn(60000000);
        delay = run_delay_ns() - delay;
        blkin_span_tag_uint64(&span, "expected.run_delay_us", delay / 1000);
        blkin_span_end(&span);
    }
    is_enough = true;
    (void)pthread_join(other, NULL);
}

TEST(planted)
{
    set_level(3);
    planted_burn();
    planted_sleep();
    record_span_with_faults("faults", NULL, 2);
    planted_wait();
}

/* ---- charged spans ---- */

/* The usage of a child does not count for its parent. */
static void nested(void)
{
    struct blkin_span span;
    struct blkin_context context;

    begin(&span, "nested 5", NULL);
    make_page_faults(1);
    record_span_with_faults("nested child 2", &span, 2);
    make_page_faults(4);
    blkin_span_end(&span);

    begin(&span, "around a step 5", NULL);
    blkin_step_begin(&span, "step", BLKIN_INTERNAL);
    make_page_faults(1);
    blkin_step_context(&span, &context);
    {
        struct blkin_span child;

        blkin_span_begin_remote(&child, "child of a step 2", BLKIN_CLIENT, &context);
        make_page_faults(2);
        blkin_span_end(&child);
    }
    blkin_step_end(&span);
    make_page_faults(4);
    blkin_span_end(&span);
}

static void current(void)
{
    struct blkin_span outer, span, child;

    begin(&outer, "around all 11", NULL);
    make_page_faults(1);
    begin(&span, "current 5", &outer);
    /* counts for the outer span: `span` becomes current, so it has usage only while current */
    make_page_faults(8);
    {
        BLKIN_CURRENT_SCOPE(&span);
        make_page_faults(1);
        begin(&child, "current child 4", blkin_current());
        {
            BLKIN_CURRENT_SCOPE(&child);
            record_span_with_faults("leaf of the child 1", blkin_current(), 1);
            make_page_faults(4);
        }
        blkin_span_end(&child);
        make_page_faults(4);
    }
    make_page_faults(2); /* counts for the outer span, too */
    blkin_span_end(&span);
    blkin_span_end(&outer);

    begin(&span, "ended while current 3", NULL);
    {
        BLKIN_CURRENT_SCOPE(&span);
        make_page_faults(3);
        blkin_span_end(&span);
        make_page_faults(4);
    }
    /* a new span begins in the struct while the struct is the thread's current span */
    (void)blkin_set_current(&span);
    record_span_with_faults("root within none 2", NULL, 2);
    for (int i = 0; i < 2; i++) {
        begin(&span, "again and again 2", NULL);
        (void)blkin_set_current(&span);
        make_page_faults(2);
        blkin_span_end(&span);
    }
    (void)blkin_set_current(NULL);
}

static void *continue_as_current(void *span)
{
    (void)blkin_set_current(span);
    make_page_faults(2);
    (void)blkin_set_current(NULL);
    blkin_span_end(span);
    return NULL;
}

static void *end_span(void *span)
{
    make_page_faults(2);
    blkin_span_end(span);
    return NULL;
}

static void *make_current(void *span)
{
    (void)blkin_set_current(span);
    make_page_faults(2);
    (void)blkin_set_current(NULL);
    return NULL;
}

static void handed_over(void)
{
    struct blkin_span span, child;

    begin(&span, "current here and there 3", NULL);
    (void)blkin_set_current(&span);
    make_page_faults(1);
    (void)blkin_set_current(NULL);
    run_on_other_thread(continue_as_current, &span);

    begin(&span, "wanders", NULL);
    make_page_faults(1);
    run_on_other_thread(end_span, &span);

    begin(&span, "handed over while current", NULL);
    (void)blkin_set_current(&span);
    make_page_faults(1);
    run_on_other_thread(end_span, &span);
    (void)blkin_set_current(NULL);

    begin(&span, "current in two threads", NULL);
    (void)blkin_set_current(&span);
    run_on_other_thread(make_current, &span);
    (void)blkin_set_current(NULL);
    blkin_span_end(&span);

    begin(&span, "sends a child 5", NULL);
    make_page_faults(1);
    begin(&child, "sent child wanders", &span);
    run_on_other_thread(end_span, &child);
    make_page_faults(4);
    record_span_with_faults("next child 2", &span, 2);
    blkin_span_end(&span);
}

/* One thread works for several requests. At first it does not declare for which one. */
static void in_turns(void)
{
    struct blkin_span a, b;

    begin(&a, "in turns", NULL);
    begin(&b, "in turns", NULL);
    make_page_faults(1);
    blkin_span_end(&a);
    blkin_span_end(&b);

    begin(&a, "overtaken", NULL);
    record_span_with_faults("overtakes 2", NULL, 2);
    blkin_span_end(&a);

    {
        struct blkin_span parent;

        begin(&parent, "has siblings 3", NULL);
        begin(&a, "overtaken by a sibling", &parent);
        record_span_with_faults("overtaking sibling 2", &parent, 2);
        make_page_faults(1);
        blkin_span_end(&a);
        make_page_faults(2);
        blkin_span_end(&parent);
    }

    begin(&a, "overtaken by one that is not sampled", NULL);
    record_span_with_faults("unsampled", NULL, 1);
    blkin_span_end(&a);

    begin(&a, "overtaken by a current one", NULL);
    begin(&b, "current one 1", NULL);
    {
        BLKIN_CURRENT_SCOPE(&b);
        make_page_faults(1);
    }
    blkin_span_end(&b);
    blkin_span_end(&a);

    /* the thread declares the current request */
    begin(&a, "current in turns 5", NULL);
    begin(&b, "current in turns 5", NULL);
    for (int i = 0; i < 2; i++) {
        (void)blkin_set_current(&a);
        make_page_faults(i ? 1 : 4);
        (void)blkin_set_current(&b);
        make_page_faults(i ? 4 : 1);
    }
    (void)blkin_set_current(NULL);
    make_page_faults(2);
    blkin_span_end(&a);
    blkin_span_end(&b);
}

static void deep(const struct blkin_span *parent, int levels)
{
    struct blkin_span span;

    begin(&span, "deep 1", parent);
    if (levels > 1)
        deep(&span, levels - 1);
    make_page_faults(1);
    blkin_span_end(&span);
}

/* Spans with unusual ends, and usage that belongs to no span. */
static void odd_ends(void)
{
    struct blkin_span span, child;
    int status = 1;
    pid_t pid;

    begin(&span, "ended in the past", NULL);
    blkin_span_end_at(&span, clock_ns(CLOCK_MONOTONIC) - 1000000);

    begin(&span, "around a dropped one 1", NULL);
    begin(&child, "dropped", &span);
    make_page_faults(2);
    blkin_span_drop(&child);
    make_page_faults(1);
    blkin_span_end(&span);

    begin(&span, "over fork", NULL);
    begin(&child, "once current, over fork", NULL);
    (void)blkin_set_current(&child);
    (void)blkin_set_current(NULL);
    pid = fork();
    if (pid == 0) {
        make_page_faults(1);
        blkin_span_end(&span);
        blkin_span_end(&child);
        record_span_with_faults("child of fork 8", NULL, 8);
        _exit(check_failures);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);

    begin(&span, "a full log 1", NULL);
    blkin_span_set_service(&span,
                           "a service of a name that is as long as a service's name can be, all "
                           "in all",
                           "2001:db8:1234:5678:9abc:def0:1234:5678", 1);
    for (int i = 0; i < 20; i++)
        blkin_span_annotate(&span, "a text that is thirty bytes...");
    blkin_step_begin(&span, "step", BLKIN_INTERNAL);
    blkin_span_tag_string(&span, "key", "value");
    make_page_faults(1);
    blkin_step_end(&span);
    blkin_span_end(&span);
}

static void on_signal(int signal)
{
    struct blkin_span *before, span;

    (void)signal;
    begin(&span, "handler 2", NULL);
    before = blkin_set_current(&span);
    make_page_faults(2);
    (void)blkin_set_current(before);
    blkin_span_end(&span);
}

static void interrupted(void)
{
    struct blkin_span span;

    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    begin(&span, "interrupted 5", NULL);
    {
        BLKIN_CURRENT_SCOPE(&span);
        make_page_faults(1);
        CHECK(raise(SIGUSR1) == 0);
        make_page_faults(4);
    }
    blkin_span_end(&span);
}

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
    signals++;
    on_signal(signal);
}

/* Handlers interrupt the program at random instructions. Each usage counts for the right span. */
TEST(storm)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    struct blkin_span span, child;

    set_level(3);
    CHECK(signal(SIGALRM, count_signal) != SIG_ERR);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; signals < 200 && i < 10000000; i++) {
        begin(&span, "stormed 1", NULL);
        (void)blkin_set_current(&span);
        begin(&child, "stormed child 1", &span);
        (void)blkin_set_current(&child);
        make_page_faults(1);
        (void)blkin_set_current(&span);
        blkin_span_end(&child);
        make_page_faults(1);
        (void)blkin_set_current(NULL);
        blkin_span_end(&span);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(signals >= 200);
}

TEST(charges)
{
    CHECK(blkin_set_sampling("always,unsampled:never,usage=3") == 0);
    nested();
    current();
    handed_over();
    in_turns();
    deep(NULL, 32);
    odd_ends();
    interrupted();
}

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
