/*
 * Calls one function of tools/lttng/session.h, for test-session.sh.
 *
 *     session live NAME RELAY-URL | rotated NAME FOLDER [SHM-PATH] | look NAME | below FOLDER |
 *             stop NAME | destroy NAME [now]
 *
 * FILTER, EVENTS, SUBBUF_BYTES and SUBBUF_COUNT in the environment are the session's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/lttng/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ensure(enum session_mode mode, const char *name, const char *where, const char *shm)
{
    static const char *const results[] = {"created", "adopted", "other", "no daemon", "failed"};
    struct session_spec spec = {.mode = mode,
                                .events = "zipkin:*,blkin:span,blkin:process",
                                .subbuf_bytes = 131072,
                                .subbuf_count = 4,
                                .live_timer_us = 200000,
                                .rotate_period_us = 300000};
    struct session_answer answer;

    snprintf(spec.name, sizeof(spec.name), "%s", name);
    snprintf(spec.relay_url, sizeof(spec.relay_url), "%s", mode == SESSION_LIVE ? where : "");
    snprintf(spec.output, sizeof(spec.output), "%s", mode == SESSION_ROTATED ? where : "");
    snprintf(spec.shm_path, sizeof(spec.shm_path), "%s", shm);
    if (getenv("FILTER") != NULL)
        snprintf(spec.filter, sizeof(spec.filter), "%s", getenv("FILTER"));
    if (getenv("EVENTS") != NULL)
        snprintf(spec.events, sizeof(spec.events), "%s", getenv("EVENTS"));
    if (getenv("SUBBUF_BYTES") != NULL)
        spec.subbuf_bytes = strtoull(getenv("SUBBUF_BYTES"), NULL, 10);
    if (getenv("SUBBUF_COUNT") != NULL)
        spec.subbuf_count = strtoull(getenv("SUBBUF_COUNT"), NULL, 10);
    session_ensure(&spec, &answer);
    printf("%s%s%s\n", results[answer.result], answer.error.text[0] != '\0' ? ": " : "",
           answer.error.text);
    return answer.result > SESSION_ADOPTED;
}

static bool look(const char *name, struct error *error)
{
    struct session_state state;

    if (!session_look(name, &state, error))
        return false;
    printf("%s, %llu discarded, %llu lost\n",
           !state.is_there ? "not there" : (state.is_active ? "active" : "inactive"),
           (unsigned long long)state.discarded_events, (unsigned long long)state.lost_packets);
    return true;
}

static bool below(const char *folder, struct error *error)
{
    struct session_places places;

    if (!session_below(folder, &places, error))
        return false;
    for (size_t i = 0; i < places.count; i++)
        printf("%s %s %s\n", places.places[i].name, places.places[i].path,
               places.places[i].is_active ? "active" : "inactive");
    return true;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 2 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
    struct error error = {""};
    bool ok = false;

    if (strcmp(what, "live") == 0)
        return ensure(SESSION_LIVE, name, argv[3], "");
    if (strcmp(what, "rotated") == 0)
        return ensure(SESSION_ROTATED, name, argv[3], argc > 4 ? argv[4] : "");
    if (strcmp(what, "look") == 0)
        ok = look(name, &error);
    else if (strcmp(what, "below") == 0)
        ok = below(name, &error);
    else if (strcmp(what, "stop") == 0)
        ok = session_stop(name, &error);
    else if (strcmp(what, "destroy") == 0)
        ok = session_destroy(name, argc == 3, &error);
    if (!ok)
        printf("%s\n", error.text);
    return !ok;
}
