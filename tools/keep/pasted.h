/*
 * A trace id as people paste it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PASTED_H
#define BLKIN_TOOLS_PASTED_H

#include <stdbool.h>

/*
 * From up to 16 or 32 hexadecimal digits, the address of a trace's page (Zipkin's and the like: the
 * id is the last part of its path), a W3C traceparent or B3 in one line: 16 or 32 digits in lower
 * case. False if it is none of these, or an id of zeros.
 */
bool pasted_id(const char *text, char id[33]);

#endif
