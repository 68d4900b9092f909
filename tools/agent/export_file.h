/*
 * Chooses the file of an endpoint file:PATH at the start of the agent.
 *
 * The agent overwrites nothing. It goes on with the file of its last run, if that run has ended
 * normally: then the file is whole. If not, it takes the first of PATH, PATH.2, PATH.3 ... that is
 * new or empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXPORT_FILE_H
#define BLKIN_TOOLS_EXPORT_FILE_H

#include <jansson.h>
#include <stdbool.h>

#define EXPORT_FILE_ROOM 4096

bool export_file_is(const char *endpoint);

/* Copies the endpoint with the chosen name. last: export_file_json() of the last run; NULL: none.
 * Returns true if the file has spans of the last run. Without a free name, copies the endpoint
 * unchanged. */
bool export_file_choose(const char *endpoint, const char *format, const json_t *last,
                        char chosen[EXPORT_FILE_ROOM]);

/* For the state: the file that a run has ended. NULL: out of memory. */
json_t *export_file_json(const char *endpoint, const char *format);

#endif
