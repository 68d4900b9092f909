/*
 * Configurations that come from a topic, as `blkin config push` writes them: a message each.
 *
 * Its key is "SERVICE HOSTS", such as "host osd-*", its value lines as in blkin.conf. Who can write
 * there is not trusted with more than what is to be measured, and how often: each service has a
 * list of keys that it takes from there. None says where to connect to, or as whom.
 *
 * A host has the value of the message that names it best: by its whole name, else by the pattern
 * with most letters. What is wrong in any line is refused as a whole, and what was there before
 * holds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PUSHED_H
#define BLKIN_TOOLS_CONFIG_PUSHED_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSHED_BYTES_MAX   65536
#define PUSHED_PATTERN_MAX 128
#define PUSHED_KEY_MAX     160

/* The keys of a configuration that this service takes; ends in NULL. NULL: it takes none. */
const char *const *pushed_keys(const char *service);

/* Are these the lines of a configuration that the service takes? name is where they are from, as
 * messages call it: "NAME:LINE: why". Returns false with error set. */
bool pushed_check(const char *service, const char *name, const char *bytes, size_t size,
                  struct error *error);

/* Letters, digits, ".", "-", "_", and as wildcards ? and *. Returns false with error set. */
bool pushed_check_hosts(const char *pattern, struct error *error);

struct pushed_message {
    const char *key;
    size_t key_length;
    const char *bytes; /* NULL: it is removed */
    size_t size;
    int64_t offset;
    int64_t written_ns; /* 0: not known */
};

struct pushed_text {
    char key[PUSHED_KEY_MAX + 1];
    char *bytes; /* NULL: there is none */
    size_t size;
    int64_t offset;
    int64_t written_ns;
};

bool pushed_text_copy(struct pushed_text *to,
                      const struct pushed_text *from); /* false: no memory */
void pushed_text_clear(struct pushed_text *text);

/* What there is for a service of a host. */
struct pushed;

struct pushed *pushed_new(const char *service, const char *host); /* NULL: out of memory */
void pushed_free(struct pushed *pushed);                          /* NULL is allowed */

enum pushed_result { PUSHED_FOR_OTHERS, PUSHED_TAKEN, PUSHED_REFUSED };

/* Sets error if it is refused. */
enum pushed_result pushed_take(struct pushed *pushed, const struct pushed_message *message,
                               struct error *error);

/* The topic is read from its beginning, and was read to its end: what has not come again is no
 * longer there. */
void pushed_begin(struct pushed *pushed);
void pushed_end(struct pushed *pushed);

/* The one that holds; NULL: none does. It is there until the next call of another function. */
const struct pushed_text *pushed_best(const struct pushed *pushed);

#endif
