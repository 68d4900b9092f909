/*
 * The values of a configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config_parts.h"
#include "sink_params.h"

#include "babeltrace-plugin/base/http_url.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* types: a bit for each type that the key may have. */
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

        if (key_is_sinks(key) && setting->origin)
            is_right = params_set(params, key_rule(key), &value, error);
    }
    params_end(params);
    return is_right;
}

static json_t *json_of(const struct param_rule *rule, const struct setting *setting)
{
    switch (rule->type) {
    case PARAM_INTEGER:
        return json_integer(setting->integer);
    case PARAM_BOOLEAN:
        return json_boolean(setting->integer);
    default:
        return json_string(setting->text);
    }
}

json_t *config_sink_json(const struct config *config)
{
    json_t *params = json_object();

    for (int key = 0; params && key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);
        const struct setting *setting = &config->settings[key];

        if (key_is_sinks(key) && setting->origin &&
            json_object_set_new(params, rule->name, json_of(rule, setting)) != 0) {
            json_decref(params);
            params = NULL;
        }
    }
    return params;
}

bool config_params_of(const json_t *values, struct params *params, struct error *error)
{
    size_t count;
    const struct param_rule *rules = params_table(&count);
    bool is_right = true;

    params_begin(params);
    for (size_t i = 0; is_right && i < count; i++) {
        const json_t *json = json_object_get(values, rules[i].name);
        const struct param_value value = {json_string_value(json), json_is_integer(json)
                                                                       ? json_integer_value(json)
                                                                       : json_is_true(json)};

        if (json)
            is_right = params_set(params, &rules[i], &value, error);
    }
    params_end(params);
    return is_right;
}
