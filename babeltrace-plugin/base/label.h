/*
 * A label of Prometheus' text format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_LABEL_H
#define BLKIN_ACCOUNT_LABEL_H

#include "printer.h"
#include "text.h"

/* KEY="VALUE": of any bytes; the page is UTF-8. */
void print_label(struct printer *page, const char *key, struct text value);

#endif
