/*
 * Faults that can be planted in a daemon of the example storage stack, to be found in its traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_FAULT_H_
#define EXAMPLES_FAULT_H_

#ifdef __cplusplus
extern "C" {
#endif

enum fault {
    FAULT_SLOW_DISK,    /* access to an object takes longer */
    FAULT_SLOW_JOURNAL, /* so does a write to the journal */
    FAULT_SLOW_NETWORK, /* and a request's way here */
    FAULT_DROP_REPLICA, /* no answer to the primary */
    FAULT_COUNT
};

/*
 * Plants a fault from "slow-disk=20ms" and the like, for the whole process; with "@8" behind it, it
 * happens only the eighth time. Call it before there are threads. allowed has the bit 1 <<
 * FAULT_... of each fault that the daemon knows. Returns 0, or -EINVAL after a message to stderr.
 */
int fault_plant(const char *text, unsigned allowed);

/* Waits for as long as the fault says; returns at once if it is not planted. */
void fault_wait(enum fault fault);

/* 1 if it is planted. */
int fault_is_planted(enum fault fault);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_FAULT_H_ */
