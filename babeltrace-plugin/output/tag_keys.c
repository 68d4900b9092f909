/*
 * Unique tag keys, in a time that grows with their number only, however they were chosen.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tag_keys.h"

#include "../core/hash.h"
#include "json.h"

#define FEW 8 /* up to here comparing with each is faster than a table */

#define NONE UINT16_MAX

static uint16_t *slot_of(struct tag_keys *keys, struct text key)
{
    size_t i = hash_text(keys->seed, key) & (TAG_KEYS_SLOTS - 1);

    while (keys->slots[i] && !text_equal(keys->keys[keys->slots[i] - 1], key))
        i = (i + 1) & (TAG_KEYS_SLOTS - 1);
    return &keys->slots[i];
}

static inline uint16_t find(struct tag_keys *keys, struct text key)
{
    if (keys->count > FEW)
        return (uint16_t)(*slot_of(keys, key) - 1);
    for (unsigned i = 0; i < keys->count; i++) {
        /* the letter after the quote tells most of them apart */
        if (keys->keys[i].data[1] == key.data[1] && text_equal(keys->keys[i], key))
            return (uint16_t)i;
    }
    return NONE;
}

static void put_in_slot(struct tag_keys *keys, unsigned i)
{
    *slot_of(keys, keys->keys[i]) = (uint16_t)(i + 1);
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

/*
 * A number that was found taken is not tried again, as the key remembers the last one: there are at
 * most as many tries as keys.
 */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at)
{
    const uint16_t first = find(keys, (struct text){start, (size_t)(at - start)});
    char *const quote = at - 1;

    for (uint16_t found = first; found != NONE;) {
        at = quote;
        *at++ = '#';
        at = json_put_integer(at, ++keys->repeated[first]);
        *at++ = '"';
        found = find(keys, (struct text){start, (size_t)(at - start)});
    }
    insert(keys, (struct text){start, (size_t)(at - start)});
    return at;
}
