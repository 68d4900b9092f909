/*
 * How much of one span is sent, whatever a trace holds. What is left out is said in the span.
 *
 * A collector refuses a request of some MiB as a whole, and a page shows no more of a span than a
 * person reads.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_LIMITS_H
#define BLKIN_OUTPUT_LIMITS_H

/* Bytes, before they are escaped. */
#define LIMIT_NAME  1024U /* of a span or a service */
#define LIMIT_KEY   256U
#define LIMIT_VALUE 16384U /* of an annotation or a tag */

#define LIMIT_ANNOTATIONS 512U
#define LIMIT_TAGS        512U

/* A span that has been encoded to this many bytes gets no further annotation or tag. */
#define LIMIT_SPAN (384U << 10)

#endif
