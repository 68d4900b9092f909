/*
 * What `blkin rotate` has done.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "totals.h"

#include "tools/base/saver.h"

#include <stdio.h>
#include <unistd.h>

#define OWN(member, help)                                     \
    {                                                         \
#member, offsetof(struct rotate_totals, member), help \
    }

static const struct total own[] = {
    OWN(chunks_converted, "Chunks of the trace converted and deleted."),
    OWN(bytes_converted, "Bytes of these chunks."),
    OWN(chunks_dropped, "Chunks deleted unread: there was no room on the disk."),
    OWN(bytes_dropped, "Bytes of these chunks."),
    OWN(files_damaged, "Files that cannot be read, moved to the folder damaged."),
    OWN(bytes_damaged, "Bytes of these files."),
    OWN(sessions, "Sessions made."),
    OWN(rotations_stuck, "Sessions given up because their rotation did not end."),
    OWN(children_failed, "Conversions that failed or were killed, and were started again."),
};

const struct totals_table rotate_table = {"rotate", own, sizeof(own) / sizeof(own[0])};

bool rotate_totals_load(struct rotate_totals *totals, const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);
    const char *current = json_string_value(json_object_get(json, "current"));
    bool is_whole;

    *totals = (struct rotate_totals){.chunks_converted = 0};
    is_whole = totals_read(json, &totals->readers, &rotate_table, totals);
    totals->closed_ns = json_integer_value(json_object_get(json, "closed_ns"));
    if (is_whole && current)
        (void)snprintf(totals->current, sizeof(totals->current), "%s", current);
    json_decref(json);
    return is_whole || access(path, F_OK) != 0;
}

void rotate_totals_save(const struct rotate_totals *totals, const char *path)
{
    json_t *json = totals_json(&totals->readers, &rotate_table, totals);
    size_t length;
    char *text;

    if (json && (json_object_set_new(json, "current", json_string(totals->current)) != 0 ||
                 json_object_set_new(json, "closed_ns",
                                     json_integer((json_int_t)totals->closed_ns)) != 0)) {
        json_decref(json);
        json = NULL;
    }
    text = json_text(json, &length);
    json_decref(json);
    saver_write(path, text, length);
}
