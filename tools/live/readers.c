/*
 * The readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/privileges.h"
#include "tools/base/say.h"
#include "tools/reader/graph.h"
#include "viewer.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATH_SIZE      192
#define RESTART_MS     100 /* then twice as long each time */
#define RESTART_MAX_MS 5000
#define LOOK_MS        1000
#define STATS_MS       500                   /* how often they write */
#define SILENT_NS      INT64_C(180000000000) /* a reader writes its account when it begins */
#define STUCK_NS       INT64_C(5000000000)
#define RETIRE_MS      3000
#define AGAIN_MAX      3
#define AGAIN_NS       INT64_C(30000000000) /* a reader that has lived so long may be read after */
#define END_EXTRA_MS   3000                 /* besides what the delivery of the rest may take */

/* ---- the child ------------------------------------------------------------------------------- */

static bool set_text(bt_value *params, const char *key, const char *value)
{
    return bt_value_map_insert_string_entry(params, key, value) ==
           BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

/* FOLDER/live-HOST-SESSION-HASH.END */
static const char *path_of(const struct reader *reader, const char *end, char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%s/live-%s.%s", reader->readers->options.folder,
                   reader->file_name, end);
    return path;
}

/* file:PATH is a file for each run of a sink: the first one's, then PATH.2 ... */
static bool set_endpoint(const struct reader *reader, bt_value *params)
{
    const bt_value *endpoint = bt_value_map_borrow_entry_value_const(params, "endpoint");
    char text[4352];

    if (!endpoint || strncmp(bt_value_string_get(endpoint), "file:", 5) != 0 ||
        reader->readers->starts == 0)
        return true;
    (void)snprintf(text, sizeof(text), "%s.%u", bt_value_string_get(endpoint),
                   reader->readers->starts + 1);
    return set_text(params, "endpoint", text);
}

/* A spool is of one sink. Its folder is made by it, but no more than one. */
static bool set_spool(const struct reader *reader, bt_value *params)
{
    const bt_value *spool = bt_value_map_borrow_entry_value_const(params, "spool");
    char path[4352];

    if (!spool)
        return true;
    (void)mkdir(bt_value_string_get(spool), 0700);
    (void)snprintf(path, sizeof(path), "%s/live-%s", bt_value_string_get(spool), reader->file_name);
    return set_text(params, "spool", path);
}

/*
 * Our relay daemon has a session's packets until it ends: a reader reads them from the first one,
 * and passes over what the one before it has read. Not if that kills readers.
 */
static bool reads_all(const struct reader *reader)
{
    return reader->readers->options.is_own_relay && reader->again <= AGAIN_MAX;
}

/* The sink's parameters, with what is this reader's own. NULL: out of memory. */
static bt_value *params_of(const struct reader *reader)
{
    bt_value *params = NULL;
    char path[PATH_SIZE];

    if (bt_value_copy(reader->readers->options.params, &params) != BT_VALUE_COPY_STATUS_OK)
        return NULL;
    if (set_endpoint(reader, params) && set_spool(reader, params) &&
        set_text(params, "stats-file", path_of(reader, "json", path)) &&
        set_text(params, "checkpoint", path_of(reader, "checkpoint", path)) &&
        set_text(params, "tap", path_of(reader, "tap", path)) &&
        bt_value_map_insert_bool_entry(params, "checkpoint-again",
                                       reader->starts > 0 && reads_all(reader)) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
        bt_value_map_insert_signed_integer_entry(params, "stats-period-ms", STATS_MS) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        return params;
    bt_value_put_ref(params);
    return NULL;
}

static int run_reader(void *context)
{
    const struct reader *reader = context;
    const struct readers_options *options = &reader->readers->options;
    bt_value *params = params_of(reader);
    char url[1024];
    const struct graph_spec spec = {.live_url = url,
                                    .sink_params = params,
                                    .retry_us = options->retry_us,
                                    .level = options->level};
    int status, port;

    output_lines_in_child(&reader->lines);
    privileges_give_up();
    (void)prctl(PR_SET_NAME, "blkin-reader");
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* what was read is delivered */
    port = viewer_start(options->live_url, reads_all(reader));
    if (port == 0) {
        fprintf(stderr, "blkin: cannot read %s: %s\n", options->live_url, strerror(errno));
        return GRAPH_FAILED;
    }
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%d/host/%s/%s", port, reader->host,
                   reader->session);
    status = params ? (int)graph_run(&spec) : GRAPH_FAILED;
    bt_value_put_ref(params);
    return status;
}

/* ---- its account ----------------------------------------------------------------------------- */

static bool read_stats(const struct reader *reader, struct reader_account *account)
{
    char path[PATH_SIZE];

    return reader_account_read(path_of(reader, "json", path), account);
}

static void read_account(struct reader *reader)
{
    struct reader_account account;

    if (reader->child.pid && read_stats(reader, &account) && account.pid == reader->child.pid)
        reader->now = account;
}

/* Of one that is gone. Returns the spans that went with it. */
static uint64_t close_account(struct reader *reader, pid_t pid)
{
    struct reader_account account;
    uint64_t lost;

    if (read_stats(reader, &account) && account.pid == pid)
        reader->now = account;
    if (reader->is_attached || reader->now.counts.input.trace_time_ns)
        reader->failures = 0; /* it has worked */
    lost = counts_bury(&reader->now.counts);
    if (reader->now.pid)
        counts_follow(&reader->before, &reader->now.counts);
    reader->now = (struct reader_account){.pid = 0};
    return lost;
}

static void say_what_was_before(const struct reader *reader)
{
    struct reader_account account;

    if (!read_stats(reader, &account) || account.has_ended)
        return;
    say(BT_LOGGING_LEVEL_WARNING,
        "%s/%s: the last reader, process %ld of an earlier run, was killed: %" PRIu64
        " spans that waited for delivery are lost, and what was recorded since it last wrote its "
        "account, %.1f s ago",
        reader->host, reader->session, account.pid, account.counts.output.waiting,
        (double)(wall_clock_ns() - account.events_ns) / 1e9);
}

/* ---- starting and ending one ----------------------------------------------------------------- */

static void set_state(struct reader *reader, enum reader_state state)
{
    reader->state = state;
    reader->since_ns = wall_clock_ns();
}

static void start(void *context);

static void start_in(struct reader *reader, int64_t ms)
{
    set_state(reader, READER_WAITING);
    reader->timer.due = start;
    if (reader->readers->relay_is_up)
        timer_set(reader->readers->loop, &reader->timer, ms);
}

static void start_later(struct reader *reader)
{
    start_in(reader, backoff_ms(++reader->failures, RESTART_MS, RESTART_MAX_MS));
}

static void start(void *context)
{
    struct reader *reader = context;
    struct loop *loop = reader->readers->loop;

    if (reader->starts == 0)
        say_what_was_before(reader);
    if (!output_lines_open(&reader->lines, loop)) {
        start_later(reader);
        return;
    }
    if (!child_start(loop, &reader->child, run_reader, reader)) {
        output_lines_started(&reader->lines);
        output_lines_close(&reader->lines);
        start_later(reader);
        return;
    }
    output_lines_started(&reader->lines);
    reader->pid = reader->child.pid;
    reader->starts++;
    reader->readers->starts++;
    reader->is_renewed = false;
    watch_begin(&reader->watch, clock_ms());
    set_state(reader, READER_RUNNING);
}

static void kill_reader(void *context)
{
    struct reader *reader = context;

    say(BT_LOGGING_LEVEL_WARNING, "%s/%s: its reader does not end: it is killed", reader->host,
        reader->session);
    (void)kill(reader->child.pid, SIGKILL);
}

static void end_reader(void *context)
{
    struct reader *reader = context;

    if (reader->state == READER_RUNNING) {
        (void)kill(reader->child.pid, SIGINT);
        set_state(reader, READER_ENDING);
        reader->timer.due = kill_reader;
        timer_set(reader->readers->loop, &reader->timer,
                  reader->readers->options.flush_timeout_ms + END_EXTRA_MS);
    } else if (reader->state == READER_WAITING) {
        timer_clear(reader->readers->loop, &reader->timer);
        set_state(reader, READER_ENDED);
    }
}

static void forget(struct reader *reader)
{
    counts_add(&reader->readers->gone, &reader->before);
    reader->readers->on.gone(reader->readers->on.context, reader);
    reader->is_used = false;
}

/* ---- when one has ended ---------------------------------------------------------------------- */

static void renew_next(struct readers *readers)
{
    for (int i = 0; i < READERS_MAX; i++) {
        const struct reader *reader = &readers->readers[i];

        if (reader->is_used && reader->is_renewed && reader->state == READER_ENDING)
            return; /* one at a time */
    }
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        if (reader->is_used && reader->is_renewed && reader->state == READER_RUNNING) {
            end_reader(reader);
            return;
        }
    }
}

static void say_death(struct reader *reader, int status, uint64_t lost)
{
    char how[48];

    if (WIFSIGNALED(status))
        (void)snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(how, sizeof(how), "has ended with status %d", WEXITSTATUS(status));
    reader->readers->killed++;
    reader->readers->lost_spans += lost;
    say(BT_LOGGING_LEVEL_WARNING,
        "%s/%s: its reader %s, with %" PRIu64 " spans not delivered; it is started again%s",
        reader->host, reader->session, how, lost,
        reads_all(reader) ? ", and reads what it has missed"
                          : ", and what is recorded until it reads is lost");
}

static void all_have_ended(struct readers *readers)
{
    if (readers_running(readers) == 0)
        readers->on.all_ended(readers->on.context);
}

static void reader_ended(void *context, int status)
{
    struct reader *reader = context;
    struct readers *readers = reader->readers;
    const bool was_ending = reader->state == READER_ENDING;
    const bool is_old = wall_clock_ns() - reader->since_ns > AGAIN_NS;
    const uint64_t lost = close_account(reader, reader->pid);

    reader->again = is_old || was_ending ? 0 : reader->again + 1;
    timer_clear(readers->loop, &reader->timer);
    output_lines_close(&reader->lines);
    reader->is_attached = false;
    if (!reader->unread_since_ns)
        reader->unread_since_ns = wall_clock_ns();
    if ((!was_ending && !reader->is_retired) || WIFSIGNALED(status))
        say_death(reader, status, lost);
    if (readers->is_ending) {
        set_state(reader, READER_ENDED);
        all_have_ended(readers);
    } else if (reader->is_retired || (was_ending && !reader->is_renewed)) {
        set_state(reader, READER_ENDED);
        if (!reader->is_listed)
            forget(reader);
    } else if (was_ending) {
        start(reader);
        renew_next(readers);
    } else {
        start_later(reader);
    }
}

/* ---- which there are ------------------------------------------------------------------------- */

/* Of what relayd tells, which anybody may have told it: a short name that is safe in a folder. */
static void set_file_name(struct reader *reader)
{
    uint32_t hash = 2166136261; /* FNV-1a: other sessions have other files */
    char name[32];

    (void)snprintf(name, sizeof(name), "%.15s-%.15s", reader->host, reader->session);
    for (char *c = name; *c; c++) {
        if (!strchr("-_.", *c) && !(*c >= '0' && *c <= '9') &&
            !((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
            *c = '_';
    }
    for (const char *c = reader->host; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619;
    for (const char *c = reader->session; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619;
    (void)snprintf(reader->file_name, sizeof(reader->file_name), "%s-%08x", name, hash);
}

static struct reader *find(struct readers *readers, const char *host, const char *session)
{
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        if (reader->is_used && strcmp(reader->host, host) == 0 &&
            strcmp(reader->session, session) == 0)
            return reader;
    }
    return NULL;
}

static struct reader *add(struct readers *readers, const char *host, const char *session)
{
    struct reader *reader = readers->readers;

    while (reader < readers->readers + READERS_MAX && reader->is_used)
        reader++;
    if (reader == readers->readers + READERS_MAX) {
        if (!readers->was_full)
            say(BT_LOGGING_LEVEL_WARNING, "more than %d sessions to follow: %s/%s is not read",
                READERS_MAX, host, session);
        readers->was_full = true;
        return NULL;
    }
    *reader = (struct reader){.readers = readers, .is_used = true};
    (void)snprintf(reader->host, sizeof(reader->host), "%s", host);
    (void)snprintf(reader->session, sizeof(reader->session), "%s", session);
    (void)snprintf(reader->lines.source, sizeof(reader->lines.source), "%.160s/%.160s", host,
                   session);
    reader->lines.input.fd = -1;
    reader->lines.dull = "events: "; /* its account: we add them up */
    reader->timer.context = reader;
    reader->child = (struct child){.ended = reader_ended, .context = reader};
    reader->unread_since_ns = wall_clock_ns();
    set_file_name(reader);
    start_in(reader, 0);
    return reader;
}

void readers_add_own(struct readers *readers, const char *host, const char *session)
{
    struct reader *reader = find(readers, host, session);

    if (!reader)
        reader = add(readers, host, session);
    if (reader)
        reader->is_own = true;
}

static bool is_followed(const struct readers *readers, const struct listed_session *session)
{
    char name[520], globs[sizeof(readers->options.follow)];
    char *rest = globs;
    const char *glob;

    if (strchr(session->host, '/') || strchr(session->name, '/') || !session->host[0])
        return false;
    (void)snprintf(name, sizeof(name), "%s/%s", session->host, session->name);
    memcpy(globs, readers->options.follow, sizeof(globs));
    while ((glob = strsep(&rest, ", ")) != NULL) {
        if (*glob && fnmatch(glob, name, 0) == 0)
            return true;
    }
    return false;
}

static void note_attached(struct reader *reader, const struct listed_session *session)
{
    reader->is_listed = true;
    if (reader->state == READER_ENDED && !reader->is_retired) /* it has come back meanwhile */
        start_in(reader, 0);
    reader->is_attached = session->viewers > 0 && reader->state == READER_RUNNING;
    if (!reader->is_attached || !reader->unread_since_ns)
        return;
    if (reader->starts > 1)
        say(BT_LOGGING_LEVEL_WARNING, "%s/%s: is read again, after %.1f s", reader->host,
            reader->session, (double)(wall_clock_ns() - reader->unread_since_ns) / 1e9);
    else
        say(BT_LOGGING_LEVEL_INFO, "%s/%s: is read", reader->host, reader->session);
    reader->unread_since_ns = 0;
}

void readers_listed(struct readers *readers, const struct listing *listing)
{
    bool was_listed[READERS_MAX];

    if (readers->is_ending)
        return;
    for (int i = 0; i < READERS_MAX; i++) {
        was_listed[i] = readers->readers[i].is_listed;
        readers->readers[i].is_listed = false;
    }
    for (int i = 0; i < listing->count; i++) {
        const struct listed_session *session = &listing->sessions[i];
        struct reader *reader = find(readers, session->host, session->name);

        if (!reader && is_followed(readers, session))
            reader = add(readers, session->host, session->name);
        if (reader)
            note_attached(reader, session);
    }
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        if (!reader->is_used || reader->is_listed || (reader->is_own && !reader->is_retired))
            continue;
        if (was_listed[i])
            continue; /* next time, if it is still so */
        end_reader(reader);
        if (reader->state == READER_ENDED)
            forget(reader);
    }
}

void readers_retire(struct readers *readers, const char *session)
{
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        if (!reader->is_used || !reader->is_own || strcmp(reader->session, session) != 0)
            continue;
        reader->is_retired = true;
        reader->timer.due = end_reader;
        timer_set(readers->loop, &reader->timer, RETIRE_MS);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void look_at(struct reader *reader)
{
    char ignored[WATCH_MESSAGE_MAX];
    bool is_stuck;

    read_account(reader);
    if (!reader->now.pid && wall_clock_ns() - reader->since_ns > SILENT_NS) {
        say(BT_LOGGING_LEVEL_WARNING,
            "%s/%s: its reader has told nothing since its start: it is killed", reader->host,
            reader->session);
        (void)kill(reader->child.pid, SIGKILL);
        return;
    }
    is_stuck = wall_clock_ns() - reader->now.events_ns > STUCK_NS;
    (void)watch_look(&reader->watch, &reader->now.counts.input, is_stuck, clock_ms(), ignored);
    if (reader->watch.is_still && !is_stuck && reader->is_own && !reader->is_retired &&
        reader->now.counts.input.streams_open)
        reader->readers->on.stalled(reader->readers->on.context, reader);
}

static void look(void *context)
{
    struct readers *readers = context;

    timer_set(readers->loop, &readers->look, LOOK_MS);
    for (int i = 0; i < READERS_MAX; i++) {
        if (readers->readers[i].is_used && readers->readers[i].state == READER_RUNNING)
            look_at(&readers->readers[i]);
    }
}

void readers_begin(struct readers *readers, struct loop *loop,
                   const struct readers_options *options, const struct readers_callbacks *callbacks)
{
    *readers = (struct readers){.loop = loop, .options = *options, .on = *callbacks};
    readers->look = (struct timer){.due = look, .context = readers};
    timer_set(loop, &readers->look, LOOK_MS);
}

void readers_reload(struct readers *readers, const struct readers_options *options)
{
    const struct readers_options *old = &readers->options;
    const bool is_other = !bt_value_is_equal(old->params, options->params) ||
                          old->retry_us != options->retry_us || old->level != options->level;

    if (is_other)
        readers->starts = 0;
    bt_value_put_ref(old->params);
    readers->options = *options;
    for (int i = 0; is_other && i < READERS_MAX; i++)
        readers->readers[i].is_renewed = readers->readers[i].state == READER_RUNNING;
    renew_next(readers);
}

void readers_relay_up(struct readers *readers)
{
    readers->relay_is_up = true;
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        reader->failures = 0;
        if (reader->is_used && reader->state == READER_WAITING)
            start_in(reader, 0);
    }
}

/* Those that run will notice. */
void readers_relay_down(struct readers *readers)
{
    readers->relay_is_up = false;
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        reader->is_listed = false;
        if (reader->is_used && reader->state == READER_WAITING)
            timer_clear(readers->loop, &reader->timer);
    }
}

bool readers_have_read(struct readers *readers, int64_t trace_ns, int64_t wall_ns)
{
    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];
        const struct input_counts *input = &reader->now.counts.input;

        if (!reader->is_used || !reader->is_own || reader->is_retired ||
            reader->state != READER_RUNNING)
            continue;
        read_account(reader);
        if (input->trace_time_ns < trace_ns &&
            (input->streams_open || reader->now.events_ns < wall_ns + STATS_MS * 2000000))
            return false;
    }
    return true;
}

void readers_end(struct readers *readers)
{
    readers->is_ending = true;
    timer_clear(readers->loop, &readers->look);
    for (int i = 0; i < READERS_MAX; i++) {
        if (readers->readers[i].is_used)
            end_reader(&readers->readers[i]);
    }
    all_have_ended(readers);
}

/* Of the child that runs, and of those before it. */
static struct counts account_of(const struct reader *reader)
{
    struct counts sum = reader->before;

    if (reader->now.pid)
        counts_follow(&sum, &reader->now.counts);
    return sum;
}

struct counts readers_counts(struct readers *readers)
{
    struct counts sum = readers->gone;

    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];
        struct counts of_reader;

        if (!reader->is_used)
            continue;
        read_account(reader);
        of_reader = account_of(reader);
        counts_add(&sum, &of_reader);
    }
    return sum;
}

bool readers_has_attached_own(const struct readers *readers)
{
    for (int i = 0; i < READERS_MAX; i++) {
        const struct reader *reader = &readers->readers[i];

        if (reader->is_used && reader->is_own && reader->is_attached)
            return true;
    }
    return false;
}

unsigned readers_running(const struct readers *readers)
{
    unsigned count = 0;

    for (int i = 0; i < READERS_MAX; i++)
        count += readers->readers[i].is_used && readers->readers[i].child.pid != 0;
    return count;
}

static json_t *reader_json(const struct reader *reader)
{
    static const char *const states[] = {"waiting", "reading", "ending", "ended"};
    const struct counts sum = account_of(reader);
    char name[520];

    (void)snprintf(name, sizeof(name), "%s/%s", reader->host, reader->session);
    return json_pack(
        "{ss%, ss, sb, sb, so, sI, sI, so, so}", "session", name, strlen(name), "state",
        reader->state == READER_RUNNING && !reader->is_attached ? "no such session yet"
                                                                : states[reader->state],
        "own", reader->is_own, "attached", reader->is_attached, "since",
        json_time(reader->since_ns), "pid", (json_int_t)reader->child.pid, "starts",
        (json_int_t)reader->starts, "trace_time", json_time(reader->now.counts.input.trace_time_ns),
        "counters", counts_json(&sum));
}

json_t *readers_json(struct readers *readers)
{
    json_t *list = json_array();

    for (int i = 0; i < READERS_MAX; i++) {
        struct reader *reader = &readers->readers[i];

        if (!reader->is_used)
            continue;
        read_account(reader);
        json_array_append_new(list, reader_json(reader));
    }
    return list;
}

json_t *readers_taps(struct readers *readers)
{
    json_t *list = json_array();
    char path[PATH_SIZE];

    for (int i = 0; i < READERS_MAX; i++) {
        const struct reader *reader = &readers->readers[i];

        if (reader->is_used && reader->state == READER_RUNNING)
            json_array_append_new(list, json_string(path_of(reader, "tap", path)));
    }
    return list;
}
