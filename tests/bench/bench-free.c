/*
 * Counts what recorded spans must not do: allocate, take a lock, enter the kernel.
 *
 * Allocations and locks are counted by functions of the same names, which the dynamic linker finds
 * first; system calls by a seccomp filter that makes each a signal. (The once-a-second chores of a
 * process do enter the kernel, so the first span, which does them, comes before the counting.)
 * Prints three lines: name, events per span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPANS 100000

static _Thread_local volatile unsigned long allocations, locks, syscalls;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

__attribute__((visibility("default"))) void free(void *old)
{
    allocations++;
    __libc_free(old);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);

    locks++;
    if (!real)
        real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return real(mutex);
}

/* The call has not been made; it fails. */
static void count_syscall(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    syscalls++;
}

static void trap_syscalls(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    const struct sigaction action = {.sa_sigaction = count_syscall, .sa_flags = SA_SIGINFO};

    if (sigaction(SIGSYS, &action, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror("bench-free: seccomp");
        exit(1);
    }
}

static void record(unsigned spans)
{
    struct blkin_span span;

    for (unsigned i = 0; i < spans; i++) {
        blkin_span_begin(&span, "osd_op write", BLKIN_SERVER, NULL);
        blkin_span_annotate(&span, "queued");
        blkin_span_tag_string(&span, "object", "rbd_data.4f2a.01");
        blkin_span_tag_int64(&span, "offset", i);
        blkin_span_annotate(&span, "committed");
        blkin_span_end(&span);
    }
}

static unsigned long counted[3], counters_work;

static void *count(void *nothing)
{
    record(2);
    trap_syscalls();
    allocations = locks = syscalls = 0;
    record(SPANS);
    counted[0] = allocations;
    counted[1] = locks;
    counted[2] = syscalls;

    /* does each see what it is to see? */
    free(malloc(1));
    (void)getppid();
    blkin_set_sampling("always");
    counters_work = allocations > counted[0] && locks > counted[1] && syscalls > counted[2];
    return nothing;
}

int main(void)
{
    static const char *const names[] = {"allocations", "locks", "syscalls"};
    pthread_t thread;

    blkin_init();
    if (pthread_create(&thread, NULL, count, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    if (!blkin_is_on_() || !counters_work) {
        fprintf(stderr, "bench-free: %s\n",
                counters_work ? "no session is on" : "a counter does not count");
        return 1;
    }
    for (unsigned i = 0; i < 3; i++)
        printf("%s %.6f 0 0\n", names[i], (double)counted[i] / SPANS);
    return 0;
}
