/*
 * Makes tag keys unique, in linear time for any keys.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tag_keys.h"

#include "babeltrace-plugin/base/hash.h"
#include "json.h"

#define FEW 8 /* up to so many keys, comparing each is faster than a table */

#define NO_KEY UINT16_MAX

static uint16_t *tag_keys_slot(struct tag_keys *keys, struct text key)
{
    size_t i = hash_text(keys->seed, key) & (TAG_KEYS_SLOTS - 1);

    while (keys->slots[i] && !text_equal(keys->keys[keys->slots[i] - 1], key))
        i = (i + 1) & (TAG_KEYS_SLOTS - 1);
    return &keys->slots[i];
}

static inline uint16_t tag_keys_find(struct tag_keys *keys, struct text key)
{
    if (keys->count > FEW)
        return (uint16_t)(*tag_keys_slot(keys, key) - 1);
    for (unsigned i = 0; i < keys->count; i++) {
        const struct text other = keys->keys[i];

        if (other.length != key.length)
            continue;
        /* the first letter differs for most keys */
        if (key.length == 0 || (other.data[0] == key.data[0] && text_equal(other, key)))
            return (uint16_t)i;
    }
    return NO_KEY;
}

static void put_in_slot(struct tag_keys *keys, unsigned i)
{
    *tag_keys_slot(keys, keys->keys[i]) = (uint16_t)(i + 1);
}

static inline void insert(struct tag_keys *keys, struct text key)
{
    const unsigned i = keys->count++;

    keys->keys[i] = key;
    keys->repeated[i] = 1;
    if (keys->count == FEW + 1) {
        memset(keys->slots, 0, sizeof(keys->slots));
        for (unsigned earlier = 0; earlier < i; earlier++)
            put_in_slot(keys, earlier);
    }
    if (keys->count > FEW)
        put_in_slot(keys, i);
}

/* The key remembers the last number, and no number is tried twice: there are at most as many tries
 * as keys. */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at)
{
    const uint16_t first = tag_keys_find(keys, (struct text){start, (size_t)(at - start)});
    char *const end = at;

    for (uint16_t found = first; found != NO_KEY;) {
        at = end;
        *at++ = '#';
        at = json_put_integer(at, ++keys->repeated[first]);
        found = tag_keys_find(keys, (struct text){start, (size_t)(at - start)});
    }
    insert(keys, (struct text){start, (size_t)(at - start)});
    return at;
}
