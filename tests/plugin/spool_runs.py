"""Runs of a driver with a spool, and the spool's files.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import contextlib
import glob
import json
import os
import struct
import subprocess
import tempfile
import threading

from scenarios import PATIENCE, expect

DRIVER = os.environ["BUILD"] + "/tests/plugin/exporter-driver"
HEAD = struct.Struct("<IIIIqIIII")  # as struct record_head
DONE = int.from_bytes(b"done", "little")


class Run:
    """The output of a run of the driver, which checks its account all the time."""

    def __init__(self, target, *steps, status=0, when=(), environment=None, **options):
        """when: (words, function): called when the driver prints the words for the first time."""
        url = target if isinstance(target, str) else target.url
        args = [DRIVER, "endpoint=" + url, "require-collector=no"]
        args += ["%s=%s" % (key.replace("_", "-"), value) for key, value in options.items()]
        self.messages = ""
        with subprocess.Popen(args + list(steps), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) as driver:
            timer = threading.Timer(60 * PATIENCE, driver.kill)
            timer.start()
            for line in driver.stderr:
                self.messages += line
                if when and when[0] in line:
                    when[1]()
                    when = ()
            said = driver.stdout.read()
            self.status = driver.wait()
            timer.cancel()
        self.counts = json.loads(said.splitlines()[-1]) if self.status == 0 else {}
        expect(self.status == status, self.explain())

    def explain(self):
        return "status %d, %s\n%s" % (self.status, self.counts, self.messages)

    def has(self, **expected):
        """Checks these counters; those of the spool have spool_ before the name."""
        for name, value in expected.items():
            counts = self.counts["spool"] if name.startswith("spool_") else self.counts
            got = counts[name.replace("spool_", "")]
            expect(got == value, "%s: expected %s, got %s: %s" % (name, value, got, self.explain()))
        return self

    def says(self, words):
        expect(words in self.messages, "it does not say \"%s\": %s" % (words, self.explain()))
        return self


@contextlib.contextmanager
def folder():
    """Returns a path for a new spool."""
    with tempfile.TemporaryDirectory() as path:
        yield path + "/spool"


AWAY = "http://127.0.0.1:1"  # nobody listens


def fill(spool, spans, first=0, **options):
    """Leaves so many spans in the spool, in records of 100 unless options have another number."""
    options.setdefault("batch_spans", 100)
    run = Run(AWAY, "number:%d" % first, "live", "add:%d" % spans, "flush", "close", spool=spool,
              **options)
    return run.has(spooled=spans)


def drain(spool, target, **options):
    """Delivers the spans of the spool."""
    return Run(target, "flush", "close", spool=spool, **options)


def ids(count, first=0):
    return list(range(first + 1, first + count + 1))


def files(spool):
    return sorted(glob.glob(spool + "/*.spool"))


def records(path):
    """(offset, spans, size) of each record in the file."""
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
           "of %d spans %d never came, %d came again" %
           (spans, len(expected - set(times)), len(collector.accepted) - len(times)))
