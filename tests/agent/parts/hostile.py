"""usage: hostile.py SOCKET idle N | first | alarms: a program that harms other users of the host.

  idle    connects N times to the socket of the rings, and stays
  first   asks for its rings, and ends
  alarms  forges alarms in its rings, 50 every 5 ms: with random rules, ids, times and pids

Prints a line when it has begun.
"""
# SPDX-License-Identifier: BSD-2-Clause
import array
import mmap
import os
import random
import signal
import socket
import struct
import sys
import time


def connect():
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked.connect(sys.argv[1])
    return asked


def memory():
    """Returns the mapping of this user's rings."""
    for _ in range(1200):
        with connect() as asked:
            asked.settimeout(10 * float(os.environ.get("PATIENCE", "1")))
            hello, more, _, _ = asked.recvmsg(16, 64)
        if more:
            return mmap.mmap(array.array("i", more[0][2][:4])[0], struct.unpack("QQ", hello)[1])
        time.sleep(0.05)  # between two attempts
    sys.exit("no rings")


def idle():
    connections = []
    while len(connections) < int(sys.argv[3]):
        try:
            connections.append(connect())
        except BlockingIOError:
            time.sleep(0.01)  # between two attempts
    print("begun", flush=True)
    signal.pause()


def alarms(rings):
    """Writes 50 alarms: tracepoints/format/ring.h and events.h have the layouts."""
    cpus, _, event_bytes, alarm_bytes, heads_at, data_at = struct.unpack_from("<IIQQQQ", rings, 8)
    head, ring = heads_at + 128 * cpus, data_at + cpus * event_bytes
    for _ in range(50):
        now = time.monotonic_ns()
        text = b"rule %d" % random.getrandbits(32) + b"x" * random.randrange(100)
        payload = struct.pack("<II6Q3I", random.getrandbits(20), 0, 0x31776f6c736b6c62, random.getrandbits(64),
                              random.getrandbits(64), 1, random.choice((1, now, 2 ** 64 - 1)),
                              random.choice((0, now, now, now, 2 ** 63)), random.getrandbits(20),
                              random.getrandbits(32), random.getrandbits(8)) + text + b"\0name\0service\0"
        at = struct.unpack_from("<Q", rings, head)[0] & ~7
        size = (len(payload) + 7) // 8 * 8 + 8
        left = alarm_bytes - at % alarm_bytes
        if left < size:
            struct.pack_into("<Q", rings, ring + alarm_bytes - 8, trailer(at + left - 8, 255, left - 8))
            at += left
        place = ring + at % alarm_bytes
        rings[place:place + len(payload)] = payload
        struct.pack_into("<Q", rings, place + size - 8, trailer(at + size - 8, 5, len(payload)))
        struct.pack_into("<Q", rings, head, at + size)


def trailer(at, event, length):
    return (at << 21 | event << 16 | length) & (2 ** 64 - 1)


def main():
    if sys.argv[2] == "idle":
        idle()
    rings = memory()
    print("begun", flush=True)
    while sys.argv[2] != "first":
        alarms(rings)
        time.sleep(0.005)  # the pace


main()
