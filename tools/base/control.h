/*
 * The control socket of a service, for `blkin status`, `reload`, `stat`, `keep` and others.
 *
 * The client sends one line, the request, such as "status" or "kept ID". The service sends one JSON
 * document and closes the connection. The socket is RUNTIME-DIR/NAME.sock, mode 0600, in a folder
 * with mode 0700.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONTROL_H
#define BLKIN_TOOLS_CONTROL_H

#include "babeltrace-plugin/base/error.h"
#include "loop.h"

#include <jansson.h>

struct control;

/* Returns the answer as a new document. NULL: the request is unknown, and the client gets {"error":
 * "there is no such request: REQUEST"}. */
typedef json_t *control_fn(void *context, const char *request);

/* Replaces the socket of a service that was killed. Returns NULL with error set, also if a service
 * of this name is running. */
struct control *control_open(struct loop *loop, const char *folder, const char *name,
                             control_fn *answer, void *context, struct error *error);
void control_close(struct control *control);

/* The client's side: blocks for 5 s at most. Returns NULL with error set, also for an answer that
 * is only {"error": TEXT}. */
json_t *control_ask(const char *folder, const char *name, const char *request, struct error *error);
/* The same with a limit of 5 s + more_ms. */
json_t *control_ask_for(const char *folder, const char *name, const char *request, int64_t more_ms,
                        struct error *error);

/* Returns true if the service runs, even if it does not answer. Blocks for 5 s at most. */
bool control_runs(const char *folder, const char *name);

#endif
