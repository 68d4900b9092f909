/*
 * The table of keys: those of the commands and, under the same names, the sink's parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KEYS_H
#define BLKIN_TOOLS_KEYS_H

#include "babeltrace-plugin/params.h"

#include <stdbool.h>
#include <stddef.h>

#define KEY_SECTIONS 6 /* the first is what is for all commands */
#define KEYS_MAX     128

/* The name of a section; of the first it is "". */
const char *key_section(int section);
/* -1: there is none of this name. [record] is the name that [agent] had up to 0.9. */
int key_find_section(const char *name);
bool key_section_is_old(const char *name);

/* In the order of the man page: first the commands', then the sink's. NULL: no more. */
const struct param_rule *key_rule(int key);
int key_find(const char *name); /* -1 */
bool key_is_sinks(int key);
/* Is it a parameter that is no key, since the services set it themselves? */
bool key_is_services(const char *name);

/* The only section that it has a meaning in, beside the first; 0: all. */
int key_only_section(int key);

/* When a running service takes over another value. */
enum key_when {
    KEY_AT_ONCE,   /* at `blkin reload` */
    KEY_AT_START,  /* when the service is restarted */
    KEY_IN_SESSION /* when the service makes a session of LTTng: it keeps one that is there */
};
enum key_when key_when(int key);

/* The known name that was probably meant, or NULL. */
const char *key_like(const char *name);
const char *key_section_like(const char *name);

/* Of a key that there was once: what there is instead; NULL: it is none. */
const char *key_gone(const char *name);

/* What a value may be, such as "1 to 100000" or "auto, block or drop-oldest". */
void key_expected(const struct param_rule *rule, char *text, size_t size);

/* The default as it would be given; "" if there is none, or for one that depends on the machine. */
void key_default(const struct param_rule *rule, char *text, size_t size);

/* Whether a text is right as the value of a key; that of a key that the check does not know is.
 * Returns false with error set. */
typedef bool keys_check_fn(const char *key, const char *text, struct error *error);

/* Once, before any value is made: who checks the values of section [host]. */
void keys_set_host_check(keys_check_fn *check);

/* Reads a text as the rule wants it; the value's text is this text. Returns false with error set.
 */
bool key_read(const struct param_rule *rule, const char *text, struct param_value *value,
              struct error *error);

#endif
