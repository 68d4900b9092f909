/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/base/say.h"
#include "tools/kafka/topic.h"

#include <stdlib.h>

/* How long a request for committed offsets may take: it waits until an open transaction of the
 * previous worker times out. */
#define GROUP_COMMITTED_MS 30000
#define GROUP_POLL_MS      50  /* one wait for a message */
#define MESSAGES_PER_TURN  256 /* messages between the other tasks of the worker's loop */

struct group {
    const struct work_settings *settings;
    struct work_stage *stage;
    rd_kafka_t *consumer;
    struct input *input;
    struct transactions *transactions;
    bool is_member;
    bool says_no_broker; /* has logged that no broker answers */
    int64_t idle_ns;
};

const struct input *group_input(const struct group *group)
{
    return group->input;
}

/* ---- committing ------------------------------------------------------------------------------ */

/* Commits all counts. `places` may already have the places of partitions that the worker gives
 * back. Frees `places`. */
static bool group_commit_with(struct group *group, rd_kafka_topic_partition_list_t *places)
{
    bool is_committed;

    input_add_places(group->input, places);
    is_committed = transactions_commit(group->transactions, group->consumer, places);
    rd_kafka_topic_partition_list_destroy(places);
    if (is_committed)
        input_committed(group->input);
    return is_committed;
}

bool group_commit(struct group *group)
{
    return group_commit_with(group, rd_kafka_topic_partition_list_new(0));
}

/* ---- assigned and revoked partitions --------------------------------------------------------- */

static void group_take_answer(rd_kafka_error_t *answer)
{
    if (answer)
        ending_fail("partitions: %s", rd_kafka_error_string(answer));
    rd_kafka_error_destroy(answer);
}

static void group_assign(struct group *group, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(partitions);
    const rd_kafka_resp_err_t code =
        rd_kafka_committed(group->consumer, committed, GROUP_COMMITTED_MS);
    bool is_right = code == RD_KAFKA_RESP_ERR_NO_ERROR;

    if (!is_right)
        ending_fail("cannot read the committed offsets: %s", rd_kafka_err2str(code));
    for (int i = 0; is_right && i < committed->cnt; i++)
        is_right = input_assign(group->input, &committed->elems[i]);
    /* only the offsets: librdkafka refuses partitions with the metadata of a commit */
    for (int i = 0; i < committed->cnt; i++)
        partitions->elems[i].offset = committed->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(committed);
    group_take_answer(rd_kafka_incremental_assign(group->consumer, partitions));
}

/* Commits all counts, with the places of all partitions, before the worker returns these
 * partitions. If the group has revoked them already, another worker counts the same messages again.
 * The counts of all partitions are one sum, so the worker then has to fail. */
static void group_give_back(struct group *group, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(partitions->cnt);

    if (rd_kafka_assignment_lost(group->consumer))
        ending_fail("the group has given this worker's partitions to others: no heartbeat came for "
                    "session.timeout.ms, or the worker read nothing for max.poll.interval.ms");
    for (int i = 0; i < partitions->cnt; i++)
        input_give_back(group->input, &partitions->elems[i], places);
    (void)group_commit_with(group, places);
    group_take_answer(rd_kafka_incremental_unassign(group->consumer, partitions));
}

static void group_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t what,
                            rd_kafka_topic_partition_list_t *partitions, void *context)
{
    struct group *group = context;

    (void)handle;
    group->stage->counts.rebalances++;
    say(BK7003, "%d partitions %s", partitions->cnt,
        what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "are assigned to this worker"
                                                     : "are taken from this worker");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        group_assign(group, partitions);
    else
        group_give_back(group, partitions);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void group_take(struct group *group, const rd_kafka_message_t *message)
{
    struct error error;

    if (!message->err) {
        input_read(group->input, message);
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        input_end(group->input, message);
    } else {
        kafka_describe(
            &error, message->rkt ? rd_kafka_topic_name(message->rkt) : group->settings->input.topic,
            message->err, rd_kafka_message_errstr(message));
        say(BK7005, "%s", error.text);
    }
}

static rd_kafka_message_t *group_wait(struct group *group)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(group->consumer, 0);

    if (!message) {
        const int64_t from_ns = clock_ns();

        message = rd_kafka_consumer_poll(group->consumer, GROUP_POLL_MS);
        group->idle_ns += clock_ns() - from_ns;
    }
    return message;
}

void group_read(struct group *group)
{
    rd_kafka_message_t *message = group_wait(group);

    for (int count = 1; message; count++) {
        group_take(group, message);
        rd_kafka_message_destroy(message);
        message = count < MESSAGES_PER_TURN && !ending_has_failed()
                      ? rd_kafka_consumer_poll(group->consumer, 0)
                      : NULL;
    }
    /* not only when the worker is idle: one partition may be quiet while others always have
     * messages */
    input_pass_time(group->input);
    input_relieve(group->input);
}

int64_t group_idle_ns(struct group *group)
{
    const int64_t idle_ns = group->idle_ns;

    group->idle_ns = 0;
    return idle_ns;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void group_on_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    struct group *group = context;
    char cause[512];

    if (code == RD_KAFKA_RESP_ERR__FATAL && rd_kafka_fatal_error(handle, cause, sizeof(cause))) {
        ending_fail("%s%s", cause,
                    group->settings->is_named ? " (is there another worker of this instance?)"
                                              : "");
    } else if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !group->says_no_broker) {
        say(BK7017, "%s: no broker answers: the worker waits", group->settings->input.brokers);
        group->says_no_broker = true;
    } else {
        say(BK7018, "%s", reason);
    }
}

static rd_kafka_t *group_consumer(struct group *group, struct error *error)
{
    /* options that the URL and the file must not set; all others may be there, also a producer's */
    static const char *const reserved[] = {"group.id", "enable.auto.commit", "isolation.level",
                                           "partition.assignment.strategy", NULL};
    /* No group.instance.id, on purpose: a static member that dies between revoking and joining
     * returns without a rebalance, and no worker gets these partitions. A static member also keeps
     * its partitions for session.timeout.ms after a normal end. */
    const char *const settings[][2] = {
        {"group.id", group->settings->group},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "earliest"},
        {"partition.assignment.strategy", "cooperative-sticky"},
        {"isolation.level", "read_committed"},
        {"enable.partition.eof", "true"},
        {"session.timeout.ms", "6000"}, /* the brokers' default minimum */
        {"heartbeat.interval.ms", "1000"},
        {"queued.max.messages.kbytes", "16384"},
        {"fetch.wait.max.ms", "100"},
        {"reconnect.backoff.max.ms", "2000"},
        {"client.id", "blkin-work"},
        {NULL, NULL},
    };
    const struct kafka_setup setup = {
        .url = &group->settings->input,
        .file = group->settings->kafka_file,
        .reserved = reserved,
        .settings = settings,
        .context = group,
        .error = group_on_error,
        .rebalance = group_rebalance,
        .log = kafka_log_line,
    };

    return kafka_open(RD_KAFKA_CONSUMER, &setup, error);
}

struct group *group_open(const struct work_settings *settings, struct work_stage *stage,
                         struct error *error)
{
    struct group *group = calloc(1, sizeof(*group));

    error_set(error, "out of memory");
    if (!group)
        return NULL;
    *group = (struct group){.settings = settings, .stage = stage};
    group->consumer = group_consumer(group, error);
    if (group->consumer)
        group->input = input_new(group->consumer, settings, stage);
    if (group->input) {
        (void)rd_kafka_poll_set_consumer(group->consumer);
        return group;
    }
    group_close(group);
    return NULL;
}

bool group_join(struct group *group, struct transactions *transactions, struct error *error)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t code;

    (void)rd_kafka_topic_partition_list_add(topics, group->settings->input.topic,
                                            RD_KAFKA_PARTITION_UA);
    code = rd_kafka_subscribe(group->consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    group->transactions = transactions;
    if (code)
        error_set(error, "input: %s", rd_kafka_err2str(code));
    group->is_member = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    return group->is_member;
}

/* ---- leaving --------------------------------------------------------------------------------- */

bool group_leave(struct group *group)
{
    if (!group->is_member)
        return true;
    if (group_commit(group))
        (void)rd_kafka_consumer_close(group->consumer);
    /* rd_kafka_destroy() of librdkafka up to 2.2 aborts for a member that left before its first
     * assignment (its issue 4312). */
    return !ending_has_failed() && group->stage->counts.rebalances > 0;
}

void group_close(struct group *group)
{
    if (!group)
        return;
    if (group->consumer)
        rd_kafka_destroy(group->consumer);
    input_free(group->input);
    free(group);
}
