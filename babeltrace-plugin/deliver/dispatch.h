/*
 * Dispatch: a batch is encoded, a body at a time, and each body is delivered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DISPATCH_H
#define BLKIN_OUTPUT_DISPATCH_H

#include "courier.h"

/*
 * Settles the batch's spans with the outbox, but not those that are given up: then it returns
 * false. to_spool: puts what is left of the batch into the spool, and sends nothing. Returns false,
 * with error set, if the spool does not take all of it.
 */
bool dispatch_batch(struct courier *courier, struct batch *batch, bool to_spool,
                    struct error *error);

/* Settles the record's spans, which are courier->body, with the spool; but not those that are to be
 * tried again when the spool is stopped. */
void dispatch_record(struct courier *courier, struct spool_record *record);

#endif
