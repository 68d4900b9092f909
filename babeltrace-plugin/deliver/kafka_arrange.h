/*
 * Sorting the spans of a run by the partitions of their traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_KAFKA_ARRANGE_H
#define BLKIN_OUTPUT_KAFKA_ARRANGE_H

#ifdef HAS_KAFKA

#include "transport.h"

/* See arrange() of struct transport. While the number of partitions is unknown (0), all spans are
 * one run. */
bool kafka_arrange_run(uint32_t partitions, const struct encoder *encoder, struct body_run run,
                       size_t bytes, struct arranged *arranged);

#endif

#endif
