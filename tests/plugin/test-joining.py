#!/usr/bin/env python3
# Halves of requests that two hosts have recorded, in one sink: joined though the hosts' clocks differ a little,
# and those of another connection of the same key are not mistaken for them.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.environ["SRC"] + "/tests"]
from common import PATIENCE  # noqa: E402
from make_traces import CONTEXT, MS, S, Thread, Trace, add_blkin, context, tag  # noqa: E402

PLUGINS = os.path.join(os.environ["BUILD"], "plugins")
MARK = 0x626C6B2D6A6F696E
REQUESTS = 500
CLIENT, SERVER = 1, 2


class Joining(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="joining-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=False)

    def record(self, number, host, thread, spans):
        """A trace of its own; spans: (end, id, name, parent, duration, trace id, high, kind, key)"""
        trace = Trace(number, hostname=host, context=CONTEXT)
        add_blkin(trace)
        stream = trace.stream()
        events = [thread.span(end, span, name, parent=parent, duration=duration, trace_id=low, high=high, kind=kind,
                              log=tag("blkin.join", f"{key:016x}") if key else "")
                  for end, span, name, parent, duration, low, high, kind, key in sorted(spans)]
        for first in range(0, len(events), 100):
            stream.packet(events[first:first + 100])
        trace.write(os.path.join(self.folder, "traces", host))

    def convert(self, parameters=""):
        subprocess.run(["babeltrace2", f"--plugin-path={PLUGINS}", self.folder + "/traces", "-c", "sink.blkin.zipkin", "-p",
                        f'endpoint="file:{self.folder}/spans.json",stats-file="{self.folder}/stats"{parameters}'],
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=100 * PATIENCE, check=True)
        with open(self.folder + "/spans.json") as file:
            spans = json.load(file)
        os.remove(self.folder + "/spans.json")
        with open(self.folder + "/stats") as file:
            counters = json.load(file)["counters"]
        self.assertEqual(counters["join_halves"], sum(counters["join_" + part] for part in
                                                      ("joined", "unjoined", "ambiguous", "waiting")))
        return spans, counters

    def make(self, ahead):
        """The server's clock is so much ahead; twenty keys recur, as those of new connections do."""
        near, far = [], []
        for i in range(1, REQUESTS + 1):
            at = 10 * S + i * 10 * MS
            near.append((at + 5 * MS, 10 * i + 1, "call", 0, 5 * MS, i, 0, CLIENT, 1 + i % 20))
            far.append((at + 3 * MS + ahead, 10 * i + 3, "fsync", 10 * i + 2, MS, 1000000 + i, MARK, 0, 0))
            far.append((at + 4 * MS + ahead, 10 * i + 2, "serve", 0, 3 * MS, 1000000 + i, MARK, SERVER, 1 + i % 20))
        self.record(1, "near", Thread(2, "client", context=context(100, 101, "client")), near)
        self.record(2, "far", Thread(4, "server", context=context(200, 201, "server")), far)

    def check_joined(self):
        spans, counters = self.convert()
        self.assertEqual((counters["join_joined"], counters["join_halves"]), (REQUESTS, REQUESTS))
        traces = collections.defaultdict(dict)
        for span in spans:
            traces[int(span["traceId"], 16)][span["name"]] = span
        self.assertEqual(sorted(traces), list(range(1, REQUESTS + 1)))
        for i, trace in traces.items():
            self.assertEqual(trace["serve"]["parentId"], f"{10 * i + 1:016x}")
            self.assertEqual(trace["fsync"]["parentId"], f"{10 * i + 2:016x}")
            self.assertEqual(trace["serve"]["tags"]["blkin.joined"], f"{MARK:016x}{1000000 + i:016x}")
            self.assertEqual(trace["call"]["tags"]["lttng.host"], "near")
            self.assertEqual(trace["serve"]["tags"]["lttng.host"], "far")

    def test_two_hosts(self):
        self.make(0)
        self.check_joined()

    def test_clock_behind(self):
        """A server's half that begins 0.9 ms before its client's is joined ..."""
        self.make(-19 * MS // 10)
        self.check_joined()

    def test_clock_ahead(self):
        """... and one that begins 2 ms after its end is not, unless clocks may differ as much."""
        self.make(6 * MS)
        spans, counters = self.convert()
        self.assertEqual((counters["join_joined"], counters["join_unjoined"]), (0, REQUESTS))
        self.assertEqual(len({span["traceId"] for span in spans}), 2 * REQUESTS)
        self.assertEqual(self.convert(",join-skew-us=2000")[1]["join_joined"], REQUESTS)

    def test_little_memory(self):
        """Halves without a client, more than there is room for: all are sent, each once."""
        self.record(2, "far", Thread(4, "server", context=context(200, 201, "server")),
                    [(10 * S + i * 10000, i, "serve", 0, 3000, i, MARK, SERVER, i) for i in range(1, 20001)])
        spans, counters = self.convert(",join-max-bytes=1048576")
        self.assertEqual(len({span["id"] for span in spans}), 20000)
        self.assertEqual((counters["join_unjoined"], counters["spans_accepted"]), (20000, 20000))
        self.assertGreater(counters["join_early"], 10000)


if __name__ == "__main__":
    unittest.main()
