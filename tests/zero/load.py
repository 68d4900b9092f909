"""A client of many connections, with one request after the other on each.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import selectors
import socket
import time

SILENT_S = 30 * int(os.environ.get("PATIENCE", "1"))  # a server may keep all of its clients waiting for so long


class Failed(Exception):
    """A failure with a message for the user."""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), SILENT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self.socket.getsockname()[1]
        self.answer = b""

    def send(self, request):
        self.answer = b""
        self.socket.sendall(request)

    def receive(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise Failed(f"the server hung up after {self.answer[:200]!r}")
        self.answer += part


def load(port, requests, connections, protocol, keep=True):
    """Returns the numbers of the requests of each client's port, in the order of sending. Without keep, each request
    has a connection of its own."""
    sent = collections.defaultdict(list)
    waiting = selectors.DefaultSelector()
    numbers = iter(range(requests))

    def go_on(connection):
        number = next(numbers, None)
        if connection and (number is None or not keep):
            waiting.unregister(connection.socket)
            connection.socket.close()
            connection = None
        if number is None:
            return
        if not connection:
            connection = Connection(port)
            waiting.register(connection.socket, selectors.EVENT_READ, connection)
        sent[connection.port].append(number)
        connection.send(protocol.request(number))

    for _ in range(connections):
        go_on(None)
    heard = time.monotonic()
    while waiting.get_map():
        for key, _ in waiting.select(1):
            heard = time.monotonic()
            key.data.receive()
            if protocol.is_whole(key.data.answer):
                go_on(key.data)
        if time.monotonic() - heard > SILENT_S:
            raise Failed(f"port {port}: no answer for {SILENT_S} s")
    return sent


class Http:
    """With unique URLs, or with requests that differ only beyond the bytes that the preload compares."""

    def __init__(self, port, unique=True):
        self.port, self.unique = port, unique

    def request(self, number):
        url = f"/file?{number:06}" if self.unique else "/file"
        return (f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUser-Agent: load\r\n"
                f"Accept: */*\r\nX-Id: {number}\r\n\r\n").encode()

    @staticmethod
    def is_whole(answer):
        head, end, body = answer.partition(b"\r\n\r\n")
        if not end:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed(f"the server says {head[:200]!r}")
        length = head.lower().partition(b"content-length:")[2].split()[0]
        return len(body) >= int(length)


class Memcached:
    """Writes and reads in turns."""

    def request(self, number):
        return (b"get key%d\r\n" if number % 2 else b"set key%d 0 0 5\r\nhello\r\n") % (number // 2)

    @staticmethod
    def is_whole(answer):
        if answer.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")):
            raise Failed(f"memcached says {answer!r}")
        return answer.endswith((b"STORED\r\n", b"END\r\n"))
