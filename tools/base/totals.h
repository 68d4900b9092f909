/*
 * What a service has done since its state folder was made: kept in a file, so that its account goes
 * on over restarts. The sinks of its readers, and counters of its own, of which it has a table.
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
    struct counts sinks; /* of all readers that have ended */
    char last_run[64];   /* of a sink that is in these sums: it is never added twice */
};

/* A counter of the service's own: a uint64_t in its struct. */
struct total {
    const char *name;
    size_t offset;
    const char *help;
};

struct totals_table {
    const char *service; /* "agent": metrics are called blkin_SERVICE_NAME_total */
    const struct total *own;
    size_t count;
};

/* The sink that has written this statistics file has ended: its account is added, if it was not
 * yet. Returns how many spans it has delivered. */
uint64_t totals_add_run(struct totals *totals, const char *stats_file);

/* Adds the account of a run, that of one which runs now maybe, to what the runs before have done.
 */
struct reader_account;
void totals_add(struct counts *sum, const struct reader_account *run);

/*
 * As JSON and back: {"counters": ..., "last_run": ..., NAME: VALUE, ...}, to which the service may
 * add what it likes. totals_read() returns false, all 0, if it is no such object.
 */
json_t *totals_json(const struct totals *totals, const struct totals_table *table, const void *own);
bool totals_read(const json_t *json, struct totals *totals, const struct totals_table *table,
                 void *own);

/* json NULL: out of memory. */
bool json_save(const json_t *json, const char *path, struct error *error);
/* NULL: it cannot be read, or is no JSON. Reads by pieces: json_load_file() takes a lock for each
 * byte. */
json_t *json_read(const char *path);
/* What json_save() would write; NULL: out of memory. */
char *json_text(const json_t *json, size_t *length);

/* Those of the service's own: {NAME: VALUE, ...}; NULL: out of memory. And for Prometheus. */
json_t *totals_own_json(const struct totals_table *table, const void *own);
void totals_own_print(struct printer *printer, const struct totals_table *table, const void *own);

/* Says what all runs so far have done: the sinks' account, then those of the service's own counters
 * from the first one on that are not 0. */
void totals_say(const struct totals *totals, const struct totals_table *table, const void *own,
                const char *first);

/* A metric without labels. kind: "counter" or "gauge". */
void print_metric(struct printer *printer, const char *name, const char *kind, const char *help,
                  uint64_t value);

#endif
