/*
 * With this file, programs use restartable sequences also where the kernel does not support them,
 * as under valgrind and qemu. Link the file with -rdynamic, before the C library. Nothing restarts
 * an interrupted sequence, so the program must have one thread and no signals.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stddef.h>
#include <stdint.h>

/* The kernel's struct: cpu_id_start, cpu_id, rseq_cs. All threads are on CPU 0. */
static _Thread_local struct {
    uint32_t cpu_id_start, cpu_id;
    uint64_t sequence;
} __attribute__((aligned(32))) thread;

__attribute__((visibility("default"))) extern const unsigned __rseq_size;
__attribute__((visibility("default"))) extern ptrdiff_t __rseq_offset;

const unsigned __rseq_size = sizeof(thread);
ptrdiff_t __rseq_offset;

__attribute__((constructor(101))) static void set_offset(void)
{
    char *pointer;

#ifdef __x86_64__
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    pointer = __builtin_thread_pointer();
#endif
    __rseq_offset = (char *)&thread - pointer;
}
