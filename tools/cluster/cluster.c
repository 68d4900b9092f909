/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SENT_BYTES      (16U << 20)
#define REPEAT_MS       200 /* hosts that return within this time get one repetition */
#define CLUSTER_TICK_MS 1000

/* ---- sending --------------------------------------------------------------------------------- */

static void cluster_publish(struct cluster *cluster, struct sent *sent)
{
    struct printer printer = {.has_failed = false};
    char *text;

    print(&printer, "%.*s,\"held_ms\":%" PRId64 "}", (int)(sent->bytes - 1), sent->text,
          clock_ms() - sent->at_ms);
    text = print_end(&printer);
    sent->id = text ? broker_publish(cluster->broker, sent->topic, text, strlen(text), false) : 0;
    if (!cluster->unsettled)
        cluster->unsettled = sent;
    free(text);
}

static void cluster_free_sent(struct cluster *cluster, struct sent *sent)
{
    cluster->sent_bytes -= sent->bytes;
    cluster->dropped += !sent->is_accepted && !sent->is_refused;
    if (cluster->unsettled == sent)
        cluster->unsettled = sent->next;
    free(sent->text);
    free(sent);
}

/* Drops messages sent before oldest_ms, then the oldest ones beyond `room` bytes. */
static void cluster_drop_sent(struct cluster *cluster, int64_t oldest_ms, size_t room)
{
    const uint64_t before = cluster->dropped;

    while (cluster->first && (cluster->first->at_ms < oldest_ms || cluster->sent_bytes > room)) {
        struct sent *next = cluster->first->next;

        cluster_free_sent(cluster, cluster->first);
        cluster->first = next;
    }
    if (!cluster->first)
        cluster->last = &cluster->first;
    if (cluster->dropped != before)
        say(BK4064, "%" PRIu64 " messages for other hosts are dropped: %s does not take them",
            cluster->dropped - before, cluster->url);
}

/* Publishes all messages again. Receivers drop those that they already have. */
static void cluster_repeat(void *context)
{
    struct cluster *cluster = context;

    cluster_drop_sent(cluster, clock_ms() - CLUSTER_REPEAT_MS, SENT_BYTES);
    cluster->unsettled = NULL;
    for (struct sent *sent = cluster->first; sent && cluster->is_connected; sent = sent->next)
        if (!sent->is_refused)
            cluster_publish(cluster, sent);
}

/* Returns a copy with "number"; NULL with error set. */
static json_t *cluster_numbered(struct cluster *cluster, const json_t *message, struct error *error)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    char number[MESSAGE_NUMBER_MAX + 1];

    (void)snprintf(number, sizeof(number), "%s:%" PRIu64, cluster->instance,
                   ++cluster->last_number);
    error_set(error, "out of memory");
    if (copy && json_object_set_new(copy, "number", json_string(number)) == 0 &&
        message_check(copy, error))
        return copy;
    json_decref(copy);
    return NULL;
}

/* Returns NULL if the message is too large, or when out of memory. */
static struct sent *cluster_new_sent(const struct cluster *cluster, json_t *message)
{
    const char *to = text_in(message, "to");
    struct sent *sent = calloc(1, sizeof(*sent));

    if (!sent)
        return NULL;
    (void)snprintf(sent->topic, sizeof(sent->topic), "blkin/%s/%s%s", cluster->host,
                   *to ? "found/" : "want", to);
    (void)json_object_del(message, "type"); /* the topic has type, host and to */
    (void)json_object_del(message, "host");
    (void)json_object_del(message, "to");
    sent->at_ms = clock_ms();
    sent->text = json_dumps(message, JSON_COMPACT);
    sent->bytes = sent->text ? strlen(sent->text) : 0;
    if (sent->bytes && sent->bytes <= MESSAGE_MAX)
        return sent;
    free(sent->text);
    free(sent);
    return NULL;
}

void cluster_send(struct cluster *cluster, const json_t *message)
{
    struct error error = {""};
    struct sent *sent;
    json_t *copy;

    if (!cluster || !message)
        return;
    copy = cluster_numbered(cluster, message, &error);
    sent = copy ? cluster_new_sent(cluster, copy) : NULL;
    if (copy && !sent)
        error_set(&error, "it has more than %u bytes, or memory is short", MESSAGE_MAX);
    json_decref(copy);
    if (!sent) {
        cluster->dropped++;
        say(BK4060, "a message for other hosts is not sent: %s", error.text);
        return;
    }
    *cluster->last = sent;
    cluster->last = &sent->next;
    cluster->sent_bytes += sent->bytes;
    cluster_drop_sent(cluster, 0, SENT_BYTES);
    if (cluster->is_connected)
        cluster_publish(cluster, sent);
}

bool cluster_is_sending(const struct cluster *cluster)
{
    const struct sent *sent = cluster && cluster->is_connected ? cluster->first : NULL;

    for (; sent; sent = sent->next)
        if (!sent->is_accepted && !sent->is_refused)
            return true;
    return false;
}

/* Counts the outcome of a publication. refused: the reason; NULL: accepted. */
static void cluster_settle(struct cluster *cluster, int id, const char *refused)
{
    struct sent *sent = cluster->unsettled;

    while (sent && sent->id != id)
        sent = sent->next;
    if (refused && (!sent || !sent->is_refused)) {
        cluster->refused++;
        say(BK4065, "%s refuses a message: %s: its rules must let user \"%s\" write to blkin/%s/#",
            cluster->url, refused, cluster->user, cluster->host);
    }
    if (!sent)
        return; /* this host's state, or a message that was dropped or published again since */
    sent->id = 0;
    while (cluster->unsettled && !cluster->unsettled->id)
        cluster->unsettled = cluster->unsettled->next;
    if (refused) {
        sent->is_refused = true;
    } else if (!sent->is_accepted) {
        sent->is_accepted = true;
        cluster->accepted++;
    }
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Splits blkin/HOST/REST. Returns REST; NULL: another topic. */
static const char *cluster_topic(const char *topic, char host[CLUSTER_HOST])
{
    const char *rest;
    size_t length;

    if (strncmp(topic, "blkin/", 6) != 0)
        return NULL;
    topic += 6;
    length = strcspn(topic, "/");
    rest = topic + length + (topic[length] == '/');
    if (length >= CLUSTER_HOST)
        return NULL;
    memcpy(host, topic, length);
    host[length] = '\0';
    return message_is_host(host) ? rest : NULL;
}

static void cluster_malformed(struct cluster *cluster, const char *host, const char *why)
{
    if (cluster->malformed++ == 0)
        say(BK4061, "a message of host %s has a wrong form: %s", host, why);
}

/* ---- recent messages in two generations ------------------------------------------------------ */

static void seen_turn(struct seen *seen, int64_t now_ms)
{
    if (seen->young && now_ms - seen->turned_ms < seen->keep_ms &&
        json_object_size(seen->young) < SEEN_MAX)
        return;
    json_decref(seen->old);
    /* after twice keep_ms, both generations are too old */
    if (now_ms - seen->turned_ms < 2 * seen->keep_ms) {
        seen->old = seen->young;
    } else {
        json_decref(seen->young);
        seen->old = NULL;
    }
    seen->young = json_object();
    seen->turned_ms = now_ms;
}

/* Returns true if the text is in the set, and adds the text. When out of memory, returns false. */
static bool seen_before(struct seen *seen, const char *text, int64_t now_ms)
{
    seen_turn(seen, now_ms);
    if (json_object_get(seen->young, text) || json_object_get(seen->old, text))
        return true;
    (void)json_object_set_new(seen->young, text, json_true());
    return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void cluster_take(struct cluster *cluster, const char *host, const char *kind,
                         json_t *message, int64_t held_ms)
{
    const int64_t own_ms = number_in(message, "held_ms");
    struct error error = {""};
    char key[CLUSTER_HOST + MESSAGE_NUMBER_MAX + 2];

    (void)json_object_set_new(message, "type", json_string(kind));
    (void)json_object_set_new(message, "host", json_string(host));
    (void)json_object_set_new(message, "to", json_string(cluster->host));
    if (own_ms > 0 && own_ms < CLUSTER_REPEAT_MS * 2)
        held_ms += own_ms;
    (void)json_object_set_new(message, "held_ms", json_integer(held_ms));
    if (!message_check(message, &error)) {
        cluster_malformed(cluster, host, error.text);
        return;
    }
    (void)snprintf(key, sizeof(key), "%s %s", host, text_in(message, "number"));
    if (seen_before(&cluster->seen, key, clock_ms()))
        return;
    cluster->received++;
    cluster->callbacks.message(
        cluster->callbacks.context, message,
        strcmp(kind, "keep") == 0 && !json_object_get(message, "settled") &&
            !hosts_may_want(cluster, host, json_array_size(json_object_get(message, "traces"))));
}

static void cluster_take_text(struct cluster *cluster, const char *host, const char *kind,
                              const struct broker_event *event)
{
    json_t *message = event->length <= MESSAGE_MAX + 128
                          ? json_loadb(event->text, event->length, JSON_REJECT_DUPLICATES, NULL)
                          : NULL;

    if (json_is_object(message))
        cluster_take(cluster, host, kind, message, event->held_ms);
    else
        cluster_malformed(cluster, host, "expected a JSON object of at most 1 MiB");
    json_decref(message);
}

static void cluster_take_config(struct cluster *cluster, const struct broker_event *event)
{
    char *text = strndup(event->text, event->length);

    if (text && strlen(text) == event->length)
        cluster->callbacks.config(cluster->callbacks.context, text);
    else
        cluster_malformed(cluster, "(" CONFIG_TOPIC ")", "the text has a byte of zero");
    free(text);
}

static void cluster_take_message(struct cluster *cluster, const struct broker_event *event)
{
    char host[CLUSTER_HOST];
    const char *rest = cluster_topic(event->topic, host);

    if (!rest)
        return;
    if (strcmp(event->topic, CONFIG_TOPIC) == 0)
        cluster_take_config(cluster, event);
    else if (strcmp(rest, "state") == 0)
        hosts_take(cluster, host, event);
    else if (strcmp(host, cluster->host) == 0)
        return; /* this host's own message */
    else if (strcmp(rest, "want") == 0)
        cluster_take_text(cluster, host, "keep", event);
    else if (strncmp(rest, "found/", 6) == 0)
        cluster_take_text(cluster, host, "found", event);
}

/* ---- the connection -------------------------------------------------------------------------- */

void cluster_say_here(struct cluster *cluster)
{
    json_t *state =
        json_pack("{ss, ss, so, ss}", "state", "here", "version", BLKIN_RELEASE, "since",
                  json_time(cluster->opened_ns), "instance", cluster->instance);
    char *text = state ? json_dumps(state, JSON_COMPACT) : NULL;

    if (text)
        (void)broker_publish(cluster->broker, cluster->state_topic, text, strlen(text), true);
    free(text);
    json_decref(state);
}

/* problem: why there is no connection; NULL: connected. */
static void cluster_set_state(struct cluster *cluster, const char *problem)
{
    const bool is_connected = problem == NULL;

    if (is_connected == cluster->is_connected &&
        (is_connected || strcmp(problem, cluster->problem) == 0))
        return;
    if (is_connected != cluster->is_connected)
        cluster->since_ns = wall_clock_ns();
    cluster->is_connected = is_connected;
    (void)snprintf(cluster->problem, sizeof(cluster->problem), "%s", problem ? problem : "");
    if (is_connected)
        say(BK4062, "%s: connected", cluster->url);
    else
        say(BK4063, "other hosts are not reached: %s: %s", cluster->url, problem);
}

static void cluster_take_event(void *context, const struct broker_event *event)
{
    struct cluster *cluster = context;

    switch (event->kind) {
    case BROKER_CONNECTED:
        cluster_set_state(cluster, NULL);
        cluster->connected_ms = clock_ms();
        cluster_say_here(cluster);
        cluster_repeat(cluster);
        break;
    case BROKER_AWAY:
        cluster_set_state(cluster, event->text);
        break;
    case BROKER_MESSAGE:
        cluster_take_message(cluster, event);
        break;
    case BROKER_ACCEPTED:
        cluster_settle(cluster, event->id, NULL);
        break;
    case BROKER_REFUSED:
        cluster_settle(cluster, event->id, event->text);
        break;
    }
}

void cluster_repeat_soon(struct cluster *cluster)
{
    timer_set(cluster->loop, &cluster->repeat, REPEAT_MS);
}

static void cluster_tick(void *context)
{
    struct cluster *cluster = context;

    cluster_drop_sent(cluster, clock_ms() - CLUSTER_REPEAT_MS, SENT_BYTES);
    hosts_forget(cluster);
    timer_set(cluster->loop, &cluster->tick, CLUSTER_TICK_MS);
}

/* ---- opening --------------------------------------------------------------------------------- */

struct cluster *cluster_open(struct loop *loop, const struct config *config, const char *host,
                             const char *hosts_file, const struct cluster_callbacks *callbacks,
                             struct error *error)
{
    struct cluster *cluster;
    uint64_t instance = 0;

    if (!message_is_host(host))
        return error_null(
            error,
            "host \"%.64s\": expected a name of letters, digits, '.', '-' and '_', which is the "
            "name of this host in the cluster",
            host);
    error_set(error, "out of memory");
    cluster = calloc(1, sizeof(*cluster));
    if (!cluster)
        return NULL;
    cluster->loop = loop;
    cluster->callbacks = *callbacks;
    cluster->last = &cluster->first;
    cluster->seen.keep_ms = 2 * CLUSTER_REPEAT_MS;
    cluster->since_ns = cluster->opened_ns = wall_clock_ns();
    cluster->repeat = (struct timer){.due = cluster_repeat, .context = cluster};
    cluster->tick = (struct timer){.due = cluster_tick, .context = cluster};
    (void)snprintf(cluster->problem, sizeof(cluster->problem), "not connected yet");
    (void)snprintf(cluster->host, sizeof(cluster->host), "%s", host);
    (void)snprintf(cluster->state_topic, sizeof(cluster->state_topic), "blkin/%s/state", host);
    (void)snprintf(cluster->hosts_file, sizeof(cluster->hosts_file), "%s", hosts_file);
    if (getrandom(&instance, sizeof(instance), 0) < 0)
        instance = (uint64_t)wall_clock_ns();
    (void)snprintf(cluster->instance, sizeof(cluster->instance), "%016" PRIx64, instance);
    /* keys before hosts, because a new host gets its share of wants from a key */
    if (cluster_set_up(cluster, config, cluster_take_event, error) && hosts_open(cluster)) {
        cluster_tick(cluster);
        return cluster;
    }
    cluster_close(cluster);
    return NULL;
}

void cluster_close(struct cluster *cluster)
{
    if (!cluster)
        return;
    broker_close(cluster->broker);
    timer_clear(cluster->loop, &cluster->repeat);
    timer_clear(cluster->loop, &cluster->tick);
    while (cluster->first) {
        struct sent *next = cluster->first->next;

        cluster_free_sent(cluster, cluster->first);
        cluster->first = next;
    }
    for (size_t i = 0; i < sizeof(cluster->tls_files) / sizeof(cluster->tls_files[0]); i++)
        free(cluster->tls_files[i]);
    hosts_close(cluster);
    json_decref(cluster->seen.young);
    json_decref(cluster->seen.old);
    explicit_bzero(cluster->password, sizeof(cluster->password));
    free(cluster);
}

json_t *cluster_json(const struct cluster *cluster)
{
    const bool has_twin = cluster && cluster->twin_until_ms > clock_ms();

    if (!cluster)
        return NULL;
    return json_pack("{ss, ss, so, ss, so, so, sI, sI, sI, sI, sI}", "url", cluster->url, "state",
                     cluster->is_connected ? "connected" : "away", "since",
                     json_time(cluster->since_ns), "error",
                     has_twin ? "another agent connects with this host's name" : cluster->problem,
                     "hosts", cluster_hosts(cluster), "away", hosts_away(cluster), "sent",
                     (json_int_t)cluster->accepted, "received", (json_int_t)cluster->received,
                     "dropped", (json_int_t)cluster->dropped, "refused",
                     (json_int_t)cluster->refused, "malformed", (json_int_t)cluster->malformed);
}
