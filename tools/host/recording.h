/*
 * Samples to LTTng: blkin:metric, one event each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_RECORDING_H
#define BLKIN_TOOLS_HOST_RECORDING_H

#include "sample.h"

/*
 * The names are told in the first event of an instance, when they have changed, and so often: the
 * recorder's ring, and a chunk of `blkin rotate`, are to have them for their values.
 */
#define HOST_NAMES_NS UINT64_C(5000000000)

/* All zero at first, and again where a session may have missed the names. */
struct host_recording {
    struct {
        uint64_t generation, present;
        uint64_t names_ns; /* when they were told last; 0: not yet */
    } slots[HOST_SLOTS];
};

/* A host_sampled_fn; the context is a struct host_recording. */
void host_record(void *context, const struct host_sample *sample);

#endif
