/*
 * Counts what recorded spans and their steps must not do: allocate, take a lock, enter the kernel.
 *
 * Allocations and locks are counted by functions of the same names, which the dynamic linker finds
 * first; system calls by a seccomp filter that makes each a signal. Two things do enter the kernel
 * and are not a span's: the chores of once a second, and LTTng's change to its next sub-buffer. So
 * the spans are counted in short runs, and the least run tells.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SPANS 250 /* of a run */
#define RUNS  10

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

#if defined(__x86_64__)
/* The one place whose system calls pass the filter. */
__asm__(".globl pass_on\n"
        "pass_on:\n"
        "    mov %rdi, %rax\n"
        "    mov (%rsi), %rdi\n"
        "    mov 16(%rsi), %rdx\n"
        "    mov 24(%rsi), %r10\n"
        "    mov 32(%rsi), %r8\n"
        "    mov 40(%rsi), %r9\n"
        "    mov 8(%rsi), %rsi\n"
        "    syscall\n"
        ".globl passed_on\n"
        "passed_on:\n"
        "    ret\n");
extern long pass_on(long number, const greg_t arguments[6]);
extern const char passed_on[];

/* LTTng does not bear that a call fails: it is made, late. */
static void count_syscall(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const greg_t arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                 registers[REG_R10], registers[REG_R8],  registers[REG_R9]};

    (void)signal;
    syscalls++;
    registers[REG_RAX] = pass_on(info->si_syscall, arguments);
}

/* Of the calling thread. */
static void trap_syscalls(void)
{
    const uint64_t pass = (uint64_t)(uintptr_t)passed_on;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    /* the signals that the thread has blocked may hide no system call */
    const struct sigaction action = {.sa_sigaction = count_syscall,
                                     .sa_flags = SA_SIGINFO | SA_NODEFER};

    if (sigaction(SIGSYS, &action, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror("bench-free: seccomp");
        exit(1);
    }
}
#else
#error "counts system calls on x86-64 only"
#endif

static void record(unsigned spans)
{
    struct blkin_context context;
    struct blkin_span span;

    for (unsigned i = 0; i < spans; i++) {
        blkin_span_begin(&span, "osd_op write", BLKIN_SERVER, NULL);
        blkin_span_annotate(&span, "queued");
        blkin_span_tag_string(&span, "object", "rbd_data.4f2a.01");
        blkin_span_tag_int64(&span, "offset", i);
        for (int step = 0; step < 12; step++) { /* more than the log holds */
            blkin_step_begin(&span, "replicate to a secondary", BLKIN_CLIENT);
            blkin_step_context(&span, &context);
            blkin_span_tag_int64(&span, "step", step);
            blkin_step_end(&span);
        }
        blkin_span_annotate(&span, "committed");
        blkin_span_end(&span);
    }
}

static unsigned long counted[3], counters_work;

static void keep_least(unsigned long *least, unsigned long value)
{
    if (value < *least)
        *least = value;
}

static void *count(void *nothing)
{
    record(2);
    trap_syscalls();
    counted[0] = counted[1] = counted[2] = SPANS;
    for (unsigned i = 0; i < RUNS; i++) {
        allocations = locks = syscalls = 0;
        record(SPANS);
        keep_least(&counted[0], allocations);
        keep_least(&counted[1], locks);
        keep_least(&counted[2], syscalls);
    }

    /* does each see what it is to see? */
    allocations = locks = syscalls = 0;
    {
        void *volatile block = malloc(1);

        free(block);
    }
    (void)getppid();
    blkin_set_sampling("always");
    counters_work = allocations == 2 && locks == 1 && syscalls == 1;
    return nothing;
}

int main(void)
{
    static const char *const names[] = {"allocations", "locks", "syscalls"};
    pthread_t thread;

    blkin_init();
    if (pthread_create(&thread, NULL, count, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    if (!blkin_is_on() || !counters_work) {
        fprintf(stderr, "bench-free: %s\n",
                counters_work ? "no session is on" : "a counter does not count");
        return 1;
    }
    for (unsigned i = 0; i < 3; i++)
        printf("%s %.6f 0 0\n", names[i], (double)counted[i] / SPANS);
    return 0;
}
