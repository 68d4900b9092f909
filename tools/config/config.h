/*
 * The configuration of a command: one file, the environment, flags; what comes later wins.
 *
 * The file (/etc/blkin/blkin.conf, or --config=FILE, or $BLKIN_CONFIG) has lines `key = value`.
 * Those before the first [section] are for all commands, those of [live] for `blkin live` only. A
 * key is in the environment as BLKIN_KEY, in capitals with _ for -, and on the command line as
 * --key=value. There is one table of keys in keys.c; the sink's parameters are keys of the same
 * names, checked by the sink's own table (params.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_H
#define BLKIN_TOOLS_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A flag of the command itself, which is no key: --name or --name=VALUE. */
struct config_flag {
    const char *name;
    bool *is_given;
    const char **value; /* NULL: it has none */
};

struct config_request {
    const char *section; /* one of keys.c's: "live"; NULL: only what is for all commands */
    const char *usage;   /* printed by --help */
    const struct config_flag *flags; /* ends with a NULL name; NULL: none */
};

struct config;

/*
 * Reads the configuration. argv[0] is how messages begin. Returns NULL, after it has printed the
 * usage or all that is wrong, with *status as the exit status: 0 or 2. config_free() frees it.
 */
struct config *config_read(const struct config_request *request, int argc, char *argv[],
                           int *status);
void config_free(struct config *config);

/* The same for a command that only shows something: a default file that this user may not read is
 * no error, but said on the standard error, and the defaults apply. */
struct config *config_read_view(const struct config_request *request, int argc, char *argv[],
                                int *status);

/*
 * Once more with the same arguments, as for `blkin reload`. A key that needs a restart (key_when()
 * of keys.h) keeps the value that the service was started with. Returns NULL after it has said why.
 */
struct config *config_read_again(const struct config *config);

/* What a child has that is another command: of its section, with the same arguments but for those
 * that are of another one. Returns NULL after it has said why. */
struct config *config_read_for(const struct config *config, const char *section);

/*
 * The section and the keys of the command line, for a child that reads the same configuration: some
 * bytes; NULL: out of memory. And in the child, as config_read(): argv[0] is how messages begin.
 * The bytes must live as long.
 */
char *config_arguments(const struct config *config, size_t *size);
struct config *config_read_arguments(char *bytes, size_t size, int *status);

/* What is no flag, as with getopt(3): count of it, and the i-th. */
int config_operands(const struct config *config);
const char *config_operand(const struct config *config, int i);

/* The value of a key of keys.c: a key that is not there, or of another type, is a bug (abort). */
const char *config_text(const struct config *config, const char *key); /* NULL: not given */
int64_t config_integer(const struct config *config, const char *key);
bool config_boolean(const struct config *config, const char *key);

/* The file that was read; NULL: the default one is not there, or left out. */
const char *config_path(const struct config *config);

/* Of a view: the file that this user may not read; NULL: there is none. */
const char *config_left_out(const struct config *config);

/* Does the file have a section [record], the name that [agent] had up to 0.9? */
bool config_has_old_section(const struct config *config);

/* Where the value is from: "/etc/blkin/blkin.conf:12", "BLKIN_KEY", "--key" or "default". */
const char *config_origin(const struct config *config, const char *key);

/* A value as a user writes it; of the endpoint nothing that may be secret. The caller's; NULL: out
 * of memory. */
char *config_shown(const struct config *config, const char *key);

/* What the configuration says, where a restart is needed for that; NULL: what is in force. */
const char *config_waiting(const struct config *config, const char *key);

/* The sink's parameters that are given, for a child that runs the sink: {"endpoint": "http://...",
 * ...}. NULL: out of memory. */
json_t *config_sink_json(const struct config *config);

#endif
