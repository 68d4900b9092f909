/*
 * The topic of deltas.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "root_deltas.h"

#include "root_state.h"
#include "tools/base/say.h"

#include <stdio.h>

bool root_deltas_open(struct root_deltas *deltas, const struct config *config, struct error *error)
{
    const char *input = config_text(config, "input");
    const char *name = config_text(config, "deltas");

    *deltas = (struct root_deltas){.config = config, .merged = merged_new()};
    for (int i = 0; i < TOPIC_PARTITIONS_MAX; i++)
        deltas->offsets[i] = -1;
    if (!deltas->merged)
        error_set(error, "out of memory");
    else if (!input || !*input)
        error_set(error, "input: expected kafka://BROKER[,BROKER...]/TOPIC, as for the workers");
    else if (!name || !*name)
        error_set(error, "deltas: expected the name of the topic that the workers write");
    else if (kafka_url_parse(&deltas->url, "input", input, error)) {
        kafka_url_set_topic(&deltas->url, name);
        return true;
    }
    return false;
}

void root_deltas_close(struct root_deltas *deltas)
{
    topic_close(deltas->topic);
    merged_free(deltas->merged);
}

bool root_deltas_load(struct root_deltas *deltas, const char *path)
{
    struct error error;
    char aside[4200];

    switch (root_state_load(path, deltas->url.shown, deltas->merged, deltas->offsets, &error)) {
    case STATE_READ:
        say(BK7050, "goes on after %llu messages", (unsigned long long)deltas->merged->messages);
        return true;
    case STATE_NONE:
        return true;
    case STATE_NO_MEMORY:
        return false;
    case STATE_DAMAGED:
    case STATE_OF_ANOTHER:
        break;
    }
    (void)snprintf(aside, sizeof(aside), "%s.old", path);
    (void)rename(path, aside);
    say(BK7051, "%s: it is put aside, and all that the topic has is counted again", error.text);
    merged_free(deltas->merged);
    deltas->merged = merged_new();
    return deltas->merged != NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool root_deltas_take(void *context, const struct topic_message *message)
{
    struct root_deltas *deltas = context;
    const int64_t log_ns = message->log_ns ? message->log_ns : wall_clock_ns();
    struct error error;

    if (!merged_add_message(deltas->merged, message->data, message->length, log_ns, &error)) {
        say(BK7040, "%s", error.text);
        return false;
    }
    if (error.text[0] && deltas->merged->refused == 1)
        say(BK7041, "%s: partition %d, offset %lld: %s: such messages are counted, and left out",
            deltas->url.shown, (int)message->partition, (long long)message->offset, error.text);
    deltas->offsets[message->partition] = message->offset + 1;
    deltas->is_changed = true;
    return true;
}

static void root_deltas_note_gap(void *context, int32_t partition)
{
    struct root_deltas *deltas = context;

    deltas->merged->gaps++;
    deltas->offsets[partition] = -1;
    say(BK7042,
        "%s: partition %d has not kept the next messages to read: their counts are missing; let "
        "the topic keep more (retention.ms)",
        deltas->url.shown, (int)partition);
}

bool root_deltas_read(struct root_deltas *deltas, int64_t since_ns, struct error *error)
{
    const struct topic_options options = {
        .client_id = "blkin-work-root",
        .fetch_wait_ms = "500",
        .url = &deltas->url,
        .kafka_file = config_text(deltas->config, "kafka-file"),
        .since_ns = since_ns,
        .offsets = deltas->offsets,
        .message = root_deltas_take,
        .gap = root_deltas_note_gap,
        .context = deltas,
    };

    deltas->topic = topic_open(&options, error);
    return deltas->topic != NULL;
}
