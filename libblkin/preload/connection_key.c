/* SPDX-License-Identifier: BSD-2-Clause */
#include "connection.h"
#include "key.h"
#include "preload.h"
#include "real.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns a hash of the host and, if has_namespace, of the network namespace; 0: unknown. Inodes
 * are unique per host, loopback addresses per namespace. */
static uint64_t connection_hash_of_location(bool has_namespace)
{
    static uint64_t known[2];
    uint64_t hash = __atomic_load_n(&known[has_namespace], __ATOMIC_RELAXED);
    struct stat status;
    char text[64];
    ssize_t length;

    if (hash || preload_is_quiet())
        return hash;
    length = preload_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));
    if (length <= 0 || (has_namespace && stat("/proc/self/ns/net", &status) < 0))
        return 0;
    hash = key_add(KEY_BEGIN, text, (size_t)length);
    if (has_namespace)
        hash = key_add(hash, (const char *)&status.st_ino, sizeof(status.st_ino));
    __atomic_store_n(&known[has_namespace], hash, __ATOMIC_RELAXED);
    return hash;
}

static bool connection_is_loopback(const char *ip)
{
    return strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0;
}

/* Returns true if only one host in the world has this address. Returns false for private networks
 * (RFC 1918, 4193, 6598), link-local, test and example addresses. */
static bool connection_is_routable(const char *ip)
{
    static const struct {
        uint32_t address;
        unsigned bits;
    } not_routable[] = {
        {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
        {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15},
        {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 3},
    };
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET, ip, &four) != 1)
        return inet_pton(AF_INET6, ip, &six) == 1 && (six.s6_addr[0] & 0xe0) == 0x20 &&
               memcmp(&six, "\x20\x01\x0d\xb8", 4) != 0;
    for (size_t i = 0; i < sizeof(not_routable) / sizeof(*not_routable); i++) {
        if ((ntohl(four.s_addr) ^ not_routable[i].address) >> (32 - not_routable[i].bits) == 0)
            return false;
    }
    return true;
}

static uint64_t connection_key_of_location(bool has_namespace, const char *text, int length)
{
    const uint64_t hash = connection_hash_of_location(has_namespace);

    return hash ? key_add(hash, text, (size_t)length) : 0;
}

void connection_prepare_keys(void)
{
    (void)connection_hash_of_location(false);
    (void)connection_hash_of_location(true);
}

/* Returns a random value if the location is unknown. */
static uint64_t connection_location(void)
{
    const uint64_t hash = connection_hash_of_location(true);

    const uint64_t pid = preload_is_quiet() ? 0 : (uint64_t)getpid();

    return key_finish(hash ? hash : (pid << 40 ^ blkin_now()));
}

static uint64_t connection_key_by_addresses(struct connection *connection)
{
    const char *ips[] = {connection->ip, connection->peer_ip};
    const unsigned ports[] = {connection->port, connection->peer_port};
    const int client = connection->role == ROLE_SERVER; /* index of the client's end */
    char text[2 * INET6_ADDRSTRLEN + 32];
    const int length = snprintf(text, sizeof(text), "tcp %s:%u %s:%u ", ips[client], ports[client],
                                ips[!client], ports[!client]);

    if (connection_is_loopback(connection->ip))
        return connection_key_of_location(true, text, length);
    if (!connection_is_routable(ips[0]) && !connection_is_routable(ips[1]))
        connection->location = connection_location();
    return key_add(KEY_BEGIN, text, (size_t)length);
}

/* ---- the peer's inode, by sock_diag(7), as in ss -x. libc's functions are cancellation points, so
 * this part makes bare system calls ---- */

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

/* recvfrom(2) does not wait, because the kernel answers within sendto(2). */
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

/* Finds the inode of the peer of a connected UNIX socket. A client has no peer before it is
 * accepted. Returns 0 or -errno. Costs 8 us, once per connection. */
static int unix_peer(uint32_t inode, uint32_t *peer)
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

/* ---- keys ---- */

/* The key contains the inode of the client's socket. The client finds the inode by fstat(2), the
 * server by sock_diag(7). */
static uint64_t connection_key_by_inode(const struct connection *connection, int fd)
{
    struct stat status;
    uint32_t client;
    char text[32];
    int length;

    if (fstat(fd, &status) < 0)
        return 0;
    client = (uint32_t)status.st_ino;
    if (connection->role == ROLE_SERVER && unix_peer(client, &client) < 0)
        return 0;
    length = snprintf(text, sizeof(text), "unix %u ", client);
    return connection_key_of_location(false, text, length);
}

uint64_t connection_key(struct connection *connection, int fd)
{
    if (!connection->is_key_final && connection->may_have_key) {
        connection->key = connection->is_unix ? connection_key_by_inode(connection, fd)
                                              : connection_key_by_addresses(connection);
        connection->is_key_final = true;
    }
    return connection->key;
}
