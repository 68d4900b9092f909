/*
 * How the two halves of a request refer to each other if the client sends no ids: for the code that
 * records the halves and the code that joins them.
 *
 * The client's span and the server's span have a tag with the same key. The server's half begins a
 * trace of its own. The upper half of that trace id marks a trace that may get another id. So a
 * reader recognizes all its spans, and no other spans have to wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TRACEPOINTS_JOIN_H
#define BLKIN_TRACEPOINTS_JOIN_H

#include <stdint.h>

/*
 * The value of the tag: the key in 16 hex digits. If the addresses are not unique in the world, 16
 * more digits say where that half was (a hash of kernel and network namespace). Halves of one key
 * from two places belong together only if their tags response.bytes are equal. The server's
 * request.bytes may be less than the client's, not more.
 */
#define JOIN_TAG        "blkin.join"
#define JOIN_TRACE_HIGH UINT64_C(0x626c6b2d6a6f696e) /* "blk-join" */

#endif
