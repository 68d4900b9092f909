/*
 * What `blkin reload` and `blkin status` tell of the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "reload.h"

#include "keys.h"
#include "tools/base/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char reload_is_wrong[] = "the configuration is wrong, the old one holds: see `blkin config "
                               "check`, and what the service has said";

/* The keys that wait for a restart alone, or for one with a new session of LTTng. */
static json_t *waiting_keys(const struct config *config, bool for_session)
{
    json_t *names = json_array();

    for (int key = 0; key_rule(key); key++) {
        const char *name = key_rule(key)->name;

        if (config_waiting(config, name) && (key_when(key) == KEY_IN_SESSION) == for_session)
            (void)json_array_append_new(names, json_string(name));
    }
    return names;
}

static void add_names(char *text, size_t size, const json_t *names, const char *what)
{
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        const size_t length = strlen(text);

        (void)snprintf(text + length, size - length, "%s%s", i ? ", " : what,
                       json_string_value(name));
    }
}

json_t *reload_answer(const struct config *config, const char *problem)
{
    char text[1024];
    json_t *restart, *session;

    if (problem) {
        notify_reloaded(BK1022, problem);
        return json_pack("{ss}", "error", problem);
    }
    restart = waiting_keys(config, false);
    session = waiting_keys(config, true);
    (void)snprintf(text, sizeof(text), "the new configuration holds");
    add_names(text, sizeof(text), restart, ", but a restart is needed for: ");
    add_names(text, sizeof(text), session, ", but a new session of LTTng is needed for: ");
    notify_reloaded(json_array_size(restart) + json_array_size(session) ? BK1021 : BK1020, text);
    return json_pack("{ss, so, so}", "result", text, "needs_restart", restart, "needs_session",
                     session);
}

json_t *reload_status(json_t *status, const struct config *config)
{
    json_t *in_force = json_object(), *waiting = json_object();

    for (int key = 0; key_rule(key); key++) {
        const char *name = key_rule(key)->name, *wanted = config_waiting(config, name);
        char *shown = NULL;

        if (wanted)
            (void)json_object_set_new(waiting, name, json_string(wanted));
        if (wanted || strcmp(config_origin(config, name), "default") != 0)
            shown = config_shown(config, name);
        if (shown)
            (void)json_object_set_new(in_force, name, json_string(shown));
        free(shown);
    }
    (void)json_object_set_new(status, "keys_in_force", in_force);
    (void)json_object_set_new(status, "keys_after_a_restart", waiting);
    return status;
}
