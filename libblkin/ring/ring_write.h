/*
 * Writing a record into the ring of the CPU that the thread runs on.
 *
 * Copy and commit are one restartable sequence (rseq(2)): if the thread loses its CPU, or a signal
 * comes, before the commit, then nothing was written and the thread tries again. So there is no
 * lock and no locked instruction, and a writer that is killed leaves the ring whole. It needs the
 * C library to have registered the thread with the kernel, as glibc does since 2.35.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_WRITE_H
#define BLKIN_RING_WRITE_H

#include "ring_map.h"

/* No event has a shorter payload. */
#define RING_PAYLOAD_MIN 16

#define RING_PAYLOAD_MAX (RING_RECORD_MAX - RING_TRAILER_SIZE - sizeof(struct ring_record))

/* As records say it; 0: to be asked for, as in a child of fork(2), which may have to make no system
 * call for now. */
extern __attribute__((visibility("hidden"))) uint32_t ring_pid;

/* Once, before ring_write(). False: this processor, C library or kernel has no such sequences. */
bool ring_write_init(void);

/*
 * False: the record went nowhere, and is counted in the memory. That is so after 16 interruptions
 * in a row, as under a debugger that steps through the sequence; on a CPU that the memory has no
 * ring for; and with a payload of another length than those above. Async-signal-safe.
 */
bool ring_write(const struct ring_map *map, enum ring_which which, unsigned event,
                const void *payload, size_t length);

#endif
