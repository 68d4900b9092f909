/* The accounts of the readers: sums, and JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"
#include "tools/reader/graph.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- one reader ------------------------------------------------------------------------------ */

static bool readers_read_stats(const struct live_reader *reader, struct reader_account *account)
{
    char path[READERS_PATH_SIZE];

    return reader_account_read(readers_path_of(reader, "json", path), account);
}

void readers_read_account(struct live_reader *reader)
{
    struct reader_account account;

    if (reader->child.pid && readers_read_stats(reader, &account) &&
        account.pid == reader->child.pid)
        reader->now = account;
}

/* Returns the number of spans that the last child of this reader has begun to send. */
static uint64_t readers_read_sent(const struct live_reader *reader)
{
    char path[READERS_PATH_SIZE];
    const int fd = open(readers_path_of(reader, "sent", path), O_RDONLY | O_CLOEXEC);
    uint64_t sent = 0;

    if (fd < 0)
        return 0;
    if (read(fd, &sent, sizeof(sent)) != (ssize_t)sizeof(sent))
        sent = 0;
    (void)close(fd);
    return sent;
}

void readers_read_last_account(struct live_reader *reader)
{
    struct reader_account account;
    char from[READERS_PATH_SIZE], to[READERS_PATH_SIZE];

    if (readers_read_stats(reader, &account) && account.pid == reader->pid)
        reader->now = account;
    (void)rename(readers_path_of(reader, "statistics", from),
                 readers_path_of(reader, "counted", to));
    if (reader->is_attached || reader->now.counts.input.trace_time_ns)
        reader->failures = 0; /* the child made progress */
}

uint64_t readers_note_settled(struct live_reader *reader)
{
    const struct mark *settled = &reader->now.settled;
    const uint64_t sent = readers_read_sent(reader);

    if (settled->at.time_ns)
        reader->from = settled->at;
    else if (!reader->from.time_ns)
        reader->from.time_ns = reader->began_ns;
    return sent > settled->sent ? sent - settled->sent : 0;
}

/* Counts waiting spans as undelivered unless another child reads them again. Returns the number
 * that became undelivered. */
uint64_t readers_close_account(struct live_reader *reader, bool is_read_again)
{
    uint64_t lost = 0;

    if (is_read_again)
        counts_hand_over(&reader->now.counts);
    else
        lost = counts_close(&reader->now.counts);
    if (reader->now.pid)
        counts_follow(&reader->before, &reader->now.counts);
    reader->now = (struct reader_account){.pid = 0};
    return lost;
}

static void readers_say_earlier_run(const struct live_reader *reader,
                                    const struct reader_account *account, uint64_t twice)
{
    const double seconds = (double)(wall_clock_ns() - account->events_ns) / 1e9;
    char what[160];

    if (!reader->readers->options.is_own_relay)
        (void)snprintf(what, sizeof(what),
                       "%s: the new reader reads the missed events, and at most %" PRIu64
                       " spans are sent twice",
                       account->has_ended ? "has ended" : "was killed", twice);
    else if (account->has_ended)
        (void)snprintf(what, sizeof(what),
                       "has ended: the events recorded since then are lost, %.1f s", seconds);
    else
        (void)snprintf(what, sizeof(what),
                       "was killed: %" PRIu64 " spans that waited for delivery are lost, and the "
                       "events recorded since its last account, %.1f s ago",
                       account->counts.output.waiting, seconds);
    say(BK2033, "%s/%s: the last reader, process %ld of an earlier run, %s", reader->host,
        reader->session, account->pid, what);
}

void readers_find_earlier_run(struct live_reader *reader)
{
    struct reader_account account;
    uint64_t twice = 0;

    if (!readers_read_stats(reader, &account) || account.settled.at.time_ns > wall_clock_ns())
        return;
    /* only a foreign relay daemon has packets of an earlier run */
    if (!reader->readers->options.is_own_relay) {
        reader->now.settled = account.settled;
        twice = readers_note_settled(reader);
        reader->now = (struct reader_account){.pid = 0};
    }
    readers_say_earlier_run(reader, &account, twice);
}

/* Returns the sum of the running child and its predecessors. */
static struct counts readers_account_of(const struct live_reader *reader)
{
    struct counts sum = reader->before;

    if (reader->now.pid)
        counts_follow(&sum, &reader->now.counts);
    return sum;
}

/* ---- all readers ----------------------------------------------------------------------------- */

bool readers_have_read(struct readers *readers, int64_t trace_ns, int64_t wall_ns)
{
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        const struct input_counts *input = &reader->now.counts.input;

        if (!reader->is_own || reader->is_retired)
            continue;
        if (reader->state == READER_WAITING ||
            (reader->state == READER_ENDING && reader->is_renewed))
            return false; /* the next child will read the missed events */
        if (reader->state != READER_RUNNING)
            continue;
        readers_read_account(reader);
        /* a child that is not attached yet has no streams either */
        if (input->trace_time_ns < trace_ns &&
            (input->streams_open || (reader->has_streams && !input->trace_time_ns) ||
             reader->now.events_ns < wall_ns + READER_STATS_MS * 2000000))
            return false;
    }
    return true;
}

struct counts readers_counts(struct readers *readers)
{
    struct counts sum = readers->gone;

    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        struct counts of_reader;

        readers_read_account(reader);
        of_reader = readers_account_of(reader);
        counts_add(&sum, &of_reader);
    }
    return sum;
}

static json_t *readers_json_of(const struct live_reader *reader)
{
    static const char *const states[] = {"waiting", "reading", "ending", "ended"};
    const struct counts sum = readers_account_of(reader);
    char name[520];

    (void)snprintf(name, sizeof(name), "%s/%s", reader->host, reader->session);
    return json_pack(
        "{ss%, ss, sb, sb, so, sI, sI, so, so}", "session", name, strlen(name), "state",
        reader->state != READER_RUNNING || reader->is_attached ? states[reader->state]
        : reader->is_gone                                      ? "sending its spool"
                                                               : "no such session yet",
        "own", reader->is_own, "attached", reader->is_attached, "since",
        json_time(reader->since_ns), "pid", (json_int_t)reader->child.pid, "starts",
        (json_int_t)reader->starts, "trace_time", json_time(reader->now.counts.input.trace_time_ns),
        "counters", counts_json(&sum));
}

json_t *readers_json(struct readers *readers)
{
    json_t *list = json_array();

    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        readers_read_account(reader);
        json_array_append_new(list, readers_json_of(reader));
    }
    return list;
}

static void readers_add_document(json_t *list, json_t *document)
{
    if (document)
        (void)json_array_append_new(list, document);
}

json_t *readers_statistics(struct readers *readers)
{
    json_t *list = json_array();
    char path[READERS_PATH_SIZE];

    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        readers_add_document(list, reader_statistics(readers_path_of(reader, "statistics", path)));
        /* the last statistics of the previous child */
        readers_add_document(
            list, json_load_file(readers_path_of(reader, "counted", path), JSON_ALLOW_NUL, NULL));
    }
    return list;
}
