/*
 * Fetching: the records of wanted traces are copied out of the rings into a folder kept-N. A task,
 * as a disk may hang.
 *
 * The folder has a file "records" (see records.h), with what the host did meanwhile, maybe a file
 * "foreign" with spans of OpenTelemetry's SDKs, a file "only" for the stage of that name, and
 * "requests": what it was fetched for, and until when. It is whole as soon as it is there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCH_H
#define BLKIN_TOOLS_FETCH_H

#include "fetch_order.h"
#include "tools/base/child.h"

/* The task: its result is a struct fetch_result. */
extern const struct job fetch_job;

/* Reads the file "requests" of a kept folder. Returns a list, NULL: there is none; *until_mono_ns
 * and *held_from_ns as above. */
struct request *fetch_requests(const char *kept, int64_t *until_mono_ns, int64_t *held_from_ns);

#endif
