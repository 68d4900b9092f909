/*
 * First bytes of a request, as a tag.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_PAYLOAD_H
#define BLKIN_PRELOAD_PAYLOAD_H

#include "blkin.h"

#include <stddef.h>

/* A text as it is. Other bytes, as those of DNS, with \xNN for all that are not ASCII's printable
 * ones. length: PRELOAD_PAYLOAD_MAX at most. */
void payload_tag(struct blkin_span *span, const char *first, size_t length);

#endif
