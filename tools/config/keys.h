/* The table of keys: the commands' own keys, and the sink's parameters, which have their names as
 * keys.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KEYS_H
#define BLKIN_TOOLS_KEYS_H

#include "babeltrace-plugin/params.h"

#include <stdbool.h>
#include <stddef.h>

#define KEY_SECTIONS 5 /* the first is for all commands */
#define KEYS_MAX     128

/* Returns the name of a section; "" for the first. */
const char *key_section(int section);
/* Returns the index of the section; -1: unknown name. The sections [record] and [host] of version
 * 0.9 count as [agent]. */
int key_find_section(const char *name);
/* Returns whether the name is "record" or "host". */
bool key_section_is_old(const char *name);

/* Returns the rule of the key with this index; NULL after the last. The order is that of the man
 * page: the commands' keys, then the sink's. */
const struct param_rule *key_rule(int key);
/* Returns the index of the key; -1: unknown. */
int key_find(const char *name);
bool key_belongs_to_sink(int key);
/* Returns true for a parameter that the services set for each child that reads a trace. Users
 * cannot set such a parameter: it is no key. */
bool key_is_internal(const char *name);

/* Returns the section in which the key may be, besides the section for all commands. 0: every
 * section. */
int key_only_section(int key);

/* The time when a running service uses a new value. */
enum key_when {
    KEY_AT_ONCE,   /* at `blkin reload` */
    KEY_AT_START,  /* at a restart of the service */
    KEY_IN_SESSION /* in the next session of LTTng that the service creates */
};
enum key_when key_when(int key);

/* Returns whether a broker may give all agents one value of the key. Such a key takes effect at a
 * reload, and is no path, address or secret. */
bool key_is_shared(int key);

/* Returns the known name that is most similar, or NULL. */
const char *key_like(const char *name);
const char *key_section_like(const char *name);

/* Returns what to use instead of a removed key; NULL: not a removed key. */
const char *key_gone(const char *name);

/* Describes the allowed values, such as "1 to 100000" or "auto, block or drop-oldest". */
void key_expected(const struct param_rule *rule, char *text, size_t size);

/* Writes the default in the syntax of the file; "" if there is none or it depends on the machine.
 */
void key_default(const struct param_rule *rule, char *text, size_t size);

/* Returns false with error set if the text is no valid value of the key. Accepts values of unknown
 * keys. */
typedef bool keys_check_fn(const char *key, const char *text, struct error *error);

/* Sets the check for the keys of the sampler. main() calls this once, before any value is read. */
void keys_set_sampler_check(keys_check_fn *check);

/* Converts a text by the rule. For a text, value->text points to `text` itself. Returns false with
 * error set. */
bool key_read(const struct param_rule *rule, const char *text, struct param_value *value,
              struct error *error);

#endif
