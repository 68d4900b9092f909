/*
 * A process with a holder, programs of several users, and systemd's store.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_HOLDING_H
#define TESTS_RINGS_HOLDING_H

#include "check.h"
#include "seed.h"
#include "store.h"
#include "tools/rings/holder.h"
#include "waits.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define USERS 5
#define KILLS 60

/* The notes of the service and the programs for the test. */
struct holding_shared {
    struct holder_counts counts;
    uint64_t begun, came, went;
    uint64_t got[USERS]; /* memories that a program of this user has written to */
};

static char folder[100], path[150], fdserver[150];
static bool is_dead; /* true: NOTIFY_SOCKET names a socket without a listener */
static struct holding_shared *shared;
static struct store store;
static bool is_root;
static struct error error;

static const struct memory_size small = {2, RING_BYTES_MIN, RING_BYTES_MIN};
static const struct memory_size larger = {2, RING_BYTES_MIN * 2, RING_BYTES_MIN};
static const struct holder_options usual = {.path = path,
                                            .max_users = USERS * 4,
                                            .max_bytes = 1 << 26,
                                            .answer_ms = PATIENCE_MS,
                                            .left_ms = 200,
                                            .idle_ms = 600000,
                                            .hold_ms = 600000,
                                            .size = {2, 1 << 16, 1 << 16}};
static struct holder_options options;

/* ---- the service ----------------------------------------------------------------------------- */

static struct loop *loop;
static struct holder *holder;
static struct timer tell;

static inline void tell_counts(void *context)
{
    (void)context;
    shared->counts = holder_counts(holder);
    timer_set(loop, &tell, 5);
}

static inline void on_come(void *context, struct held *held)
{
    (void)context, (void)held;
    shared->came++;
}

static inline void on_gone(void *context, struct held *held)
{
    (void)context, (void)held;
    shared->went++;
}

static inline void end(void *context)
{
    (void)context;
    loop_stop(loop);
}

static inline void reload(void *context)
{
    (void)context;
    options.size = larger;
    holder_reload(holder, &options);
}

static inline void serve(void)
{
    const struct loop_signals signals = {end, reload, NULL};
    const struct holder_callbacks callbacks = {on_come, on_gone, NULL};

    if (!options.fdserver) /* which replaces the store */
        store_hand_over(&store);
    if (is_dead)
        (void)setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    loop = loop_new(&signals);
    holder = holder_open(loop, &options, &callbacks, &error);
    if (!holder && fprintf(stderr, "%s\n", error.text))
        _exit(1);
    tell = (struct timer){.due = tell_counts};
    tell_counts(NULL);
    shared->begun++;
    loop_run(loop);
    holder_close(holder);
    loop_free(loop);
    _exit(0);
}

static void (*prepare_service)(void); /* called first in the service; NULL: nothing */

static inline pid_t begin(void)
{
    const uint64_t before = shared->begun;
    const pid_t pid = fork();

    if (pid == 0 && prepare_service)
        prepare_service();
    if (pid == 0)
        serve();
    for (int64_t end_ms = 0; *(volatile uint64_t *)&shared->begun == before &&
                             waitpid(pid, NULL, WNOHANG) == 0 && wait_up_to(PATIENCE_MS, &end_ms);)
        continue;
    return pid;
}

static inline int finish(pid_t pid, int signal)
{
    int status;

    (void)kill(pid, signal);
    (void)waitpid(pid, &status, 0);
    store_drain(&store);
    return status;
}

/* ---- programs -------------------------------------------------------------------------------- */

static inline struct ring_memory head_at(int fd)
{
    struct ring_memory head;

    CHECK(pread(fd, &head, sizeof(head), 0) == sizeof(head) && !ring_problem(&head, head.bytes));
    return head;
}

/* Returns a descriptor, or -1: the program has to ask again. */
static inline int answer_from(int socket)
{
    struct ring_hello hello;
    struct pollfd wait = {socket, POLLIN, 0};
    int fd = -1;

    if (poll(&wait, 1, PATIENCE_MS / 2) == 1)
        (void)unix_socket_receive(socket, &hello, sizeof(hello), &fd, 0);
    return fd;
}

static inline int ask(void)
{
    struct error ignored;
    const int socket = unix_socket_connect(SOCK_SEQPACKET, path, &ignored);
    const int fd = socket < 0 ? -1 : answer_from(socket);

    if (socket >= 0)
        (void)close(socket);
    return fd;
}

static inline int ask_until(void)
{
    int fd = ask();

    for (int64_t end_ms = 0; fd < 0 && wait_up_to(PATIENCE_MS, &end_ms); fd = ask())
        store_drain(&store); /* does nothing in a program, which has closed its store */
    return fd;
}

static unsigned users = USERS;

static uid_t user_of(unsigned number)
{
    return is_root ? 41000 + number % users : geteuid();
}

/* A program of that user notes that it got a memory. */
static inline int use_memory(unsigned number, int fd)
{
    struct memory memory;
    struct ring_memory *head;

    if (fd < 0)
        return 1;
    if (!memory_open(&memory, fd, &error))
        return 2;
    head = (struct ring_memory *)(void *)memory.at;
    if (head->user != geteuid())
        return 3;
    (void)__atomic_fetch_add(&head->lost, 1, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_add(&shared->got[number % USERS], 1, __ATOMIC_SEQ_CST);
    memory_close(&memory);
    return 0;
}

static inline pid_t start_as(uid_t user, unsigned number, int (*run)(unsigned number))
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)close(store.socket); /* only the test drains the store */
    store.socket = -1;
    if (is_root && seteuid(user) != 0)
        _exit(9);
    _exit(run(number));
}

static inline pid_t start_program(unsigned number, int (*run)(unsigned number))
{
    return start_as(user_of(number), number, run);
}

/* Waits for the process, and serves the store meanwhile. */
static inline int result_of(pid_t pid)
{
    int status = 0;

    for (int64_t end_ms = 0;
         waitpid(pid, &status, WNOHANG) == 0 && wait_up_to(PATIENCE_MS, &end_ms);)
        store_drain(&store);
    store_drain(&store);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline int use_one(unsigned number)
{
    return use_memory(number, ask_until());
}

static inline int use_once(unsigned number)
{
    return use_memory(number, ask());
}

/* A program that runs until it is killed, and writes `bytes` bytes of records into each memory that
 * it gets. */
static inline void keep_memory(unsigned number, uint64_t bytes)
{
    struct memory memory;
    struct ring_head *heads;

    for (bool is_first = true; memory_open(&memory, ask_until(), &error); is_first = false) {
        heads = (struct ring_head *)(void *)(memory.at + memory.heads_at);
        (void)__atomic_add_fetch(&heads[0].committed, bytes, __ATOMIC_SEQ_CST);
        (void)__atomic_fetch_add(&shared->got[number % USERS], is_first, __ATOMIC_SEQ_CST);
        while (memory_state(&memory) == RING_ON)
            (void)poll(NULL, 0, 5);
        memory_close(&memory);
    }
}

static inline int keep_idle(unsigned number)
{
    keep_memory(number, 8);
    return 1;
}

static inline int keep_busy(unsigned number)
{
    keep_memory(number, options.size.event_bytes / 2);
    return 1;
}

/* ---- contents of the store ------------------------------------------------------------------- */

static inline struct ring_memory head_of(int number)
{
    return head_at(store.kept[number].fd);
}

/* Returns how often programs have used the stored memories: use_memory() counts in `lost`. */
static inline uint64_t written_to_all(void)
{
    uint64_t sum = 0;

    store_drain(&store);
    for (int i = 0; i < store.count; i++)
        sum += head_of(i).lost;
    return sum;
}

static inline uint64_t got_by_all(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < USERS; i++)
        sum += shared->got[i];
    return sum;
}

/* The next test has an empty store, and the usual options. */
static inline void forget_all(void)
{
    store_drain(&store);
    while (store.count)
        store_remove(&store, store.kept[0].name);
    memset(shared, 0, sizeof(*shared));
    options = usual;
    users = USERS;
}

/* Ends a test in order. */
static inline void end_test(pid_t service)
{
    CHECK(finish(service, SIGTERM) == 0);
    forget_all();
}

/* Serves the store while the test waits. */
#define DRAIN_UNTIL(condition) WORK_UNTIL(condition, store_drain(&store))

static inline pid_t start_keeper(unsigned number, int (*run)(unsigned number))
{
    const uint64_t before = got_by_all();
    const pid_t pid = start_program(number, run);

    DRAIN_UNTIL(got_by_all() == before + 1);
    return pid;
}

static inline void end_program(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static inline int use_many(unsigned number)
{
    for (;;)
        if (use_once(number) > 1)
            return 1;
}

static inline bool all_have_got(void)
{
    bool all = true;

    for (int i = 0; i < USERS; i++)
        all &= __atomic_load_n(&shared->got[i], __ATOMIC_SEQ_CST) > 0;
    return all;
}

static uint64_t seed;

/* Kills services while programs ask: KILLS services, and more until each user has got a memory.
 * Returns the number of memories that programs got. */
static inline uint64_t kill_services(void)
{
    pid_t programs[USERS * 2];
    int kills = 0;

    for (unsigned i = 0; i < USERS * 2; i++)
        programs[i] = start_program(i, use_many);
    for (; kills < KILLS || (kills <= 20 * KILLS && !all_have_got()); kills++) {
        const pid_t service = begin();

        if (kills == 20 * KILLS) /* a slow machine: the last service lives long enough */
            DRAIN_UNTIL(all_have_got());
        for (uint64_t ms = seed_next(&seed) % 20; ms; ms--) {
            store_drain(&store);
            (void)poll(NULL, 0, 1);
        }
        (void)finish(service, SIGKILL);
    }
    for (unsigned i = 0; i < USERS * 2; i++) {
        CHECK(waitpid(programs[i], NULL, WNOHANG) == 0);
        end_program(programs[i]);
    }
    (void)unlink(path);
    return got_by_all();
}

/* True if the counts agree: a killed program may have made only one of its two notes. */
static inline bool is_what_they_got(uint64_t written, uint64_t got)
{
    return written >= got && written <= got + USERS * 2;
}

static inline void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline void prepare(void)
{
    const char *where = getenv("TMPDIR");

    is_root = geteuid() == 0 && seteuid(41000) == 0 && seteuid(0) == 0;
    (void)snprintf(folder, sizeof(folder), "%s/rings.%ld", where ? where : "/tmp", (long)getpid());
    (void)snprintf(path, sizeof(path), "%s/rings", folder);
    (void)snprintf(fdserver, sizeof(fdserver), "%s/fdserver", folder);
    if (mkdir(folder, 0755) != 0 || chmod(folder, 0755) != 0 ||
        (is_root && chmod(where ? where : "/tmp", 0755) != 0))
        perror(folder), exit(1);
    options = usual;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    store_open(&store, folder);
}

static inline void clean_up(void)
{
    store_close(&store);
    (void)rmdir(folder);
}

#endif
