/*
 * The totals of a service since its state folder was made, saved in a file, so that the account
 * continues after a restart: the sums of its readers' sinks, and the service's own counters.
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

struct totals {
    struct counts sinks; /* the sums of all readers that have ended */
    char last_run[64];   /* the last run in these sums, which is never added twice */
};

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

/* Adds the account of a sink that has ended, once. stats_file: its statistics file. Returns the
 * number of spans that the collector accepted. */
uint64_t totals_add_run(struct totals *totals, const char *stats_file);

/* Adds the account of the latest run, which may still run, to the sum of the runs before. */
struct reader_account;
void totals_add(struct counts *sum, const struct reader_account *run);

/*
 * Converts to JSON and back: {"counters": ..., "last_run": ..., NAME: VALUE, ...}. The service may
 * add members. totals_read() returns false and sets all to 0 for another object.
 */
json_t *totals_json(const struct totals *totals, const struct totals_table *table, const void *own);
bool totals_read(const json_t *json, struct totals *totals, const struct totals_table *table,
                 void *own);

/* NULL as json: out of memory. Returns false with error set. */
bool json_save(const json_t *json, const char *path, struct error *error);
/* Returns NULL if the file is not readable or no JSON. Reads large pieces: json_load_file() takes a
 * lock for each byte. */
json_t *json_read(const char *path);
/* Returns the text that json_save() writes; NULL: out of memory. */
char *json_text(const json_t *json, size_t *length);

/* The service's own counters, as {NAME: VALUE, ...} (NULL: out of memory) and for Prometheus. */
json_t *totals_own_json(const struct totals_table *table, const void *own);
void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own);

/* Logs the sums of all runs: the account of the sinks, then the service's own counters from `first`
 * on that are not 0. */
void totals_say(const struct totals *totals, const struct totals_table *table, const void *own,
                const char *first);

/* A metric without labels. kind: "counter" or "gauge". */
void print_metric(struct printer *printer, const char *name, const char *kind, const char *help,
                  uint64_t value);

#endif
