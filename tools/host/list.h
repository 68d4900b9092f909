/*
 * What there is to choose from.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_LIST_H
#define BLKIN_TOOLS_HOST_LIST_H

#include "sample.h"

/* The instances: those of the configuration where it names some, else all that there are; of
 * processes and groups only those that it names. Returns false with error set. */
bool host_list_instances(const struct host_config *config, bool is_json, struct error *error);

/* The metrics of all groups. Returns false with error set. */
bool host_list_metrics(bool is_json, struct error *error);

#endif
