/*
 * The component's parameters, as babeltrace2 gives them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PARAMS_MAP_H
#define BLKIN_PARAMS_MAP_H

#include "params.h"

#include <babeltrace2/babeltrace.h>

/* Fills params from the map, defaults included; its texts are the map's. Returns false, with error
 * set, naming the culprit. */
bool params_read(struct params *params, const bt_value *map, struct error *error);

#endif
