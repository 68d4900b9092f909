#!/usr/bin/env python3
# timeout: 150
# alone
"""Programs with OpenTelemetry's SDK for Go send 30,000 spans per second: of each slow trace all spans arrive at the
collector, of no other trace any. Needs go, or what tests/foreign/load/build has made before; without it, skipped.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [os.environ["SRC"] + "/tests/foreign", os.environ["SRC"] + "/tests/plugin"]
from faulty_collector import Collector  # noqa: E402
from parts import LIMIT_S, SRC, Recorder, wait_until  # noqa: E402

PROGRAMS, RATE, SECONDS, SLOW_ONE, SPANS_OF_TRACE = 2, 15000, float(os.environ.get("SECONDS", 4)), 50, 10


class Sdk(unittest.TestCase):

    def setUp(self):
        self.built = subprocess.run([SRC + "/tests/foreign/load/build"], stdout=subprocess.PIPE, text=True, check=False)
        if self.built.returncode:
            self.skipTest("no load: tests/foreign/load/build could not make it: is there go, and a module proxy?")

    def load(self, recorder, rate, *more):
        return subprocess.Popen([self.built.stdout.strip(), "-url", recorder.url, "-rate", str(rate), "-seconds",
                                 str(SECONDS), "-slow", str(SLOW_ONE), *more], stdout=subprocess.PIPE, text=True)

    def test_a_limit_delays_and_loses_nothing(self):
        """The SDK heeds the answer: what was too much is sent again."""
        with Recorder("rate=1500", rules="*>300ms, max=100000/s") as recorder:
            said = json.loads(self.load(recorder, 2000).communicate(timeout=LIMIT_S + SECONDS)[0])
            counts = recorder.counts()
            recorder.end()
        self.assertEqual(said["failed"], 0)
        self.assertEqual(counts["spans_in"], said["spans"])
        self.assertGreater(counts["refused_rate"], 0)

    def test_slow_traces_are_whole(self):
        with Collector() as collector, Recorder("endpoint=%s/api/v2/spans" % collector.url, "linger-ms=4000",
                                                rules="*>300ms, max=100000/s") as recorder:
            loads = [self.load(recorder, RATE, *(["-gzip"] if number else [])) for number in range(PROGRAMS)]
            said = [json.loads(load.communicate(timeout=LIMIT_S + SECONDS)[0]) for load in loads]
            wait_until(lambda: recorder.ask()["open"] == 0, recorder.ask)
            counts = recorder.counts()
            cpu_s, peak_mb = recorder.cpu_s(), recorder.peak_mb()
            recorder.end()
            sent = sum(one["spans"] for one in said)
            print("%d spans, %.0f ns of CPU time each, %.0f MB" % (sent, cpu_s / sent * 1e9, peak_mb))
            self.assertEqual([one["failed"] for one in said], [0] * PROGRAMS)
            self.assertEqual(counts["spans_in"], sent)
            slow = {trace for one in said for trace in one["slow"]}
            got = collections.defaultdict(list)
            for request in collector.requests:
                for span in request.spans:
                    got[span["traceId"]].append(span["id"])
            self.assertGreater(len(slow), 50)
            self.assertEqual(set(got), slow)
            for trace, ids in got.items():
                self.assertEqual((len(ids), len(set(ids))), (SPANS_OF_TRACE, SPANS_OF_TRACE), trace)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
