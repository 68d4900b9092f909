/*
 * The messages to systemd, read at a socket of the test's own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/base/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listener_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    CHECK(bind(fd, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) == 0);
    setenv("NOTIFY_SOCKET", path, 1);
    return fd;
}

static void check_next(int fd, const char *expected)
{
    char text[1024] = "";

    CHECK(recv(fd, text, sizeof(text) - 1, 0) >= 0);
    CHECK_TEXT(text, expected);
}

static void test_socket(const char *path)
{
    const int fd = listener_at(path);
    char text[1024] = "";

    CHECK(notify_has_store());
    notify("READY=1\nSTATUS=%d readers", 3);
    check_next(fd, "READY=1\nSTATUS=3 readers");
    notify_reloading();
    CHECK(recv(fd, text, sizeof(text) - 1, 0) > 0);
    CHECK(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27) == 0 && atoll(text + 27) > 0);
    close(fd);
}

/* With sd_notify() of libsystemd the test would hang here. */
static void test_nobody_reads(const char *path)
{
    const int fd = listener_at(path);
    char text[64];
    int count = 0;

    for (int i = 0; i < 5000; i++)
        notify("WATCHDOG=1");
    while (recv(fd, text, sizeof(text), 0) > 0)
        count++;
    CHECK(count > 0 && count < 5000);
    close(fd);
}

static void check_watchdog(const char *us, long pid, int64_t expected_ms)
{
    char text[32];

    snprintf(text, sizeof(text), "%ld", pid);
    setenv("WATCHDOG_USEC", us, 1);
    setenv("WATCHDOG_PID", text, 1);
    CHECK(notify_watchdog_ms() == expected_ms);
}

int main(void)
{
    char path[100], abstract[100];

    unsetenv("NOTIFY_SOCKET");
    notify("nobody listens");
    setenv("NOTIFY_SOCKET", "/nowhere", 1);
    notify("nobody listens");
    CHECK(!notify_has_store() && !notify_store(STDIN_FILENO, "nowhere"));
    snprintf(path, sizeof(path), "%.80s/notify", getenv("TMPDIR"));
    test_socket(path);
    unlink(path);
    test_nobody_reads(path);
    unlink(path);
    snprintf(abstract, sizeof(abstract), "@blkin-test-%ld", (long)getpid());
    test_socket(abstract);

    unsetenv("WATCHDOG_USEC");
    CHECK(notify_watchdog_ms() == 0);
    check_watchdog("30000000", (long)getpid(), 15000);
    check_watchdog("30000000", 1, 0);
    return check_status();
}
