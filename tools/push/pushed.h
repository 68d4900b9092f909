/*
 * Configurations that come from a topic, as `blkin config push` writes them: a message each.
 *
 * The key of a message is "SERVICE HOSTS", such as "host osd-*"; its value is lines as in
 * blkin.conf. A writer of the topic may only set what a host measures, and how often: each service
 * has a list of keys that it takes from there. No such key says where to connect to, or with which
 * credentials.
 *
 * A host takes the message that names it best: by its whole name, else by the pattern with most
 * letters. A message with a wrong line is refused as a whole, and the lines before stay in effect.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PUSHED_H
#define BLKIN_TOOLS_CONFIG_PUSHED_H

#include "babeltrace-plugin/base/error.h"
#include "tools/kafka/topic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSHED_BYTES_MAX   65536
#define PUSHED_PATTERN_MAX 128
#define PUSHED_KEY_MAX     160

/* The keys that this service takes from a topic; ends in NULL. Returns NULL: it takes none. */
const char *const *pushed_keys(const char *service);

/* Does the service take these lines? Returns false with error set to "NAME:LINE: why"; name tells
 * where the lines are from. */
bool pushed_check(const char *service, const char *name, const char *bytes, size_t size,
                  struct error *error);

/* Letters, digits, ".", "-", "_", and as wildcards ? and *. Returns false with error set. */
bool pushed_check_hosts(const char *pattern, struct error *error);

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

/* All messages for a service of a host. */
struct pushed;

struct pushed *pushed_new(const char *service, const char *host); /* NULL: out of memory */
void pushed_free(struct pushed *pushed);                          /* NULL is allowed */

enum pushed_result { PUSHED_FOR_OTHERS, PUSHED_TAKEN, PUSHED_REFUSED };

/* Sets error if it refuses the message. */
enum pushed_result pushed_take(struct pushed *pushed, const struct topic_message *message,
                               struct error *error);

/* Reading of the topic begins again, and has reached the end: lines that did not come again in
 * between are dropped. */
void pushed_begin(struct pushed *pushed);
void pushed_end(struct pushed *pushed);

/* The lines that hold, valid until the next call of another function; NULL: none. */
const struct pushed_text *pushed_best(const struct pushed *pushed);

#endif
