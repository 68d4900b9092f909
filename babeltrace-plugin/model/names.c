/*
 * A table of names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "names.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

#define FIRST_PLACES 256U

struct name {
    uint64_t hash;
    struct text text;
};

/* Open addressing; never more than half full. */
struct names {
    uint64_t seed;
    uint32_t max;
    size_t max_bytes;
    size_t bytes;
    bool are_full;
    uint32_t count;
    uint32_t room;
    uint32_t mask; /* the number of places, a power of two, less 1 */
    struct name *list;
    uint32_t *places; /* of ids; NAMES_NONE: free */
};

struct names *names_new(uint32_t max, size_t max_bytes)
{
    struct names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    *names = (struct names){
        .seed = hash_seed(names),
        .max = max,
        .max_bytes = max_bytes,
        .count = NAMES_OTHER + 1,
        .room = FIRST_PLACES / 2,
        .mask = FIRST_PLACES - 1,
        .list = calloc(FIRST_PLACES / 2, sizeof(*names->list)),
        .places = calloc(FIRST_PLACES, sizeof(*names->places)),
    };
    if (!names->list || !names->places) {
        names_free(names);
        return NULL;
    }
    names->list[NAMES_NONE].text = names->list[NAMES_OTHER].text = text_of("");
    return names;
}

static void free_texts(struct names *names)
{
    for (uint32_t id = NAMES_OTHER + 1; id < names->count; id++)
        free((char *)(uintptr_t)names->list[id].text.data);
}

void names_clear(struct names *names)
{
    free_texts(names);
    names->count = NAMES_OTHER + 1;
    names->bytes = 0;
    names->are_full = false;
    memset(names->places, 0, (names->mask + 1) * sizeof(*names->places));
}

void names_free(struct names *names)
{
    if (!names)
        return;
    if (names->list)
        free_texts(names);
    free(names->list);
    free(names->places);
    free(names);
}

static uint64_t word_of(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

static uint32_t half_of(const char *bytes)
{
    uint32_t half;

    memcpy(&half, bytes, sizeof(half));
    return half;
}

/*
 * Most names are short, and each span has some: pieces that overlap, rather than a loop over what
 * eights of bytes leave over.
 */
static uint64_t hash_of(uint64_t seed, struct text text)
{
    const char *const data = text.data;
    const size_t length = text.length;
    uint64_t hash = seed ^ length;

    if (length > 16)
        return hash_text(seed, text);
    if (length >= 8)
        return hash_mix(hash_mix(hash ^ word_of(data)) ^ word_of(data + length - 8));
    if (length >= 4)
        return hash_mix(hash ^ ((uint64_t)half_of(data) << 32 | half_of(data + length - 4)));
    for (size_t i = 0; i < length; i++)
        hash = hash << 8 ^ (unsigned char)data[i];
    return hash_mix(hash);
}

/* The id of the text, or where it would be. */
static uint32_t *place_of(const struct names *names, uint64_t hash, struct text text)
{
    for (uint32_t i = (uint32_t)hash & names->mask;; i = (i + 1) & names->mask) {
        const struct name *name = &names->list[names->places[i]];

        if (names->places[i] == NAMES_NONE || (name->hash == hash && text_equal(name->text, text)))
            return &names->places[i];
    }
}

/* Twice the room. Returns false when out of memory. */
static bool grow(struct names *names)
{
    const uint32_t size = (names->mask + 1) * 2;
    struct name *list = reallocarray(names->list, size / 2, sizeof(*list));
    uint32_t *places;

    if (!list)
        return false;
    names->list = list;
    places = calloc(size, sizeof(*places));
    if (!places)
        return false;
    free(names->places);
    names->places = places;
    names->mask = size - 1;
    names->room = size / 2;
    for (uint32_t id = NAMES_OTHER + 1; id < names->count; id++)
        *place_of(names, list[id].hash, list[id].text) = id;
    return true;
}

static uint32_t add(struct names *names, uint64_t hash, struct text text)
{
    char *copy;

    if (names->count >= names->max || text.length >= names->max_bytes - names->bytes) {
        names->are_full = true;
        return NAMES_OTHER;
    }
    if (names->count == names->room && !grow(names))
        return NAMES_OTHER;
    copy = malloc(text.length + 1);
    if (!copy)
        return NAMES_OTHER;
    *text_copy(copy, text) = '\0';
    names->bytes += text.length + 1;
    names->list[names->count] = (struct name){hash, {copy, text.length}};
    *place_of(names, hash, text) = names->count;
    return names->count++;
}

uint32_t names_id(struct names *names, struct text text)
{
    uint64_t hash;
    uint32_t id;

    if (text.length == 0)
        return NAMES_NONE;
    hash = hash_of(names->seed, text);
    id = *place_of(names, hash, text);
    return id == NAMES_NONE ? add(names, hash, text) : id;
}

struct text names_text(const struct names *names, uint32_t id)
{
    return id < names->count ? names->list[id].text : text_of("");
}

uint32_t names_count(const struct names *names)
{
    return names->count;
}

bool names_are_full(const struct names *names)
{
    return names->are_full;
}
