/*
 * The holder of memories: many programs, some that stall, limits, other sizes, restarts and kills.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "seed.h"
#include "store.h"
#include "tools/rings/holder.h"
#include "tools/rings/vault.h"
#include "waits.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define USERS   5
#define CLIENTS 200
#define KILLS   60

/* What the service and the programs tell the test. */
struct shared {
    struct holder_counts counts;
    char keeper[16];
    uint64_t begun, came, went;
    uint64_t got[USERS]; /* memories that a program of this user has written to */
};

static char folder[100], path[150], vault[150];
static bool has_vault; /* instead of the store, */
static bool is_dead;   /* and NOTIFY_SOCKET names a socket at which nobody listens */
static struct shared *shared;
static struct store store;
static bool is_root;
static struct error error;

static const struct memory_size small = {2, RING_BYTES_MIN, RING_BYTES_MIN};
static const struct memory_size larger = {2, RING_BYTES_MIN * 2, RING_BYTES_MIN};
static struct holder_options options = {
    .max_users = USERS, .max_bytes = 1 << 26, .left_ms = 200, .size = {2, 1 << 16, 1 << 16}};

/* ---- the service ----------------------------------------------------------------------------- */

static struct loop *loop;
static struct holder *holder;
static struct timer tell;

static void tell_counts(void *context)
{
    (void)context;
    shared->counts = holder_counts(holder);
    (void)snprintf(shared->keeper, sizeof(shared->keeper), "%s", shared->counts.keeper);
    timer_set(loop, &tell, 5);
}

static void has_come(void *context, struct held *held)
{
    (void)context, (void)held;
    shared->came++;
}

static void has_gone(void *context, struct held *held)
{
    (void)context, (void)held;
    shared->went++;
}

static void end(void *context)
{
    (void)context;
    loop_stop(loop);
}

static void reload(void *context)
{
    (void)context;
    options.size = larger;
    holder_reload(holder, &options);
}

static void serve(void)
{
    const struct loop_signals signals = {end, reload, NULL};
    const struct holder_callbacks callbacks = {has_come, has_gone, NULL};

    if (!has_vault)
        store_hand_over(&store);
    if (is_dead)
        (void)setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    loop = loop_new(&signals);
    holder = holder_open(loop, &options, &callbacks, &error);
    if (!holder) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    tell = (struct timer){.due = tell_counts};
    tell_counts(NULL);
    shared->begun++;
    loop_run(loop);
    holder_close(holder);
    loop_free(loop);
    _exit(0);
}

static pid_t begin(void)
{
    const uint64_t before = shared->begun;
    const pid_t pid = fork();

    if (pid == 0)
        serve();
    for (int64_t end_ms = 0; *(volatile uint64_t *)&shared->begun == before &&
                             waitpid(pid, NULL, WNOHANG) == 0 && wait_up_to(PATIENCE_MS, &end_ms);)
        continue;
    return pid;
}

static int finish(pid_t pid, int signal)
{
    int status;

    (void)kill(pid, signal);
    (void)waitpid(pid, &status, 0);
    store_drain(&store);
    return status;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Returns a descriptor, or -1: it has to ask again. */
static int ask(void)
{
    struct ring_hello hello;
    struct error ignored;
    const int socket = unix_socket_connect(SOCK_SEQPACKET, path, &ignored);
    struct pollfd wait = {socket, POLLIN, 0};
    int fd = -1;

    if (socket < 0)
        return -1;
    if (poll(&wait, 1, 10000) == 1)
        (void)unix_socket_receive(socket, &hello, sizeof(hello), &fd, 0);
    (void)close(socket);
    return fd;
}

static int ask_until(void)
{
    int fd = ask();

    for (int64_t end_ms = 0; fd < 0 && wait_up_to(PATIENCE_MS, &end_ms); fd = ask())
        store_drain(&store); /* no harm in a child: then it is no memory of its user's */
    return fd;
}

static uid_t user_of(unsigned number)
{
    return is_root ? 41000 + number % USERS : geteuid();
}

/* A program of that user asks, and writes down that it has got something. */
static int use_memory(unsigned number, bool waits)
{
    struct memory memory;
    const int fd = waits ? ask_until() : ask();

    if (fd < 0)
        return 1;
    if (!memory_open(&memory, fd, &error))
        return 2;
    if (((struct ring_memory *)(void *)memory.at)->user != geteuid())
        return 3;
    (void)__atomic_fetch_add(&((struct ring_memory *)(void *)memory.at)->lost, 1, __ATOMIC_SEQ_CST);
    (void)__atomic_fetch_add(&shared->got[number % USERS], 1, __ATOMIC_SEQ_CST);
    memory_close(&memory);
    return 0;
}

static pid_t start_program(unsigned number, int (*run)(unsigned number))
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)close(store.socket); /* it drains nothing */
    store.socket = -1;
    if (is_root && seteuid(user_of(number)) != 0)
        _exit(9);
    _exit(run(number));
}

/* The store goes on meanwhile. */
static int result_of(pid_t pid)
{
    int status = 0;

    for (int64_t end_ms = 0;
         waitpid(pid, &status, WNOHANG) == 0 && wait_up_to(PATIENCE_MS, &end_ms);)
        store_drain(&store);
    store_drain(&store);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int use_one(unsigned number)
{
    return use_memory(number, true);
}

static int use_once(unsigned number)
{
    return use_memory(number, false);
}

/* ---- what the store has ---------------------------------------------------------------------- */

static uint64_t written_to_all(void)
{
    uint64_t sum = 0;

    store_drain(&store);
    for (int i = 0; i < store.count; i++) {
        struct memory memory;

        CHECK(memory_open(&memory, dup(store.kept[i].fd), &error));
        sum += memory_lost(&memory);
        memory_close(&memory);
    }
    return sum;
}

static uint64_t got_by_all(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < USERS; i++)
        sum += shared->got[i];
    return sum;
}

static enum ring_state state_of(int number)
{
    struct memory memory;
    enum ring_state state;

    CHECK(memory_open(&memory, dup(store.kept[number].fd), &error));
    state = memory_state(&memory);
    memory_close(&memory);
    return state;
}

static void forget_all(void)
{
    store_drain(&store);
    while (store.count)
        store_remove(&store, store.kept[0].name);
    memset(shared, 0, sizeof(*shared));
    options.size = small;
}

/* The store goes on meanwhile. */
static void drain(void)
{
    store_drain(&store);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#define DRAIN_UNTIL(condition) WORK_UNTIL(condition, drain())

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_many(void)
{
    const pid_t service = begin();
    pid_t pids[CLIENTS];
    struct stat status;

    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0666);
    for (unsigned i = 0; i < CLIENTS; i++)
        pids[i] = start_program(i, use_one);
    for (unsigned i = 0; i < CLIENTS; i++)
        CHECK(result_of(pids[i]) == 0);
    CHECK(written_to_all() == CLIENTS && got_by_all() == CLIENTS);
    CHECK(store.count == (is_root ? USERS : 1));
    DRAIN_UNTIL(shared->counts.clients == 0 && shared->counts.given == CLIENTS);
    CHECK(shared->counts.users == (unsigned)store.count);
    CHECK(shared->counts.bytes == (uint64_t)store.count * memory_bytes(&small));
    CHECK(finish(service, SIGTERM) == 0);
    for (int i = 0; i < store.count; i++)
        CHECK(state_of(i) == RING_LEFT);
    CHECK(stat(path, &status) != 0 && errno == ENOENT);
    forget_all();
}

/* It connects as often as it can, never reads, and says of every second one that it is gone. */
static int stall(unsigned number)
{
    int connected = 0;

    (void)number;
    for (int i = 0; i < 900; i++) {
        const int fd = unix_socket_connect(SOCK_SEQPACKET, path, &error);

        if (fd < 0)
            (void)poll(NULL, 0, 1);
        connected += fd >= 0;
        if (i % 2)
            (void)shutdown(fd, SHUT_RDWR);
    }
    shared->got[USERS - 1] = (uint64_t)connected;
    (void)pause();
    return 0;
}

static void test_stalled(void)
{
    const struct rlimit few = {1024, 1024};
    struct rlimit before;
    pid_t service, stalled;

    (void)getrlimit(RLIMIT_NOFILE, &before);
    (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){few.rlim_cur, before.rlim_max});
    service = begin();
    stalled = start_program(0, stall);
    DRAIN_UNTIL(shared->got[USERS - 1] != 0);
    DRAIN_UNTIL(shared->counts.refused != 0);
    if (is_root)
        CHECK(result_of(start_program(1, use_one)) == 0);
    (void)kill(stalled, SIGKILL);
    (void)waitpid(stalled, NULL, 0);
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(shared->counts.clients == 0);
    CHECK(finish(service, SIGTERM) == 0);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    forget_all();
}

static void test_limits(void)
{
    pid_t service;

    options.max_users = is_root ? 2 : 0;
    service = begin();
    if (is_root) {
        CHECK(result_of(start_program(0, use_one)) == 0 &&
              result_of(start_program(1, use_one)) == 0);
        CHECK(result_of(start_program(0, use_one)) == 0);
    }
    CHECK(result_of(start_program(2, use_once)) == 1);
    DRAIN_UNTIL(shared->counts.refused == 1);
    CHECK(finish(service, SIGTERM) == 0);
    options.max_users = USERS;
    forget_all();

    options.max_bytes = memory_bytes(&small) - 1;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 1);
    CHECK(finish(service, SIGTERM) == 0);
    options.max_bytes = 1 << 26;
    forget_all();
}

/* Of a large one a small predecessor is there at once, and is left when the large one is made. */
static void test_large(void)
{
    pid_t service;

    options.size = (struct memory_size){100, 1 << 22, 1 << 16};
    options.max_bytes = 1 << 30;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.made == 2 && shared->came == 2);
    CHECK(shared->counts.given == 1 && store.count >= 1 && state_of(0) == RING_LEFT);
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.clients == 0 && shared->counts.given == 2);
    CHECK(shared->counts.made == 2);
    CHECK(finish(service, SIGTERM) == 0);
    options.max_bytes = 1 << 26;
    forget_all();
}

/* The old memory is left, read on for a while, and dropped from the store, too. */
static void test_other_size(void)
{
    const pid_t service = begin();
    pid_t again;
    char first[100];

    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(store.count == 1);
    memcpy(first, store.kept[0].name, sizeof(first));
    (void)kill(service, SIGHUP);
    DRAIN_UNTIL(store.count == 0 || state_of(0) == RING_LEFT);
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(shared->went == 1 && store.count == 1);
    CHECK(strcmp(first, store.kept[0].name) != 0 && state_of(0) == RING_ON);
    DRAIN_UNTIL(shared->counts.bytes == memory_bytes(&larger) && shared->counts.made == 2);
    CHECK(finish(service, SIGTERM) == 0);

    options.size = small; /* a start with another size does the same */
    again = begin();
    DRAIN_UNTIL(state_of(0) == RING_LEFT);
    CHECK(finish(again, SIGKILL) != 0);
    forget_all();
}

static void test_restart(void)
{
    pid_t service = begin();
    struct stat before, after;

    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(store.count == 1);
    CHECK(fstat(store.kept[0].fd, &before) == 0);
    CHECK(finish(service, SIGTERM) == 0 && store.count == 1 && state_of(0) == RING_LEFT);
    service = begin();
    CHECK(state_of(0) == RING_ON);
    CHECK(result_of(start_program(0, use_one)) == 0);
    CHECK(fstat(store.kept[0].fd, &after) == 0 && before.st_ino == after.st_ino);
    CHECK(shared->counts.taken_over == 1 && written_to_all() == 2);
    (void)finish(service, SIGKILL);
    CHECK(state_of(0) == RING_ON); /* programs write on, and the next one reads it */
    forget_all();
}

static int lie_of_user(unsigned number)
{
    struct memory memory;

    (void)number;
    if (!memory_open(&memory, ask_until(), &error))
        return 1;
    ((struct ring_memory *)(void *)memory.at)->user = (uint32_t)user_of(1);
    return 0;
}

static int lie_of_size(unsigned number)
{
    struct memory memory;

    (void)number;
    if (!memory_open(&memory, ask_until(), &error))
        return 1;
    ((struct ring_memory *)(void *)memory.at)->event_bytes *= 2;
    return 0;
}

/* What a program writes into its memory gives it no other user's, and does not stop a start. */
static void test_lies(void)
{
    pid_t service = begin();

    CHECK(result_of(start_program(0, lie_of_user)) == 0);
    (void)finish(service, SIGKILL);
    service = begin();
    if (is_root)
        CHECK(result_of(start_program(1, use_one)) == 0 && store.count == 2);
    CHECK(result_of(start_program(0, lie_of_size)) == 0);
    (void)finish(service, SIGKILL);
    service = begin();
    DRAIN_UNTIL(shared->counts.unusable == 1);
    CHECK(result_of(start_program(0, use_one)) == 0);
    CHECK(finish(service, SIGTERM) == 0);
    CHECK(store.count == (is_root ? 2 : 1));
    forget_all();
}

static int use_many(unsigned number)
{
    for (;;)
        if (use_memory(number, false) > 1)
            return 1;
}

/* Programs ask all the time, services are killed. Returns how often a program got a memory. */
static uint64_t kill_services(uint64_t seed)
{
    pid_t programs[USERS * 2];

    for (unsigned i = 0; i < USERS * 2; i++)
        programs[i] = start_program(i, use_many);
    for (int round = 0; round < KILLS; round++) {
        const pid_t service = begin();

        for (uint64_t ms = seed_next(&seed) % 20; ms; ms--) {
            store_drain(&store);
            (void)poll(NULL, 0, 1);
        }
        (void)finish(service, SIGKILL);
    }
    for (unsigned i = 0; i < USERS * 2; i++) {
        CHECK(waitpid(programs[i], NULL, WNOHANG) == 0);
        (void)kill(programs[i], SIGKILL);
        (void)waitpid(programs[i], NULL, 0);
    }
    (void)unlink(path);
    printf("%d kills, %llu memories given\n", KILLS, (unsigned long long)got_by_all());
    return got_by_all();
}

/* A program may have been killed between its two notes. */
static bool is_what_they_got(uint64_t written, uint64_t got)
{
    return written >= got && written <= got + USERS * 2;
}

/* What any program ever got is in the store, and of each user there is one memory. */
static void test_kills(uint64_t seed)
{
    const uint64_t got = kill_services(seed);

    CHECK(is_what_they_got(written_to_all(), got));
    CHECK(store.count == (is_root ? USERS : 1));
    forget_all();
}

static uint64_t vault_written;
static unsigned vault_memories;

static void count_kept(void *context, int fd, const char *name)
{
    struct memory memory;

    (void)context, (void)name;
    CHECK(memory_open(&memory, fd, &error));
    vault_written += memory_lost(&memory);
    vault_memories++;
    memory_close(&memory);
}

/* The same with a process of our own, which ends with the service that ends in order. */
static void test_vault(uint64_t seed)
{
    const pid_t keeper = fork();
    uint64_t got;
    int socket = -1, status;
    pid_t service;

    if (keeper == 0)
        _exit(vault_run(vault));
    has_vault = true;
    options.vault = vault;
    DRAIN_UNTIL(access(vault, F_OK) == 0);
    got = kill_services(seed);
    vault_open(&socket, NULL, vault, count_kept, NULL, &error);
    CHECK(socket >= 0 && is_what_they_got(vault_written, got));
    CHECK(vault_memories == (unsigned)(is_root ? USERS : 1));
    (void)close(socket);
    is_dead = true;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.is_stored);
    CHECK_TEXT(shared->keeper, "process");
    CHECK(finish(service, SIGTERM) == 0);
    is_dead = false;
    CHECK(waitpid(keeper, &status, 0) == keeper && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(access(vault, F_OK) != 0);
    forget_all();
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&vault_job, NULL};
    const char *where = getenv("TMPDIR");
    uint64_t seed;
    int status;

    if (job_is_done(argc, argv, jobs, &status)) /* a service without a vault starts one */
        return status;
    seed = seed_begin();
    is_root = geteuid() == 0 && seteuid(41000) == 0 && seteuid(0) == 0;
    (void)snprintf(folder, sizeof(folder), "%s/rings.%ld", where ? where : "/tmp", (long)getpid());
    (void)snprintf(path, sizeof(path), "%s/rings", folder);
    (void)snprintf(vault, sizeof(vault), "%s/vault", folder);
    if (mkdir(folder, 0755) != 0 || chmod(folder, 0755) != 0)
        return 1;
    if (is_root && chmod(where ? where : "/tmp", 0755) != 0)
        return 1;
    options.path = path;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    store_open(&store, folder);
    test_many();
    test_stalled();
    test_limits();
    test_large();
    test_other_size();
    test_restart();
    test_lies();
    test_kills(seed);
    test_vault(seed);
    store_close(&store);
    (void)rmdir(folder);
    return check_status();
}
