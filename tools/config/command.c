/*
 * blkin config: checks and shows the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/commands.h"
#include "tools/config/config.h"
#include "tools/config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
#include "tools/config/usage.txt.inc"
    ;

static int config_check(int argc, char *argv[])
{
    const struct config_request request = {.usage = usage};
    struct config *config;
    int status;

    if (argc == 2 && argv[1][0] != '-') {
        if (setenv("BLKIN_CONFIG", argv[1], 1) < 0) {
            fprintf(stderr, "%s: out of memory\n", argv[0]);
            return 1;
        }
        argc = 1;
    }
    config = config_read(&request, argc, argv, &status);
    if (!config)
        return status ? 1 : 0;
    if (config_operands(config) > 0) {
        fprintf(stderr, "%s: expected one FILE to check\n", argv[0]);
        status = 2;
    } else if (config_path(config)) {
        if (config_has_old_section(config))
            printf("%s: the keys of [record] and [host] are in [agent] now; the old names still "
                   "work\n",
                   config_path(config));
        printf("%s: all is right\n", config_path(config));
    } else {
        puts("there is no configuration file: the defaults apply");
    }
    config_free(config);
    return status;
}

static int config_show_keys(int argc, char *argv[])
{
    const char *section = NULL;
    bool all = false;
    const struct config_flag flags[] = {
        {"section", NULL, &section}, {"all", &all, NULL}, {NULL, NULL, NULL}};
    struct config_request request = {.usage = usage, .flags = flags, .is_view = true};
    struct config *config;
    int status;

    config = config_read(&request, argc, argv, &status);
    if (!config)
        return status;
    if (config_operands(config) > 0 ||
        (section && (*section == '\0' || key_find_section(section) < 0))) {
        fprintf(stderr, "%s: expected %s\n", argv[0],
                section ? "--section=live, agent, stat or work" : "no argument");
        config_free(config);
        return 2;
    }
    if (section) {
        request.section = section;
        config_free(config);
        config = config_read(&request, argc, argv, &status);
    }
    for (int key = 0; config && key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);
        const char *origin = config_origin(config, rule->name);
        char *shown;
        const int only = key_only_section(key);

        if ((strcmp(origin, "default") == 0 && !all) ||
            (section && only && only != key_find_section(section)))
            continue;
        shown = config_shown(config, rule->name);
        printf("%s = %s ; %s\n", rule->name, shown ? shown : "?", origin);
        free(shown);
    }
    config_free(config);
    return status;
}

static const char *const times[] = {
    [KEY_AT_ONCE] = "reload", [KEY_AT_START] = "restart", [KEY_IN_SESSION] = "session"};

static int config_list_keys(void)
{
    char expected[128], value[128], section[32];

    for (int key = 0; key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);

        key_expected(rule, expected, sizeof(expected));
        key_default(rule, value, sizeof(value));
        (void)snprintf(section, sizeof(section), "[%s]", key_section(key_only_section(key)));
        printf("%-20s %-34s %-8s %-8s %s\n", rule->name, *value ? value : "-",
               key_only_section(key) ? section : "-", times[key_when(key)], expected);
    }
    return 0;
}

int config_command(int argc, char *argv[])
{
    const char *command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "-h") == 0 || strcmp(command, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 1)
        argv[1] = argv[0];
    if (strcmp(command, "check") == 0)
        return config_check(argc - 1, argv + 1);
    if (strcmp(command, "show") == 0)
        return config_show_keys(argc - 1, argv + 1);
    if (strcmp(command, "keys") == 0 && argc == 2)
        return config_list_keys();
    fprintf(stderr, "%s: expected check, show or keys\n%s", argv[0], usage);
    return 2;
}
