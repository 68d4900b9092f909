#!/usr/bin/env python3
# What the scale runs are checked with: does it find a span that is counted twice, or a trace that is kept in part?
# SPDX-License-Identifier: BSD-2-Clause
import math
import os
import struct
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import otlp  # noqa: E402
from otlp import write_field as field, write_varint as varint  # noqa: E402

SCALE = 5
# service, name, duration, self time, failed, parent
FAST = [["client", "read", 3000, 1000, 0, -1], ["store", "read", 2000, 2000, 0, 0]]
FAILS = [["client", "read", 5000, 1500, 0, -1], ["store", "read", 3500, 3500, 1, 0]]
ACCOUNT = {"seed": 1, "spans": 44, "acknowledged": 44, "failed": 0, "possibly_stored": 0,
           "templates": [{"made": 20, "spans": FAST}, {"made": 2, "spans": FAILS}]}


def fixed(number, value):
    return varint(number << 3 | 1) + struct.pack("<q", value)


def attribute(number, key, value):
    return field(number, field(1, key.encode()) + field(2, field(1, value.encode())))


def histogram(values):
    """A data point's fields from 4 on."""
    buckets = {}
    for value in values:
        index = math.ceil(math.log2(value) * 2 ** SCALE) - 1
        buckets[index] = buckets.get(index, 0) + 1
    first = min(buckets)
    counts = b"".join(varint(buckets.get(index, 0)) for index in range(first, max(buckets) + 1))
    return (fixed(4, len(values)) + varint(5 << 3 | 1) + struct.pack("<d", sum(values)) +
            varint(6 << 3) + varint(SCALE << 1) + field(8, varint(1 << 3) + varint(first << 1) + field(2, counts)))


def metric(name, kind, points):
    return field(2, field(1, name.encode()) + field(kind, b"".join(field(1, point) for point in points)))


def request(metrics):
    return field(1, field(2, b"".join(metrics)))


def deltas(fast=20, failed=2, errors=2):
    """As a worker writes them, of so many traces."""
    labels = {service: [attribute(number, "service.name", service) + attribute(number, "span.name", "read")
                        for number in (1, 7)] for service in ("client", "store")}
    edge = [attribute(number, "client", "client") + attribute(number, "server", "store") for number in (1, 7)]

    def of(service, column):
        row = 0 if service == "client" else 1
        return labels[service][0] + histogram([FAST[row][column]] * fast + [FAILS[row][column]] * failed)
    return request([
        metric("blkin.span.duration", 10, [of("client", 2), of("store", 2)]),
        metric("blkin.span.self_time", 10, [of("client", 3), of("store", 3)]),
        metric("blkin.span.errors", 7, [labels["store"][1] + fixed(6, errors)]),
        metric("blkin.edge.duration", 10, [edge[0] + histogram([2000] * fast + [3500] * failed)]),
        metric("blkin.edge.errors", 7, [edge[1] + fixed(6, errors)])])


def kept_trace(n, template=1, spans=(0, 1)):
    """As it is written to the topic of kept traces."""
    low = check.mix(n + 1)
    trace_id = struct.pack(">QQ", 0xb1c1 << 48 | 1 << 32 | template, low)
    found = b""
    for k in spans:
        service, name, duration, _, failed, parent = ACCOUNT["templates"][template]["spans"][k]
        body = field(1, trace_id) + field(2, struct.pack(">Q", check.mix(low + k + 1)))
        if parent >= 0:
            body += field(4, struct.pack(">Q", check.mix(low + parent + 1)))
        body += field(5, name.encode()) + fixed(7, 10 ** 18) + fixed(8, 10 ** 18 + duration)
        if failed:
            body += field(15, varint(3 << 3) + varint(2))
        found += field(1, field(1, attribute(1, "service.name", service)) + field(2, field(2, body)))
    return found


class Check(unittest.TestCase):
    def table(self, *messages):
        found = otlp.Deltas()
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
