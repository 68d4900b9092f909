/*
 * The costs of a recorded span, with its steps, other than time, for test-cost.sh: no allocation,
 * no system call, no store to memory that threads share. Needs a session that has blkin:span
 * enabled.
 *
 *     cost allocate      counts calls of malloc(3) and related functions during many spans
 *     cost writes        makes spans while the data of libblkin and its provider are read-only
 *     cost spans COUNT   makes exactly COUNT roots, each with a child, for strace
 *     cost handler       the first span of a thread is in a signal handler: no allocation there
 *     cost errors        waits for a line; checks that errno stays while sub-buffers fill up
 *     cost forks         children that make a span each, for strace
 *     cost start         prints the threads and the mappings of LTTng of a process that only links
 *                        libblkin
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <blkin/zipkin_c.h>

#include "check.h"
#include "waits.h"

#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COST_SPANS 100000

/* ---- the C library's own allocator, with a counter in front ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *old);

static _Thread_local volatile long allocations; /* LTTng's own threads allocate as they like */

BLKIN_PUBLIC void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

BLKIN_PUBLIC void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

BLKIN_PUBLIC void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

BLKIN_PUBLIC void free(void *old)
{
    allocations += old != NULL;
    __libc_free(old);
}

/* ---- spans of all sorts ---- */

static const struct blkin_endpoint peer = {"10.0.0.1", 6789, "osd.1"};

/* Makes steps, sometimes more than a log has room for. */
static void make_steps(struct blkin_span *span, long i)
{
    struct blkin_context context;

    for (int step = i % 16 ? 1 : 12; step > 0; step--) {
        blkin_step_begin(span, "step", BLKIN_CLIENT);
        blkin_step_begin(span, "within", BLKIN_INTERNAL);
        blkin_span_tag_int64(span, "number", step);
        blkin_step_end(span);
        blkin_step_context(span, &context);
        blkin_step_end(span);
    }
    if (i % 64 == 0)
        blkin_step_begin(span, "left open", BLKIN_INTERNAL);
}

static int make_spans(long count)
{
    int recorded = 0;

    for (long i = 0; i < count; i++) {
        struct blkin_span root, child;
        const struct blkin_context context = {.trace_id = 1, .span_id = 2};

        blkin_span_begin_remote(&root, "root", BLKIN_SERVER, i % 2 ? &context : NULL);
        blkin_span_begin(&child, "child", BLKIN_CLIENT, &root);
        blkin_span_set_remote(&child, peer.name, peer.ip, (uint16_t)peer.port);
        blkin_span_tag_string(&child, "key", "value");
        blkin_span_tag_double(&child, "number", 0.5);
        blkin_span_annotate(&child, "text");
        make_steps(&child, i);
        recorded += blkin_span_is_recorded(&child);
        blkin_span_end(&child);
        blkin_span_end(&root);
    }
    return recorded;
}

TEST(allocate)
{
    long before;

    CHECK(make_spans(1) == 1); /* the first span loads the provider */
    before = allocations;
    CHECK(make_spans(COST_SPANS) == COST_SPANS);
    if (allocations != before) {
        fprintf(stderr, "%ld calls of malloc and related functions\n", allocations - before);
        check_failures++;
    }
    free(strdup("x"));
    CHECK(allocations == before + 2); /* the counter counts calls in shared objects, too */
}

static volatile int made_in_handler;

static void make_in_handler(int signal)
{
    (void)signal;
    made_in_handler = make_spans(1);
}

static void *be_interrupted(void *unused)
{
    const long before = allocations;

    blkin_init_thread();
    CHECK(allocations > before); /* checks the counter */
    for (int i = 0; i < 2; i++) {
        const long before_handler = allocations;

        made_in_handler = 0;
        CHECK(raise(SIGUSR1) == 0);
        CHECK(made_in_handler == 1);
        CHECK(allocations == before_handler);
    }
    return unused;
}

TEST(handler)
{
    pthread_t thread;

    CHECK(make_spans(1) == 1);
    CHECK(signal(SIGUSR1, make_in_handler) != SIG_ERR);
    CHECK(pthread_create(&thread, NULL, be_interrupted, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Makes spans of both APIs: enough for some sub-buffers, after LTTng's consumer has gone. */
TEST(errors)
{
    struct blkin_trace trace;

    CHECK(make_spans(1) == 1);
    puts("ready");
    fflush(stdout);
    CHECK(getchar() == '\n');
    CHECK(blkin_init_new_trace(&trace, "errno", &peer) == 0);
    errno = 4711;
    for (int i = 0; i < COST_SPANS && errno == 4711; i++)
        (void)make_spans(1);
    CHECK(errno == 4711);
    errno = 4711;
    for (int i = 0; i < COST_SPANS && errno == 4711; i++)
        BLKIN_TIMESTAMP(&trace, NULL, "event");
    CHECK(errno == 4711);
}

/* ---- shared memory ---- */

#define AREAS_MAX 16

static struct {
    void *begin;
    size_t length;
} areas[AREAS_MAX];
static int area_count;

static int note_writable_data(struct dl_phdr_info *object, size_t size, void *unused)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)unused;
    for (int i = 0; strstr(object->dlpi_name, "/libblkin") && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = (object->dlpi_addr + part->p_vaddr) & ~(page - 1);
        const uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;

        if (part->p_type == PT_LOAD && part->p_flags & PF_W && area_count < AREAS_MAX) {
            areas[area_count].begin = (void *)begin;
            areas[area_count++].length = ((end + page - 1) & ~(page - 1)) - begin;
        }
    }
    return 0;
}

static void protect(int mode)
{
    for (int i = 0; i < area_count; i++)
        CHECK(mprotect(areas[i].begin, areas[i].length, mode) == 0);
}

/*
 * A store to protected data ends the program. The spans are so few that no periodic work becomes
 * due. The clock begins with short intervals: first, the test waits until these are over.
 */
TEST(writes)
{
    int64_t end_ms = 0;
    int recorded;

    while (wait_up_to(150, &end_ms))
        CHECK(make_spans(1) == 1);
    dl_iterate_phdr(note_writable_data, NULL);
    CHECK(area_count == 2); /* libblkin and its provider */
    blkin_heartbeat();
    protect(PROT_READ);
    recorded = make_spans(1000);
    protect(PROT_READ | PROT_WRITE);
    CHECK(recorded == 1000);
}

/* ---- start ---- */

static int print_start(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    DIR *tasks = opendir("/proc/self/task");
    char line[512];
    int threads = 0;

    while (tasks && readdir(tasks))
        threads++;
    printf("%d threads\n", threads - 2);
    while (maps && fgets(line, sizeof(line), maps)) {
        if (strstr(line, "lttng"))
            printf("%s", line);
    }
    if (tasks)
        closedir(tasks);
    return maps ? fclose(maps) : 1;
}

static int make_children(void)
{
    blkin_init();
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            (void)make_spans(1);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "start") == 0)
        return print_start();
    if (strcmp(what, "forks") == 0)
        return make_children();
    if (strcmp(what, "spans") == 0 && argc == 3)
        return make_spans(atol(argv[2])) == atol(argv[2]) ? 0 : 1;
    return check_run_mode(what);
}
