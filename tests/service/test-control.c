/*
 * The Unix socket of a service: who asks gets an answer, who is slow or greedy harms nobody.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/base/control.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG 1000000 /* more than a socket takes at once */

static struct loop *loop;
static char folder[4096];

static void stop(void *context)
{
    (void)context;
    loop_stop(loop);
}

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
    text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    json = json_pack("{s: s}", "text", text);
    free(text);
    return json;
}

/* ---- what a child asks, while we serve */

static int ask(void *argument)
{
    const char *request = argument;
    struct error error = {""};
    json_t *json = control_ask(folder, "test", request, &error);

    if (strcmp(request, "status") == 0)
        CHECK_TEXT(json_string_value(json_object_get(json, "mode")), "test");
    else if (strcmp(request, "long") == 0)
        CHECK(strlen(json_string_value(json_object_get(json, "text"))) == LONG);
    else if (strcmp(request, "fail") == 0)
        CHECK_TEXT(error.text, "it went wrong");
    else
        CHECK_TEXT(error.text, "there is no such request: nonsense");
    json_decref(json);
    return check_status();
}

/* Connections that say nothing, more than there is room for; then one that asks. */
static int crowd(void *argument)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/test.sock", folder);
    for (int i = 0; i < 40; i++) {
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
        if (i % 2)
            CHECK(write(fd, "stat", 4) == 4);
    }
    return ask(argument);
}

static void child_ended(void *context, int status)
{
    (void)context;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    loop_stop(loop);
}

static void serve(int (*run)(void *), const char *request)
{
    struct child child = {.ended = child_ended};
    struct timer limit = {.due = stop};

    CHECK(child_start(loop, &child, run, (void *)(uintptr_t)request));
    timer_set(loop, &limit, 10000);
    CHECK(loop_run(loop) && child.pid == 0);
    timer_clear(loop, &limit);
}

/* ---- another one of the same name */

static int open_too(void *argument)
{
    const struct loop_signals signals = {stop, stop, NULL};
    struct error error = {""};
    char expected[128];

    (void)argument;
    CHECK(!control_open(loop_new(&signals), folder, "test", answer, NULL, &error));
    snprintf(expected, sizeof(expected),
             "another `blkin test` runs, process %ld:", (long)getppid());
    CHECK(strncmp(error.text, expected, strlen(expected)) == 0);
    return check_status();
}

static int outlive(void *argument)
{
    char byte;

    (void)prctl(PR_SET_PDEATHSIG, 0);
    return read(*(int *)argument, &byte, 1) != 0;
}

/* One that is killed leaves its socket, and a child of its own runs on. */
static void be_killed(int orphan_waits)
{
    const struct loop_signals signals = {stop, stop, NULL};
    struct loop *killed = loop_new(&signals);
    struct error error = {""};
    struct child child = {.ended = NULL};

    CHECK(control_open(killed, folder, "test", answer, NULL, &error) != NULL);
    CHECK(child_start(killed, &child, outlive, &orphan_waits));
    usleep(100000); /* or it would die with us before it says that it does not want to */
    (void)raise(SIGKILL);
}

/* Its child lives until the returned descriptor is closed. */
static int test_killed(void)
{
    int fds[2];
    int status;
    struct error error = {""};
    pid_t pid;

    CHECK(pipe(fds) == 0);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        be_killed(fds[0]);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(!control_ask(folder, "test", "status", &error));
    CHECK(strncmp(error.text, "no `blkin test` runs here: ", 27) == 0);
    close(fds[0]);
    return fds[1];
}

static void check_modes(void)
{
    char path[4200];
    struct stat status;

    CHECK(stat(folder, &status) == 0 && (status.st_mode & 0777) == 0700);
    snprintf(path, sizeof(path), "%s/test.sock", folder);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    snprintf(path, sizeof(path), "%s/test.lock", folder);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
}

static void remove_folder(void)
{
    char path[4200];

    snprintf(path, sizeof(path), "%s/test.lock", folder);
    CHECK(unlink(path) == 0);
    CHECK(rmdir(folder) == 0); /* the socket went with the service */
}

int main(void)
{
    const struct loop_signals signals = {stop, stop, NULL};
    struct error error = {""};
    struct control *control;
    int orphan;

    snprintf(folder, sizeof(folder), "%s/control", getenv("TMPDIR"));
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
    serve(ask, "status");
    serve(ask, "long");
    serve(ask, "fail");
    serve(ask, "nonsense");
    serve(crowd, "status");
    serve(open_too, NULL);
    control_close(control);
    loop_free(loop);
    remove_folder();
    close(orphan);
    return check_status();
}
