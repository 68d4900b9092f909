#!/usr/bin/env python3
"""A Zipkin collector for tests in shell. It may be killed, because it writes spans to a file before it answers.

    collector.py PORT FILE [batches | whole | numbers]
    collector.py PORT hang | STATUS

PORT 0: any port. Prints "collector listening on 127.0.0.1:PORT".

  batches  (the default) writes a line to FILE for each POST: a JSON array with, for each span, [its tag i or null, name,
           id, number of annotations]
  whole    writes a line to FILE for each span, unchanged
  numbers  FILE is a folder: "got" has the tags i of all spans, 8 bytes each, "latest" has the highest one
  hang     accepts connections and never answers
  STATUS   answers every request with this status

While a file FILE.away exists, the collector answers 503. While FILE.refuse exists, it answers 400 to a request that
contains the text of that file.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from server import Server  # noqa: E402


def append_to(path):
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)


def drop_cut_line(file):
    """Removes the last line if a kill has cut it. Its batch was not answered."""
    kept = os.lseek(file, 0, os.SEEK_END)
    while kept and os.pread(file, 1, kept - 1) != b"\n":
        kept -= 1
    os.ftruncate(file, kept)


class Lines:
    def __init__(self, path, is_whole):
        self.file, self.is_whole = append_to(path), is_whole
        drop_cut_line(self.file)

    def take(self, spans):
        lines = spans if self.is_whole else [
            [[span.get("tags", {}).get("i"), span.get("name"), span["id"], len(span.get("annotations", []))] for span in spans]]
        os.write(self.file, "".join(json.dumps(line) + "\n" for line in lines).encode())


class Numbers:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.got = append_to(os.path.join(folder, "got"))
        self.latest = os.open(os.path.join(folder, "latest"), os.O_RDWR | os.O_CREAT, 0o600)
        self.highest = struct.unpack("q", os.pread(self.latest, 8, 0) or struct.pack("q", -1))[0]
        self.lock = threading.Lock()

    def take(self, spans):
        numbers = [int(span["tags"]["i"]) for span in spans if "i" in span.get("tags", {})]
        with self.lock:
            os.write(self.got, struct.pack(f"{len(numbers)}q", *numbers))
            self.highest = max([self.highest, *numbers])
            os.pwrite(self.latest, struct.pack("q", self.highest), 0)


class Keeping:
    """The answers of a collector that stores received spans."""

    def __init__(self, path, how):
        self.kept = Numbers(path) if how == "numbers" else Lines(path, how == "whole")
        self.away, self.refuse = path + ".away", path + ".refuse"

    def answer(self, request):
        if os.path.exists(self.refuse):
            with open(self.refuse, "rb") as file:
                if file.read().strip() in request.body:
                    return 400
        if os.path.exists(self.away):
            return 503
        spans = json.loads(request.body or b"[]")
        if spans:
            self.kept.take(spans)
        return 202


def hang(port):
    server = socket.create_server(("127.0.0.1", port))
    say(server.getsockname()[1])
    threading.Event().wait()


def say(port):
    print(f"collector listening on 127.0.0.1:{port}", flush=True)


def main():
    port, what, *how = sys.argv[1:]
    if what == "hang":
        hang(int(port))
    if what.isdigit():
        server = Server(lambda _: int(what), int(port))
    else:
        server = Server(Keeping(what, *(how or ["batches"])).answer, int(port))
    say(server.server_port)
    server.serve_forever()


main()
