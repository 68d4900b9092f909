/* Writes foreign text into HTML and SVG, so that no part is markup or changes the direction of the
 * line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_MARKUP_H
#define BLKIN_TOOLS_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes any bytes, also for an attribute in double quotes. A text of more than max characters ends
 * with an ellipsis. Writes characters that are invisible or forbidden in XML as escapes.
 */
void markup_put(FILE *file, const char *text, size_t max);

#endif
