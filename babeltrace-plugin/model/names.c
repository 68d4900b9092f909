/*
 * A table of names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "names.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

struct name {
    struct table_link in_table;
    uint32_t id;
    size_t length;
    char text[]; /* ends in NUL */
};

struct names {
    uint32_t max;
    size_t max_bytes;
    size_t bytes;
    uint32_t count;
    size_t room;
    struct name **list; /* by id; the first two ids have no entry */
    struct table table;
};

struct names *names_new(uint32_t max, size_t max_bytes)
{
    struct names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    *names = (struct names){.max = max, .max_bytes = max_bytes, .count = NAMES_OTHER + 1};
    if (table_init(&names->table))
        return names;
    free(names);
    return NULL;
}

void names_clear(struct names *names)
{
    for (; names->count > NAMES_OTHER + 1; names->count--) {
        struct name *name = names->list[names->count - 1];

        table_remove(&names->table, &name->in_table);
        free(name);
    }
    names->bytes = 0;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    names_clear(names);
    table_destroy(&names->table, NULL);
    free(names->list);
    free(names);
}

static uint32_t names_add(struct names *names, uint64_t hash, struct text text)
{
    struct name *name;

    if (names->count >= names->max || text.length >= names->max_bytes - names->bytes ||
        !ARRAY_FITS(names->list, names->room, names->count))
        return NAMES_OTHER;
    name = malloc(sizeof(*name) + text.length + 1);
    if (!name)
        return NAMES_OTHER;
    name->id = names->count;
    name->length = text.length;
    *text_copy(name->text, text) = '\0';
    names->bytes += text.length + 1;
    names->list[names->count] = name;
    table_add(&names->table, &name->in_table, hash);
    return names->count++;
}

uint32_t names_id(struct names *names, struct text text)
{
    const struct name *name;
    uint64_t hash;

    if (text.length == 0)
        return NAMES_NONE;
    hash = hash_text(names->table.seed, text);
    table_find(name, &names->table, hash, in_table,
               name->length == text.length && memcmp(name->text, text.data, text.length) == 0);
    return name ? name->id : names_add(names, hash, text);
}

struct text names_text(const struct names *names, uint32_t id)
{
    if (id <= NAMES_OTHER || id >= names->count)
        return text_of("");
    return (struct text){names->list[id]->text, names->list[id]->length};
}

uint32_t names_count(const struct names *names)
{
    return names->count;
}
