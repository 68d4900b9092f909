"""A server or a client: peer.py serve|stall IP PORT REQUESTS MS IN OUT, peer.py request IP PORT REQUESTS FROM IN OUT

The connection has REQUESTS requests of IN bytes. The client's port is FROM (0: any). A server listens at all addresses.
It answers with OUT bytes, after MS ms, or when the file MS exists. stall: the server waits as an event loop does, after
the first byte of the answer. It prints "late" if all requests take 0.5 s more than these waits, as on a busy machine.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import select
import socket
import sys
import time

role, ip, port, *numbers = sys.argv[1:]
requests, ms_or_from, size_in, size_out = (int(number) if number.isdigit() else number for number in numbers)
here, there = ("0.0.0.0", int(port)), (ip, int(port))


def receive(connection, size):
    while size:
        size -= len(connection.recv(size)) or sys.exit("the connection has ended")


if role in ("serve", "stall"):
    with socket.create_server(here) as listener:
        listener.settimeout(120)
        connection, begins = listener.accept()[0], []
        for _ in range(requests):
            receive(connection, size_in)
            print("asked")
            begins.append(time.monotonic())
            if role == "stall":
                connection.sendall(bytes(1))
                select.select([listener], [], [], ms_or_from / 1000)
            elif isinstance(ms_or_from, str):
                while not os.path.exists(ms_or_from):
                    time.sleep(0.01)
            else:
                time.sleep(ms_or_from / 1000)  # the duration of the request
            connection.sendall(bytes(size_out - (role == "stall")))
        connection.recv(1)
        if role == "stall" and time.monotonic() - begins[0] > requests * ms_or_from / 1000 + 0.5:
            print("late")
else:
    with socket.create_connection(there, timeout=120, source_address=("", ms_or_from)) as connection:
        for _ in range(requests):
            connection.sendall(bytes(size_in))
            receive(connection, size_out)
