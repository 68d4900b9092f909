/*
 * What the exporter's threads do with a spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOLER_H
#define BLKIN_OUTPUT_SPOOLER_H

#include "courier.h"

/* Sends records of the spool until it is stopped; is_main: or until it is empty. */
void spooler_drain(struct courier *courier, bool is_main);

/* Puts batches into the spool, and has them stored on disk, until the outbox is done. */
void spooler_fill(struct courier *courier);

#endif
