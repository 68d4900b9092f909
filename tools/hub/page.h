/*
 * What `blkin hub` tells of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_PAGE_H
#define BLKIN_TOOLS_HUB_PAGE_H

#include "board.h"
#include "server.h"

/* For `blkin status`; NULL: out of memory. */
json_t *hub_json(const struct board *board, const struct server *server, const char *url);

/* For Prometheus; NULL: out of memory. */
char *hub_page(const struct board *board, const struct server *server);

#endif
