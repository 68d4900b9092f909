/*
 * Tags of what a span's host did meanwhile (host.h) as a stage. It is
 * off where no span is to have them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_HOSTS_STAGE_H
#define BLKIN_STAGES_HOSTS_STAGE_H

#include "babeltrace-plugin/hosts/host.h"
#include "chain.h"

/* Returns NULL when out of memory. */
struct stage *hosts_stage_new(const struct hosts_options *options);

/* As hosts_add(). */
void hosts_stage_add(struct stage *stage, const struct event *event, int64_t time_ns,
                     int64_t now_ns);

struct hosts_counts hosts_stage_counts(const struct stage *stage);

#endif
