/*
 * How the two halves of a request refer to each other if the client sends no ids: for the code that
 * records the halves and the code that joins them.
 *
 * The client's span and the server's span have a tag with the same key. The server's half begins a
 * trace of its own, whose id a reader replaces when it has found the client's half. The upper half
 * of this trace id is JOIN_TRACE_HIGH. So the reader knows all spans of the trace, and holds no
 * others.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TRACEPOINTS_JOIN_H
#define BLKIN_TRACEPOINTS_JOIN_H

#include <stdint.h>

/*
 * The value of the tag: the key in 16 hex digits. If the addresses are not unique in the world, 16
 * more digits are the location of that half: a hash of host and network namespace. Halves of one
 * key from two locations belong together only if their tags response.bytes are equal, and the
 * server's request.bytes is at most the client's.
 */
#define JOIN_TAG        "blkin.join"
#define JOIN_TRACE_HIGH UINT64_C(0x626c6b2d6a6f696e) /* "blk-join" */

#endif
