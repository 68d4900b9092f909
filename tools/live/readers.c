/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A restarted child that reads the same events may die again, for example of a corrupted packet.
 * Each death in a row without progress adds points: few for SIGKILL, which usually comes from
 * outside. Beyond DEATH_POINTS_MAX points, the next child skips the events. */
#define DEATH_POINTS_KILLED    1
#define DEATH_POINTS_FAILED    4
#define DEATH_POINTS_MAX       12
#define READERS_RESTART_MS     100 /* doubles with each failure */
#define READERS_RESTART_MAX_MS 5000
#define READERS_LOOK_MS        1000 /* between checks of the readers' accounts */
/* How long after its start a reader may take to write its first account. */
#define SILENT_NS    INT64_C(180000000000)
#define STUCK_NS     INT64_C(5000000000) /* the age of an account whose reader hangs */
#define END_EXTRA_MS 3000                /* added to flush-timeout-ms */

/* ---- spools ---------------------------------------------------------------------------------- */

/* Returns another reader with this spool; NULL: there is none. */
static struct live_reader *readers_sharing(struct readers *readers, const char *file_name,
                                           const struct live_reader *reader)
{
    for (struct live_reader *other = NULL; (other = readers_next(readers, other));) {
        if (other != reader && strcmp(other->file_name, file_name) == 0)
            return other;
    }
    return NULL;
}

/* Returns whether a reader whose session is gone still sends what its spool has, by its account. */
static bool readers_sends(const struct live_reader *reader)
{
    return reader->is_gone && reader->state != READER_ENDED &&
           (!reader->now.pid || reader->now.counts.output.spool.waiting);
}

/* ---- starting and ending a child ------------------------------------------------------------- */

/* Returns whether the next child reads from the session's first packet, and skips settled events.
 * False if these packets have killed children, and for the first child of a foreign relay daemon's
 * session. Such a child reads only new events. */
static bool readers_reads_old_events(const struct live_reader *reader)
{
    return (reader->readers->options.is_own_relay || reader->from.time_ns) &&
           reader->death_points <= DEATH_POINTS_MAX;
}

static void readers_set_state(struct live_reader *reader, enum reader_state state)
{
    reader->state = state;
    reader->since_ns = wall_clock_ns();
}

static void readers_start(void *context);
static void readers_end_one(void *context);

/* Starts a child in `ms`. While the relay daemon is away, the start waits for it. */
static void readers_start_in(struct live_reader *reader, int64_t ms)
{
    readers_set_state(reader, READER_WAITING);
    reader->timer.due = readers_start;
    if (reader->readers->relay_is_up)
        timer_set(reader->readers->loop, &reader->timer, ms);
}

static void readers_start_later(struct live_reader *reader)
{
    readers_start_in(reader,
                     backoff_ms(++reader->failures, READERS_RESTART_MS, READERS_RESTART_MAX_MS));
}

static bool readers_start_child(struct live_reader *reader)
{
    json_t *order = readers_order(reader, readers_reads_old_events(reader));
    char *text = json_dumps(order, JSON_COMPACT); /* NULL without an order */
    const bool has_started = text && child_start(reader->readers->loop, &reader->child,
                                                 &(struct child_order){.job = &readers_job,
                                                                       .bytes = text,
                                                                       .size = strlen(text),
                                                                       .lines = &reader->lines});

    json_decref(order);
    free(text);
    return has_started;
}

/* The session of a spool that was found at the start may come later: then its reader takes over. */
static bool readers_waits_for_spool(struct live_reader *reader)
{
    struct live_reader *other = readers_sharing(reader->readers, reader->file_name, reader);

    if (!other || (!other->is_gone && !reader->is_gone))
        return false;
    if (reader->is_gone) {
        readers_set_state(reader, READER_ENDED);
        return true;
    }
    readers_end_one(other);
    readers_start_in(reader, READERS_RESTART_MS);
    return true;
}

static void readers_start(void *context)
{
    struct live_reader *reader = context;

    if (readers_waits_for_spool(reader))
        return;
    if (reader->starts == 0)
        readers_find_earlier_run(reader);
    if (!readers_reads_old_events(reader)) {
        reader->from = (struct trace_position){.time_ns = 0};
        reader->began_ns = wall_clock_ns();
    }
    if (!readers_start_child(reader)) {
        readers_start_later(reader);
        return;
    }
    reader->pid = reader->child.pid;
    reader->starts++;
    reader->readers->starts++;
    reader->is_renewed = false;
    watch_begin(&reader->watch, clock_ms());
    readers_set_state(reader, READER_RUNNING);
}

static void readers_kill(void *context)
{
    struct live_reader *reader = context;

    say(BK2030, "%s/%s: its reader does not end: it is killed", reader->host, reader->session);
    (void)kill(reader->child.pid, SIGKILL);
}

/* Ends the running child, or cancels a planned start. */
static void readers_end_one(void *context)
{
    struct live_reader *reader = context;

    if (reader->state == READER_RUNNING) {
        (void)kill(reader->child.pid, SIGINT);
        readers_set_state(reader, READER_ENDING);
        reader->timer.due = readers_kill;
        timer_set(reader->readers->loop, &reader->timer,
                  reader->readers->options.flush_timeout_ms + END_EXTRA_MS);
    } else if (reader->state == READER_WAITING) {
        timer_clear(reader->readers->loop, &reader->timer);
        readers_set_state(reader, READER_ENDED);
    }
}

/* Removes a reader whose session is gone. If its spool has spans, starts a child that sends them,
 * and waits for the session meanwhile. */
static void readers_forget(struct live_reader *reader)
{
    struct readers *readers = reader->readers;
    struct live_reader *next = readers_sharing(readers, reader->file_name, reader);

    reader->is_gone = !next && reader->before.output.spool.waiting;
    if (reader->is_gone) {
        readers_start_later(reader);
        return;
    }
    counts_add(next ? &next->before : &readers->gone, &reader->before);
    reader->is_used = false;
}

/* ---- the end of a child ---------------------------------------------------------------------- */

static void readers_renew_next(struct readers *readers)
{
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->is_renewed && reader->state == READER_ENDING)
            return; /* restarts one reader at a time */
    }
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->is_renewed && reader->state == READER_RUNNING) {
            readers_end_one(reader);
            return;
        }
    }
}

/* Logs a child's death, and how many spans are lost or sent twice. */
static void readers_say_death(struct live_reader *reader, int status, uint64_t lost, uint64_t twice,
                              bool goes_on)
{
    char how[48], what[112];

    if (WIFSIGNALED(status))
        (void)snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
    else
        (void)snprintf(how, sizeof(how), "has ended with status %d", WEXITSTATUS(status));
    if (goes_on && readers_reads_old_events(reader))
        (void)snprintf(what, sizeof(what),
                       "it is started again, and reads the missed events: at most %" PRIu64
                       " spans are sent twice",
                       twice);
    else
        (void)snprintf(what, sizeof(what), "%" PRIu64 " spans were not delivered%s", lost,
                       goes_on ? "; it is started again, and loses the events recorded until then"
                               : "");
    reader->readers->died++;
    reader->readers->lost_spans += lost;
    say(BK2031, "%s/%s: its reader %s; %s", reader->host, reader->session, how, what);
}

/* Counts deaths in a row without progress, as the events may have caused them. */
static void readers_note_progress(struct live_reader *reader, int status, bool was_ending)
{
    const int64_t read_ns = reader->now.counts.input.trace_time_ns;

    if (was_ending || read_ns > reader->read_ns)
        reader->death_points = 0;
    else
        reader->death_points += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                    ? DEATH_POINTS_KILLED
                                    : DEATH_POINTS_FAILED;
    if (read_ns > reader->read_ns)
        reader->read_ns = read_ns;
}

static void readers_all_have_ended(struct readers *readers)
{
    if (readers_running(readers) == 0)
        readers->on.all_ended(readers->on.context);
}

static void readers_child_ended(void *context, int status)
{
    struct live_reader *reader = context;
    struct readers *readers = reader->readers;
    const bool was_ending = reader->state == READER_ENDING;
    const bool goes_on = !readers->is_ending && !reader->is_retired &&
                         (!was_ending || reader->is_renewed); /* another child follows */
    uint64_t lost, twice;

    readers_read_last_account(reader);
    readers_note_progress(reader, status, was_ending);
    twice = readers_note_settled(reader);
    lost = readers_close_account(reader, goes_on && readers_reads_old_events(reader));
    timer_clear(readers->loop, &reader->timer);
    output_lines_close(&reader->lines);
    reader->is_attached = false;
    if (!reader->unread_since_ns)
        reader->unread_since_ns = wall_clock_ns();
    if ((!was_ending && !reader->is_retired) || WIFSIGNALED(status))
        readers_say_death(reader, status, lost, twice, goes_on);
    if (readers->is_ending) {
        readers_set_state(reader, READER_ENDED);
        readers_all_have_ended(readers);
    } else if (!goes_on) {
        readers_set_state(reader, READER_ENDED);
        if (!reader->is_listed)
            readers_forget(reader);
    } else if (was_ending) {
        readers_start(reader);
        readers_renew_next(readers);
    } else {
        readers_start_later(reader);
    }
}

/* ---- the followed sessions ------------------------------------------------------------------- */

#define RETIRE_MS 3000 /* the delay between a stall and the end of the session's reader */

/* Makes a short, safe file name. Any user may have chosen the relay daemon's names. */
static void readers_set_file_name(struct live_reader *reader)
{
    uint32_t hash = 2166136261; /* FNV-1a keeps names of different sessions apart */
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

static struct live_reader *readers_find(struct readers *readers, const char *host,
                                        const char *session)
{
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (strcmp(reader->host, host) == 0 && strcmp(reader->session, session) == 0)
            return reader;
    }
    return NULL;
}

static struct live_reader *readers_add(struct readers *readers, const char *host,
                                       const char *session)
{
    struct live_reader *reader = readers->readers;

    while (reader < readers->readers + READERS_MAX && reader->is_used)
        reader++;
    if (reader == readers->readers + READERS_MAX) {
        if (!readers->was_full)
            say(BK2034, "more than %d sessions to follow: %s/%s is not read", READERS_MAX, host,
                session);
        readers->was_full = true;
        return NULL;
    }
    *reader = (struct live_reader){.readers = readers, .is_used = true};
    (void)snprintf(reader->host, sizeof(reader->host), "%s", host);
    (void)snprintf(reader->session, sizeof(reader->session), "%s", session);
    (void)snprintf(reader->lines.source, sizeof(reader->lines.source), "%.160s/%.160s", host,
                   session);
    reader->lines.input.fd = -1;
    reader->lines.ignored = "events: "; /* the child's account, which this service sums */
    reader->timer.context = reader;
    reader->child = (struct child){.ended = readers_child_ended, .context = reader};
    reader->unread_since_ns = wall_clock_ns();
    readers_set_file_name(reader);
    readers_start_in(reader, 0);
    return reader;
}

void readers_add_own(struct readers *readers, const char *host, const char *session)
{
    struct live_reader *reader = readers_find(readers, host, session);

    if (!reader)
        reader = readers_add(readers, host, session);
    if (reader)
        reader->is_own = true;
}

static bool readers_is_followed(const struct readers *readers, const struct listed_session *session)
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

static void readers_note_attached(struct live_reader *reader, const struct listed_session *session)
{
    reader->is_listed = true;
    reader->is_gone = false;
    reader->has_streams = session->streams > 0;
    if (reader->state == READER_ENDED && !reader->is_retired) /* the session is back */
        readers_start_in(reader, 0);
    reader->is_attached = session->viewers > 0 && reader->state == READER_RUNNING;
    if (!reader->is_attached || !reader->unread_since_ns)
        return;
    if (reader->starts > 1)
        say(BK2035, "%s/%s: is read again, after %.1f s", reader->host, reader->session,
            (double)(wall_clock_ns() - reader->unread_since_ns) / 1e9);
    else
        say(BK2036, "%s/%s: is read", reader->host, reader->session);
    reader->unread_since_ns = 0;
}

/* Returns whether the folder of a spool has batches. */
static bool readers_has_batches(int spool, const char *name)
{
    const int fd = openat(spool, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool has_batches = false;

    while (folder && (entry = readdir(folder)) != NULL)
        has_batches |= entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0;
    if (folder)
        (void)closedir(folder);
    else if (fd >= 0)
        (void)close(fd);
    return has_batches;
}

/* Adds readers that send what earlier runs have spooled for sessions that are gone. */
static void readers_look_for_spools(struct readers *readers)
{
    const char *spool = json_string_value(json_object_get(readers->options.params, "spool"));
    DIR *folder = spool ? opendir(spool) : NULL;
    const struct dirent *entry;
    struct live_reader *reader;

    while (folder && (entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name + 5;

        if (strncmp(entry->d_name, "live-", 5) != 0 || strlen(name) >= sizeof(reader->file_name) ||
            readers_sharing(readers, name, NULL) ||
            !readers_has_batches(dirfd(folder), entry->d_name) ||
            (reader = readers_add(readers, "-", name)) == NULL)
            continue;
        (void)snprintf(reader->file_name, sizeof(reader->file_name), "%s", name);
        reader->is_gone = true;
    }
    if (folder)
        (void)closedir(folder);
}

void readers_listed(struct readers *readers, const struct listing *listing)
{
    if (readers->is_ending)
        return;
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        reader->was_listed = reader->is_listed;
        reader->is_listed = false;
    }
    for (int i = 0; i < listing->count; i++) {
        const struct listed_session *session = &listing->sessions[i];
        struct live_reader *reader = readers_find(readers, session->host, session->name);

        if (!reader && readers_is_followed(readers, session))
            reader = readers_add(readers, session->host, session->name);
        if (reader)
            readers_note_attached(reader, session);
    }
    if (!readers->has_looked_for_spools)
        readers_look_for_spools(readers);
    readers->has_looked_for_spools = true;
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->is_listed || (reader->is_own && !reader->is_retired))
            continue;
        if (reader->was_listed || readers_sends(reader))
            continue; /* the next listing decides */
        readers_end_one(reader);
        if (reader->state == READER_ENDED)
            readers_forget(reader);
    }
}

void readers_retire(struct readers *readers, const char *session)
{
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (!reader->is_own || strcmp(reader->session, session) != 0)
            continue;
        reader->is_retired = true;
        reader->timer.due = readers_end_one;
        timer_set(readers->loop, &reader->timer, RETIRE_MS);
    }
}

/* ---- all readers ----------------------------------------------------------------------------- */

static void readers_look_at(struct live_reader *reader)
{
    char ignored[WATCH_MESSAGE_MAX];
    bool is_stuck;

    readers_read_account(reader);
    if (!reader->now.pid && wall_clock_ns() - reader->since_ns > SILENT_NS) {
        say(BK2032, "%s/%s: its reader has reported nothing since its start: it is killed",
            reader->host, reader->session);
        (void)kill(reader->child.pid, SIGKILL);
        return;
    }
    is_stuck = wall_clock_ns() - reader->now.events_ns > STUCK_NS;
    (void)watch_look(&reader->watch, &reader->now.counts.input, is_stuck, clock_ms(), ignored);
    if (reader->watch.is_stalled && !is_stuck && reader->is_own && !reader->is_retired)
        reader->readers->on.stalled(reader->readers->on.context, reader);
}

static void readers_look(void *context)
{
    struct readers *readers = context;

    timer_set(readers->loop, &readers->look, READERS_LOOK_MS);
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->state == READER_RUNNING)
            readers_look_at(reader);
    }
}

void readers_begin(struct readers *readers, struct loop *loop,
                   const struct readers_options *options, const struct readers_callbacks *callbacks)
{
    *readers = (struct readers){.loop = loop, .options = *options, .on = *callbacks};
    readers->look = (struct timer){.due = readers_look, .context = readers};
    timer_set(loop, &readers->look, READERS_LOOK_MS);
}

void readers_reload(struct readers *readers, const struct readers_options *options)
{
    const struct readers_options *old = &readers->options;
    const bool is_other = !json_equal(old->params, options->params) ||
                          old->retry_us != options->retry_us || old->level != options->level;

    if (!json_equal(json_object_get(old->params, "endpoint"),
                    json_object_get(options->params, "endpoint")))
        readers->starts = 0;
    json_decref(old->params);
    readers->options = *options;
    for (int i = 0; is_other && i < READERS_MAX; i++)
        readers->readers[i].is_renewed = readers->readers[i].state == READER_RUNNING;
    readers_renew_next(readers);
}

void readers_relay_up(struct readers *readers)
{
    readers->relay_is_up = true;
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        reader->failures = 0;
        if (reader->state == READER_WAITING)
            readers_start_in(reader, 0);
    }
}

/* Running children notice the end of the connection themselves. */
void readers_relay_down(struct readers *readers)
{
    readers->relay_is_up = false;
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        reader->is_listed = false;
        /* a new relay daemon has no older packets */
        reader->from = (struct trace_position){.time_ns = 0};
        if (reader->state == READER_WAITING)
            timer_clear(readers->loop, &reader->timer);
    }
}

void readers_end(struct readers *readers)
{
    readers->is_ending = true;
    timer_clear(readers->loop, &readers->look);
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));)
        readers_end_one(reader);
    readers_all_have_ended(readers);
}

bool readers_has_attached_own(struct readers *readers)
{
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->is_own && reader->is_attached)
            return true;
    }
    return false;
}

unsigned readers_running(struct readers *readers)
{
    unsigned count = 0;

    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));)
        count += reader->child.pid != 0;
    return count;
}
