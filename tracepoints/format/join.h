/*
 * What the two halves of a request say of each other where nothing was sent along: for who records
 * them and who joins them.
 *
 * Each half, the client's span and the server's, has a tag of the same key. The server's half
 * begins a trace of its own, and the upper half of that trace's id says that it may get another id:
 * so all spans of it are known, wherever they are recorded, and no others have to wait.
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
