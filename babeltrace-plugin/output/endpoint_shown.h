/*
 * The parameter endpoint, as messages, the statistics file and the metrics page show it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_ENDPOINT_SHOWN_H
#define BLKIN_OUTPUT_ENDPOINT_SHOWN_H

/*
 * A copy of an endpoint that everybody may see: valid UTF-8 without control characters, and without
 * what may hold a secret in a URL: user, password, query, fragment. Returns NULL when out of
 * memory; free() it.
 */
char *endpoint_shown(const char *endpoint);

#endif
