/*
 * Tail sampling decides on a trace some time after its last span came; a span waits for its host's
 * next samples before it comes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_WAIT_H
#define BLKIN_TOOLS_HOST_WAIT_H

#include "babeltrace-plugin/base/error.h"
#include "tools/config/config.h"

/*
 * Is the first of a service (its configuration) as long as the second is at most, with this
 * configuration of section [host]? Returns false with *why set. What cannot be read is not judged.
 */
bool host_wait_is_short_enough(const struct config *service, const struct config *host,
                               struct error *why);

#endif
