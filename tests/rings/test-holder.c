/*
 * The holder of memories: many programs, some that stall, limits, other sizes, restarts and kills.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"
#include "seed.h"
#include "tools/rings/fdserver.h"

#include <errno.h>
#include <sys/resource.h>

#define CLIENTS 200
#define KILLS   60

static uint64_t seed;

TEST(test_many)
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
    CHECK(shared->counts.users == shared->came && shared->counts.made == shared->came);
    CHECK_TEXT(shared->counts.keeper, "systemd");
    CHECK(shared->came == (uint64_t)store.count);
    CHECK(shared->counts.bytes == shared->came * memory_bytes(&small));
    CHECK(finish(service, SIGTERM) == 0);
    for (int i = 0; i < store.count; i++)
        CHECK(head_of(i).state == RING_LEFT);
    CHECK(stat(path, &status) != 0 && errno == ENOENT);
    forget_all();
}

static bool rules_are(const char *text)
{
    struct ring_rules rules;

    return store.count == 1 &&
           pread(store.kept[0].fd, &rules, sizeof(rules), RING_RULES_AT) == sizeof(rules) &&
           rules.generation % 2 == 0 && strcmp(rules.text, text) == 0;
}

/* Each memory has the host's rules: a new memory, an older one, and all when the file changes. */
TEST(test_rules)
{
    char file[sizeof(folder) + 10];
    pid_t service;

    (void)snprintf(file, sizeof(file), "%s/slow", folder);
    (void)setenv("BLKIN_SLOW_FILE", file, 1);
    write_file(file, "*>1s\n");
    service = begin();
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(rules_are("*>1s"));
    write_file(file, "error, *>2s\n");
    DRAIN_UNTIL(rules_are("error, *>2s"));
    write_file(file, "no rule\n");
    CHECK(finish(service, SIGKILL) != 0);
    CHECK(rules_are("error, *>2s"));
    write_file(file, "*>3s\n");
    service = begin();
    DRAIN_UNTIL(rules_are("*>3s"));
    CHECK(finish(service, SIGTERM) == 0);
    CHECK(unlink(file) == 0 && unsetenv("BLKIN_SLOW_FILE") == 0);
    forget_all();
}

/* The program connects as often as it can, never reads, and shuts down every second connection. */
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

TEST(test_stalled)
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
    end_program(stalled);
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(shared->counts.clients == 0);
    CHECK(finish(service, SIGTERM) == 0);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    forget_all();
}

/* A program that leaves before the answer is not refused. */
TEST(test_left)
{
    const pid_t service = begin();
    int socket;

    (void)kill(service, SIGSTOP);
    socket = unix_socket_connect(SOCK_SEQPACKET, path, &error);
    CHECK(socket >= 0);
    (void)close(socket);
    (void)kill(service, SIGCONT);
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(shared->counts.given == 1);
    CHECK(shared->counts.refused == 0);
    end_test(service);
}

TEST(test_limits)
{
    pid_t service, first, second;

    options.max_users = is_root ? 2 : 0;
    service = begin();
    if (is_root) {
        first = start_keeper(0, keep_idle);
        second = start_keeper(1, keep_idle);
        CHECK(result_of(start_program(0, use_one)) == 0);
        CHECK(result_of(start_program(2, use_once)) == 1);
        end_program(first); /* the end of a user makes room for a new user */
        CHECK(result_of(start_program(2, use_one)) == 0 && shared->counts.users <= 2);
        CHECK(result_of(start_program(1, use_one)) == 0);
        end_program(second);
    } else {
        CHECK(result_of(start_program(2, use_once)) == 1);
    }
    DRAIN_UNTIL(shared->counts.refused >= 1);
    end_test(service);

    options.max_bytes = memory_bytes(&small) - 1;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 1);
    end_test(service);
}

/* Programs leave the old memory. After a while, the holder removes the memory, also from the
 * store. */
TEST(test_other_size)
{
    const pid_t service = begin();
    pid_t again;

    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(store.count == 1);
    (void)kill(service, SIGHUP);
    DRAIN_UNTIL(store.count == 0 || head_of(0).state == RING_REPLACED);
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(shared->went == 1 && store.count == 1);
    CHECK(head_of(0).event_bytes == larger.event_bytes && head_of(0).state == RING_ON);
    DRAIN_UNTIL(shared->counts.bytes == memory_bytes(&larger) && shared->counts.made == 2);
    CHECK(finish(service, SIGTERM) == 0);

    options.size = small; /* a start with another size has the same effect */
    again = begin();
    DRAIN_UNTIL(store.count == 0 || head_of(0).state == RING_REPLACED);
    CHECK(finish(again, SIGKILL) != 0);
    forget_all();
}

TEST(test_restart)
{
    pid_t service = begin();

    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(store.count == 1);
    CHECK(finish(service, SIGTERM) == 0 && store.count == 1 && head_of(0).state == RING_LEFT);
    service = begin();
    CHECK(head_of(0).state == RING_ON);
    CHECK(result_of(start_program(0, use_one)) == 0);
    CHECK(shared->counts.taken_over == 1 && store.count == 1 && written_to_all() == 2);
    (void)finish(service, SIGKILL);
    /* programs continue to write, and the next service reads the records */
    CHECK(head_of(0).state == RING_ON);
    forget_all();
}

/* A program of the first user, which damages the user in its memory (number 0), or the size. */
static int lie(unsigned number)
{
    struct memory memory;

    if (!memory_open(&memory, ask_until(), &error))
        return 1;
    if (number == 0)
        ((struct ring_memory *)(void *)memory.at)->user = (uint32_t)user_of(1);
    else
        ((struct ring_memory *)(void *)memory.at)->event_bytes *= 2;
    return 0;
}

/* A program that damages its memory gets no memory of another user, and the next service starts. */
TEST(test_lies)
{
    pid_t service = begin();

    CHECK(result_of(start_program(0, lie)) == 0);
    (void)finish(service, SIGKILL);
    service = begin();
    if (is_root)
        CHECK(result_of(start_program(1, use_one)) == 0 && store.count == 2);
    CHECK(result_of(start_program(USERS, lie)) == 0);
    (void)finish(service, SIGKILL);
    service = begin();
    DRAIN_UNTIL(shared->counts.unusable == 1);
    CHECK(result_of(start_program(0, use_one)) == 0);
    CHECK(finish(service, SIGTERM) == 0);
    CHECK(store.count == (is_root ? 2 : 1));
    forget_all();
}

/* A program that asks as root, and as another user through the same connection. The kernel reports
 * the user. */
static int ask_twice(unsigned number)
{
    const uid_t user = user_of(number);
    int socket, first, second;

    if (setuid(0) != 0)
        return 1;
    socket = unix_socket_connect(SOCK_SEQPACKET, path, &error);
    first = answer_from(socket);
    if (setuid(user) != 0 || unix_socket_send(socket, "", 1, -1, 0) != 1)
        return 2;
    second = answer_from(socket);
    return head_at(first).user == 0 && head_at(second).user == user ? check_status() : 3;
}

TEST(test_another_user)
{
    pid_t service;

    if (!is_root)
        return;
    service = begin();
    CHECK(result_of(start_program(1, ask_twice)) == 0);
    DRAIN_UNTIL(shared->counts.given == 2 && shared->counts.clients == 0);
    end_test(service);
}

static int use_many(unsigned number)
{
    for (;;)
        if (use_once(number) > 1)
            return 1;
}

static bool all_have_got(void)
{
    bool all = true;

    for (int i = 0; i < USERS; i++)
        all &= __atomic_load_n(&shared->got[i], __ATOMIC_SEQ_CST) > 0;
    return all;
}

/* Kills services while programs ask: KILLS services, and more until each user has got a memory.
 * Returns the number of memories that programs got. */
static uint64_t kill_services(void)
{
    pid_t programs[USERS * 2];
    int kills = 0;

    for (unsigned i = 0; i < USERS * 2; i++)
        programs[i] = start_program(i, use_many);
    for (; kills < KILLS || (kills < 20 * KILLS && !all_have_got()); kills++) {
        const pid_t service = begin();

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
static bool is_what_they_got(uint64_t written, uint64_t got)
{
    return written >= got && written <= got + USERS * 2;
}

/* The store has each record that a program wrote, in one memory for each user. */
TEST(test_kills)
{
    const uint64_t got = kill_services();

    CHECK(is_what_they_got(written_to_all(), got));
    CHECK(store.count == (is_root ? USERS : 1));
    forget_all();
}

static uint64_t fdserver_written;
static unsigned fdserver_memories;

static void count_kept(void *context, int fd, const char *name)
{
    (void)context, (void)name;
    fdserver_written += head_at(fd).lost;
    fdserver_memories++;
    (void)close(fd);
}

/* An fdserver that did not answer at the start of a service gives its memories later. Meanwhile the
 * first user's program has got another memory. */
static void test_slow_fdserver(void)
{
    pid_t listener; /* a service that found the fdserver busy may have started another one */
    pid_t service = begin();
    uint64_t memories, came, went;

    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.is_stored);
    memories = shared->counts.taken_over + shared->counts.made;
    listener = (pid_t)fdserver_pid(fdserver);
    CHECK(listener > 0);
    (void)kill(listener, SIGSTOP);
    CHECK(finish(service, SIGKILL) != 0);
    options.answer_ms = 100;
    service = begin();
    options.answer_ms = usual.answer_ms;
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.made == 1 && shared->counts.taken_over == 0);
    came = shared->came;
    went = shared->went;
    (void)kill(listener, SIGCONT);
    DRAIN_UNTIL(shared->counts.taken_over == memories);
    DRAIN_UNTIL(shared->came == came + memories && shared->went == went + 1);
    CHECK(shared->counts.is_stored);
    CHECK(finish(service, SIGKILL) != 0);
}

/* A holder with an fdserver. The fdserver ends after a service that ends in order. */
TEST(test_fdserver)
{
    const pid_t keeper = fork();
    uint64_t got;
    int socket = -1, status;
    pid_t service;

    if (keeper == 0)
        _exit(fdserver_run(fdserver));
    options.fdserver = fdserver;
    DRAIN_UNTIL(is_listening(fdserver));
    got = kill_services();
    fdserver_open(&socket, NULL, fdserver, 2000, count_kept, NULL, &error);
    CHECK(socket >= 0 && is_what_they_got(fdserver_written, got));
    CHECK(fdserver_memories == (unsigned)(is_root ? USERS : 1));
    (void)close(socket);
    test_slow_fdserver();
    is_dead = true;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.is_stored);
    CHECK_TEXT(shared->counts.keeper, "process");
    CHECK(finish(service, SIGTERM) == 0);
    is_dead = false;
    CHECK(waitpid(keeper, &status, 0) == keeper && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* a service that found the fdserver busy has started another one */
    DRAIN_UNTIL(access(fdserver, F_OK) != 0);
    forget_all();
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&fdserver_job, NULL};
    int status;

    if (job_run_in_child(argc, argv, jobs, &status)) /* a service without an fdserver starts one */
        return status;
    seed = seed_begin();
    prepare();
    check_run();
    clean_up();
    return check_status();
}
