#!/usr/bin/env python3
# timeout: 150
# alone
"""Programs with OpenTelemetry's SDK for Go send 30,000 spans per second, to a program that plays the agent, and to the agent
itself: of each slow trace all spans arrive at the collector, of no other trace any. The programs are made by tests/otlp/load/build; without them, skipped.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.environ["SRC"] + "/tests/otlp", os.environ["SRC"] + "/tests/plugin"]
from faulty_collector import Collector  # noqa: E402
from parts import LIMIT_S, SRC, Taker, Service, wait_until  # noqa: E402

RULES = "*>300ms, max=100000/s"
PROGRAMS, RATE, SECONDS, SLOW_ONE, SPANS_OF_TRACE = 2, 15000, float(os.environ.get("SECONDS", 4)), 50, 10


def spans_of(collector):
    """trace -> ids of its spans, without those of the agent's own that tell of a trace"""
    got = collections.defaultdict(list)
    for request in list(collector.requests):
        for span in request.spans:
            if span["name"] != "incomplete":
                got[span["traceId"]].append(span["id"])
    return got


class Sdk(unittest.TestCase):

    def setUp(self):
        self.built = subprocess.run([SRC + "/tests/otlp/load/build", "--cached"], stdout=subprocess.PIPE, text=True,
                                    check=False)
        if self.built.returncode:
            self.skipTest("no load: tests/otlp/load/build makes it")

    def load(self, taker, rate, *more):
        return subprocess.Popen([self.built.stdout.strip(), "-url", taker.url, "-rate", str(rate), "-seconds",
                                 str(SECONDS), "-slow", str(SLOW_ONE), *more], stdout=subprocess.PIPE, text=True)

    def test_a_limit_delays_and_loses_nothing(self):
        """The SDK heeds the answer: what was too much is sent again."""
        with Taker("rate=1500", rules=RULES) as taker:
            said = json.loads(self.load(taker, 2000).communicate(timeout=LIMIT_S + SECONDS)[0])
            counts = taker.counts()
            taker.end()
        self.assertEqual(said["failed"], 0)
        self.assertEqual(counts["spans_in"], said["spans"])
        self.assertGreater(counts["refused_rate"], 0)

    def test_slow_traces_are_whole(self):
        with Collector() as collector, Taker("endpoint=%s/api/v2/spans" % collector.url, "linger-ms=4000",
                                                rules=RULES) as taker:
            loads = [self.load(taker, RATE, *(["-gzip"] if number else [])) for number in range(PROGRAMS)]
            said = [json.loads(load.communicate(timeout=LIMIT_S + SECONDS)[0]) for load in loads]
            wait_until(lambda: taker.ask()["open"] == 0, taker.ask)
            counts = taker.counts()
            cpu_s, peak_mb = taker.cpu_s(), taker.peak_mb()
            taker.end()
            sent = sum(one["spans"] for one in said)
            print("%d spans, %.0f ns of CPU time each, %.0f MB" % (sent, cpu_s / sent * 1e9, peak_mb))
            self.assertEqual(counts["spans_in"], sent)
            self.check(said, collector)

    def check(self, said, collector):
        self.assertEqual([one["failed"] for one in said], [0] * PROGRAMS)
        slow = {trace for one in said for trace in one["slow"]}
        got = spans_of(collector)
        self.assertGreater(len(slow), 50)
        self.assertEqual(set(got), slow)
        for trace, ids in got.items():
            self.assertEqual((len(ids), len(set(ids))), (SPANS_OF_TRACE, SPANS_OF_TRACE), trace)

    def test_the_agent_itself(self):
        with tempfile.TemporaryDirectory() as folder, Collector() as collector, \
                Service(folder, "%s/api/v2/spans" % collector.url, RULES) as service:
            loads = [self.load(service, RATE) for _ in range(PROGRAMS)]
            said = [json.loads(load.communicate(timeout=LIMIT_S + SECONDS)[0]) for load in loads]
            slow = sum(len(one["slow"]) for one in said)
            wait_until(lambda: sum(map(len, spans_of(collector).values())) >= slow * SPANS_OF_TRACE,
                       lambda: json.dumps(service.ask())[:3000], 60)
            counts = service.ask()["otlp"]["counts"]
            self.assertEqual(counts["spans_in"], sum(one["spans"] for one in said))
            self.check(said, collector)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
