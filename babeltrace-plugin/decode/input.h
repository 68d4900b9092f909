/*
 * From babeltrace2's messages to the assembler. Events are decoded and passed on, or skipped.
 * Losses that LTTng reports go to the assembler. All is counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_INPUT_H
#define BLKIN_INPUT_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "streams.h"

#include <babeltrace2/babeltrace.h>

struct decode_input {
    /* set by the owner, and longer-lived */
    struct streams *streams;
    struct intake *intake; /* the counts */
    struct assembler *assembler;
    struct trace_position from; /* an earlier run has read the part before */
    struct stage *rules;        /* see rules/pairing.h */
    void (*warn)(void *context, const char *message);
    void *context;

    struct event event; /* the current event, too large to be cleared each time */
};

/* Handles these messages, and releases the references to them. */
void input_use(struct decode_input *input, bt_message_array_const messages, uint64_t count);

#endif
