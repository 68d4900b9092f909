/*
 * How the two halves of a request refer to each other if the client sends no ids: for the code that
 * records them and the code that joins them.
 *
 * Both halves, the client's span and the server's, have a tag with the same key. The server's half
 * begins a trace of its own. The upper half of that trace's id says that the trace may get another
 * id. So a reader recognizes all spans of the trace, and no other spans have to wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TRACEPOINTS_JOIN_H
#define BLKIN_TRACEPOINTS_JOIN_H

#include <stdint.h>

/*
 * Its value: the key in 16 hex digits. Addresses that are not unique in the world are followed by
 * 16 more: where that half was (a hash of kernel and network namespace). Halves of one key that
 * were in two places belong together only if their tags request.bytes and response.bytes agree.
 */
#define JOIN_TAG        "blkin.join"
#define JOIN_TRACE_HIGH UINT64_C(0x626c6b2d6a6f696e) /* "blk-join" */

#endif
