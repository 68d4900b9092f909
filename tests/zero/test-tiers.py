#!/usr/bin/env python3
# Splits a request's time in a tier, from its spans' times and meters: for the benchmark's pictures.
# SPDX-License-Identifier: BSD-2-Clause
import os
import sys
import unittest
import xml.etree.ElementTree

for folder in "bench", "tests/zero":
    sys.path.insert(0, os.path.join(os.environ["SRC"], folder))
import plot_tiers  # noqa: E402
import tiers  # noqa: E402


def span(number, parent, service, kind, name, start, duration, **usage):
    made = {"traceId": "1", "id": f"{number}", "name": name, "timestamp": 1000 + start, "duration": duration,
            "localEndpoint": {"serviceName": service}, "tags": {f"usage.{key}": f"{value}" for key, value in usage.items()}}
    if parent:
        made["parentId"] = f"{parent}"
    if kind:
        made["kind"] = kind
    return made


# fio's write: the proxy's thread runs 10 us and 4 in its call, waits 5 us for a CPU; the back end takes 60 us, of
# which it sleeps 37 in fdatasync
WRITE = [
    span(1, None, "client", "CLIENT", "request", 0, 120),
    span(2, 1, "proxy", "SERVER", "request", 10, 100, cpu_us=10, run_delay_us=5),
    span(3, 2, "proxy", "CLIENT", "request", 15, 80, cpu_us=4),
    span(4, 3, "back-end", "SERVER", "request", 25, 60, cpu_us=8, run_delay_us=0),
    span(5, 4, "back-end", None, "pwrite", 27, 6),
    span(6, 4, "back-end", None, "fdatasync", 34, 40, cpu_us=1, run_delay_us=2),
]


class Tiers(unittest.TestCase):
    def parts(self, spans, service):
        trace = tiers.Trace(spans)
        server = [one for one in spans if one.get("kind") == "SERVER" and tiers.service(one) == service]
        self.assertEqual(len(server), 1)
        return tiers.parts_of(trace, server[0])

    def test_proxy(self):
        self.assertEqual(self.parts(WRITE, "proxy"), {
            "cpu": 14, "queue": 5, "next": 60, "network": 16, "fsync": 0, "file": 0, "blocked": 5})

    def test_back_end(self):
        self.assertEqual(self.parts(WRITE, "back-end"), {
            "cpu": 9, "queue": 2, "next": 0, "network": 0, "fsync": 37, "file": 6, "blocked": 6})

    def test_totals_of_calls(self):
        one = span(1, None, "one", "SERVER", "r", 0, 50, cpu_us=5)
        one["tags"].update({"file.sync_us": "30", "file.write_us": "4", "file.read_us": "1"})
        self.assertEqual(self.parts([one], "one"), {
            "cpu": 5, "queue": 0, "next": 0, "network": 0, "fsync": 30, "file": 5, "blocked": 10})

    def test_parts_never_exceed_the_duration(self):
        spans = [span(1, None, "one", "SERVER", "r", 0, 50, cpu_us=30, run_delay_us=30),
                 span(2, 1, "one", None, "fsync", 0, 50)]
        self.assertEqual(self.parts(spans, "one"), {
            "cpu": 30, "queue": 20, "next": 0, "network": 0, "fsync": 0, "file": 0, "blocked": 0})

    def test_calls_side_by_side_count_once(self):
        spans = [span(1, None, "one", "SERVER", "r", 0, 50, cpu_us=0),
                 span(2, 1, "one", "CLIENT", "r", 10, 20), span(3, 1, "one", "CLIENT", "r", 15, 25)]
        self.assertEqual(self.parts(spans, "one")["network"], 30)

    def test_without_meters(self):
        self.assertIsNone(self.parts([span(1, None, "one", "SERVER", "r", 0, 50)], "one"))
        found = tiers.tiers_of([[span(1, None, "one", "SERVER", "r", 0, 50)]])
        self.assertEqual((found["one"].requests, found["one"].unmetered), (1, 1))

    def test_tiers_of_a_trace(self):
        self.assertEqual(tiers.Trace(WRITE).tiers(), ["proxy", "back-end"])

    def test_picture(self):
        parts = self.parts(WRITE, "proxy")
        picture = plot_tiers.draw("a < b", [("1", parts), ("16", {name: 20 * us for name, us in parts.items()})])
        bars = xml.etree.ElementTree.fromstring(picture).findall("{*}rect")
        self.assertGreaterEqual(len(bars), 1 + 4 + 2 * 4)  # background, legend, bars


if __name__ == "__main__":
    unittest.main(verbosity=2)
