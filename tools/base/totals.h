/*
 * The totals of a service since its state folder was made, saved in a file, so that the account
 * continues after a restart: the sums of its pipelines, and the service's own counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TOTALS_H
#define BLKIN_TOOLS_TOTALS_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"

#include <jansson.h>
#include <stdio.h>

/* One of the service's own counters, a uint64_t in its struct. */
struct total {
    const char *name;
    size_t offset;
    const char *help;
};

struct totals_table {
    const char *service; /* "agent"; metrics have the name blkin_SERVICE_NAME_total */
    const struct total *own;
    size_t count;
};

/*
 * Converts to JSON and back: {"counters": ..., NAME: VALUE, ...}. The service may
 * add members. totals_read() returns false and sets all to 0 for another object.
 */
json_t *totals_json(const struct counts *sinks, const struct totals_table *table, const void *own);
bool totals_read(const json_t *json, struct counts *sinks, const struct totals_table *table,
                 void *own);

/* Returns NULL if the file is not readable or no JSON. Reads large pieces: json_load_file() takes a
 * lock for each byte. */
json_t *json_read(const char *path);
/* The text of a file; NULL: out of memory. json NULL is allowed. */
char *json_text(const json_t *json, size_t *length);

/* The service's own counters, as {NAME: VALUE, ...} (NULL: out of memory) and for Prometheus. */
json_t *totals_own_json(const struct totals_table *table, const void *own);
void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own);

/* Logs the sums of all runs: the account of the sinks, then the service's own counters that are not
 * 0. */
void totals_say(const struct counts *sinks, const struct totals_table *table, const void *own);

/* A metric without labels. kind: "counter" or "gauge". */
void print_metric(struct printer *printer, const char *name, const char *kind, const char *help,
                  uint64_t value);

#endif
