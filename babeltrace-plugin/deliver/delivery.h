/*
 * Delivering a body: what the collector does not take as a whole is divided, and divided again
 * until each span has its outcome. For a transport with partitions, a body is many messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DELIVERY_H
#define BLKIN_OUTPUT_DELIVERY_H

#include "attempts.h"

enum result {
    RESULT_DONE,    /* every span is settled */
    RESULT_REFUSED, /* the same, but some were found invalid */
    RESULT_GIVEN_UP,
};

/* Delivers courier->body. */
enum result deliver_body(struct courier *courier);

/* Of messages to the transport, if it has partitions. A message that was too large for a broker was
 * no wider than this. */
struct part_limits delivery_limits(const struct courier *courier);

#endif
