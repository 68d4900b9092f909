#!/usr/bin/env python3
"""Reads from the example stack's stores, in threads that each wait for their answer.

  read_load.py fill ADDRESS              writes the objects, through a primary store
  read_load.py read ADDRESS THREADS N    N reads in all
  read_load.py read ADDRESS THREADS Ns   reads for N seconds

Each read is a trace of its own, and its data are checked. Prints the number of reads, and reads per second.

SPDX-License-Identifier: BSD-2-Clause
"""
import random
import socket
import struct
import sys
import threading
import time

MAGIC, WRITE, READ, REPLY = 0x424C4B58, 1, 2, 0x80
HEADER = struct.Struct(">IIQQIIQQQ")  # examples/wire.c
OBJECTS, LENGTH = 16, 4096


def content(number):
    return random.Random(number).randbytes(LENGTH)


def receive(connection, length):
    got = b""
    while len(got) < length:
        more = connection.recv(length - len(got))
        if not more:
            raise ConnectionError("the server has hung up")
        got += more
    return got


def call(connection, kind, number, data=b""):
    """Returns the answer's data."""
    trace = random.getrandbits(63) | 1
    connection.sendall(HEADER.pack(MAGIC, kind, number, 0, LENGTH, 0, trace, trace, 0) + data)
    magic, op, _, _, _, status, *_ = HEADER.unpack(receive(connection, HEADER.size))
    if magic != MAGIC or op != kind | REPLY or status:
        raise ConnectionError(f"bad answer: {magic:#x}, {op:#x}, status {status}")
    return receive(connection, LENGTH) if kind == READ else b""


def connect(address):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def fill(address):
    connection = connect(address)
    for number in range(1, OBJECTS + 1):
        call(connection, WRITE, number, content(number))


class Reader(threading.Thread):
    def __init__(self, address, seed, count, until):
        super().__init__()
        self.connection = connect(address)
        self.seed, self.count, self.until = seed, count, until
        self.done, self.error = 0, None

    def run(self):
        numbers = random.Random(self.seed)
        try:
            while self.done != self.count and time.monotonic() < self.until:
                number = numbers.randint(1, OBJECTS)
                if call(self.connection, READ, number) != content(number):
                    raise ValueError(f"object {number} has other data")
                self.done += 1
        except (OSError, ValueError) as error:
            self.error = error


def read(address, threads, amount):
    is_time = amount.endswith("s")
    each = None if is_time else int(amount) // threads
    begin = time.monotonic()
    until = begin + (float(amount[:-1]) if is_time else 3600)
    readers = [Reader(address, seed, each, until) for seed in range(threads)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
        if reader.error:
            sys.exit(f"read_load: {reader.error}")
    done = sum(reader.done for reader in readers)
    print(done, f"{done / (time.monotonic() - begin):.1f}")


if sys.argv[1] == "fill":
    fill(sys.argv[2])
else:
    read(sys.argv[2], int(sys.argv[3]), sys.argv[4])
