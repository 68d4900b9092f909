/*
 * The values of a configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config_parts.h"

#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/encode/encoder.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* types: a bit for each allowed type of the key. */
static const struct setting *setting_of(const struct config *config, const char *name,
                                        unsigned types)
{
    const int key = key_find(name);

    if (key < 0 || !(types & 1U << key_rule(key)->type)) {
        fprintf(stderr, "%s: bug: there is no key \"%s\" of this type\n", config->argv[0], name);
        abort();
    }
    return &config->settings[key];
}

const char *config_text(const struct config *config, const char *key)
{
    return setting_of(config, key, 1U << PARAM_TEXT | 1U << PARAM_CHOICE | 1U << PARAM_CLOSING)
        ->text;
}

int64_t config_integer(const struct config *config, const char *key)
{
    return setting_of(config, key, 1U << PARAM_INTEGER)->integer;
}

bool config_boolean(const struct config *config, const char *key)
{
    return setting_of(config, key, 1U << PARAM_BOOLEAN)->integer != 0;
}

const char *config_origin(const struct config *config, const char *key)
{
    const int found = key_find(key);
    const struct setting *setting = &config->settings[found < 0 ? 0 : found];

    assert(found >= 0);
    return setting->origin ? setting->origin : "default";
}

char *config_shown(const struct config *config, const char *key)
{
    const int found = key_find(key);
    const struct setting *setting = &config->settings[found];
    char *text = NULL, *shown;

    if (!setting->has_value)
        return strdup("");
    if (key_rule(found)->type == PARAM_BOOLEAN)
        return strdup(setting->integer ? "yes" : "no");
    if (key_rule(found)->type == PARAM_INTEGER)
        return asprintf(&text, "%" PRId64, setting->integer) < 0 ? NULL : text;
    if (strcmp(key, "endpoint") != 0)
        return strdup(setting->text);
    shown = endpoint_shown(setting->text);
    if (shown &&
        asprintf(&text, "%s%s", shown, strchr(setting->text, '?') ? "?(not shown)" : "") < 0)
        text = NULL;
    free(shown);
    return text;
}

const char *config_waiting(const struct config *config, const char *key)
{
    return config->settings[key_find(key)].waiting;
}

bool config_sink_params(const struct config *config, struct params *params, struct error *error)
{
    bool is_right = true;

    params_begin(params);
    for (int key = 0; is_right && key_rule(key); key++) {
        const struct setting *setting = &config->settings[key];
        const struct param_value value = {setting->text, setting->integer};

        if (key_belongs_to_sink(key) && setting->origin)
            is_right = params_set(params, key_rule(key), &value, error);
    }
    params_end(params);
    return is_right;
}

json_t *config_sink_json(const struct config *config)
{
    json_t *params = json_object();

    for (int key = 0; params && key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);
        const struct setting *setting = &config->settings[key];

        if (key_belongs_to_sink(key) && setting->origin &&
            json_object_set_new(params, rule->name,
                                rule->type == PARAM_INTEGER   ? json_integer(setting->integer)
                                : rule->type == PARAM_BOOLEAN ? json_boolean(setting->integer)
                                                              : json_string(setting->text)) != 0) {
            json_decref(params);
            params = NULL;
        }
    }
    return params;
}

/* ---- defaults: some depend on the machine or on other keys ----------------------------------- */

/* Returns whether the folder is writable, or can be made. */
static bool is_usable(const char *folder, const char *parent)
{
    return access(folder, W_OK) == 0 || (errno == ENOENT && access(parent, W_OK) == 0);
}

static const char *home(void)
{
    const char *given = getenv("HOME");
    const struct passwd *user = given && *given ? NULL : getpwuid(getuid());

    return user ? user->pw_dir : given && *given ? given : "/";
}

/* Returns a default that depends on the machine or on another key; NULL: none, or no memory. */
static char *made_default(const struct config *config, const char *name)
{
    const char *folder;
    char *text = NULL;
    int length = 0;

    if (strcmp(name, "state-dir") == 0) {
        folder = getenv("XDG_STATE_HOME");
        if (is_usable("/var/lib/blkin", "/var/lib"))
            return strdup("/var/lib/blkin");
        length = folder && *folder ? asprintf(&text, "%s/blkin", folder)
                                   : asprintf(&text, "%s/.local/state/blkin", home());
    } else if (strcmp(name, "runtime-dir") == 0) {
        folder = getenv("XDG_RUNTIME_DIR");
        if (is_usable("/run/blkin/service", "/run/blkin") || is_usable("/run/blkin", "/run"))
            return strdup("/run/blkin/service");
        length = folder && *folder ? asprintf(&text, "%s/blkin", folder)
                                   : asprintf(&text, "%s/run", config_text(config, "state-dir"));
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
    return setting->has_value || (key_belongs_to_sink(key) && !rule->default_text);
}

bool config_set_defaults(struct config *config)
{
    /* the default of runtime-dir may be a folder in state-dir */
    const int state_dir = key_find("state-dir");
    struct setting *first = &config->settings[state_dir];
    bool is_whole = first->has_value || set_default(config, state_dir, first);

    for (int key = 0; is_whole && key_rule(key); key++) {
        if (!config->settings[key].has_value)
            is_whole = set_default(config, key, &config->settings[key]);
    }
    return is_whole;
}
