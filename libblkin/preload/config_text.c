/*
 * Parses the text of a run-time configuration. The command `blkin` contains this file, too, so it
 * uses only libc's string functions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"

#include "libblkin/base/text.h"

#include <string.h>

#define PORT_MAX 65535

/* ---- values ---- */

static bool read_number(const char *text, unsigned max, unsigned *number)
{
    uint64_t value = 0;

    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    for (; *text && value <= max; text++)
        value = value * 10 + (unsigned)(*text - '0');
    *number = (unsigned)value;
    return value <= max;
}

static bool read_word(const char *text, const char *const words[], unsigned *index)
{
    for (*index = 0; words[*index]; ++*index) {
        if (strcmp(text, words[*index]) == 0)
            return true;
    }
    return false;
}

/* Appends a glob. There is always room, because all globs are parts of one text. */
static bool add_glob(char globs[PRELOAD_CONFIG_MAX + 1], const char *glob)
{
    char *at = globs;

    while (*at)
        at += strlen(at) + 1;
    if ((size_t)(at - globs) + strlen(glob) + 2 > PRELOAD_CONFIG_MAX + 1)
        return false;
    strcpy(at, glob);
    at[strlen(glob) + 1] = '\0';
    return true;
}

static bool fits_one_of(const char *globs, const char *text)
{
    bool fits = !*globs;

    for (; *globs && !fits; globs += strlen(globs) + 1)
        fits = blkin_glob_fits(globs, text);
    return fits;
}

/* ---- keys: each function reads one value, or one item of a list ---- */

/* Reads a port or a range, such as 8000-8010. */
static bool read_port(struct preload_config *config, char *item)
{
    char *dash = strchr(item, '-');
    unsigned first, last;

    if (dash)
        *dash++ = '\0';
    if (config->range_count == PRELOAD_RANGES_MAX ||
        !read_number(blkin_trimmed(item), PORT_MAX, &first) ||
        !read_number(dash ? blkin_trimmed(dash) : item, PORT_MAX, &last) || first == 0 ||
        last < first)
        return false;
    config->ranges[config->range_count].first = (uint16_t)first;
    config->ranges[config->range_count++].last = (uint16_t)last;
    return true;
}

static bool read_program(struct preload_config *config, char *item)
{
    return !strchr(item, '/') && add_glob(config->programs, item);
}

static bool read_file(struct preload_config *config, char *item)
{
    return add_glob(config->files, item);
}

static bool read_min_us(struct preload_config *config, char *item)
{
    unsigned us = 0;
    const bool is_valid = read_number(item, 1000000000, &us);

    config->least_ns = us * UINT64_C(1000);
    return is_valid;
}

static bool read_service(struct preload_config *config, char *item)
{
    if (strlen(item) >= sizeof(config->service))
        return false;
    strcpy(config->service, item);
    return true;
}

static const char *const file_calls[] = {"auto", "each", "totals", "off", NULL};
static const char *const guesses[] = {"mark", "link", NULL};
static const char *const seccomp[] = {"rings", "leave", "trace", NULL};

#define AT(member) offsetof(struct preload_config, member)

/* A key without a function sets the byte at `at` to a number or to the index of a word. */
static const struct config_key {
    const char *name;
    bool (*read)(struct preload_config *config, char *item);
    size_t at;
    unsigned max;             /* of a number */
    const char *const *words; /* NULL: a number */
    bool is_cleared;          /* `at` is set to 0 first; the value may be empty */
    char between;             /* separator of the list's items; '\0': no list */
    const char *expected;
} keys[] = {
    {"ports", read_port, AT(range_count), 0, NULL, true, ',',
     "up to 64 ports or ranges of them, as in ports=6379,8000-8010"},
    {"programs", read_program, AT(programs), 0, NULL, true, ',',
     "names of programs without their folder, as in programs=redis-server,nginx*"},
    {"files", read_file, AT(files), 0, NULL, true, ';',
     "paths, as in files=/var/lib/redis/*;/dev/nvme*"},
    {"file-calls", NULL, AT(file_calls), 0, file_calls, false, '\0',
     "file-calls=auto, each, totals or off"},
    {"min-us", read_min_us, 0, 0, NULL, false, '\0', "microseconds, as in min-us=100"},
    {"usage", NULL, AT(usage), 3, NULL, false, '\0', "usage=0, 1, 2 or 3"},
    {"guesses", NULL, AT(guesses_are_linked), 0, guesses, false, '\0', "guesses=mark or link"},
    {"seccomp", NULL, AT(seccomp), 0, seccomp, false, '\0', "seccomp=rings, leave or trace"},
    {"payload", NULL, AT(payload), PRELOAD_PAYLOAD_MAX, NULL, false, '\0',
     "bytes of each request, as in payload=0 to 64"},
    {"service", read_service, AT(service), 0, NULL, true, '\0',
     "a name of less than 64 bytes, as in service=front"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct config_key *find_key(const char *name, size_t length)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (strlen(keys[i].name) == length && strncmp(keys[i].name, name, length) == 0)
            return &keys[i];
    }
    return NULL;
}

/* ---- the text ---- */

struct config_reading {
    struct preload_config *config;
    const struct config_key *key; /* the key whose list continues after a comma; NULL: none */
    const char *expected;
};

static bool read_item(struct preload_config *config, const struct config_key *key, char *item)
{
    unsigned value;

    if (key->read)
        return key->read(config, item);
    if (key->words ? !read_word(item, key->words, &value) : !read_number(item, key->max, &value))
        return false;
    ((char *)config)[key->at] = (char)value;
    return true;
}

static bool read_items(struct config_reading *reading, char *value)
{
    const char between[2] = {reading->key->between, '\0'};
    char *item;

    while ((item = strsep(&value, between))) {
        item = blkin_trimmed(item);
        if (*item && !read_item(reading->config, reading->key, item))
            return false;
    }
    return true;
}

/* Reads key=value, or another item of the previous list. */
static bool read_part(struct config_reading *reading, char *part)
{
    char *equals = strchr(part, '=');

    if (equals) {
        reading->key = find_key(part, strcspn(part, BLKIN_BLANKS "="));
        part = blkin_trimmed(equals + 1);
    } else if (reading->key && reading->key->between != ',') {
        reading->key = NULL;
    }
    if (!reading->key)
        return false;
    reading->expected = reading->key->expected;
    if (equals && reading->key->is_cleared)
        ((char *)reading->config)[reading->key->at] = '\0';
    return (*part || reading->key->is_cleared) && read_items(reading, part);
}

static bool read_line(struct config_reading *reading, char *line, char wrong[PRELOAD_CONFIG_MAX])
{
    char *part;

    line = blkin_trimmed(line);
    reading->key = NULL;
    if (*line == '#')
        return true;
    while ((part = strsep(&line, ","))) {
        part = blkin_trimmed(part);
        strcpy(wrong, part); /* before read_part() changes it */
        reading->expected = "one of ports=, programs=, files=, file-calls=, min-us=, usage=, "
                            "guesses=, seccomp=, payload= and service=";
        if (*part && !read_part(reading, part))
            return false;
    }
    return true;
}

const char *preload_config_read(struct preload_config *config, const char *text,
                                char wrong[PRELOAD_CONFIG_MAX], const char **expected)
{
    struct config_reading reading = {.config = config};
    char copy[PRELOAD_CONFIG_MAX];
    char *rest = copy, *line;

    *expected = "a text of less than 1024 bytes";
    if (strlen(text) >= sizeof(copy)) {
        memcpy(wrong, text, 32);
        strcpy(wrong + 32, "...");
        return wrong;
    }
    strcpy(copy, text);
    while ((line = strsep(&rest, "\r\n"))) {
        if (!read_line(&reading, line, wrong)) {
            *expected = reading.expected;
            return wrong;
        }
    }
    return NULL;
}

void preload_config_clear(struct preload_config *config)
{
    memset(config, 0, sizeof(*config));
    config->usage = PRELOAD_USAGE_UNSET;
}

/* ---- what the configuration selects ---- */

bool preload_config_has_port(const struct preload_config *config, unsigned port)
{
    bool has = config->range_count == 0;

    for (unsigned i = 0; i < config->range_count && !has; i++)
        has = port >= config->ranges[i].first && port <= config->ranges[i].last;
    return has;
}

bool preload_config_has_program(const struct preload_config *config, const char *name)
{
    return fits_one_of(config->programs, name);
}

bool preload_config_has_file(const struct preload_config *config, const char *path)
{
    return fits_one_of(config->files, path);
}
