/*
 * The defaults of keys, of which some depend on the machine or on other keys.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config_parts.h"

#include "babeltrace-plugin/encode/protocol.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool can_make(const char *folder, const char *parent)
{
    return access(folder, W_OK) == 0 || (errno == ENOENT && access(parent, W_OK) == 0);
}

static const char *home(void)
{
    const char *given = getenv("HOME");
    const struct passwd *user = given && *given ? NULL : getpwuid(getuid());

    return user ? user->pw_dir : given && *given ? given : "/";
}

/* Of one that depends on the machine or on another key; NULL: there is none. */
static char *made_default(const struct config *config, const char *name)
{
    const char *folder;
    char *text = NULL;
    int length = 0;

    if (strcmp(name, "state-dir") == 0) {
        folder = getenv("XDG_STATE_HOME");
        if (can_make("/var/lib/blkin", "/var/lib"))
            return strdup("/var/lib/blkin");
        length = folder && *folder ? asprintf(&text, "%s/blkin", folder)
                                   : asprintf(&text, "%s/.local/state/blkin", home());
    } else if (strcmp(name, "runtime-dir") == 0) {
        folder = getenv("XDG_RUNTIME_DIR");
        if (can_make("/run/blkin/service", "/run/blkin") || can_make("/run/blkin", "/run"))
            return strdup("/run/blkin/service");
        length = folder && *folder ? asprintf(&text, "%s/blkin", folder)
                                   : asprintf(&text, "%s/run", config_text(config, "state-dir"));
    } else if (strcmp(name, "output") == 0) {
        length = asprintf(&text, "%s/rotate", config_text(config, "state-dir"));
    } else if (strcmp(name, "shm-path") == 0) {
        length = asprintf(&text, "/dev/shm/blkin-rotate-%u", (unsigned)geteuid());
    } else if (strcmp(name, "endpoint") == 0) {
        return strdup(protocol_named(config_text(config, "format"))->endpoint);
    } else if (strcmp(name, "follow") == 0) {
        length = asprintf(&text, "*/%s", config_text(config, "session"));
    }
    return length < 0 ? NULL : text;
}

/* Returns false when out of memory. */
static bool set_default(const struct config *config, int key, struct setting *setting)
{
    const struct param_rule *rule = key_rule(key);
    char text[256];

    if (rule->type == PARAM_INTEGER || rule->type == PARAM_BOOLEAN) {
        setting->has_value = true;
        setting->integer = rule->default_integer;
        return true;
    }
    if (rule->type == PARAM_CHOICE || rule->default_text) {
        key_default(rule, text, sizeof(text));
        setting->text = strdup(text);
    } else {
        setting->text = made_default(config, rule->name);
    }
    setting->has_value = setting->text != NULL;
    return setting->has_value || (key_is_sinks(key) && !rule->default_text);
}

bool config_fill_in(struct config *config)
{
    const int first = key_find("state-dir"); /* others are below it */
    bool is_whole =
        config->settings[first].has_value || set_default(config, first, &config->settings[first]);

    for (int key = 0; is_whole && key_rule(key); key++) {
        if (!config->settings[key].has_value)
            is_whole = set_default(config, key, &config->settings[key]);
    }
    return is_whole;
}
