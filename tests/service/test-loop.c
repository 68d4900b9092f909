/*
 * The event loop: times, descriptors, children, tasks and signals.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/child.h"
#include "tools/base/say.h"
#include "tools/base/loop.h"
#include "waits.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char log_text[256]; /* the events, a letter each */

static void note(void *context)
{
    strcat(log_text, context);
}

static void begin(void)
{
    log_text[0] = '\0';
    loop = loop_new(&signals);
    CHECK(loop != NULL);
}

static void end(void)
{
    loop_free(loop);
}

TEST(test_times)
{
    struct timer a = {note, (char[]){"a"}, 0, NULL};
    struct timer b = {note, (char[]){"b"}, 0, NULL};
    struct timer c = {note, (char[]){"c"}, 0, NULL};
    struct timer d = {note, (char[]){"d"}, 0, NULL};
    int64_t before_ms;

    begin();
    do { /* again if a busy machine has spent the times before the loop runs */
        before_ms = clock_ms();
        timer_set(loop, &b, 20);
        timer_set(loop, &c, 30);
        timer_set(loop, &a, 500);
        timer_set(loop, &a, 1); /* again */
        timer_set(loop, &d, 5);
        timer_clear(loop, &d);
        timer_clear(loop, &d);
    } while (clock_ms() - before_ms > 10);
    run_for(60);
    CHECK_TEXT(log_text, "abc");
    CHECK(clock_ms() - before_ms >= 60);
    end();
}

/* ---- descriptors ---- */

struct loop_pair {
    struct watched a, b;
    int to_a, to_b;
};

static void unwatch_both(void *context)
{
    struct loop_pair *pair = context;

    CHECK((pair->a.found | pair->b.found) & POLLIN);
    strcat(log_text, "x");
    loop_unwatch(loop, &pair->a);
    loop_unwatch(loop, &pair->b);
    loop_stop(loop);
}

TEST(test_descriptors)
{
    struct loop_pair pair;
    int fds[2];

    begin();
    CHECK(pipe(fds) == 0);
    pair.a = (struct watched){fds[0], POLLIN, unwatch_both, &pair, NULL, 0};
    pair.to_a = fds[1];
    CHECK(pipe(fds) == 0);
    pair.b = (struct watched){fds[0], POLLIN, unwatch_both, &pair, NULL, 0};
    pair.to_b = fds[1];
    loop_watch(loop, &pair.a);
    loop_watch(loop, &pair.b);
    CHECK(write(pair.to_a, "1", 1) == 1 && write(pair.to_b, "1", 1) == 1);
    run_for(PATIENCE_MS);
    CHECK_TEXT(log_text, "x"); /* both were ready; the first has removed the second */
    end();
    close(pair.a.fd);
    close(pair.b.fd);
    close(pair.to_a);
    close(pair.to_b);
}

/* ---- children ---- */

static int status_of_child;

static void child_ended(void *context, int status)
{
    struct child *child = context;

    CHECK(child->pid == 0);
    status_of_child = status;
    loop_stop(loop);
}

/* A child has default signals, and none of its parent's descriptors: write() to one of them fails
 * with EBADF. */
static int look_around(const void *order, size_t size)
{
    struct sigaction action;
    sigset_t blocked;
    int signal_of_death = 0;

    if (sigprocmask(SIG_SETMASK, NULL, &blocked) != 0 || sigismember(&blocked, SIGTERM))
        return 1;
    if (sigaction(SIGUSR1, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        return 2;
    if (prctl(PR_GET_PDEATHSIG, &signal_of_death) != 0 || signal_of_death != SIGKILL)
        return 3;
    if (size != sizeof(int) || write(*(const int *)order, "1", 1) >= 0 || errno != EBADF)
        return 4;
    return 42;
}

static int raise_signal(const void *order, size_t size)
{
    (void)size;
    return raise(*(const int *)order);
}

static int end_in_order(const void *order, size_t size)
{
    sigset_t pending;

    (void)order;
    (void)size;
    (void)kill(getpid(), SIGTERM);
    if (sigpending(&pending) != 0 || !sigismember(&pending, SIGTERM))
        return 1;
    (void)signal(SIGTERM, SIG_IGN);
    job_unblock_end();
    return sigpending(&pending) == 0 && !sigismember(&pending, SIGTERM) ? 43 : 2;
}

static int print_lines(const void *order, size_t size)
{
    puts("one");
    fflush(stdout);
    fwrite(order, 1, size, stderr);
    return 0;
}

static const struct job look_around_job = {.name = "look-around", .run = look_around};
static const struct job raise_signal_job = {.name = "raise-signal", .run = raise_signal};
static const struct job end_in_order_job = {
    .name = "end-in-order", .run = end_in_order, .ends_cleanly = true};
static const struct job print_lines_job = {.name = "print-lines", .run = print_lines};

static bool starts(struct child *child, const struct job *job, int number)
{
    const struct child_order order = {.job = job, .bytes = &number, .size = sizeof(number)};

    return child_start(loop, child, &order);
}

/* The loop logs a child's output line by line, also a last line without a newline. */
TEST(test_output)
{
    struct child child = {.ended = child_ended, .context = &child};
    struct output_lines lines = {.source = "child", .input = {.fd = -1}};
    const char text[] = "two\nthree";
    const struct child_order order = {
        .job = &print_lines_job, .bytes = text, .size = sizeof(text) - 1, .lines = &lines};
    json_t *last;

    begin();
    say_open("test-loop", "none");
    CHECK(child_start(loop, &child, &order));
    run_for(PATIENCE_MS);
    output_lines_close(&lines);
    CHECK(status_of_child == 0);
    last = say_last();
    CHECK(json_array_size(last) == 3);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(last, 2), "text")), "child: three");
    json_decref(last);
    end();
}

TEST(test_children)
{
    struct child child = {.ended = child_ended, .context = &child};
    int fds[2];
    struct watched watched = {-1, POLLIN, NULL, NULL, NULL, 0};

    begin();
    (void)signal(SIGUSR1, SIG_IGN);
    CHECK(pipe(fds) == 0);
    watched.fd = fds[1];
    watched.events = 0;
    loop_watch(loop, &watched);
    CHECK(starts(&child, &look_around_job, fds[1]) && child.pid > 0);
    run_for(PATIENCE_MS);
    CHECK(WIFEXITED(status_of_child) && WEXITSTATUS(status_of_child) == 42);
    loop_unwatch(loop, &watched);
    close(fds[0]);
    close(fds[1]);
    CHECK(starts(&child, &raise_signal_job, SIGKILL));
    run_for(PATIENCE_MS);
    CHECK(WIFSIGNALED(status_of_child) && WTERMSIG(status_of_child) == SIGKILL);
    CHECK(starts(&child, &end_in_order_job, 0));
    run_for(PATIENCE_MS);
    CHECK(WIFEXITED(status_of_child) && WEXITSTATUS(status_of_child) == 43);
    end();
}

/* ---- tasks ---- */

#define LONG_RESULT 200000 /* more than a pipe takes at once */

struct numbers {
    int value[LONG_RESULT / sizeof(int)];
};

static bool count_up(const void *argument, void *result)
{
    struct numbers *numbers = result;

    for (size_t i = 0; i < sizeof(numbers->value) / sizeof(int); i++)
        numbers->value[i] = *(const int *)argument + (int)i;
    return true;
}

static bool fail(const void *argument, void *result)
{
    (void)argument;
    *(int *)result = 1;
    return false;
}

static bool hang(const void *argument, void *result)
{
    (void)argument;
    (void)result;
    pause();
    return true;
}

static bool be_killed(const void *argument, void *result)
{
    (void)argument;
    (void)result;
    return raise(SIGKILL) == 0;
}

static const char *outcome; /* "yes": with a result */

static void task_done(void *context, const void *result)
{
    const size_t last = LONG_RESULT / sizeof(int) - 1;

    (void)context;
    outcome = result ? "yes" : "no";
    if (result)
        CHECK(((const struct numbers *)result)->value[last] == 7 + (int)last);
    loop_stop(loop);
}

static const struct job count_up_job = {
    .name = "count-up", .fill = count_up, .result_size = LONG_RESULT};
static const struct job fail_job = {.name = "fail", .fill = fail, .result_size = sizeof(int)};
static const struct job hang_job = {.name = "hang", .fill = hang, .result_size = sizeof(int)};
static const struct job be_killed_job = {
    .name = "be-killed", .fill = be_killed, .result_size = sizeof(int)};

static void check_task(const struct job *job, const char *expected, int64_t limit_ms)
{
    struct task task = {.done = task_done};
    const int argument = 7;

    outcome = "not at all";
    CHECK(task_start(loop, &task, job, &argument, sizeof(argument), limit_ms));
    run_for(PATIENCE_MS);
    CHECK_TEXT(outcome, expected);
}

/* The process that does the tasks, and counts them. */
struct server {
    pid_t pid;
    int times;
};

static bool serve(const void *argument, void *result)
{
    static int times;
    struct server *server = result;

    *server = (struct server){getpid(), ++times};
    return *(const int *)argument == 7;
}

static const struct job serve_job = {
    .name = "serve", .fill = serve, .result_size = sizeof(struct server), .stays = true};
static struct server served;

static void on_served(void *context, const void *result)
{
    (void)context;
    served = result ? *(const struct server *)result : (struct server){0, 0};
    loop_stop(loop);
}

static void ask_server(struct task *task, int argument)
{
    CHECK(task_start(loop, task, &serve_job, &argument, sizeof(argument), 40000));
    CHECK(task->is_running);
    run_for(PATIENCE_MS);
    CHECK(!task->is_running);
}

/* One child does all tasks, also after one that has failed. A killed child is replaced. */
TEST(test_child_that_stays)
{
    struct task task = {.done = on_served};
    siginfo_t ended;
    pid_t first;

    begin();
    ask_server(&task, 7);
    first = served.pid;
    CHECK(first > 0 && served.times == 1);
    ask_server(&task, 8);
    CHECK(served.pid == 0);
    ask_server(&task, 7);
    CHECK(served.pid == first && served.times == 3);
    CHECK(kill(first, SIGKILL) == 0);
    CHECK(waitid(P_PID, (id_t)first, &ended, WEXITED | WNOWAIT) == 0);
    run_for(100);
    ask_server(&task, 7);
    CHECK(served.pid != first && served.times == 1);
    first = served.pid;
    CHECK(kill(first, SIGKILL) == 0);
    /* the loop does not know yet */
    CHECK(waitid(P_PID, (id_t)first, &ended, WEXITED | WNOWAIT) == 0);
    ask_server(&task, 7);
    CHECK(served.pid != first && served.times == 1);
    end();
}

TEST(test_tasks)
{
    begin();
    check_task(&count_up_job, "yes", 40000);
    check_task(&fail_job, "no", 40000);
    check_task(&be_killed_job, "no", 40000);
    check_task(&hang_job, "no", 20);
    check_task(&count_up_job, "yes", 40000); /* a hanging task does not block others */
    end();
}

/* ---- jobs in threads ---- */

static bool may_end;

static void run_until_told(void *context)
{
    (void)context;
    for (int64_t end_ms = 0;
         !__atomic_load_n(&may_end, __ATOMIC_ACQUIRE) && wait_up_to(PATIENCE_MS, &end_ms);)
        ;
}

static void note_and_stop(void *context)
{
    note(context);
    loop_stop(loop);
}

/* The loop may call ready() once too often: the number of a closed descriptor may belong to a new
 * one. */
TEST(test_thread_job)
{
    static char done[] = "d";
    struct thread_job job = {.run = run_until_told, .done = note_and_stop, .context = done};

    begin();
    CHECK(thread_job_start(loop, &job));
    job.end.ready(job.end.context);
    CHECK_TEXT(log_text, "");
    CHECK(job.is_running);
    __atomic_store_n(&may_end, true, __ATOMIC_RELEASE);
    run_for(PATIENCE_MS);
    CHECK_TEXT(log_text, "d");
    CHECK(!job.is_running);
    end();
}

/* ---- signals ---- */

TEST(test_signals)
{
    static char ended[] = "e";
    const struct loop_signals noted = {note, note, ended};

    log_text[0] = '\0';
    loop = loop_new(&noted);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    kill(getpid(), SIGHUP);
    for (int64_t end_ms = 0; strlen(log_text) < 3 && wait_up_to(PATIENCE_MS, &end_ms);)
        run_for(20);
    CHECK_TEXT(log_text, "eee");
    end();
}

/* ---- sigprocmask(2) fails */

static bool has_no_mask;

int __real_sigprocmask(int how, const sigset_t *set, sigset_t *before);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *before);

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    if (!has_no_mask)
        return __real_sigprocmask(how, set, before);
    errno = EINVAL;
    return -1;
}

/* A loop that cannot be made leaves no descriptor open. */
TEST(test_no_mask)
{
    const int before = dup(0);
    int after;

    CHECK(before >= 0 && close(before) == 0);
    has_no_mask = true;
    errno = 0;
    CHECK(loop_new(&signals) == NULL);
    CHECK(errno == EINVAL);
    has_no_mask = false;
    after = dup(0);
    CHECK(after == before);
    close(after);
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {
        &look_around_job, &raise_signal_job, &end_in_order_job, &print_lines_job, &count_up_job,
        &fail_job,        &hang_job,         &be_killed_job,    &serve_job,       NULL};
    int status;

    if (job_run_in_child(argc, argv, jobs, &status))
        return status;
    check_run();
    return check_status();
}
