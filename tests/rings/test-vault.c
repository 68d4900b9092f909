/*
 * The process that keeps descriptors: as many as it is given, each once, and it can be found while
 * a service has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/rings/fdstore.h"
#include "waits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORIES 600
#define LOOKS    50

static char path[150];
static struct error error;
static unsigned kept, kept_of[MEMORIES];

static void count_kept(void *context, int fd, const char *name)
{
    uint32_t user;
    uint64_t number;

    (void)context;
    CHECK(fdstore_is_name(name, &user, &number) && user < MEMORIES);
    kept++;
    kept_of[user]++;
    (void)close(fd);
}

static int connect_to(void)
{
    int vault;

    vault_open(&vault, NULL, path, count_kept, NULL, &error);
    CHECK(vault >= 0);
    return vault;
}

/* While the vault is behind: it goes on when the service waits for it. */
static void put_all(int vault, pid_t keeper)
{
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const pid_t service = getpid();
    char name[FDSTORE_NAME_MAX];
    int status = 1;
    pid_t waker;

    CHECK(kill(keeper, SIGSTOP) == 0);
    waker = fork();
    if (waker == 0) {
        WAIT_UNTIL(is_asleep(service));
        CHECK(kill(keeper, SIGCONT) == 0);
        _exit(check_status());
    }
    for (uint32_t user = 0; user < MEMORIES; user++) {
        fdstore_name(user, 1, name);
        CHECK(vault_put(vault, fd, name));
    }
    (void)close(fd);
    CHECK(waitpid(waker, &status, 0) == waker && status == 0);
}

static void test_all(pid_t keeper)
{
    int vault = connect_to();

    CHECK(kept == 0);
    put_all(vault, keeper);
    (void)close(vault); /* as if the service was killed */
    vault = connect_to();
    CHECK(kept == MEMORIES);
    put_all(vault, keeper);
    (void)close(vault);
    kept = 0;
    memset(kept_of, 0, sizeof(kept_of));
    vault = connect_to();
    CHECK(kept == MEMORIES);
    for (uint32_t user = 0; user < MEMORIES; user++)
        CHECK(kept_of[user] == 1);
    (void)close(vault);
}

/* It serves who has connected first, so nobody else hears from it. */
static void test_found(pid_t keeper)
{
    const int vault = connect_to();

    for (int i = 0; i < LOOKS; i++)
        CHECK(vault_pid(path) == keeper);
    (void)close(vault);
}

int main(void)
{
    const char *where = getenv("TMPDIR");
    pid_t keeper;

    (void)snprintf(path, sizeof(path), "%s/vault.%ld", where ? where : "/tmp", (long)getpid());
    keeper = fork();
    if (keeper == 0)
        _exit(vault_run(path));
    WAIT_UNTIL(access(path, F_OK) == 0);
    test_all(keeper);
    test_found(keeper);
    (void)kill(keeper, SIGKILL);
    (void)waitpid(keeper, NULL, 0);
    (void)unlink(path);
    return check_status();
}
