/*
 * The tag keys that a span has been given so far: an object must not hold one twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_TAG_KEYS_H
#define BLKIN_OUTPUT_TAG_KEYS_H

#include "babeltrace-plugin/base/text.h"
#include "encoder.h"

#include <stdint.h>

#define TAG_KEYS_MAX   (LIMIT_TAGS + 16) /* and those that an encoder adds */
#define TAG_KEYS_SLOTS 2048              /* a power of two, well above TAG_KEYS_MAX */

/* Set count to 0 to begin; the rest needs no initialisation. */
struct tag_keys {
    unsigned count;
    uint64_t seed;                  /* unknown to who writes the trace */
    struct text keys[TAG_KEYS_MAX]; /* as written */
    uint16_t repeated[TAG_KEYS_MAX];
    uint16_t slots[TAG_KEYS_SLOTS]; /* hash table of index + 1; 0: free */
};

/*
 * A key has been written from start to at. If it is there already it becomes key#2, or the next
 * number that is free. Returns its end. At most JSON_INTEGER_MAX + 1 bytes are added.
 */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at);

/* The last one was moved. */
static inline void tag_keys_moved(struct tag_keys *keys, size_t by)
{
    keys->keys[keys->count - 1].data += by;
}

#endif
