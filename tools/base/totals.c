/*
 * The totals of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "totals.h"

#include "say.h"

#include "folders.h"
#include "reader_account.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t total_value(const struct total *total, const void *own)
{
    uint64_t value;

    memcpy(&value, (const char *)own + total->offset, sizeof(value));
    return value;
}

/* ---- the file -------------------------------------------------------------------------------- */

json_t *totals_own_json(const struct totals_table *table, const void *own)
{
    json_t *object = json_object();

    for (size_t i = 0; object && i < table->count; i++) {
        if (json_object_set_new(object, table->own[i].name,
                                json_integer((json_int_t)total_value(&table->own[i], own))) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

json_t *totals_json(const struct counts *sinks, const struct totals_table *table, const void *own)
{
    json_t *json = totals_own_json(table, own);
    json_t *more = json_pack("{so}", "counters", counts_json(sinks));

    if (!json || !more || json_object_update(json, more) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

bool totals_read(const json_t *json, struct counts *sinks, const struct totals_table *table,
                 void *own)
{
    const json_t *saved = json_object_get(json, "counters");

    memset(sinks, 0, sizeof(*sinks));
    for (size_t i = 0; i < table->count; i++) {
        const uint64_t value =
            (uint64_t)json_integer_value(json_object_get(json, table->own[i].name));

        memcpy((char *)own + table->own[i].offset, &value, sizeof(value));
    }
    if (!saved)
        return false;
    counts_read(saved, sinks);
    return true;
}

char *json_text(const json_t *json, size_t *length)
{
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;

    *length = text ? strlen(text) : 0;
    return text;
}

static size_t json_read_piece(void *piece, size_t size, void *file)
{
    return fread(piece, 1, size, file);
}

json_t *json_read(const char *path)
{
    FILE *file = fopen(path, "re");
    json_t *json = file ? json_load_callback(json_read_piece, file, 0, NULL) : NULL;

    if (file)
        (void)fclose(file);
    return json;
}

/* ---- for Prometheus -------------------------------------------------------------------------- */

void print_metric(struct printer *printer, const char *name, const char *kind, const char *help,
                  uint64_t value)
{
    print(printer, "# HELP %s %s\n", name, help);
    print(printer, "# TYPE %s %s\n%s %" PRIu64 "\n", name, kind, name, value);
}

void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own)
{
    for (size_t i = 0; i < table->count; i++) {
        char name[96];

        (void)snprintf(name, sizeof(name), "blkin_%s_%s_total", table->service, table->own[i].name);
        print_metric(printer, name, "counter", table->own[i].help,
                     total_value(&table->own[i], own));
    }
}

void totals_say(const struct counts *sinks, const struct totals_table *table, const void *own)
{
    char line[COUNTS_LINE_MAX], *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    counts_line(sinks, LINE_WHOLE, line);
    for (size_t i = 0; file && i < table->count; i++) {
        const uint64_t value = total_value(&table->own[i], own);

        if (value)
            (void)fprintf(file, "; %s: %" PRIu64, table->own[i].name, value);
    }
    if (file && fclose(file) == 0)
        say_account(BK1002, "all runs so far: %s%s", line, text);
    free(text);
    if (!counts_add_up(sinks))
        say_account(BK1003, "the account does not add up: this is a bug of BlkKin");
}
