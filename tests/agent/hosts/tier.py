#!/usr/bin/env python3
"""A server without any tracing, and its client.

    tier.py serve PORT [HOST:PORT]     answers each request of 16 bytes, after the next server has answered, if
                                       there is one; the last server takes 0.4 s for a slow request
    tier.py ask HOST:PORT COUNT EACH [LETTER]   sends requests, every EACH-th of them slow; prints the slow ones

SPDX-License-Identifier: BSD-2-Clause
"""
import socket
import sys
import time

SIZE = 16


def connect(address):
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def receive(connection):
    """Returns 16 bytes; nothing at the end of the connection."""
    taken = b""
    while len(taken) < SIZE:
        more = connection.recv(SIZE - len(taken))
        if not more:
            return b""
        taken += more
    return taken


def ask(connection, request):
    connection.sendall(request)
    return receive(connection)


def serve(port, following=None):
    listener = socket.create_server(("0.0.0.0", int(port)))
    print("listening", flush=True)
    below = None
    while True:
        connection, _ = listener.accept()
        while request := receive(connection):
            if following:
                below = below or connect(following)
                ask(below, request)
            elif request.endswith(b"slow"):
                time.sleep(0.4)  # the duration of a slow request
            connection.sendall(request)
        connection.close()


def load(address, count, each, letter="n"):
    connection = connect(address)
    for number in range(int(count)):
        is_slow = number % int(each) == int(each) - 1
        ask(connection, b"get %s%07d%s" % (letter.encode(), number, b"slow" if is_slow else b"fast"))
        if is_slow:
            print(f"{letter}{number:07d}slow", flush=True)


{"serve": serve, "ask": load}[sys.argv[1]](*sys.argv[2:])
