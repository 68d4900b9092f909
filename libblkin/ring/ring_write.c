/*
 * The restartable sequence.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_write.h"

#include <dlfcn.h>
#include <unistd.h>

#define RING_TRIES 16

uint32_t ring_pid;

/* What the kernel keeps of a thread: the beginning of its struct rseq. */
struct ring_thread {
    uint32_t cpu_id_start; /* always a CPU's number */
    uint32_t cpu_id;       /* the same; of a thread that is not registered: no CPU's */
    uint64_t sequence;     /* the address of what the thread is in, or 0 */
};

static ptrdiff_t ring_thread_at; /* from the thread pointer */

/* What a sequence is to do. All pointers are into the memory, but for `payload`. */
struct ring_store {
    uint64_t *committed;
    uint64_t before, after; /* values of *committed */
    char *to;
    const void *payload;
    size_t length; /* 0: only the trailer */
    char *trailer_at;
    uint64_t trailer;
    uint64_t head; /* struct ring_record */
};

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

static inline struct ring_thread *ring_this_thread(void)
{
    char *pointer;

    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return (struct ring_thread *)(void *)(pointer + ring_thread_at);
}

/*
 * False: nothing is committed. The sequence is from 1 to 2; if the kernel finds the thread within,
 * it lets it go on at 4. The descriptor (3) may be unmapped with this library, so that the thread
 * must not refer to it later.
 */
static inline __attribute__((always_inline)) bool
ring_commit(struct ring_thread *self, uint32_t cpu, const struct ring_store *store)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"
                 ".balign 32\n\t"
                 "3:\n\t"
                 ".long 0, 0\n\t"
                 ".quad 1f, 2f - 1f, 4f\n\t"
                 ".popsection\n\t"
                 "leaq 3b(%%rip), %%rax\n\t"
                 "movq %%rax, 8(%[self])\n\t"
                 "1:\n\t"
                 "cmpl %[cpu], 4(%[self])\n\t"
                 "jnz %l[failed]\n\t"
                 "cmpq %[before], (%[committed])\n\t"
                 "jnz %l[failed]\n\t"
                 "testq %[length], %[length]\n\t"
                 "jz 7f\n\t"
                 "movq %[head], (%[to])\n\t"
                 "movq $0, -8(%[trailer_at])\n\t"
                 "xorl %%eax, %%eax\n\t"
                 "leaq -32(%[length]), %%rcx\n\t"
                 "testq %%rcx, %%rcx\n\t"
                 "jl 6f\n\t"
                 "5:\n\t" /* 32 bytes each time */
                 "movups (%[payload],%%rax), %%xmm0\n\t"
                 "movups 16(%[payload],%%rax), %%xmm1\n\t"
                 "movups %%xmm0, 8(%[to],%%rax)\n\t"
                 "movups %%xmm1, 24(%[to],%%rax)\n\t"
                 "addq $32, %%rax\n\t"
                 "cmpq %%rcx, %%rax\n\t"
                 "jle 5b\n\t"
                 "6:\n\t" /* up to 31: the next 16, and the last 16 */
                 "addq $16, %%rcx\n\t"
                 "cmpq %%rcx, %%rax\n\t"
                 "jge 8f\n\t"
                 "movups (%[payload],%%rax), %%xmm0\n\t"
                 "movups %%xmm0, 8(%[to],%%rax)\n\t"
                 "8:\n\t"
                 "movups (%[payload],%%rcx), %%xmm1\n\t"
                 "movups %%xmm1, 8(%[to],%%rcx)\n\t"
                 "7:\n\t"
                 "movq %[trailer], (%[trailer_at])\n\t"
                 "movq %[after], (%[committed])\n\t"
                 "2:\n\t"
                 "movq $0, 8(%[self])\n\t"
                 ".pushsection __rseq_failure, \"ax\"\n\t"
                 ".byte 0x0f, 0xb9, 0x3d\n\t" /* with the signature, an undefined instruction */
                 ".long 0x53053053\n\t"
                 "4:\n\t"
                 "jmp %l[failed]\n\t"
                 ".popsection\n\t"
                 :
                 : [self] "r"(self), [cpu] "r"(cpu), [before] "r"(store->before),
                   [committed] "r"(store->committed), [after] "r"(store->after),
                   [to] "r"(store->to), [payload] "r"(store->payload), [length] "r"(store->length),
                   [trailer_at] "r"(store->trailer_at), [trailer] "r"(store->trailer),
                   [head] "r"(store->head)
                 : "memory", "cc", "rax", "rcx", "xmm0", "xmm1"
                 : failed);
    return true;
failed:
    __atomic_store_n(&self->sequence, 0, __ATOMIC_RELAXED);
    return false;
}

#elif defined(__aarch64__) && !defined(BLKIN_PORTABLE)

static inline struct ring_thread *ring_this_thread(void)
{
    char *pointer;

    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return (struct ring_thread *)(void *)(pointer + ring_thread_at);
}

/*
 * As above. Here the order of stores has to be asked for: what a reader sees of this record comes
 * after the commit of the one before (dmb), and the commit after the record (stlr).
 */
static inline __attribute__((always_inline)) bool
ring_commit(struct ring_thread *self, uint32_t cpu, const struct ring_store *store)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"
                 ".balign 32\n\t"
                 "3:\n\t"
                 ".long 0, 0\n\t"
                 ".quad 1f, 2f - 1f, 4f\n\t"
                 ".popsection\n\t"
                 "adrp x9, 3b\n\t"
                 "add x9, x9, :lo12:3b\n\t"
                 "str x9, [%[self], #8]\n\t"
                 "1:\n\t"
                 "ldr w10, [%[self], #4]\n\t"
                 "cmp w10, %w[cpu]\n\t"
                 "b.ne %l[failed]\n\t"
                 "ldr x10, [%[committed]]\n\t"
                 "cmp x10, %[before]\n\t"
                 "b.ne %l[failed]\n\t"
                 "dmb ishst\n\t"
                 "cbz %[length], 7f\n\t"
                 "str %[head], [%[to]]\n\t"
                 "str xzr, [%[trailer_at], #-8]\n\t"
                 "add x11, %[to], #8\n\t"
                 "sub x10, %[length], #16\n\t"
                 "mov x9, xzr\n\t"
                 "5:\n\t" /* 16 bytes each time; then the last 16 */
                 "ldr q0, [%[payload], x9]\n\t"
                 "str q0, [x11, x9]\n\t"
                 "add x9, x9, #16\n\t"
                 "cmp x9, x10\n\t"
                 "b.lo 5b\n\t"
                 "ldr q0, [%[payload], x10]\n\t"
                 "str q0, [x11, x10]\n\t"
                 "7:\n\t"
                 "str %[trailer], [%[trailer_at]]\n\t"
                 "stlr %[after], [%[committed]]\n\t"
                 "2:\n\t"
                 "str xzr, [%[self], #8]\n\t"
                 ".pushsection __rseq_failure, \"ax\"\n\t"
                 ".inst 0xd428bc00\n\t" /* the signature: brk #0x45e0 */
                 "4:\n\t"
                 "b %l[failed]\n\t"
                 ".popsection\n\t"
                 :
                 : [self] "r"(self), [cpu] "r"(cpu), [before] "r"(store->before),
                   [committed] "r"(store->committed), [after] "r"(store->after),
                   [to] "r"(store->to), [payload] "r"(store->payload), [length] "r"(store->length),
                   [trailer_at] "r"(store->trailer_at), [trailer] "r"(store->trailer),
                   [head] "r"(store->head)
                 : "memory", "cc", "x9", "x10", "x11", "v0"
                 : failed);
    return true;
failed:
    __atomic_store_n(&self->sequence, 0, __ATOMIC_RELAXED);
    return false;
}

#else

#define RING_WITHOUT_SEQUENCES

static inline struct ring_thread *ring_this_thread(void)
{
    static struct ring_thread nothing;

    return &nothing;
}

static inline bool ring_commit(struct ring_thread *self, uint32_t cpu,
                               const struct ring_store *store)
{
    (void)self;
    (void)cpu;
    (void)store;
    return false;
}

#endif

/* By their names: an older C library has no such symbols. */
bool ring_write_init(void)
{
#ifndef RING_WITHOUT_SEQUENCES
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

    if (size && offset && *size != 0) {
        ring_thread_at = *offset;
        return true;
    }
#endif
    return false;
}

static inline uint32_t ring_own_pid(void)
{
    uint32_t pid = __atomic_load_n(&ring_pid, __ATOMIC_RELAXED);

    if (__builtin_expect(pid == 0, 0)) {
        pid = (uint32_t)getpid();
        __atomic_store_n(&ring_pid, pid, __ATOMIC_RELAXED);
    }
    return pid;
}

bool ring_write(const struct ring_map *map, enum ring_which which, unsigned event,
                const void *payload, size_t length)
{
    struct ring_thread *self = ring_this_thread();
    const uint64_t mask = map->mask[which];
    const size_t all = sizeof(struct ring_record) + length;
    const uint64_t size = ring_record_size(all);
    const uint32_t pid = ring_own_pid();

    for (unsigned tries = 0; tries < RING_TRIES; tries++) {
        const uint32_t cpu = __atomic_load_n(&self->cpu_id_start, __ATOMIC_RELAXED);
        struct ring_head *head = &map->heads[which][cpu];
        char *data = map->data[which] + cpu * (mask + 1);
        uint64_t before, at;

        if (__builtin_expect(cpu >= map->cpus ||
                                 length - RING_PAYLOAD_MIN > RING_PAYLOAD_MAX - RING_PAYLOAD_MIN,
                             0))
            break;
        before = __atomic_load_n(&head->committed, __ATOMIC_RELAXED);
        at = before & mask;
        if (__builtin_expect(at + size > mask + 1, 0)) {
            const uint64_t left = mask + 1 - at;

            (void)ring_commit(self, cpu,
                              &(struct ring_store){
                                  .committed = &head->committed,
                                  .before = before,
                                  .after = before + left,
                                  .trailer_at = data + mask + 1 - RING_TRAILER_SIZE,
                                  .trailer = ring_trailer(before + left - RING_TRAILER_SIZE,
                                                          RING_PAD, left - RING_TRAILER_SIZE),
                              });
        } else if (__builtin_expect(
                       ring_commit(self, cpu,
                                   &(struct ring_store){
                                       .committed = &head->committed,
                                       .before = before,
                                       .after = before + size,
                                       .to = data + at,
                                       .payload = payload,
                                       .length = length,
                                       .trailer_at = data + at + size - RING_TRAILER_SIZE,
                                       .trailer = ring_trailer(before + size - RING_TRAILER_SIZE,
                                                               event, all),
                                       .head = pid,
                                   }),
                       1)) {
            return true;
        }
    }
    (void)__atomic_add_fetch(&map->memory->lost, 1, __ATOMIC_RELAXED);
    return false;
}
