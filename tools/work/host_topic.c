/*
 * The topic of hosts' metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_topic.h"

#include "ending.h"
#include "tools/base/say.h"
#include "tools/points/otlp_points.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COMMITTED_MS 30000

struct host_partition {
    bool is_ours;
    bool is_at_end;
    int64_t next; /* offset */
    int64_t committed;
    int64_t time_ms; /* the log's, of the latest message */
};

struct host_topic {
    rd_kafka_t *consumer;
    const char *name;
    struct work_stage *stage;
    struct fleet *fleet;
    struct host_partition *partitions; /* by number */
    int32_t room;
};

struct host_topic *host_topic_new(rd_kafka_t *consumer, const char *name, const char *groups,
                                  struct work_stage *stage, struct error *error)
{
    struct host_topic *topic = calloc(1, sizeof(*topic));
    struct error cause = {"out of memory"};

    if (topic) {
        *topic = (struct host_topic){.consumer = consumer, .name = name, .stage = stage};
        topic->fleet = fleet_new(groups, &cause);
        if (topic->fleet)
            return topic;
    }
    error_set(error, "host-groups: %.900s", cause.text);
    free(topic);
    return NULL;
}

void host_topic_free(struct host_topic *topic)
{
    if (!topic)
        return;
    free(topic->partitions);
    fleet_free(topic->fleet);
    free(topic);
}

struct fleet *host_topic_fleet(struct host_topic *topic)
{
    return topic->fleet;
}

static struct host_partition *host_topic_partition(const struct host_topic *topic, int32_t number)
{
    return number >= 0 && number < topic->room && topic->partitions[number].is_ours
               ? &topic->partitions[number]
               : NULL;
}

/* ---- partitions come and go ------------------------------------------------------------------ */

static bool host_topic_make_room(struct host_topic *topic, int32_t number)
{
    const int32_t room = number + 16;
    struct host_partition *partitions;

    if (number < topic->room)
        return true;
    partitions = realloc(topic->partitions, (size_t)room * sizeof(*partitions));
    if (!partitions)
        return false;
    memset(partitions + topic->room, 0, (size_t)(room - topic->room) * sizeof(*partitions));
    topic->partitions = partitions;
    topic->room = room;
    return true;
}

bool host_topic_assign(struct host_topic *topic, rd_kafka_topic_partition_t *partition)
{
    const int64_t committed = partition->offset;
    int64_t low = 0, high = 0, next = committed;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        topic->consumer, topic->name, partition->partition, &low, &high, COMMITTED_MS);

    if (code || partition->err) {
        ending_fail("partition %" PRId32 " of %s: %s", partition->partition, topic->name,
                    rd_kafka_err2str(code ? code : partition->err));
        return false;
    }
    if (!host_topic_make_room(topic, partition->partition)) {
        ending_fail("out of memory");
        return false;
    }
    if (committed > high) {
        say(BT_LOGGING_LEVEL_WARNING,
            "partition %" PRId32 " of %s ends at %" PRId64 ", before %" PRId64
            " that was read: a broker has lost its end, or the topic was made anew. Reading goes "
            "on at its end: %" PRId64 " offsets are missing",
            partition->partition, topic->name, high, committed, committed - high);
        topic->stage->counts.offsets_missing += (uint64_t)(committed - high);
        next = high;
    }
    if (committed >= 0 && committed < low) /* the broker deletes faster than workers read */
        topic->stage->counts.offsets_missing += (uint64_t)(low - committed);
    if (committed < low)
        next = low;
    topic->partitions[partition->partition] = (struct host_partition){
        .is_ours = true, .next = next, .committed = committed == next ? next : -1};
    topic->stage->counts.partitions++;
    partition->offset = next;
    return true;
}

static void host_topic_add_place(const struct host_topic *topic, int32_t number,
                                 rd_kafka_topic_partition_list_t *places)
{
    const struct host_partition *partition = &topic->partitions[number];

    if (partition->next != partition->committed)
        rd_kafka_topic_partition_list_add(places, topic->name, number)->offset = partition->next;
}

void host_topic_give_back(struct host_topic *topic, int32_t number,
                          rd_kafka_topic_partition_list_t *places)
{
    struct host_partition *partition = host_topic_partition(topic, number);

    if (!partition)
        return;
    host_topic_add_place(topic, number, places);
    partition->is_ours = false;
    topic->stage->counts.partitions--;
}

/* ---- committing ------------------------------------------------------------------------------ */

void host_topic_add_places(const struct host_topic *topic, rd_kafka_topic_partition_list_t *places)
{
    for (int32_t i = 0; i < topic->room; i++) {
        if (topic->partitions[i].is_ours)
            host_topic_add_place(topic, i, places);
    }
}

void host_topic_committed(struct host_topic *topic)
{
    for (int32_t i = 0; i < topic->room; i++)
        topic->partitions[i].committed = topic->partitions[i].next;
    fleet_begin_period(topic->fleet);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct host_reading {
    struct host_topic *topic;
    int64_t time_ns;
};

static void host_topic_take_point(void *context, const struct fleet_point *point)
{
    const struct host_reading *reading = context;

    reading->topic->stage->assembly.is_starved |=
        !fleet_add(reading->topic->fleet, point, reading->time_ns);
}

void host_topic_read(struct host_topic *topic, const rd_kafka_message_t *message, int64_t time_ms)
{
    struct host_partition *partition = host_topic_partition(topic, message->partition);
    struct work_counts *counts = &topic->stage->counts;
    struct host_reading reading = {topic, time_ms * 1000000};
    const struct fleet_counts before = *fleet_counts(topic->fleet);
    struct otlp_points_read told;

    if (!partition || message->offset < partition->next)
        return; /* it was under way when the partition was given back */
    counts->offsets_missing += (uint64_t)(message->offset - partition->next);
    partition->next = message->offset + 1;
    partition->is_at_end = false;
    partition->time_ms = time_ms;
    told = otlp_points_read((struct text){message->payload, message->len}, host_topic_take_point,
                            &reading);
    counts->host_messages++;
    counts->bytes += message->len;
    counts->host_messages_broken += told.is_broken;
    counts->host_points_refused +=
        told.refused + fleet_counts(topic->fleet)->refused - before.refused;
    counts->host_points += told.points - (fleet_counts(topic->fleet)->refused - before.refused);
    counts->host_points_shifted += fleet_counts(topic->fleet)->shifted - before.shifted;
}

void host_topic_end(struct host_topic *topic, int32_t number)
{
    struct host_partition *partition = host_topic_partition(topic, number);

    if (partition)
        partition->is_at_end = true;
}

int64_t host_topic_behind_ms(const struct host_topic *topic, int64_t now_ms)
{
    int64_t behind_ms = 0;

    for (int32_t i = 0; i < topic->room; i++) {
        const struct host_partition *partition = &topic->partitions[i];

        if (partition->is_ours && !partition->is_at_end && partition->time_ms > 0 &&
            now_ms - partition->time_ms > behind_ms)
            behind_ms = now_ms - partition->time_ms;
    }
    return behind_ms;
}
