#!/usr/bin/env python3
# The checks of the scale runs find a span that is counted twice, and a trace that is kept in part.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import math
import struct
import unittest

import check
import received
from received import otlp

SCALE = 5
# service, name, duration, self time, failed, parent
FAST = [["client", "read", 3000, 1000, 0, -1], ["store", "read", 2000, 2000, 0, 0]]
FAILS = [["client", "read", 5000, 1500, 0, -1], ["store", "read", 3500, 3500, 1, 0]]
ACCOUNT = {"seed": 1, "spans": 44, "acknowledged": 44, "failed": 0,
           "templates": [{"made": 20, "spans": FAST}, {"made": 2, "spans": FAILS}]}


def histogram(values):
    buckets = collections.Counter(math.ceil(math.log2(value) * 2 ** SCALE) - 1 for value in values)
    return {"count": len(values), "zeros": 0, "sum": sum(values), "buckets": [part for pair in buckets.items() for part in pair]}


def deltas(fast=20, failed=2, errors=2):
    """Returns deltas as a worker writes them, for these numbers of fast and failed traces."""
    rows = [{"service": service, "name": "read", "errors": errors if row else 0,
             "duration": histogram([FAST[row][2]] * fast + [FAILS[row][2]] * failed),
             "self": histogram([FAST[row][3]] * fast + [FAILS[row][3]] * failed)} for row, service in enumerate(("client", "store"))]
    edge = {"client": "client", "server": "store", "errors": errors, "duration": histogram([2000] * fast + [3500] * failed)}
    return json.dumps({"scale": SCALE, "rows": rows, "edges": [edge]}).encode()


def kept_trace(n, template=1, spans=(0, 1)):
    """Returns a trace as in the topic of kept traces."""
    low = check.mix(n + 1)
    request = otlp.CLASSES["ExportTraceServiceRequest"]()
    for k in spans:
        service, name, duration, _, failed, parent = ACCOUNT["templates"][template]["spans"][k]
        group = request.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = service
        span = group.scope_spans.add().spans.add(
            trace_id=struct.pack(">QQ", 0xb1c1 << 48 | 1 << 32 | template, low),
            span_id=struct.pack(">Q", check.mix(low + k + 1)), name=name,
            start_time_unix_nano=10 ** 18, end_time_unix_nano=10 ** 18 + duration)
        if parent >= 0:
            span.parent_span_id = struct.pack(">Q", check.mix(low + parent + 1))
        if failed:
            span.status.code = 2
    return request.SerializeToString()


class Check(unittest.TestCase):
    def table(self, *messages):
        found = received.Deltas()
        for message in messages:
            found.add(message)
        return check.check_table(check.Expected(ACCOUNT), found)

    def kept(self, *messages):
        found = check.Kept()
        for message in messages:
            found.add(message)
        return " ".join(check.check_kept(check.Expected(ACCOUNT), found))

    def test_what_is_right(self):
        self.assertEqual(self.table(deltas()), [])
        self.assertEqual(self.table(deltas(fast=15, failed=1, errors=1), deltas(fast=5, failed=1, errors=1)), [])
        self.assertEqual(self.kept(kept_trace(1) + kept_trace(2)), "")
        self.assertEqual(self.kept(kept_trace(1, spans=[0]), kept_trace(2), kept_trace(1, spans=[1])), "")

    def test_what_is_wrong_in_the_table(self):
        for what, message in (("one more", deltas(fast=21)), ("one less", deltas(fast=19)),
                              ("another one instead", deltas(fast=21, failed=1)), ("an error more", deltas(errors=3))):
            with self.subTest(what):
                self.assertNotEqual(self.table(message), [])
        with self.subTest("one delta twice"):
            self.assertNotEqual(self.table(deltas(fast=15, failed=1, errors=1), deltas(fast=5, failed=1, errors=1),
                                           deltas(fast=5, failed=0, errors=0)), [])

    def test_what_is_wrong_in_the_kept_traces(self):
        self.assertIn("kept traces: 1, expected 2", self.kept(kept_trace(1)))
        self.assertIn("has 1 spans", self.kept(kept_trace(1), kept_trace(2, spans=[1])))
        self.assertIn("has 3 spans, 2 different ones", self.kept(kept_trace(1), kept_trace(2), kept_trace(2, spans=[1])))
        self.assertIn("was not to be kept", self.kept(kept_trace(1), kept_trace(2, template=0)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
