/* Starts a reader for each session that the configuration follows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "readers_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define RETIRE_MS 3000

/* Makes a short, safe file name. The relay daemon's names may come from any user. */
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
    for (struct live_reader *reader = NULL; (reader = readers_next(readers, reader));) {
        if (reader->is_listed || (reader->is_own && !reader->is_retired))
            continue;
        if (reader->was_listed)
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
