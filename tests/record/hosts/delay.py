#!/usr/bin/env python3
"""A wire of some length: takes TCP connections and passes on what comes after a time, both ways.

    delay.py LISTEN_PORT TARGET_PORT MILLISECONDS

The target is on loopback. A connection takes a round trip until it is there, as a real one does; it
is reset when nobody listens at the other end, and ends when the other end does.

SPDX-License-Identifier: BSD-2-Clause
"""
import asyncio
import socket
import sys


async def pass_on(reader, writer, seconds):
    """All bytes, each so much later than it came."""
    due = asyncio.Queue()
    clock = asyncio.get_running_loop().time

    async def write():
        while True:
            at, chunk = await due.get()
            await asyncio.sleep(max(0, at - clock()))
            if not chunk:
                return
            writer.write(chunk)
            await writer.drain()

    async def read():
        chunk = b"more"
        while chunk:
            try:
                chunk = await reader.read(65536)
            except ConnectionError:
                chunk = b""
            due.put_nowait((clock() + seconds, chunk))

    reading = asyncio.ensure_future(read())
    try:
        await write()
    except ConnectionError:
        pass
    finally:
        reading.cancel()
        writer.close()


async def main():
    port, target, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000

    async def connect(reader, writer):
        await asyncio.sleep(2 * seconds)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            # a reset, not an end: nobody was there
            linger = b"\1\0\0\0\0\0\0\0"
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()
            return
        for end in writer, far_writer:
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(pass_on(reader, far_writer, seconds),
                             pass_on(far_reader, writer, seconds), return_exceptions=True)

    server = await asyncio.start_server(connect, "0.0.0.0", port, backlog=64)
    print("delay listening on %d" % port, flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
