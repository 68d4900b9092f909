/*
 * Foreign text in HTML and SVG: nothing in it is markup, leaves its place or turns the line round.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_MARKUP_H
#define BLKIN_TOOLS_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Any bytes; also as the value of an attribute in double quotes. Of more than max characters the
 * last one tells so. What XML cannot have, and what would not be seen, is written as an escape.
 */
void markup_put(FILE *file, const char *text, size_t max);

#endif
