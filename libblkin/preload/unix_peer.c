/*
 * The peer's inode, by sock_diag(7): what ss -x shows. By bare system calls: those of libc are
 * points where a thread may be cancelled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "unix_peer.h"

#include "real.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int unix_peer_ask(int netlink, uint32_t inode)
{
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = AF_UNIX,
                    .udiag_states = UINT32_MAX,
                    .udiag_ino = inode,
                    .udiag_show = UDIAG_SHOW_PEER,
                    .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
    };

    return real()->syscall(SYS_sendto, netlink, &question, sizeof(question), MSG_DONTWAIT, NULL,
                           0) < 0
               ? -errno
               : 0;
}

/* The kernel has put the answer there when send(2) returns: there is nothing to wait for. */
static int unix_peer_read(int netlink, uint32_t *peer)
{
    union {
        struct nlmsghdr header;
        char bytes[1024];
    } answer;
    const ssize_t length = real()->syscall(SYS_recvfrom, netlink, &answer, sizeof(answer),
                                           MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
    const size_t head = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
    const struct rtattr *attribute;
    int left;

    if (length < 0)
        return -errno;
    if ((size_t)length > sizeof(answer) || (size_t)length < head ||
        answer.header.nlmsg_len > (size_t)length || answer.header.nlmsg_len < head ||
        answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return -ENOENT;
    left = (int)(answer.header.nlmsg_len - head);
    for (attribute = (const struct rtattr *)(const void *)(answer.bytes + NLMSG_ALIGN(head));
         RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) == sizeof(*peer)) {
            memcpy(peer, RTA_DATA(attribute), sizeof(*peer));
            return *peer ? 0 : -ENOENT;
        }
    }
    return -ENOENT;
}

int unix_peer(uint32_t inode, uint32_t *peer)
{
    int netlink, result;

    netlink =
        (int)real()->syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0)
        return -errno;
    result = unix_peer_ask(netlink, inode);
    if (result == 0)
        result = unix_peer_read(netlink, peer);
    real()->syscall(SYS_close, netlink);
    return result;
}
