/*
 * The configuration of a command: a file, then the environment, then flags; a later value wins.
 *
 * The file (/etc/blkin/blkin.conf, or --config=FILE, or $BLKIN_CONFIG) has lines `key = value`.
 * Lines before the first [section] are for all commands, lines of [live] for `blkin live` only. In
 * the environment, a key is BLKIN_KEY, in capitals with _ for -. On the command line, a key is
 * --key=value. There is one table of keys in keys.c; the sink's parameters are keys of the same
 * names, checked by the sink's own table (params.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_H
#define BLKIN_TOOLS_CONFIG_H

#include "babeltrace-plugin/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A flag of the command itself, which is no key: --name or --name=VALUE. */
struct config_flag {
    const char *name;
    bool *is_given;
    const char **value; /* NULL: a flag without a value */
};

struct config_request {
    const char
        *section; /* a section of keys.c, such as "live"; NULL: only the keys of all commands */
    const char *usage;               /* printed by --help */
    const struct config_flag *flags; /* ends with a NULL name; NULL: none */
    bool is_view;      /* only shows data: an unreadable default file is a warning, and left out */
    bool is_for_other; /* leaves out flags of other sections */
    bool is_without_file;
    struct error *error; /* gets the first error, and no error is printed; NULL: all are printed */
};

struct config;

/*
 * Reads the configuration. argv[0]: the prefix of messages. The request must outlive the result.
 * Returns NULL after printing the usage or all errors, with *status set to the exit status, 0 or 2.
 * config_free() frees the configuration.
 */
struct config *config_read(const struct config_request *request, int argc, char *argv[],
                           int *status);
void config_free(struct config *config);

#define CONFIG_TOPIC \
    "blkin/config" /* of the broker: the configuration for the agents of all hosts */

/*
 * Reads the configuration again with the same arguments, for `blkin reload`. A key that needs a
 * restart (key_when() of keys.h) keeps its value. topic: the text of CONFIG_TOPIC in the syntax of
 * the file; NULL: none. The file wins over the topic. Returns NULL after printing the errors, with
 * error set to the first error.
 */
struct config *config_read_again(const struct config *config, const char *topic,
                                 struct error *error);

/* Reads the configuration of another command: takes its section of the file, and ignores arguments
 * with keys of other sections. Fills *request, which must outlive the result. */
struct config *config_read_for(const struct config *config, const char *section,
                               struct config_request *request);

/* The number of operands, and the i-th one: arguments that are no flags, as in getopt(3). */
int config_operands(const struct config *config);
const char *config_operand(const struct config *config, int i);

/* Return the value of a key of keys.c. Abort for an unknown key or a wrong type. */
const char *config_text(const struct config *config, const char *key); /* NULL: not given */
int64_t config_integer(const struct config *config, const char *key);
bool config_boolean(const struct config *config, const char *key);

/* Returns the path of the file; NULL: the default file is missing or unreadable. */
const char *config_path(const struct config *config);

/* For a request with is_view: returns the path of the unreadable file; NULL: none. */
const char *config_unreadable(const struct config *config);

/* Returns whether the file has a section [record] or [host], old names of [agent]. */
bool config_has_old_section(const struct config *config);

/* Returns the origin of the value: "/etc/blkin/blkin.conf:12", "BLKIN_KEY", "--key" or "default".
 */
const char *config_origin(const struct config *config, const char *key);

/* Returns the value in the syntax of the file, without secrets of the endpoint. The caller frees
 * it; NULL: out of memory. */
char *config_shown(const struct config *config, const char *key);

/* Returns the new value of the key if the service needs a restart for it; NULL: no new value. */
const char *config_waiting(const struct config *config, const char *key);

/* Makes the sink's parameters (babeltrace-plugin/params.h). The texts live as long as the
 * configuration. Returns false with error set. */
struct params;
bool config_sink_params(const struct config *config, struct params *params, struct error *error);

/* Returns the sink's parameters that are set, for a child that runs the sink: {"endpoint":
 * "http://...", ...}. NULL: out of memory. */
json_t *config_sink_json(const struct config *config);

#endif
