/*
 * The Unix socket of a service answers its clients, and slow or greedy ones harm no other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "tools/base/child.h"
#include "tools/base/control.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTROL_LONG 1000000 /* more than a socket takes at once */

static char folder[4096];

static json_t *answer(void *context, const char *request)
{
    char *text;
    json_t *json;

    (void)context;
    if (strcmp(request, "status") == 0)
        return json_pack("{s: s}", "mode", "test");
    if (strcmp(request, "fail") == 0)
        return json_pack("{s: s}", "error", "it went wrong");
    if (strcmp(request, "long") != 0)
        return NULL;
    text = calloc(1, CONTROL_LONG + 1);
    memset(text, 'x', CONTROL_LONG);
    json = json_pack("{s: s}", "text", text);
    free(text);
    return json;
}

/* ---- requests of a child while the test serves */

struct control_asking {
    char folder[4096], request[64];
};

/* Sets `folder` from the order. Returns the order's request. */
static const char *request_of(const void *order)
{
    const struct control_asking *asking = order;

    (void)snprintf(folder, sizeof(folder), "%s", asking->folder);
    return asking->request;
}

static int ask(const void *order, size_t size)
{
    const char *request = request_of(order);
    struct error error = {""};
    json_t *json;
    char too_long[5000] = "";

    (void)size;
    do /* again if the test stood still for 5 s */
        json = control_ask(folder, "test", request, &error);
    while (!json && strstr(error.text, "does not answer"));
    if (strcmp(request, "status") == 0)
        CHECK_TEXT(json_string_value(json_object_get(json, "mode")), "test");
    else if (strcmp(request, "long") == 0)
        CHECK(strlen(json_string_value(json_object_get(json, "text"))) == CONTROL_LONG);
    else if (strcmp(request, "fail") == 0)
        CHECK_TEXT(error.text, "it went wrong");
    else
        CHECK_TEXT(error.text, "there is no such request: nonsense");
    json_decref(json);
    memset(too_long, 'x', sizeof(too_long) - 1);
    CHECK(!control_ask(folder, "test", too_long, &error));
    CHECK(strstr(error.text, "Message too long") != NULL);
    return check_status();
}

/* Idle connections, more than the socket has room for; then one with a request. */
static int crowd(const void *order, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)request_of(order);
    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/test.sock", folder);
    for (int i = 0; i < 40; i++) {
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
        if (i % 2)
            CHECK(send(fd, "stat", 4, MSG_NOSIGNAL) == 4 || errno == EPIPE); /* after 5 s */
    }
    return ask(order, size);
}

static void child_ended(void *context, int status)
{
    (void)context;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    loop_stop(loop);
}

static const struct job ask_job = {.name = "ask", .run = ask};
static const struct job crowd_job = {.name = "crowd", .run = crowd};

static void serve(const struct job *job, const char *request)
{
    struct control_asking asking = {.folder = ""};
    const struct child_order order = {.job = job, .bytes = &asking, .size = sizeof(asking)};
    struct child child = {.ended = child_ended};

    (void)snprintf(asking.folder, sizeof(asking.folder), "%s", folder);
    (void)snprintf(asking.request, sizeof(asking.request), "%s", request);
    CHECK(child_start(loop, &child, &order));
    run_for(60000);
    CHECK(child.pid == 0);
}

/* ---- another service of the same name */

static int open_too(const void *order, size_t size)
{
    struct loop *own = loop_new(&signals);
    struct error error = {""};
    char expected[128];

    (void)size;
    (void)request_of(order);
    CHECK(!control_open(own, folder, "test", answer, NULL, &error));
    loop_free(own);
    snprintf(expected, sizeof(expected),
             "another `blkin test` runs, process %ld:", (long)getppid());
    CHECK(strncmp(error.text, expected, strlen(expected)) == 0);
    return check_status();
}

static const struct job open_too_job = {.name = "open-too", .run = open_too};

/* A child that does not die with its parent. The child reports its start by its standard output, a
 * socket. Then the child waits until the test closes the peer. */
static int outlive(const void *order, size_t size)
{
    char byte;

    (void)order, (void)size;
    (void)prctl(PR_SET_PDEATHSIG, 0);
    return write(STDOUT_FILENO, "", 1) != 1 || read(STDOUT_FILENO, &byte, 1) != 0;
}

static const struct job outlive_job = {.name = "outlive", .run = outlive};

/* A killed service leaves its socket, and its child runs on. */
static void wait_for_kill(int orphan_waits)
{
    struct loop *killed = loop_new(&signals);
    struct error error = {""};
    struct child child = {.ended = NULL};

    CHECK(control_open(killed, folder, "test", answer, NULL, &error) != NULL);
    CHECK(child_start(
        killed, &child,
        &(struct child_order){.job = &outlive_job, .bytes = "", .output = orphan_waits}));
    (void)pause();
}

/* Returns a descriptor: the killed service's child lives until the test closes the descriptor. */
static int test_killed(void)
{
    int fds[2], status;
    struct error error = {""};
    char byte;
    pid_t pid;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        wait_for_kill(fds[0]);
    }
    CHECK(read(fds[1], &byte, 1) == 1 && kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(!control_ask(folder, "test", "status", &error));
    CHECK(strncmp(error.text, "no `blkin test` runs here: ", 27) == 0);
    close(fds[0]);
    return fds[1];
}

static void check_modes(void)
{
    static const struct {
        const char *path;
        mode_t mode;
    } of[] = {
        {"", 0700}, {"/..", 0755}, {"/../..", 0700}, {"/test.sock", 0600}, {"/test.lock", 0600}};
    char path[4200];
    struct stat status;

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        snprintf(path, sizeof(path), "%s%s", folder, of[i].path);
        CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == of[i].mode);
    }
}

/* A service that hangs, with a full queue of clients, runs, but does not answer. */
static void test_full_queue(void)
{
    struct error error;
    char path[4200];

    snprintf(path, sizeof(path), "%s/test.sock", folder);
    while (unix_socket_connect(SOCK_STREAM, path, &error) >= 0)
        continue;
    CHECK(!control_ask(folder, "test", "status", &error));
    CHECK(strncmp(error.text, "`blkin test` does not answer: ", 30) == 0);
}

static void remove_folder(void)
{
    char path[4200];

    snprintf(path, sizeof(path), "%s/test.lock", folder);
    CHECK(unlink(path) == 0);
    CHECK(rmdir(folder) == 0); /* the socket ended with the service */
    for (int above = 0; above < 2; above++) {
        *strrchr(folder, '/') = '\0';
        CHECK(rmdir(folder) == 0);
    }
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&ask_job, &crowd_job, &open_too_job, &outlive_job,
                                             NULL};
    struct error error = {""};
    struct control *control;
    int orphan, status;

    if (job_run_in_child(argc, argv, jobs, &status))
        return status;
    snprintf(folder, sizeof(folder), "%s/u/b/control", getenv("TMPDIR"));
    CHECK(!control_ask(folder, "test", "status", &error));
    CHECK(strncmp(error.text, "no `blkin test` runs here: ", 27) == 0);
    orphan = test_killed();
    loop = loop_new(&signals);
    control = control_open(loop, folder, "test", answer, NULL, &error);
    if (!control) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    check_modes();
    test_full_queue();
    serve(&ask_job, "status");
    serve(&ask_job, "long");
    serve(&ask_job, "fail");
    serve(&ask_job, "nonsense");
    serve(&crowd_job, "status");
    serve(&open_too_job, "");
    control_close(control);
    loop_free(loop);
    remove_folder();
    close(orphan);
    return check_status();
}
