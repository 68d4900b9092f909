/*
 * The Unix socket of a running service: `blkin status`, `blkin reload` and `blkin stat` ask there.
 *
 * A connection is one line with a request ("status", "reload", "statistics"), then one JSON
 * document as the answer, then its end. The socket is RUNTIME-DIR/NAME.sock, of mode 0600 in a
 * folder of 0700.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONTROL_H
#define BLKIN_TOOLS_CONTROL_H

#include "babeltrace-plugin/base/error.h"
#include "loop.h"

#include <jansson.h>

struct control;

/* The answer to a request, new; NULL: there is no such request. */
typedef json_t *control_fn(void *context, const char *request);

/* Takes the place of a socket that nobody answers. Returns NULL with error set, also if another
 * service of this name runs. */
struct control *control_open(struct loop *loop, const char *folder, const char *name,
                             control_fn *answer, void *context, struct error *error);
void control_close(struct control *control);

/* For the other side, blocking, for 5 s at most. Returns NULL with error set. */
json_t *control_ask(const char *folder, const char *name, const char *request, struct error *error);

#endif
