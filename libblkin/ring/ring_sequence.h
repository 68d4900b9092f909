/*
 * The restartable sequence, for ring_write.h only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_SEQUENCE_H
#define BLKIN_RING_SEQUENCE_H

#include "ring_map.h"

#include <stdbool.h>
#include <stddef.h>

/* cppcheck cannot parse restartable sequences. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(BLKIN_PORTABLE) && \
    !defined(__CPPCHECK__)
#define RING_HAS_SEQUENCES 1
#else
#define RING_HAS_SEQUENCES 0
#endif

/* The beginning of the kernel's struct rseq of a thread. */
struct ring_thread {
    uint32_t cpu_id_start; /* always a valid CPU number */
    uint32_t cpu_id;       /* the same number; an invalid one if the thread is not registered */
    uint64_t sequence;     /* address of the current sequence's descriptor, or 0 */
};

/* The input of a sequence. */
struct ring_store {
    uint64_t *committed;
    const uint64_t *head; /* first word of the record */
    uint64_t before;      /* expected value of *committed */
    char *to;
    uint64_t size;       /* bytes of the record, including its trailer */
    const void *payload; /* at least 32 bytes */
    size_t length;       /* 0: write only the trailer */
    uint64_t trailer;
};

#if RING_HAS_SEQUENCES && defined(__x86_64__)

static inline uint32_t ring_this_cpu(void)
{
    uint32_t cpu;

    __asm__ volatile("movl %%fs:(%1), %0" : "=r"(cpu) : "r"(ring_process.thread_at));
    return cpu;
}

/*
 * Writes a record and commits it. Returns false if nothing is committed.
 *
 * The sequence is between labels 1 and 2. If the thread loses its CPU or gets a signal there, the
 * kernel continues the thread at label 4. The thread must not keep a pointer to the descriptor
 * (label 3): dlclose(3) of this library unmaps it.
 */
static inline __attribute__((always_inline)) bool ring_commit(uint32_t cpu,
                                                              const struct ring_store *store)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"
                 ".balign 32\n\t"
                 "3:\n\t"
                 ".long 0, 0\n\t"
                 ".quad 1f, 2f - 1f, 4f\n\t"
                 ".popsection\n\t"
                 "leaq 3b(%%rip), %%rax\n\t"
                 "movq %%rax, %%fs:8(%[self])\n\t"
                 "1:\n\t"
                 "cmpl %[cpu], %%fs:4(%[self])\n\t"
                 "jnz %l[failed]\n\t"
                 "cmpq %[before], (%[committed])\n\t"
                 "jnz %l[failed]\n\t"
                 "testq %[length], %[length]\n\t"
                 "jz 6f\n\t"
                 "movq %[head], %%rax\n\t"
                 "movq %%rax, (%[to])\n\t"
                 "movq $0, -16(%[to],%[size])\n\t" /* the padding */
                 "leaq -32(%[payload],%[length]), %%rax\n\t"
                 "leaq -24(%[to],%[length]), %%rdx\n\t"
                 "movl $32, %%ecx\n\t"
                 "subq %[length], %%rcx\n\t"
                 "5:\n\t" /* 32 bytes each time, then the last 32 */
                 "movups (%%rax,%%rcx), %%xmm0\n\t"
                 "movups 16(%%rax,%%rcx), %%xmm1\n\t"
                 "movups %%xmm0, (%%rdx,%%rcx)\n\t"
                 "movups %%xmm1, 16(%%rdx,%%rcx)\n\t"
                 "addq $32, %%rcx\n\t"
                 "js 5b\n\t"
                 "movups (%%rax), %%xmm0\n\t"
                 "movups 16(%%rax), %%xmm1\n\t"
                 "movups %%xmm0, (%%rdx)\n\t"
                 "movups %%xmm1, 16(%%rdx)\n\t"
                 "6:\n\t"
                 "movq %[trailer], -8(%[to],%[size])\n\t"
                 "leaq (%[before],%[size]), %%rax\n\t"
                 "movq %%rax, (%[committed])\n\t"
                 "2:\n\t"
                 "movq $0, %%fs:8(%[self])\n\t"
                 ".pushsection __rseq_failure, \"ax\"\n\t"
                 ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1, with the signature as its operand */
                 ".long 0x53053053\n\t"
                 "4:\n\t"
                 "jmp %l[failed]\n\t"
                 ".popsection\n\t"
                 :
                 : [self] "r"(ring_process.thread_at), [cpu] "r"(cpu), [before] "r"(store->before),
                   [committed] "r"(store->committed), [to] "r"(store->to), [size] "r"(store->size),
                   [payload] "r"(store->payload), [length] "r"(store->length),
                   [trailer] "r"(store->trailer), [head] "m"(*store->head)
                 : "memory", "cc", "rax", "rcx", "rdx", "xmm0", "xmm1"
                 : failed);
    return true;
failed:
    __asm__ volatile("movq $0, %%fs:8(%0)" : : "r"(ring_process.thread_at) : "memory");
    return false;
}

#elif RING_HAS_SEQUENCES

static inline struct ring_thread *ring_this_thread(void)
{
    char *pointer;

    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return (struct ring_thread *)(void *)(pointer + ring_process.thread_at);
}

static inline uint32_t ring_this_cpu(void)
{
    return __atomic_load_n(&ring_this_thread()->cpu_id_start, __ATOMIC_RELAXED);
}

/* ring_commit() for AArch64, which needs explicit barriers. dmb: the commit of the earlier record
 * is visible before this record. stlr: this record is visible before its commit. */
static inline __attribute__((always_inline)) bool ring_commit(uint32_t cpu,
                                                              const struct ring_store *store)
{
    struct ring_thread *self = ring_this_thread();

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
                 "ldr w9, [%[self], #4]\n\t"
                 "cmp w9, %w[cpu]\n\t"
                 "b.ne %l[failed]\n\t"
                 "ldr x9, [%[committed]]\n\t"
                 "cmp x9, %[before]\n\t"
                 "b.ne %l[failed]\n\t"
                 "dmb ishst\n\t"
                 "add x12, %[to], %[size]\n\t"
                 "cbz %[length], 6f\n\t"
                 "str %[head], [%[to]]\n\t"
                 "str xzr, [x12, #-16]\n\t" /* the padding */
                 "add x11, %[to], #8\n\t"
                 "sub x10, %[length], #16\n\t"
                 "mov x9, xzr\n\t"
                 "5:\n\t" /* 16 bytes each time, then the last 16 */
                 "ldr q0, [%[payload], x9]\n\t"
                 "str q0, [x11, x9]\n\t"
                 "add x9, x9, #16\n\t"
                 "cmp x9, x10\n\t"
                 "b.lo 5b\n\t"
                 "ldr q0, [%[payload], x10]\n\t"
                 "str q0, [x11, x10]\n\t"
                 "6:\n\t"
                 "str %[trailer], [x12, #-8]\n\t"
                 "add x9, %[before], %[size]\n\t"
                 "stlr x9, [%[committed]]\n\t"
                 "2:\n\t"
                 "str xzr, [%[self], #8]\n\t"
                 ".pushsection __rseq_failure, \"ax\"\n\t"
                 ".inst 0xd428bc00\n\t" /* signature: brk #0x45e0 */
                 "4:\n\t"
                 "b %l[failed]\n\t"
                 ".popsection\n\t"
                 :
                 : [self] "r"(self), [cpu] "r"(cpu), [before] "r"(store->before),
                   [committed] "r"(store->committed), [to] "r"(store->to), [size] "r"(store->size),
                   [payload] "r"(store->payload), [length] "r"(store->length),
                   [trailer] "r"(store->trailer), [head] "r"(*store->head)
                 : "memory", "cc", "x9", "x10", "x11", "x12", "v0"
                 : failed);
    return true;
failed:
    __atomic_store_n(&self->sequence, 0, __ATOMIC_RELAXED);
    return false;
}

#else

static inline uint32_t ring_this_cpu(void)
{
    return 0;
}

static inline bool ring_commit(uint32_t cpu, const struct ring_store *store)
{
    (void)cpu;
    (void)store;
    return false;
}

#endif

#endif
