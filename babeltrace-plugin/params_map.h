/*
 * The component's parameters from babeltrace2's values.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PARAMS_MAP_H
#define BLKIN_PARAMS_MAP_H

#include "params.h"

#include <babeltrace2/babeltrace.h>

/* Fills params from the map, with defaults; the texts belong to the map. Returns false with error
 * set, which names the wrong value. */
bool params_read(struct params *params, const bt_value *map, struct error *error);

#endif
