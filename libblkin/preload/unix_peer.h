/*
 * Who is at the other end of a UNIX socket.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_UNIX_PEER_H
#define BLKIN_PRELOAD_UNIX_PEER_H

#include <stdint.h>

/*
 * The inodes of a connected UNIX socket and of its peer, which is not known before it was accepted.
 * Returns 0 or -errno. Costs some 20 us: to be asked once per connection.
 */
int unix_peer(int fd, uint32_t *inode, uint32_t *peer);

#endif
