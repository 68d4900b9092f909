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
    FAULT_SLOW_JOURNAL, /* a write to the journal takes longer */
    FAULT_SLOW_NETWORK, /* a request takes longer to arrive here */
    FAULT_DROP_REPLICA, /* no answer to the primary */
    FAULT_COUNT
};

/*
 * Plants a fault in the process: "slow-disk=20ms"; "slow-disk=20ms@8": only the eighth time. Must
 * be called before threads start. allowed: a bit 1 << FAULT_... for each fault that the daemon
 * knows. Returns 0, or -EINVAL after a message to stderr.
 */
int fault_plant(const char *text, unsigned allowed);

/* Waits for the time of the fault. Returns at once if the fault is not planted. */
void fault_wait(enum fault fault);

/* Returns 1 if the fault is planted. */
int fault_is_planted(enum fault fault);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_FAULT_H_ */
