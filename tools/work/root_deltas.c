/* SPDX-License-Identifier: BSD-2-Clause */
#include "root_deltas.h"

#include "babeltrace-plugin/base/printer.h"
#include "tools/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- the saved state ------------------------------------------------------------------------- */

static bool root_deltas_take_state(struct root_deltas *deltas, const json_t *json, const char *path,
                                   struct error *error)
{
    const json_t *offsets = json_object_get(json, "offsets");
    const char *of = json_string_value(json_object_get(json, "topic"));
    struct error cause;

    if (!of)
        return error_set(error, "%s: expected the state of `blkin work --root`", path);
    if (strcmp(of, deltas->url.shown) != 0)
        return error_set(error, "%s belongs to %s", path, of);
    if (!merged_add_document(deltas->merged, json_object_get(json, "statistics"), &cause))
        return error_set(error, "%s: %s", path, cause.text);
    for (size_t i = 0; i < TOPIC_PARTITIONS_MAX; i++) {
        const json_t *offset = json_array_get(offsets, i);

        deltas->offsets[i] = json_is_integer(offset) ? json_integer_value(offset) : -1;
    }
    return true;
}

bool root_deltas_load(struct root_deltas *deltas, const char *path)
{
    json_error_t cause;
    json_t *json;
    struct error error;
    char aside[4200];
    bool is_taken;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    json = json_load_file(path, 0, &cause);
    if (!json && json_error_code(&cause) == json_error_out_of_memory)
        return false;
    if (!json)
        error_set(&error, "%s:%d: %s", path, cause.line, cause.text);
    is_taken = json && root_deltas_take_state(deltas, json, path, &error);
    json_decref(json);
    if (is_taken) {
        say(BK7050, "continues after %llu messages", (unsigned long long)deltas->merged->messages);
        return true;
    }
    (void)snprintf(aside, sizeof(aside), "%s.old", path);
    (void)rename(path, aside);
    say(BK7051, "%s: the state is renamed to %s, and the whole topic is counted again", error.text,
        aside);
    merged_free(deltas->merged);
    deltas->merged = merged_new();
    return deltas->merged != NULL;
}

/* A topic's URL needs no escapes in JSON: it has letters, digits and ".-_:,[]/". */
char *root_deltas_state(const struct root_deltas *deltas, int64_t now_ns)
{
    char *document = merged_document(deltas->merged, now_ns);
    struct printer text = {.has_failed = !document};
    int last = TOPIC_PARTITIONS_MAX;

    while (last > 0 && deltas->offsets[last - 1] < 0)
        last--;
    print_string(&text, "{\"topic\":\"");
    print_string(&text, deltas->url.shown);
    print_string(&text, "\",\"offsets\":[");
    for (int i = 0; i < last; i++)
        print(&text, "%s%" PRId64, i ? "," : "", deltas->offsets[i]);
    print_string(&text, "],\n\"statistics\":");
    print_string(&text, document ? document : "");
    print_string(&text, "}\n");
    free(document);
    return print_end(&text);
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
        say(BK7041,
            "%s: partition %d, offset %lld: %s: the root leaves out and counts these messages",
            deltas->url.shown, (int)message->partition, (long long)message->offset, error.text);
    deltas->offsets[message->partition] = message->offset + 1;
    deltas->is_changed = true;
    return true;
}

static void root_deltas_note_gap(void *context, int32_t partition, int64_t next)
{
    struct root_deltas *deltas = context;

    deltas->merged->gaps++;
    deltas->offsets[partition] = next;
    if (next < 0)
        say(BK7042,
            "%s: partition %d: messages were deleted before the root read them: their counts are "
            "missing; raise retention.ms of the topic",
            deltas->url.shown, (int)partition);
    else
        say(BK7052,
            "%s: partition %d: a broker has lost messages at the end, or the topic was created "
            "again: reading continues at %lld",
            deltas->url.shown, (int)partition, (long long)next);
}

/* Returns the log's time of the latest message in the saved state; 0: none. */
static int64_t root_deltas_read_ns(const struct merged *merged)
{
    int64_t latest_ns = 0;

    for (size_t i = 0; i < merged->worker_count; i++) {
        if (merged->workers[i].heard_ns > latest_ns)
            latest_ns = merged->workers[i].heard_ns;
    }
    return latest_ns;
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
        .read_ns = root_deltas_read_ns(deltas->merged),
        .context = deltas,
    };

    deltas->topic = topic_open(&options, error);
    return deltas->topic != NULL;
}
