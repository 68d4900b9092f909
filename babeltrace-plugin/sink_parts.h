/*
 * The sink: what its two sources share. sink_open.c sets it up, sink.c runs it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SINK_PARTS_H
#define BLKIN_SINK_PARTS_H

#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/checkpoint/checkpoint.h"
#include "babeltrace-plugin/decode/input.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/hosts/host_board.h"
#include "babeltrace-plugin/stages/chain.h"

#include <babeltrace2/babeltrace.h>

struct sink {
    bt_self_component_sink *self;
    bt_message_iterator *iterator;
    struct input input;
    struct assembler *assembler;
    struct checkpoint *checkpoint;     /* NULL: none is asked for */
    struct hold *hold;                 /* the checkpoint's, of a recorded trace; else NULL */
    struct exporter *exporter;         /* NULL: there is nothing to do */
    struct chain chain;                /* the stages, from the assembler to the exporter */
    struct stage *join, *hosts, *tail; /* of the chain */
    struct host_board *board;          /* for the page; NULL: there is none */
    struct account *account;
    int64_t until_ns; /* the trace's end, as we were told */
    bool flushes;     /* no other trace follows: what is open at the end is given out */
    bt_logging_level log_level;
    bool has_signals;
    bool has_read_all;            /* the trace, to its end */
    bool is_finishing;            /* and no other run reads it again */
    struct assembler_counts core; /* see core_counts() */
    bool ended;
};

/* Reads the parameters and opens all parts. Returns false with error set: then sink_free(). */
bool sink_set_up(struct sink *sink, enum format format, const bt_value *map, struct error *error);

void sink_free(struct sink *sink);

void sink_say(const struct sink *sink, bt_logging_level level, const char *message);

/* context: the sink. By babeltrace2, or by a signal. */
bool sink_is_interrupted(void *context);

#endif
