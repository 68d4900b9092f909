/*
 * The tag keys of a span, because an object must not have a key twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_TAG_KEYS_H
#define BLKIN_OUTPUT_TAG_KEYS_H

#include "babeltrace-plugin/base/text.h"
#include "encoder.h"

#include <stdint.h>

#define TAG_KEYS_MAX   (LIMIT_TAGS + 16) /* with the keys that an encoder adds */
#define TAG_KEYS_SLOTS 2048              /* a power of two, well above TAG_KEYS_MAX */

/* Begins with count 0; the other members need no value. */
struct tag_keys {
    unsigned count;
    uint64_t seed;                  /* random */
    struct text keys[TAG_KEYS_MAX]; /* as written */
    uint16_t repeated[TAG_KEYS_MAX];
    uint16_t slots[TAG_KEYS_SLOTS]; /* hash table of index + 1; 0: free */
};

/* Adds the key that was written from start to at. A key that exists becomes key#2, or the next free
 * number. Returns the end of the key, at most JSON_INTEGER_MAX + 1 bytes further on. */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at);

/* The last key has moved by `by` bytes. */
static inline void tag_keys_moved(struct tag_keys *keys, size_t by)
{
    keys->keys[keys->count - 1].data += by;
}

#endif
