/*
 * The part of a service's configuration that comes from a topic.
 *
 * The topic is compacted, and so small: the service reads its first partition from the beginning.
 * Shortly after the last message for this host, the best one takes effect.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config_topic.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "pushed.h"
#include "tools/base/folders.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"
#include "tools/kafka/topic.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY       "config-topic"
#define LATE_MS   10000  /* then a warning says which lines hold meanwhile */
#define AGAIN_MS  10000  /* a topic with a problem is read from its beginning this often */
#define QUIET_MS  300    /* more messages of the same push may follow */
#define APPLY_MS  1000   /* the least time between two changes */
#define ANSWER_MS "5000" /* a broker without new messages answers after this */

struct config_topic {
    struct config_topic_service service;
    struct loop *loop;
    char *url, *kafka_file;
    struct kafka_url parsed;
    char kept[PATH_ROOM]; /* "": nowhere */
    struct topic *reader;
    struct pushed *pushed;
    struct pushed_text held; /* the lines that hold; no bytes: only the file's lines hold */
    char held_name[PUSHED_KEY_MAX + 1200];
    bool is_read; /* the topic was read to its end */
    bool is_late;
    int64_t applied_ms, taken_ns;
    uint64_t messages, refused;
    bool has_refused; /* lines whose refusal is not logged yet */
    struct error why;
    struct watched watched;
    struct timer settle, more, again, late;
};

/* ---- what is kept ---------------------------------------------------------------------------- */

static void config_topic_keep(const struct config_topic *topic)
{
    struct error error;
    json_t *json;

    if (!topic->kept[0])
        return;
    if (!topic->held.bytes) {
        (void)unlink(topic->kept);
        return;
    }
    json =
        json_pack("{ss, ss, sI, sI, ss%}", "topic", topic->parsed.shown, "key", topic->held.key,
                  "offset", (json_int_t)topic->held.offset, "written_ns",
                  (json_int_t)topic->held.written_ns, "lines", topic->held.bytes, topic->held.size);
    error_set(&error, "%s: what holds is no UTF-8", topic->kept);
    if (!json || !json_save(json, topic->kept, &error))
        say(BK1110, "%s: a start without brokers will not have it", error.text);
    json_decref(json);
}

/* Takes the lines in the state folder, with the same checks as for the topic's. */
static void config_topic_take_kept(struct config_topic *topic)
{
    json_t *json = topic->kept[0] ? json_load_file(topic->kept, 0, NULL) : NULL;
    const char *from = json_string_value(json_object_get(json, "topic"));
    const char *key = json_string_value(json_object_get(json, "key"));
    const json_t *lines = json_object_get(json, "lines");
    struct error error = {""};

    if (from && strcmp(from, topic->parsed.shown) == 0 && key && json_is_string(lines)) {
        const struct topic_message message = {
            .key = key,
            .key_length = strlen(key),
            .data = json_string_value(lines),
            .length = json_string_length(lines),
            .offset = json_integer_value(json_object_get(json, "offset")),
            .log_ns = json_integer_value(json_object_get(json, "written_ns")),
        };

        if (pushed_take(topic->pushed, &message, &error) == PUSHED_REFUSED)
            say(BK1111, "%s is not used: %s", topic->kept, error.text);
    }
    json_decref(json);
}

static void config_topic_find_place(struct config_topic *topic, const struct config *config)
{
    const char *folder = config_text(config, "state-dir");
    struct error error;

    if (folder_own(folder, "state-dir", &error))
        path_set(topic->kept, "%s/config-%s.json", folder, topic->service.name);
    else
        say(BK1112, "%s: a start without brokers will have the file's lines", error.text);
}

/* The reason has foreign text, and becomes part of a JSON document. */
static void config_topic_note_refused(struct config_topic *topic, const struct error *why)
{
    topic->refused++;
    topic->has_refused = true;
    topic->why = *why;
    for (char *c = topic->why.text; *c; c++)
        *c = (unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e ? '?' : *c;
}

/* ---- what holds ------------------------------------------------------------------------------ */

static bool config_topic_hold(struct config_topic *topic, const struct pushed_text *text)
{
    const struct pushed_text none = {.bytes = NULL};

    if (!pushed_text_copy(&topic->held, text ? text : &none))
        return false;
    topic->taken_ns = wall_clock_ns();
    (void)snprintf(topic->held_name, sizeof(topic->held_name), "%s, \"%s\" at offset %lld",
                   topic->parsed.shown, topic->held.key, (long long)topic->held.offset);
    return true;
}

static const char *config_topic_describe_held(const struct config_topic *topic)
{
    return topic->held.bytes ? topic->held_name : "the file";
}

static bool config_topic_has_same_lines(const struct pushed_text *one,
                                        const struct pushed_text *other)
{
    return one && other->bytes && one->size == other->size &&
           memcmp(one->bytes, other->bytes, one->size) == 0;
}

static bool config_topic_apply(struct config_topic *topic, const struct pushed_text *best,
                               struct error *error)
{
    const struct config_pushed lines = {best ? best->key : "", best ? best->bytes : "",
                                        best ? best->size : 0};

    topic->applied_ms = clock_ms();
    return config_topic_has_same_lines(best, &topic->held) || (!best && !topic->held.bytes) ||
           topic->service.apply(topic->service.context, best ? &lines : NULL, error);
}

static bool config_topic_is_held(const struct config_topic *topic, const struct pushed_text *best)
{
    return best ? config_topic_has_same_lines(best, &topic->held) &&
                      best->offset == topic->held.offset && strcmp(best->key, topic->held.key) == 0
                : !topic->held.bytes;
}

static void config_topic_settle(void *context)
{
    struct config_topic *topic = context;
    const struct pushed_text *best = pushed_best(topic->pushed);
    struct error error = {""};

    if (!config_topic_is_held(topic, best)) {
        if (!config_topic_apply(topic, best, &error)) {
            config_topic_note_refused(topic, &error);
        } else if (config_topic_hold(topic, best)) {
            config_topic_keep(topic);
            say(BK1113, KEY ": %s holds now", config_topic_describe_held(topic));
        }
    }
    if (topic->has_refused)
        say(BK1114, KEY ": %s: refused, %s holds: %s", topic->parsed.shown,
            config_topic_describe_held(topic), topic->why.text);
    topic->has_refused = false;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool config_topic_take_message(void *context, const struct topic_message *message)
{
    struct config_topic *topic = context;
    const int64_t wait_ms = topic->applied_ms + APPLY_MS - clock_ms();
    struct error error = {""};
    const enum pushed_result result = pushed_take(topic->pushed, message, &error);

    if (result == PUSHED_FOR_OTHERS)
        return true;
    topic->messages++;
    if (result == PUSHED_REFUSED)
        config_topic_note_refused(topic, &error);
    timer_set(topic->loop, &topic->settle, wait_ms > QUIET_MS ? wait_ms : QUIET_MS);
    return true;
}

static void config_topic_begin_anew(struct config_topic *topic)
{
    topic->is_read = false;
    pushed_begin(topic->pushed);
}

/* Lines that do not come again are no longer in the topic. */
static void config_topic_note_gap(void *context, int32_t partition)
{
    (void)partition;
    config_topic_begin_anew(context);
}

static void config_topic_read_topic(void *context)
{
    struct config_topic *topic = context;
    bool has_more;

    (void)topic_read(topic->reader, &has_more);
    if (has_more)
        timer_set(topic->loop, &topic->more, 0);
    if (topic->is_read || !topic_is_at_end(topic->reader))
        return;
    topic->is_read = true;
    pushed_end(topic->pushed);
    timer_set(topic->loop, &topic->settle, 0);
    if (topic->is_late)
        say(BK1115, KEY ": %s is read now", topic->parsed.shown);
    topic->is_late = false;
}

static void config_topic_ready(void *context, short events)
{
    (void)events;
    config_topic_read_topic(context);
}

/* Without new messages, only reading again tells whether a problem has passed. */
static void config_topic_try_again(void *context)
{
    struct config_topic *topic = context;

    timer_set(topic->loop, &topic->again, AGAIN_MS);
    if (!topic_problem(topic->reader))
        return;
    config_topic_begin_anew(topic);
    (void)topic_read_first(topic->reader);
}

static void config_topic_is_late(void *context)
{
    struct config_topic *topic = context;
    const char *problem = topic_problem(topic->reader);

    if (topic->is_read)
        return;
    topic->is_late = true;
    say(BK1116, KEY ": not read yet, %s holds: %s", config_topic_describe_held(topic),
        problem ? problem : topic->parsed.shown);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool config_topic_open_reader(struct config_topic *topic, struct error *error)
{
    const struct topic_options options = {
        .client_id = "blkin-config",
        .fetch_wait_ms = ANSWER_MS,
        .url = &topic->parsed,
        .kafka_file = topic->kafka_file,
        .message = config_topic_take_message,
        .gap = config_topic_note_gap,
        .context = topic,
    };

    if (kafka_url_parse(&topic->parsed, KEY, topic->url, error))
        topic->reader = topic_open(&options, error);
    return topic->reader != NULL;
}

static void config_topic_start(struct config_topic *topic)
{
    topic->settle = (struct timer){.due = config_topic_settle, .context = topic};
    topic->more = (struct timer){.due = config_topic_read_topic, .context = topic};
    topic->again = (struct timer){.due = config_topic_try_again, .context = topic};
    topic->late = (struct timer){.due = config_topic_is_late, .context = topic};
    topic->watched =
        (struct watched){topic_fd(topic->reader), POLLIN, config_topic_ready, topic, NULL};
    loop_watch(topic->loop, &topic->watched);
    timer_set(topic->loop, &topic->again, AGAIN_MS);
    timer_set(topic->loop, &topic->late, LATE_MS);
    (void)topic_read_first(topic->reader);
}

bool config_topic_open(const struct config *config, const struct config_topic_service *service,
                       struct loop *loop, struct config_topic **opened, struct error *error)
{
    const char *url = config_text(config, KEY), *kafka_file = config_text(config, KAFKA_FILE);
    struct config_topic *topic;
    char host[256] = "";

    *opened = NULL;
    if (!url || !*url)
        return true;
    error_set(error, "out of memory");
    topic = calloc(1, sizeof(*topic));
    if (!topic)
        return false;
    (void)gethostname(host, sizeof(host) - 1);
    topic->service = *service;
    topic->loop = loop;
    topic->url = strdup(url);
    topic->kafka_file = strdup(kafka_file ? kafka_file : "");
    topic->pushed = pushed_new(service->name, host);
    if (!topic->url || !topic->kafka_file || !topic->pushed ||
        !config_topic_open_reader(topic, error)) {
        config_topic_close(topic);
        return false;
    }
    config_topic_find_place(topic, config);
    config_topic_take_kept(topic);
    pushed_begin(topic->pushed);
    if (pushed_best(topic->pushed))
        (void)config_topic_hold(topic, pushed_best(topic->pushed));
    config_topic_start(topic);
    *opened = topic;
    return true;
}

void config_topic_close(struct config_topic *topic)
{
    if (!topic)
        return;
    if (topic->watched.ready) {
        loop_unwatch(topic->loop, &topic->watched);
        timer_clear(topic->loop, &topic->settle);
        timer_clear(topic->loop, &topic->more);
        timer_clear(topic->loop, &topic->again);
        timer_clear(topic->loop, &topic->late);
    }
    topic_close(topic->reader);
    pushed_free(topic->pushed);
    pushed_text_clear(&topic->held);
    free(topic->url);
    free(topic->kafka_file);
    free(topic);
}

bool config_topic_is_of(const struct config_topic *topic, const struct config *config)
{
    const char *url = config_text(config, KEY), *kafka_file = config_text(config, KAFKA_FILE);

    if (!topic || !url || !*url)
        return !topic && (!url || !*url);
    return strcmp(topic->url, url) == 0 &&
           strcmp(topic->kafka_file, kafka_file ? kafka_file : "") == 0 &&
           !topic_problem(topic->reader);
}

bool config_topic_lines(const struct config_topic *topic, struct config_pushed *lines)
{
    if (!topic || !topic->held.bytes)
        return false;
    *lines = (struct config_pushed){topic->held.key, topic->held.bytes, topic->held.size};
    return true;
}

json_t *config_topic_json(const struct config_topic *topic)
{
    const bool is_pushed = topic && topic->held.bytes;
    const char *problem;
    char offset[24] = "";

    if (!topic)
        return NULL;
    problem = topic_problem(topic->reader);
    if (is_pushed)
        (void)snprintf(offset, sizeof(offset), "%lld", (long long)topic->held.offset);
    return json_pack("{ss, ss, ss, so, so, ss, ss, sI, sI, ss}", "from",
                     is_pushed ? "topic" : "file", "key", topic->held.key, "offset", offset,
                     "written", json_time(topic->held.written_ns), "taken",
                     json_time(topic->taken_ns), "topic", topic->parsed.shown, "state",
                     problem          ? problem
                     : topic->is_read ? "read"
                                      : "being read",
                     "messages", (json_int_t)topic->messages, "refused", (json_int_t)topic->refused,
                     "last_refused", topic->why.text);
}
