/*
 * Events of rings into the pipeline of the sink, and its spans into a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_PIPED_H
#define TESTS_RINGS_PIPED_H

#include "babeltrace-plugin/pipeline.h"
#include "tools/rings/follow.h"

#include <stdlib.h>
#include <string.h>

static struct pipeline piped;
static const char *piped_host;
static int64_t piped_clock;
static uint64_t piped_events;

static inline void piped_event(void *context, struct event *event)
{
    (void)context;
    event->origin.host = text_of(piped_host);
    event->origin.process = (struct text){"", 0};
    event->origin.clock = piped_clock;
    event->origin.tid = 0;
    piped_events++;
    assembler_add(piped.assembler, event);
}

static inline void piped_loss(void *context, int64_t begin_ns, int64_t end_ns)
{
    (void)context, (void)begin_ns, (void)end_ns;
    fprintf(stderr, "the ring is too small\n");
    exit(1);
}

static inline bool piped_is_interrupted(void *context)
{
    (void)context;
    return false;
}

static inline void piped_say(void *context, bt_logging_level level, const char *message)
{
    (void)context, (void)level;
    fprintf(stderr, "%s\n", message);
}

static inline void piped_sum_up(void *context, const struct counts *counts)
{
    (void)context;
    if (counts->output.outcome[OUTCOME_ACCEPTED] != counts->output.spans)
        fprintf(stderr, "not all spans were accepted\n");
}

static inline void piped_open(const char *endpoint)
{
    size_t rows;
    const struct param_rule *rule = params_table(&rows);
    struct params params;
    struct error error;

    params_begin(&params);
    for (size_t i = 0; i < rows; i++)
        if (strcmp(rule[i].name, "endpoint") == 0 &&
            !params_set(&params, &rule[i], &(struct param_value){.text = endpoint}, &error))
            exit(1);
    params_end(&params);
    piped.calls = (struct pipeline_calls){piped_is_interrupted, piped_say, piped_sum_up, NULL};
    if (!pipeline_open(&piped, &params, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

#endif
