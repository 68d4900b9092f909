/*
 * From babeltrace2's messages to the assembler: each event is decoded and given to it, or passed
 * over; what LTTng lost is told to it; and how far the trace goes is known here. All is counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_INPUT_H
#define BLKIN_INPUT_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/stages/only.h"
#include "streams.h"

#include <babeltrace2/babeltrace.h>

struct decode_input {
    /* set by who has it: what is used, and lives longer */
    struct streams *streams;
    struct intake *intake; /* all is counted here */
    struct assembler *assembler;
    struct trace_position from; /* what is before was read by another run */
    struct only *only;          /* NULL: all traces are wanted */
    struct stage *rules;        /* see rules/pairing.h */
    void (*warn)(void *context, const char *message);
    void *context;

    struct event event; /* the one at hand: too large to be cleared each time */
};

/* Uses these messages, and gives back the references to them. */
void input_use(struct decode_input *input, bt_message_array_const messages, uint64_t count);

#endif
