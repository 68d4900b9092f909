/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_parts.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_FILE "/etc/blkin/blkin.conf"
#define FLAGS_MAX    16

/* Counts an error and stores the first one. Prints it on the standard error unless request->error
 * is set. Control characters and invalid UTF-8 become '?'. */
__attribute__((format(printf, 2, 3))) static void report(struct config *config, const char *format,
                                                         ...)
{
    char text[2048];
    va_list values;
    bool is_utf8;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    is_utf8 = utf8_is_valid(text_of(text));
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || (*c < 0 && !is_utf8))
            *c = '?';
    }
    if (!config->request->error)
        fprintf(stderr, "%s: %s\n", config->argv[0], text);
    if (config->errors++ == 0)
        error_set(&config->first_error, "%s", text);
}

/* ---- one value ------------------------------------------------------------------------------- */

static void setting_clear(struct setting *setting)
{
    free(setting->text);
    free(setting->origin);
    free(setting->waiting);
    *setting = (struct setting){.has_value = false};
}

/* Checks a value. Sets the key if `apply` is true; the caller passes false for a value of another
 * command's section. */
static void config_set(struct config *config, int key, const char *text, const char *origin,
                       bool apply)
{
    struct setting *setting = &config->settings[key];
    const struct param_rule *rule = key_rule(key);
    /* an empty text without a default counts as not given */
    const bool has_value =
        *text || rule->default_text || (rule->type != PARAM_TEXT && rule->type != PARAM_CLOSING);
    struct param_value value = {.text = NULL};
    struct error error = {""};

    if (has_value && !key_read(rule, text, &value, &error)) {
        report(config, "%s: %s", origin, error.text);
        return;
    }
    if (!apply)
        return;
    setting_clear(setting);
    if (!has_value)
        return;
    *setting = (struct setting){.has_value = true,
                                .integer = value.integer,
                                .text = value.text ? strdup(value.text) : NULL,
                                .origin = strdup(origin)};
    if (!setting->origin || (value.text && !setting->text))
        report(config, "out of memory");
}

/* ---- the file -------------------------------------------------------------------------------- */

static void report_unknown(struct config *config, const char *origin, const char *what,
                           const char *name, const char *like)
{
    if (key_is_internal(name))
        report(config, "%s: \"%s\" is not for a configuration: the services set it themselves",
               origin, name);
    else if (key_gone(name))
        report(config, "%s: there is no key \"%s\" any more: %s", origin, name, key_gone(name));
    else if (like)
        report(config, "%s: %s \"%.64s\" is not known: did you mean \"%s\"?", origin, what, name,
               like);
    else
        report(config, "%s: %s \"%.64s\" is not known: see \"blkin config keys\"", origin, what,
               name);
}

/* Returns false after reporting an unknown section, a key in the wrong section, or a duplicate key.
 */
static bool config_check_section(struct config *config, const char *origin, unsigned line,
                                 const char *section_name, int key)
{
    const int section = key_find_section(section_name);
    const int only = key_only_section(key);

    if (section < 0) {
        report_unknown(config, origin, "section", section_name, key_section_like(section_name));
        return false;
    }
    if (section && only && only != section) {
        report(config, "%s: \"%s\" means nothing in [%s]: it belongs in [%s]", origin,
               key_rule(key)->name, key_section(section), key_section(only));
        return false;
    }
    if (config->lines[section][key]) {
        report(config, "%s: \"%s\" is given twice: line %u has it", origin, key_rule(key)->name,
               config->lines[section][key]);
        return false;
    }
    config->has_old_section |= key_section_is_old(section_name);
    config->lines[section][key] = line;
    return true;
}

static void config_take_entry(void *context, unsigned line, const char *section, const char *name,
                              const char *value)
{
    struct config *config = context;
    const int key = key_find(name);
    char origin[PATH_MAX + 16];

    (void)snprintf(origin, sizeof(origin), "%s:%u", config->path, line);
    if (key < 0)
        report_unknown(config, origin, "key", name, key_like(name));
    else if (config_check_section(config, origin, line, section, key))
        config_set(config, key, value, origin,
                   *section == '\0' || key_find_section(section) == config->section);
}

static void config_take_bad_line(void *context, unsigned line, const char *why)
{
    struct config *config = context;

    report(config, "%s:%u: %s", config->path, line, why);
}

/* A missing default file is no error. An unreadable default file is an error for a service, which
 * would run with wrong settings. It is no error for a view such as `blkin stat FOLDER`. */
static void read_file(struct config *config)
{
    const struct config_lines lines = {config_take_entry, config_take_bad_line, config};
    const char *path = config->path ? config->path : getenv("BLKIN_CONFIG");
    const bool is_named = path && *path;
    struct error error = {""};
    size_t size;
    char *bytes;

    if (config->request->is_without_file)
        return;
    config->path = is_named ? path : DEFAULT_FILE;
    bytes = config_file_read(config->path, &size, &error);
    config->has_file = bytes != NULL;
    config->is_unreadable = !bytes && errno == EACCES;
    if (bytes)
        config_file_parse(bytes, size, &lines);
    else if (!is_named && errno == EACCES && config->request->is_view && config->request->error)
        ; /* the caller asks for config_unreadable() */
    else if (!is_named && errno == EACCES && config->request->is_view)
        fprintf(stderr, "%s: %s: it is left out\n", config->argv[0], error.text);
    else if (!is_named && errno == EACCES)
        report(config,
               "%s: allow user %u to read the file, or name another file with --config or "
               "BLKIN_CONFIG",
               error.text, (unsigned)geteuid());
    else if (is_named || (errno != ENOENT && errno != ENOTDIR))
        report(config, "%s%s", error.text,
               is_named ? "" : ": name another file with --config or BLKIN_CONFIG");
    free(bytes);
}

/* ---- the configuration for all hosts --------------------------------------------------------- */

static void config_take_topic_entry(void *context, unsigned line, const char *section,
                                    const char *name, const char *value)
{
    struct config *config = context;
    const int key = key_find(name);
    const int found = key_find_section(section);

    if (key < 0 || (key_is_shared(key) && (found <= 0 || found == config->section)))
        config_take_entry(config, line, section, name, value);
    else
        report(config,
               "%s:%u: \"%s\": expected a key of [%s] that a reload changes, and that is no path, "
               "address or secret: other keys belong in each host's file",
               config->path, line, name, key_section(config->section));
}

/* ---- environment and flags ------------------------------------------------------------------- */

static void read_environment(struct config *config)
{
    char name[64];

    for (int key = 0; key_rule(key); key++) {
        const char *value;

        (void)snprintf(name, sizeof(name), "BLKIN_%s", key_rule(key)->name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        value = getenv(name);
        if (value)
            config_set(config, key, value, name, true);
    }
}

static void apply_flags(struct config *config)
{
    char origin[64];

    for (int key = 0; key_rule(key); key++) {
        const int only = key_only_section(key);

        if (!config->flags[key])
            continue;
        (void)snprintf(origin, sizeof(origin), "--%s", key_rule(key)->name);
        if (!only || !config->section || only == config->section)
            config_set(config, key, config->flags[key], origin, true);
        else if (!config->request->is_for_other)
            report(config, "%s: this key is for \"blkin %s\" only", origin, key_section(only));
    }
}

/* The values of getopt_long(3): FIRST_KEY + key, FIRST_FLAG + flag, or FILE_FLAG. */
enum { FIRST_KEY = 1000, FIRST_FLAG = 2000, FILE_FLAG = 3000 };

static void list_options(const struct config *config, struct option *options)
{
    const struct config_flag *flags = config->request->flags;

    *options++ = (struct option){"help", no_argument, NULL, 'h'};
    *options++ = (struct option){"config", required_argument, NULL, FILE_FLAG};
    for (int key = 0; key_rule(key); key++)
        *options++ = (struct option){key_rule(key)->name, required_argument, NULL, FIRST_KEY + key};
    for (int i = 0; flags && flags[i].name; i++) {
        assert(i < FLAGS_MAX);
        *options++ = (struct option){
            flags[i].name, flags[i].value ? required_argument : no_argument, NULL, FIRST_FLAG + i};
    }
    *options = (struct option){NULL, 0, NULL, 0};
}

static void report_wrong_option(struct config *config, int option, char *argument)
{
    char name[64];

    if (option == ':') {
        report(config, "%s: expected a value: %s=VALUE", argument, argument);
        return;
    }
    if (optopt >= FIRST_KEY) {
        report(config, "%s: expected no value", argument);
        return;
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument, "="), argument);
    if (strncmp(name, "--", 2) == 0 && key_gone(name + 2))
        report(config, "there is no option \"%s\" any more: %s", name, key_gone(name + 2));
    else if (strncmp(name, "--", 2) == 0 && key_like(name + 2))
        report(config, "option \"%s\" is not known: did you mean \"--%s\"?", name,
               key_like(name + 2));
    else
        report(config, "option \"%s\" is not known: see %s --help", name, config->argv[0]);
}

/* Returns false for --help. */
static bool read_command_line(struct config *config)
{
    struct option options[KEYS_MAX + FLAGS_MAX + 3];
    int option;

    list_options(config, options);
    optind = 0; /* in glibc: restarts from the first argument */
    opterr = 0;
    while ((option = getopt_long(config->argc, config->argv, ":h", options, NULL)) != -1) {
        if (option == 'h')
            return false;
        if (option == FILE_FLAG)
            config->path = optarg;
        else if (option >= FIRST_FLAG && config->request->flags[option - FIRST_FLAG].value)
            *config->request->flags[option - FIRST_FLAG].value = optarg;
        else if (option >= FIRST_FLAG)
            *config->request->flags[option - FIRST_FLAG].is_given = true;
        else if (option >= FIRST_KEY && option < FIRST_KEY + KEYS_MAX)
            config->flags[option - FIRST_KEY] = optarg;
        else
            report_wrong_option(config, option, config->argv[optind - 1]);
    }
    config->first_operand = optind;
    return true;
}

/* ---- reload ---------------------------------------------------------------------------------- */

/* Returns whether the service keeps the value of its start at a reload. */
static bool keeps_started_value(const struct config *config, int key)
{
    const int only = key_only_section(key);

    if (only && only != config->section)
        return false;
    return key_when(key) == KEY_AT_START ||
           (key_when(key) == KEY_IN_SESSION && strcmp(key_section(config->section), "live") == 0);
}

/* Returns the fingerprint of the file that a key *-file names. 0: another key, a key of the sink,
 * or no file. */
static uint64_t key_file_fingerprint(const struct config *config, int key)
{
    const char *const name = key_rule(key)->name, *const end = strrchr(name, '-');
    const char *path = NULL;

    if (!key_belongs_to_sink(key) && end && strcmp(end, "-file") == 0)
        path = config_text(config, name);
    return path ? file_fingerprint(path) : 0;
}

static bool is_same_setting(const struct setting *one, const struct setting *other)
{
    if (one->fingerprint != other->fingerprint || !one->origin != !other->origin)
        return false;
    return !one->origin ||
           (one->integer == other->integer && (!one->text || strcmp(one->text, other->text) == 0));
}

/* Restores the values that need a restart. Runs before the defaults are set, as some defaults
 * depend on other keys. */
static void restore_started_values(struct config *config)
{
    for (int key = 0; config->started && key_rule(key); key++) {
        const struct setting *const old = &config->started->settings[key];
        struct setting *const setting = &config->settings[key];
        char *waiting = NULL;

        if (!keeps_started_value(config, key))
            continue;
        setting->fingerprint = key_file_fingerprint(config, key);
        if (!is_same_setting(setting, old))
            waiting = setting->has_value ? config_shown(config, key_rule(key)->name)
                                         : strdup("the default");
        setting_clear(setting);
        *setting = *old;
        setting->text = old->text ? strdup(old->text) : NULL;
        setting->origin = old->origin ? strdup(old->origin) : NULL;
        setting->waiting = waiting;
    }
    config->started = NULL;
}

/* ---- the whole configuration ----------------------------------------------------------------- */

/* started: the configuration in force. topic: the text of CONFIG_TOPIC. Both: NULL if there is
 * none; see config_read_again(). */
static struct config *config_load(const struct config_request *request,
                                  const struct config *started, const char *topic, int argc,
                                  char *argv[], struct error *error, int *status)
{
    struct config *config = calloc(1, sizeof(*config));

    *status = 2;
    if (!config) {
        error_set(error, "out of memory");
        if (!request->error)
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        return NULL;
    }
    config->request = request;
    config->argc = argc;
    config->argv = argv;
    config->section = request->section ? key_find_section(request->section) : 0;
    config->started = started;
    assert(config->section >= 0);
    if (!read_command_line(config)) {
        fputs(request->usage, stdout);
        config_free(config);
        *status = 0;
        return NULL;
    }
    if (topic) {
        const struct config_lines lines = {config_take_topic_entry, config_take_bad_line, config};
        const char *const path = config->path;

        config->path = CONFIG_TOPIC;
        config_file_parse(topic, strlen(topic), &lines);
        config->path = path;
        memset(config->lines, 0, sizeof(config->lines)); /* the file may set the same keys */
    }
    read_file(config);
    read_environment(config);
    apply_flags(config);
    restore_started_values(config);
    if (!config_set_defaults(config))
        report(config, "out of memory");
    for (int key = 0; !started && !config->errors && key_rule(key); key++)
        config->settings[key].fingerprint = key_file_fingerprint(config, key);
    if (config->errors) {
        *error = config->first_error;
        config_free(config);
        return NULL;
    }
    *status = 0;
    return config;
}

struct config *config_read(const struct config_request *request, int argc, char *argv[],
                           int *status)
{
    struct error ignored;

    return config_load(request, NULL, NULL, argc, argv, request->error ? request->error : &ignored,
                       status);
}

struct config *config_read_again(const struct config *config, const char *topic,
                                 struct error *error)
{
    int status;

    return config_load(config->request, config, topic, config->argc, config->argv, error, &status);
}

struct config *config_read_for(const struct config *config, const char *section,
                               struct config_request *request)
{
    int status;

    *request = *config->request;
    request->section = section;
    request->is_for_other = true;
    return config_read(request, config->argc, config->argv, &status);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (int key = 0; key < KEYS_MAX; key++)
        setting_clear(&config->settings[key]);
    free(config);
}

const char *config_path(const struct config *config)
{
    return config->has_file ? config->path : NULL;
}

bool config_has_old_section(const struct config *config)
{
    return config->has_old_section;
}

const char *config_unreadable(const struct config *config)
{
    return config->is_unreadable ? config->path : NULL;
}

int config_operands(const struct config *config)
{
    return config->argc - config->first_operand;
}

const char *config_operand(const struct config *config, int i)
{
    return config->argv[config->first_operand + i];
}
