/*
 * What the root shows of what it has added up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ROOT_SHOW_H
#define BLKIN_TOOLS_WORK_ROOT_SHOW_H

#include "root_deltas.h"

/* Sums and workers, for persons. NULL: out of memory. */
json_t *root_summary_json(const struct root_deltas *deltas);

/* How busy each worker is and how far behind, for `blkin work --advise`. */
json_t *root_figures_json(const struct merged *merged);

/* --once: reads what the topic has, and prints it. Returns the exit status. */
int root_once(struct root_deltas *deltas, int64_t since_ns, bool is_json);

#endif
