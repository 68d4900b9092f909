#!/usr/bin/env python3
"""A long link between two network namespaces: IP packets arrive at its other end later.

    wire.py PID PID MILLISECONDS

The namespaces are those of the processes; each gets a device "far", which needs an address. Unlike a proxy it leaves
addresses and ports unchanged, so that both ends see the same connection.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 1, 0x1000, 0x40000000
PACKETS_MAX = 10000  # in flight; a real link loses further packets, too
libc = ctypes.CDLL(None, use_errno=True)


def end_in(pid):
    """Makes one end, in the namespace of that process."""
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        sys.exit(f"wire: setns: {os.strerror(ctypes.get_errno())}")
    os.close(namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"far", IFF_TUN | IFF_NO_PI))
    return device


def put(device, packet):
    try:
        os.write(device, packet)
    except OSError:
        pass  # the other end is down: lost


def main():
    ends = end_in(sys.argv[1]), end_in(sys.argv[2])
    delay = float(sys.argv[3]) / 1000
    others = {ends[0]: ends[1], ends[1]: ends[0]}
    in_flight = collections.deque()  # (when, end, packet)
    print("wire of", sys.argv[3], "ms", flush=True)
    while True:
        wait = max(0, in_flight[0][0] - time.monotonic()) if in_flight else None
        for end in select.select(ends, (), (), wait)[0]:
            try:
                packet = os.read(end, 65536)
            except BlockingIOError:
                continue
            if len(in_flight) < PACKETS_MAX:
                in_flight.append((time.monotonic() + delay, others[end], packet))
        while in_flight and in_flight[0][0] <= time.monotonic():
            put(*in_flight.popleft()[1:])


main()
