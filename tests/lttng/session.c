/*
 * Calls one function of tools/lttng/session.h, for test-session.sh.
 *
 *     session live NAME RELAY-URL | look NAME | stop NAME | destroy NAME
 *
 * FILTER in the environment: the filter of the session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/lttng/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ensure(const char *name, const char *relay_url)
{
    static const char *const results[] = {"created", "adopted", "other", "no daemon", "failed"};
    struct session_spec spec = {.events = "zipkin:*,blkin:span,blkin:process",
                                .subbuf_bytes = 131072,
                                .subbuf_count = 4,
                                .live_timer_us = 200000};
    struct session_answer answer;

    snprintf(spec.name, sizeof(spec.name), "%s", name);
    snprintf(spec.relay_url, sizeof(spec.relay_url), "%s", relay_url);
    if (getenv("FILTER") != NULL)
        snprintf(spec.filter, sizeof(spec.filter), "%s", getenv("FILTER"));
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

int main(int argc, char *argv[])
{
    const char *what = argc > 2 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
    struct error error = {""};
    bool ok = false;

    if (strcmp(what, "live") == 0)
        return ensure(name, argv[3]);
    if (strcmp(what, "look") == 0)
        ok = look(name, &error);
    else if (strcmp(what, "stop") == 0)
        ok = session_stop(name, &error);
    else if (strcmp(what, "destroy") == 0)
        ok = session_destroy(name, &error);
    if (!ok)
        printf("%s\n", error.text);
    return !ok;
}
