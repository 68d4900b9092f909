/*
 * Who is at the other end of a UNIX socket.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_UNIX_PEER_H
#define BLKIN_PRELOAD_UNIX_PEER_H

#include <stdint.h>

/*
 * The inode of the peer of a connected UNIX socket with this inode. A client has no peer before it
 * was accepted. Returns 0 or -errno. Costs 8 us: to be asked once per connection.
 */
int unix_peer(uint32_t inode, uint32_t *peer);

#endif
