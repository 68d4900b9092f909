"""A slow network: a proxy for TCP, which delays data in both directions.

    slow_network.py LISTEN_PORT TARGET_PORT MILLISECONDS [thin]      the target is on loopback

thin: little bandwidth: at most 64 KiB are sent in each delay.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import socket
import struct
import sys
import threading
import time

from common import pause


class Pair:
    """The two sockets of a connection. They are closed when both peers have ended their data."""

    def __init__(self, near, far):
        self.near, self.far, self.both_ways = near, far, 2
        self.lock = threading.Lock()

    def ends(self):
        with self.lock:
            self.both_ways -= 1
            if self.both_ways == 0:
                self.near.close()
                self.far.close()


class SlowNetwork:
    def __init__(self, port, delay_s, listen=("127.0.0.1", 0), thin=False):
        self.target = port
        self.delay_s = delay_s
        self.thin = thin
        self.listening = socket.create_server(listen, backlog=64)
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.pairs = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        """Connects after a round trip, as a real network does. Without a listener, it resets the connection."""
        pause(2 * self.delay_s)
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            near.close()
            return
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = Pair(near, far)
        self.pairs.append(pair)
        self.carry(pair, near, far)
        self.carry(pair, far, near)

    def carry(self, pair, source, target):
        waiting = collections.deque()
        arrived = threading.Semaphore(0)

        def read():
            while True:
                try:
                    data = source.recv(65536)
                except OSError:
                    data = b""
                waiting.append((time.monotonic() + self.delay_s, data))
                arrived.release()
                if not data:
                    return

        def write():
            data = b" "
            while data:
                arrived.acquire()
                at, data = waiting.popleft()
                pause(self.delay_s if self.thin else at - time.monotonic())
                try:
                    if data:
                        target.sendall(data)
                    else:
                        target.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # further data are read and dropped
            pair.ends()

        threading.Thread(target=read, daemon=True).start()
        threading.Thread(target=write, daemon=True).start()

    def close(self):
        self.listening.close()
        for pair in self.pairs:
            pair.near.close()
            pair.far.close()


def main():
    port, target, delay_ms = map(int, sys.argv[1:4])
    SlowNetwork(target, delay_ms / 1000, ("0.0.0.0", port), thin="thin" in sys.argv[4:])
    print(f"listening on {port}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
