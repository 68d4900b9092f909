/*
 * The hash table: of all links with one hash, the newest is the first, also after the table has
 * grown. Every link is found, and can be removed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/table.h"
#include "check.h"

#define THINGS 5000
#define SHARES 7 /* things that share a hash */

struct thing {
    unsigned number;
    struct table_link in_table;
};

static struct thing things[THINGS];

static struct thing *thing_of(struct table_link *link)
{
    return caa_container_of(link, struct thing, in_table);
}

/* Returns the number of links with this hash; 0 if a newer link follows an older one. */
static unsigned count_in_order(const struct table *table, uint64_t hash)
{
    struct table_link *link = table_first_of(table, hash);
    unsigned count = 0, before = THINGS;

    for (; link; link = table_from(link->next, hash), count++) {
        if (thing_of(link)->number >= before)
            return 0;
        before = thing_of(link)->number;
    }
    return count;
}

int main(void)
{
    struct table table;
    unsigned found = 0, left = 0;

    CHECK(table_init(&table));
    for (unsigned i = 0; i < THINGS; i++) {
        things[i].number = i;
        table_add(&table, &things[i].in_table, i % (THINGS / SHARES) * 977);
    }
    CHECK(table.count == THINGS && table.mask >= THINGS / 2);
    for (unsigned i = 0; i < THINGS / SHARES; i++)
        found += count_in_order(&table, (uint64_t)i * 977);
    CHECK(found == THINGS);
    for (unsigned i = 0; i < THINGS; i += 3)
        table_remove(&table, &things[i].in_table);
    for (struct table_link *link = table_first(&table); link;
         link = table_next(&table, link), left++)
        CHECK(thing_of(link)->number % 3 != 0);
    CHECK(left == table.count && left == THINGS - (THINGS + 2) / 3);
    table_destroy(&table, NULL);
    return check_status();
}
