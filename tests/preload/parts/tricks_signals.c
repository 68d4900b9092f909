/*
 * Tricks with threads, and with signals.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload/parts/tricks.h"
#include "waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static void was_cancelled(void *count)
{
    ++*(int *)count;
}

static int cancelled;

/* Calls that wait: those that read, those of `waits`, and one that sends no byte of the answer. */
static const char *const waits[] = {"poll one", "poll",       "ppoll",       "select",
                                    "pselect",  "epoll_wait", "epoll_pwait", "epoll_pwait2",
                                    "accept",   "accept4"};
enum {
    WAYS_TO_READ = 6,
    FIRST_ACCEPT = WAYS_TO_READ + 8,
    WRITE = WAYS_TO_READ + sizeof(waits) / sizeof(waits[0])
};

static void wait_for_ever(int how, int fd)
{
    static char much[8 << 20];

    if (how < WAYS_TO_READ)
        (void)take_by((unsigned)how, fd, much, 1);
    else if (how < WRITE)
        (void)wait_by(waits[how - WAYS_TO_READ], how < FIRST_ACCEPT ? fd : listener);
    else
        give_all(0, fd, much, sizeof(much));
}

struct victim {
    int how, fd;
    bool is_ready; /* all steps before the wait are done */
};

/* Fills the socket by raw calls with data that nobody reads, so that a write() sends no byte. Since
 * glibc 2.41 a write() that has sent some bytes is not cancelled, but returns. On a busy machine
 * the kernel moves data to the peer later, which makes room again. */
static void fill(int fd)
{
    static const char much[65536];

    for (int full = 0; full < 20; full++) {
        while (syscall(SYS_sendto, fd, much, sizeof(much), MSG_DONTWAIT, NULL, 0) > 0)
            full = 0;
        pause_us(5000);
    }
}

static void *be_cancelled(void *argument)
{
    struct victim *victim = argument;

    pthread_cleanup_push(was_cancelled, &cancelled);
    if (victim->how == WRITE) {
        take_request(victim->fd);
        fill(victim->fd);
    }
    __atomic_store_n(&victim->is_ready, true, __ATOMIC_RELEASE);
    wait_for_ever(victim->how, victim->fd);
    err(1, "not cancelled");
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_in(int how, int fd)
{
    struct victim victim = {how, fd, false};
    pthread_t thread;
    void *result;

    if (pthread_create(&thread, NULL, be_cancelled, &victim) != 0)
        err(1, "thread");
    for (int64_t end_ms = 0; !__atomic_load_n(&victim.is_ready, __ATOMIC_ACQUIRE);)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            err(1, "not ready");
    pause_us(5000); /* until the thread is in its call */
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d %d %d\n", how, result == PTHREAD_CANCELED, cancelled);
}

/* 2 requests, before and after threads are cancelled in every call that waits. A third request gets
 * no answer, because its thread is cancelled in the write. */
TRICK(cancelling)
{
    const int ours = connect_to(port, 0), fd = accept_one();

    for (int i = 0; i < 2; i++) {
        request(ours);
        serve(fd);
        take_answer(ours);
        for (int how = 0; how < WRITE && i == 0; how++)
            cancel_in(how, fd);
    }
    request(ours);
    cancel_in(WRITE, fd);
    close(ours);
    close(fd);
}

static volatile sig_atomic_t signalled;

/* Answers once. On a busy machine the first signal may arrive before the read; then the next signal
 * ends the read. */
static void on_signal(int number)
{
    static const char text[] = "x";
    const int fd = signalled;

    (void)number;
    signalled = -1;
    if (fd >= 0 && write(fd, text, 1) != 1)
        _exit(3);
}

/* 1 request: a signal handler sends a byte of the answer while its thread waits to read. */
TRICK(signalling)
{
    const int ours = connect_to(port, 0), fd = accept_one();
    struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {0};
    char line[LINE + 1], byte;
    ssize_t result;

    signalled = fd;
    sigaction(SIGALRM, &action, NULL);
    line_write(line, next_id(), 0, 1);
    give_all(0, ours, line, LINE);
    take_request(fd);
    setitimer(ITIMER_REAL, &often, NULL);
    result = read(fd, &byte, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("interrupted %zd %d\n", result, errno);
    if (!take_all(0, ours, &byte, 1))
        err(1, "answer");
    close(ours);
    expect_end(fd);
}

static sigjmp_buf before_call;

static void leave_call(int number)
{
    (void)number;
    siglongjmp(before_call, 1);
}

/* Sets a timer that sends one SIGALRM; 0: none. Repeated signals could nest, because siglongjmp()
 * unblocks them before it leaves the handler's stack. */
static void signal_in_us(int us)
{
    const struct itimerval once = {.it_value.tv_usec = us};

    if (setitimer(ITIMER_REAL, &once, NULL) < 0)
        err(1, "setitimer");
}

#define JUMPS 20000

/* Makes calls until siglongjmp() has left JUMPS of them, each at a random point. */
static void make_calls(int fd)
{
    static volatile int jumps;
    struct pollfd polled[2] = {{fd, POLLIN, 0}, {fd, POLLIN, 0}};
    char byte;

    if (sigsetjmp(before_call, 1))
        jumps++;
    signal_in_us(jumps < JUMPS ? 20 : 0);
    while (jumps < JUMPS) {
        if (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || poll(polled, 2, 0) != 0)
            err(1, "nothing is to be read");
    }
}

/* Begins an answer of which no byte is sent. The timer's handler leaves the write. */
static void begin_answer(int fd)
{
    char much[65536] = ""; /* in the frame: the library knows a left call by its lower frame */

    take_request(fd);
    fill(fd);
    if (sigsetjmp(before_call, 1) == 0) {
        signal_in_us(20000);
        give_all(0, fd, much, sizeof(much));
        err(1, "not left");
    }
}

/* 3 requests, between which a signal handler leaves calls by siglongjmp(3). The first span is
 * recorded before, so that no jump leaves LTTng's code. A fourth request gets no answer, because a
 * jump leaves the write. */
TRICK(jumping)
{
    int ours[2], theirs[2];
    struct pollfd polled[2];

    for (int i = 0; i < 2; i++) {
        ours[i] = connect_to(port, 0);
        theirs[i] = accept_one();
    }
    signal(SIGALRM, leave_call);
    for (int i = 0; i < 3; i++) {
        request(ours[1]);
        serve(theirs[1]);
        take_answer(ours[1]);
        polled[0] = polled[1] = (struct pollfd){theirs[1], POLLIN, 0};
        if (poll(polled, 2, 1000) != 0)
            err(1, "nothing is to be read");
        if (i == 0) {
            make_calls(theirs[1]);
        } else if (i == 1) {
            request(ours[0]);
            begin_answer(theirs[0]);
            close(ours[0]);
            close(theirs[0]);
        }
    }
    printf("has jumped\n");
    close(ours[1]);
    expect_end(theirs[1]);
}

#define ABANDONED 2000

/* Makes requests until a handler leaves by siglongjmp(3), at any instruction: often in the middle
 * of recording, also inside LTTng. */
static void abandon(int ours, int theirs)
{
    char line[LINE + 1], answer[OUT];

    line_write(line, next_id(), 0, OUT);
    if (sigsetjmp(before_call, 1))
        return;
    signal_in_us(50 + rand() % 100);
    for (;;) {
        give_all(0, ours, line, LINE);
        serve(theirs);
        if (!take_all(0, ours, answer, OUT))
            err(1, "answer");
    }
}

/* The program must end. */
TRICK(abandoning)
{
    signal(SIGALRM, leave_call);
    for (int i = 0; i < ABANDONED; i++) {
        const int ours = connect_to(port, 0), theirs = accept_one();

        abandon(ours, theirs);
        close(ours);
        close(theirs);
    }
}

static volatile int wakings;

/* Calls that a handler may make if signals are unblocked only around a wait. PostgreSQL forks
 * there. */
static void allocate_and_fork(int number)
{
    static void *last;
    void *next = malloc(100000);
    pid_t child;

    (void)number;
    free(last);
    last = next;
    if (wakings++ % 50 != 0)
        return;
    child = fork();
    if (child == 0)
        _exit(0);
    if (waitpid(child, NULL, 0) != child)
        _exit(3);
}

/* No request: a server whose first waits are interrupted again and again. */
TRICK(waking)
{
    struct sigaction action = {.sa_handler = allocate_and_fork};
    const struct itimerval often = {{0, 20}, {0, 20}}, never = {0};
    sigset_t alarm;
    int status;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (wakings < 2000) {
        struct timeval soon = {0, 1000};
        fd_set set;

        FD_ZERO(&set);
        FD_SET(listener, &set);
        sigprocmask(SIG_UNBLOCK, &alarm, NULL);
        status = select(listener + 1, &set, NULL, NULL, &soon);
        sigprocmask(SIG_BLOCK, &alarm, NULL);
        if (status > 0 || (status < 0 && errno != EINTR))
            err(1, "select");
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("has woken up\n");
}

static int count_lines(const char *path, const char *word)
{
    char line[512];
    FILE *file = fopen(path, "r");
    int count = 0;

    if (!file)
        err(1, "%s", path);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}

#define LIMITERS 4
static pthread_barrier_t limiters;

static void *limit_threads(void *unused)
{
    struct rlimit limit;
    int tasks = 0;
    DIR *folder;

    pthread_barrier_wait(&limiters);
    if (getrlimit(RLIMIT_NPROC, &limit) < 0 || setrlimit(RLIMIT_NPROC, &limit) < 0)
        err(1, "RLIMIT_NPROC");
    if (!getenv("LD_PRELOAD"))
        return unused;
    if (count_lines("/proc/self/maps", "/libblkin-lttng.so") == 0)
        err(1, "LTTng was not loaded before the limit on threads");
    if (!(folder = opendir("/proc/self/task")))
        err(1, "tasks");
    while (readdir(folder))
        tasks++;
    closedir(folder);
    if (tasks < 2 + LIMITERS + 1 + 2) /* ".", "..", these threads, main's, LTTng's two */
        err(1, "LTTng's threads were not there before the limit on threads");
    pthread_barrier_wait(&limiters); /* all have counted */
    return unused;
}

/* Each thread of a server sets RLIMIT_NPROC, as haproxy 3 does. LTTng must be loaded before the
 * first thread does so. */
TRICK(limiting)
{
    pthread_t threads[LIMITERS];

    pthread_barrier_init(&limiters, NULL, LIMITERS);
    for (int i = 0; i < LIMITERS; i++)
        pthread_create(&threads[i], NULL, limit_threads, NULL);
    for (int i = 0; i < LIMITERS; i++)
        pthread_join(threads[i], NULL);
}
