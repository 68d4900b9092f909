/*
 * Shared by the services whose children run the sink.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_H
#define BLKIN_TOOLS_READER_H

#include "tools/base/json.h"
#include "tools/config/config.h"

/* Returns the parameters of a child's sink: those of the configuration, except those that the
 * service handles itself. NULL: out of memory. */
json_t *reader_params(const struct config *config);

/* Returns false with error set if the endpoint is a regular file, which a sink does not overwrite:
 * only the first of a service's readers could write it. */
bool reader_endpoint_fits(const struct config *config, struct error *error);

/* Called in the child: gives up privileges and returns the order. Aborts if the bytes are no order.
 */
json_t *reader_begin(const void *bytes, size_t size);

#endif
