/*
 * The holder of memories: many programs, some that stall, limits, other sizes, restarts and kills.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"

#include <errno.h>
#include <sys/resource.h>

#define CLIENTS 200

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
    char file[sizeof(folder) + 10], next[sizeof(folder) + 10];
    pid_t service;

    (void)snprintf(file, sizeof(file), "%s/slow", folder);
    (void)snprintf(next, sizeof(next), "%s/next", folder);
    (void)setenv("BLKIN_SLOW_FILE", file, 1);
    write_file(file, "*>1s\n");
    service = begin();
    CHECK(result_of(start_program(0, use_one)) == 0);
    DRAIN_UNTIL(rules_are("*>1s"));
    write_file(file, "error, *>2s\n");
    DRAIN_UNTIL(rules_are("error, *>2s"));
    write_file(next, "no rule\n");
    CHECK(rename(next, file) == 0); /* an empty file would be no rules */
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
    return pause();
}

TEST(test_stalled)
{
    struct rlimit before;
    pid_t service, stalled;

    (void)getrlimit(RLIMIT_NOFILE, &before);
    (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, before.rlim_max});
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
    CHECK(socket >= 0 && close(socket) == 0);
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
 * store. A program that cannot ask again keeps the memory, until another user needs the room. */
TEST(test_other_size)
{
    struct memory memory, next;
    uint64_t beats;
    pid_t service;

    options.max_bytes = memory_bytes(&small) + memory_bytes(&larger) * 2 - 1;
    service = begin();
    CHECK(memory_open(&memory, ask_until(), &error));
    DRAIN_UNTIL(store.count == 1);
    (void)kill(service, SIGHUP);
    DRAIN_UNTIL(memory_state(&memory) == RING_REPLACED);
    beats = head_at(memory.fd).beats;
    DRAIN_UNTIL(shared->went > 0 || head_at(memory.fd).beats > beats + 2);
    CHECK(shared->went == 0 && memory_state(&memory) == RING_REPLACED);
    CHECK(memory_open(&next, ask_until(), &error));
    CHECK(!is_root || result_of(start_program(0, use_one)) == 0);
    CHECK(memory_state(&memory) == (is_root ? RING_LEFT : RING_REPLACED));
    memory_close(&memory);
    memory_close(&next);
    DRAIN_UNTIL(shared->went == 1 && store.count == 1 + is_root);
    CHECK(head_of(0).event_bytes == larger.event_bytes && head_of(0).state == RING_ON);
    DRAIN_UNTIL(shared->counts.bytes == memory_bytes(&larger) * (1U + is_root));
    CHECK(shared->counts.made == 2U + is_root);
    CHECK(finish(service, SIGTERM) == 0);

    options.size = small; /* a start with another size has the same effect */
    service = begin();
    DRAIN_UNTIL(store.count == 0 || head_of(0).state == RING_REPLACED);
    CHECK(finish(service, SIGKILL) != 0);
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
 * the user. From number USERS on, it stops before it reads both answers. */
static int ask_twice(unsigned number)
{
    const uid_t user = user_of(number);
    int socket, first, second;

    if (setuid(0) != 0)
        return 1;
    socket = unix_socket_connect(SOCK_SEQPACKET, path, &error);
    first = number < USERS ? answer_from(socket) : -1;
    if (setuid(user) != 0 || unix_socket_send(socket, "", 1, -1, 0) != 1)
        return 2;
    if (number >= USERS && raise(SIGSTOP) == 0)
        first = answer_from(socket);
    second = answer_from(socket);
    return head_at(first).user == 0 && head_at(second).user == user ? check_status() : 3;
}

TEST(test_another_user)
{
    pid_t service, program;

    if (!is_root)
        return;
    service = begin();
    CHECK(result_of(start_program(1, ask_twice)) == 0);
    DRAIN_UNTIL(shared->counts.given == 2 && shared->counts.clients == 0);
    (void)kill(service, SIGSTOP); /* it will find both questions at once */
    program = start_program(1 + USERS, ask_twice);
    CHECK(waitpid(program, NULL, WUNTRACED) == program && kill(service, SIGCONT) == 0);
    DRAIN_UNTIL(shared->counts.given == 3);
    CHECK(kill(program, SIGCONT) == 0 && result_of(program) == 0);
    end_test(service);
}

/* The store has each record that a program wrote, in one memory for each user. */
TEST(test_kills)
{
    const uint64_t got = kill_services();

    CHECK(is_what_they_got(written_to_all(), got));
    CHECK(store.count == (is_root ? USERS : 1));
    forget_all();
}

CHECK_MAIN_WITH((prepare(), seed = seed_begin()), clean_up())
