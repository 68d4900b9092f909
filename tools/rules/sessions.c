/*
 * Asks the relay daemon which sessions it has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sessions.h"

#include "tools/reader/listing.h"

#include <stdio.h>
#include <string.h>

/* Escapes the name, which may come from any user. */
static void session_print(const struct listed_session *session)
{
    char text[520];

    (void)snprintf(text, sizeof(text), "%s/%s", session->host, session->name);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    }
    fprintf(stderr, "  %s\n", text);
}

static bool session_is_named(const struct listed_session *session, const char *name)
{
    const size_t length = strlen(session->host);

    return strcmp(session->name, name) == 0 ||
           (strncmp(session->host, name, length) == 0 && name[length] == '/' &&
            strcmp(session->name, name + length + 1) == 0);
}

bool session_url(const char *name, const char *relayd, char *url, size_t size)
{
    static struct listing listing;
    const struct listed_session *found = NULL;
    char place[300];
    int count = 0;

    if (strstr(name, "://"))
        return snprintf(url, size, "%s", name) < (int)size;
    if (snprintf(place, sizeof(place), "net://%s%s", relayd, strchr(relayd, ':') ? "" : ":5344") >=
            (int)sizeof(place) ||
        !listing_ask(place, &listing)) {
        fprintf(stderr,
                "blkin rules: \"%s\" is not a folder, and for a live session of this name no relay "
                "daemon answers at %s: start it, or give --relayd=HOST:PORT\n",
                name, place);
        return false;
    }
    for (int i = 0; i < listing.count; i++) {
        if (!session_is_named(&listing.sessions[i], name))
            continue;
        found = &listing.sessions[i];
        count++;
    }
    if (count == 1 && found->viewers > 0) {
        fprintf(stderr,
                "blkin rules: \"%s\" has a reader, such as blkin live, and a relay daemon allows "
                "only one: end it, or record the events in another live session\n",
                name);
        return false;
    }
    if (count == 1)
        return snprintf(url, size, "%s/host/%s/%s", place, found->host, found->name) < (int)size;
    fprintf(stderr,
            "blkin rules: expected a folder, or one of the live sessions at %s, got \"%s\"\n",
            place, name);
    for (int i = 0; i < listing.count; i++)
        session_print(&listing.sessions[i]);
    return false;
}
