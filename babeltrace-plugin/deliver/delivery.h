/*
 * Delivering a body. If the collector does not take the body as a whole, the courier sends halves,
 * then quarters, until each span has its outcome. For a transport with partitions, a body becomes
 * many messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DELIVERY_H
#define BLKIN_OUTPUT_DELIVERY_H

#include "attempts.h"

enum result {
    RESULT_DONE,    /* every span has its outcome */
    RESULT_REFUSED, /* the same, and some spans are invalid */
    RESULT_GIVEN_UP,
};

/* Delivers courier->body. */
enum result deliver_body(struct courier *courier);

/* The limits of one message, for a transport with partitions. They shrink after a message that was
 * too large for a broker. */
struct part_limits delivery_limits(const struct courier *courier);

#endif
