"""Runs of a driver with a spool, and the spool's files.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import contextlib
import glob
import os
import shutil
import struct
import tempfile

import delivery
from scenarios import expect

HEAD = struct.Struct("<IIIIqIIII")  # as struct record_head
DONE = int.from_bytes(b"done", "little")


class Run(delivery.Run):
    """A run of the driver that must end with this exit status, and whose account must add up."""

    def __init__(self, target, *steps, status=0, **options):
        super().__init__(target, *steps, require_collector="no", **options)
        expect(self.status == status, self.explain())

    def has(self, **expected):
        """Checks these counters; those of the spool have spool_ before the name."""
        for name, value in expected.items():
            counts = self.counts["spool"] if name.startswith("spool_") else self.counts
            got = counts[name.replace("spool_", "")]
            expect(got == value, "%s: expected %s, got %s: %s" % (name, value, got, self.explain()))
        return self

    def says(self, words):
        expect(words in self.messages, "no message has \"%s\": %s" % (words, self.explain()))
        return self


@contextlib.contextmanager
def folder():
    """Returns a path for a new spool."""
    with tempfile.TemporaryDirectory() as path:
        yield path + "/spool"


AWAY = "http://127.0.0.1:1"  # nobody listens


def fill(spool, spans, first=0, **options):
    """Leaves `spans` spans in the spool, in records of batch_spans (100). Fills a new spool again if a busy machine has
    divided a record: the sink waits 0.2 s for the next span of a record."""
    options.setdefault("batch_spans", 100)
    was_there = os.path.exists(spool)
    for _ in range(5):
        run = Run(AWAY, "number:%d" % first, "live", "add:%d" % spans, "flush", "close", spool=spool,
                  **options).has(spooled=spans)
        sizes = [size for path in files(spool) for _, size, _ in records(path)]
        if was_there or all(size == options["batch_spans"] for size in sizes[:-1]):
            break
        shutil.rmtree(spool)
    return run


def drain(spool, target, **options):
    """Delivers the spans of the spool."""
    return Run(target, "flush", "close", spool=spool, **options)


def filled(collector_options, fill_options, spans=1000, drain_options=None, but=(), **expected):
    """A scenario: a spool with this number of spans is drained to a collector, which refuses the spans with these numbers."""
    with folder() as spool, delivery.Collector(**collector_options) as collector:
        fill(spool, spans, **fill_options)
        run = drain(spool, collector, **(drain_options or {})).has(**expected)
        got = [number for number in ids(spans) if number - 1 not in but]
        expect(len(set(collector.accepted)) == run.counts["spool"]["accepted"], run.explain())
        expect(not but or sorted(collector.accepted) == got, "not the others")


def ids(count, first=0):
    return list(range(first + 1, first + count + 1))


def files(spool):
    return sorted(glob.glob(spool + "/*.spool"))


def records(path):
    """Yields (offset, spans, size) of each record in the file."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        spans, _, stored = HEAD.unpack_from(data, at)[5:8]
        size = HEAD.size + 4 * spans + stored
        yield at, spans, size
        at += size


def change(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def each_once(collector, spans):
    """Checks that each span was accepted once."""
    expected, times = set(ids(spans)), collections.Counter(collector.accepted)
    expect(len(collector.accepted) == spans and set(times) == expected,
           "of %d spans %d are missing, %d arrived again" %
           (spans, len(expected - set(times)), len(collector.accepted) - len(times)))
