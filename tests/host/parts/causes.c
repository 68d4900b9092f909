/*
 * Makes a request while its host has a fault. Each line of the standard input names a fault. Prints
 * "CAUSE ID" with the trace id. A fault begins BEFORE_MS before the request, and ends AFTER_MS
 * after it:
 *
 *     disk FILE         31 threads and the request write to FILE, around the page cache
 *
 *     memory FILE       threads and the request read more pages of FILE than the memory can hold
 *
 *     cpu THREADS       THREADS threads and the request compute
 *
 *     network PORT      threads and the request send to a server at 127.0.0.1, which answers
 *
 *     quiet             no fault; the request sleeps
 *
 * A request takes CAUSE_REQUEST_MS or more, until its current operation ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "waits.h"

#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEFORE_MS        800
#define CAUSE_REQUEST_MS 300
#define AFTER_MS         300
#define PAGE_4K          4096
#define MESSAGE          200
#define LOAD_MAX         64

static atomic_bool is_over;

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A random number of the thread's own sequence. */
static uint64_t dice(uint64_t sides)
{
    static _Thread_local uint64_t state;

    if (!state)
        state = (uint64_t)clock_ms() ^ (uintptr_t)&state;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % sides;
}

/* ---- what there is to do ----------------------------------------------------------------------
 */

/* Works once; each thread has its own `on`. */
typedef void work_fn(void *on);

struct planted_cause {
    const char *name;
    const char *span;
    unsigned threads;
    void *(*make)(const char *argument);
    work_fn *work;
};

struct file {
    int fd;
    uint64_t pages;
    char *page;
};

static struct file *open_file(const char *path, int flags)
{
    struct file *file = calloc(1, sizeof(*file));
    off_t size;

    if (!file || (file->fd = open(path, flags | O_CLOEXEC)) < 0 ||
        (size = lseek(file->fd, 0, SEEK_END)) < PAGE_4K)
        err(1, "%s", path);
    file->pages = (uint64_t)size / PAGE_4K;
    return file;
}

static void *make_disk(const char *path)
{
    struct file *file = open_file(path, O_WRONLY | O_DIRECT);

    if (posix_memalign((void **)&file->page, PAGE_4K, PAGE_4K))
        err(1, "memory");
    memset(file->page, 0x5a, PAGE_4K);
    return file;
}

static void write_page(void *on)
{
    const struct file *file = on;

    if (pwrite(file->fd, file->page, PAGE_4K, (off_t)(dice(file->pages) * PAGE_4K)) != PAGE_4K)
        err(1, "write");
}

static void read_at(const struct file *file, uint64_t page)
{
    char bytes[PAGE_4K];

    if (pread(file->fd, bytes, sizeof(bytes), (off_t)(page * PAGE_4K)) != PAGE_4K)
        err(1, "read");
}

/* Reads a page often, so that it belongs to the working set: only such a page makes readers wait
 * "for memory". */
static void read_often(const struct file *file, uint64_t page)
{
    for (int i = 0; i < 8; i++)
        read_at(file, page);
}

static void *make_memory(const char *path)
{
    static struct file *file; /* of all threads and requests */

    if (file)
        return file;
    file = open_file(path, O_RDONLY);
    /* the control group must not count pages that it has not read */
    (void)fdatasync(file->fd);
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    for (uint64_t i = 0; i < file->pages; i++)
        read_at(file, i);
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
    for (uint64_t i = 0; i < file->pages; i++)
        read_often(file, dice(file->pages));
    return file;
}

static void read_page(void *on)
{
    const struct file *file = on;

    read_often(file, dice(file->pages));
}

static void *make_nothing(const char *argument)
{
    (void)argument;
    return &is_over;
}

static void compute(void *on)
{
    static atomic_uint_fast64_t result;
    uint64_t x = dice(UINT64_MAX);

    (void)on;
    for (int i = 0; i < 100000; i++)
        x = x * UINT64_C(0x5851f42d4c957f2d) + 1;
    atomic_store_explicit(&result, x, memory_order_relaxed);
}

static void sleep_a_while(void *on)
{
    (void)on;
    pause_us(10000);
}

static void *answer(void *argument)
{
    const int fd = (int)(intptr_t)argument;
    char message[MESSAGE];

    while (recv(fd, message, sizeof(message), MSG_WAITALL) == sizeof(message) &&
           send(fd, message, sizeof(message), MSG_NOSIGNAL) == sizeof(message))
        ;
    (void)close(fd);
    return NULL;
}

static void *serve(void *argument)
{
    const int fd = (int)(intptr_t)argument;
    pthread_t thread;
    int taken;

    while ((taken = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)taken))
            err(1, "thread");
        (void)pthread_detach(thread);
    }
    return NULL;
}

static struct sockaddr_in address_of(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void begin_server(const char *port)
{
    const struct sockaddr_in address = address_of(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, LOAD_MAX) ||
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
        err(1, "port %s", port);
}

static void *make_network(const char *port)
{
    static bool has_server;
    const struct sockaddr_in address = address_of(port);
    int *fd = malloc(sizeof(*fd));

    if (!has_server)
        begin_server(port);
    has_server = true;
    if (!fd || (*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
        connect(*fd, (const struct sockaddr *)&address, sizeof(address)))
        err(1, "connect");
    (void)setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void ask(void *on)
{
    const int fd = *(const int *)on;
    char message[MESSAGE] = {0};

    if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message) ||
        recv(fd, message, sizeof(message), MSG_WAITALL) != sizeof(message))
        err(1, "network");
}

static const struct planted_cause causes[] = {
    {"disk", "journal", 31, make_disk, write_page},
    {"memory", "look up", 16, make_memory, read_page},
    {"cpu", "checksum", 0, make_nothing, compute},
    {"network", "replicate", 4, make_network, ask},
    {"quiet", "wait", 0, make_nothing, sleep_a_while},
};

/* ---- the request, and the fault ---------------------------------------------------------------
 */

static const struct planted_cause *cause;

static void *load(void *on)
{
    while (!is_over)
        cause->work(on);
    return NULL;
}

static void request(void *on)
{
    const int64_t until_ms = clock_ms() + CAUSE_REQUEST_MS;
    struct blkin_span root, span;
    struct blkin_context context;

    blkin_span_begin(&root, "request", BLKIN_SERVER, NULL);
    blkin_span_begin(&span, cause->span, BLKIN_INTERNAL, &root);
    context = *blkin_span_context(&root);
    do
        cause->work(on);
    while (clock_ms() < until_ms);
    blkin_span_end(&span);
    blkin_span_end(&root);
    printf("%s %016" PRIx64 "%016" PRIx64 "\n", cause->name, context.trace_id_high,
           context.trace_id);
    (void)fflush(stdout);
}

static void run(const char *argument)
{
    const unsigned wanted =
        strcmp(cause->name, "cpu") == 0 ? (unsigned)atoi(argument) : cause->threads;
    const unsigned count = wanted < LOAD_MAX ? wanted : LOAD_MAX;
    void *own = cause->make(argument);
    pthread_t threads[LOAD_MAX];

    is_over = false;
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, load, cause->make(argument)))
            err(1, "thread");
    }
    pause_us(BEFORE_MS * 1000);
    request(own);
    pause_us(AFTER_MS * 1000);
    is_over = true;
    for (unsigned i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
}

int main(void)
{
    char line[4200];

    if (blkin_init() != 0)
        return 2;
    blkin_set_service("store-2", "10.0.0.2", 6800);
    while (fgets(line, sizeof(line), stdin)) {
        char *argument = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (argument)
            *argument++ = '\0';
        cause = NULL;
        for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
            if (strcmp(line, causes[i].name) == 0)
                cause = &causes[i];
        }
        if (!cause)
            errx(2, "expected disk, memory, cpu, network or quiet, got \"%s\"", line);
        run(argument ? argument : "");
    }
    return 0;
}
