/*
 * Common parts of the services' children that run the sink.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_H
#define BLKIN_TOOLS_READER_H

#include "tools/base/json.h"
#include "tools/config/config.h"

/* Returns the sink's parameters of the configuration, without those that the service handles. NULL:
 * out of memory. */
json_t *reader_params(const struct config *config);

/* Refuses file:PATH as endpoint with error set: a sink overwrites no file, so only the first of a
 * service's readers could write it. */
bool reader_endpoint_fits(const struct config *config, struct error *error);

/* For the child: gives up privileges and returns the order. Aborts if the bytes are no order. */
json_t *reader_begin(const void *bytes, size_t size);

#endif
