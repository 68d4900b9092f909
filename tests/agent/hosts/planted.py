"""Reads the requests that load.c has planted, from its files made-HOST.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import struct

MADE = struct.Struct("=QQ3QqII")
HIGH = 0x626C6B696E000000
SLOW, FAILED = 1, 2
SPANS = 3


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else None


class Request:
    def __init__(self, trace_id, k, why, where):
        self.trace_id = trace_id
        self.k = k
        self.why = why
        self.where = where
        self.ids = {}  # host -> ids of the spans that began there
        self.ended = {}  # host -> ns since 1970; 0: has not ended there

    def is_made(self, hosts):
        return len(self.ended) == hosts and all(self.ended.values())

    def all_ids(self):
        return {span_id for ids in self.ids.values() for span_id in ids}


class Planted:
    """The planted requests. Each read() continues at the last position. requests: trace id (as collectors have it) ->
    Request."""

    def __init__(self, folder, hosts, seed=1):
        self.folder = folder
        self.hosts = hosts
        self.high = HIGH + seed
        self.requests = {}
        self.read_up_to = [0] * hosts
        self.open = []  # (host, index in its file, request): open when they were read

    def read(self):
        for host in range(self.hosts):
            path = os.path.join(self.folder, f"made-{host}")
            if not os.path.exists(path):
                continue
            with open(path, "rb") as file:
                count = struct.unpack("=Q", file.read(8) or bytes(8))[0]
                first = self.read_up_to[host]
                file.seek(8 + first * MADE.size)
                made = file.read((count - first) * MADE.size)
            for i, fields in enumerate(MADE.iter_unpack(made), first):
                self._take(host, i, fields)
            self.read_up_to[host] = count
        self._look_again()
        return self.requests

    def _take(self, host, i, fields):
        k, low, *ids, ended, why, where = fields
        trace_id = f"{self.high:016x}{low:016x}"
        request = self.requests.setdefault(trace_id, Request(trace_id, k, why, where))
        request.ids[host] = [f"{span_id:016x}" for span_id in ids]
        request.ended[host] = ended
        if not ended:
            self.open.append((host, i, request))

    def _look_again(self):
        left = []
        for host, i, request in self.open:
            with open(os.path.join(self.folder, f"made-{host}"), "rb") as file:
                file.seek(8 + i * MADE.size)
                request.ended[host] = MADE.unpack(file.read(MADE.size))[5]
            if not request.ended[host]:
                left.append((host, i, request))
        self.open = left
