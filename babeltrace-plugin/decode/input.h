/*
 * Decodes babeltrace2's messages. Gives BlkKin's events to the assembler, with the losses that
 * LTTng reports. Other events are only counted. struct intake counts every event and every loss,
 * except the assembler's events and the losses before the position `from`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_INPUT_H
#define BLKIN_INPUT_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "decode.h"

#include <babeltrace2/babeltrace.h>

struct decode_input {
    /* The owner sets these. The objects of the pointers must outlive this struct. */
    struct streams *streams;
    struct intake *intake; /* counts and position */
    struct assembler *assembler;
    struct trace_position from; /* an earlier run has read all events up to here */
    void (*warn)(void *context, const char *message);
    void *context;

    struct event event; /* the current event, too large to be cleared each time */
};

/* Handles these messages, and releases the references to them. */
void input_use(struct decode_input *input, bt_message_array_const messages, uint64_t count);

#endif
