#!/usr/bin/env python3
# blkin show --format=perfetto, read by the rules of Perfetto's trace processor, which no package registry has.
# Events are ordered by time, those of the same time by their order in the file. Slices of a thread must nest; others
# are dropped. A flow begins at the innermost slice of its thread, and ends at the next one.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import random
import subprocess
import unittest

from made import BASE, Trace, stack

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
PHASES = {"M": {"name", "pid", "args"}, "X": {"name", "pid", "tid", "ts", "dur"}, "i": {"name", "pid", "tid", "ts", "s"},
          "s": {"name", "cat", "id", "pid", "tid", "ts"}, "f": {"name", "cat", "id", "pid", "tid", "ts"}}


def export(traces, *args):
    result = subprocess.run([BLKIN, "show", "--format=perfetto", "-", *args], input=json.dumps(traces), timeout=120,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


class Processor:
    """Slices with their parents, and flows between them, of a file."""

    def __init__(self, document):
        self.processes, self.threads, self.slices, self.flows, self.dropped = {}, {}, [], [], []
        open_slices, begun, awaited = {}, {}, {}
        events = document["traceEvents"]
        for event in events:
            missing = PHASES[event["ph"]] - set(event)
            assert not missing, (missing, event)
            assert all(isinstance(event[key], int) for key in ("pid", "tid", "ts", "dur") if key in event), event
            if event["ph"] == "M" and event["name"] == "process_name":
                assert event["pid"] not in self.processes
                self.processes[event["pid"]] = event["args"]["name"]
            elif event["ph"] == "M":
                assert event["name"] == "thread_name" and event["tid"] not in self.threads
                assert event["tid"] not in self.processes, "it would be the main thread"
                self.threads[event["tid"]] = (event["pid"], event["args"]["name"])
        for event in sorted((e for e in events if e["ph"] != "M"), key=lambda e: e["ts"]):
            assert self.threads[event["tid"]][0] == event["pid"] in self.processes, event
            stack_of = open_slices.setdefault(event["tid"], [])
            if event["ph"] in "Xi":
                self.add_slice(event, stack_of, awaited)
            else:
                # an ended slice is closed only when the next slice comes
                if event["ph"] == "s":
                    assert event["id"] not in begun
                    begun[event["id"]] = stack_of[-1]
                else:
                    awaited.setdefault(event["tid"], []).append(begun[event["id"]])
        assert not any(awaited.values()), "a flow that leads nowhere"

    def add_slice(self, event, stack_of, awaited):
        start, end = event["ts"], event["ts"] + event.get("dur", 0)
        while stack_of:
            top = stack_of[-1]
            ended = top["ts"] + top.get("dur", 0)
            if ended < start or (ended == start and (top.get("dur", 0) or event.get("dur", 0))):
                stack_of.pop()
                continue
            if start < ended < end:
                self.dropped.append(event)
                return
            break
        event["above"] = stack_of[-1] if stack_of else None
        stack_of.append(event)
        self.slices.append(event)
        for origin in awaited.pop(event["tid"], []):
            self.flows.append((origin, event))


class Perfetto(unittest.TestCase):
    def check(self, traces, *args):
        """Checks that every span is a slice, inside of slices that wait for it; returns the slices."""
        document, _ = export(traces, *args)
        got = Processor(document)
        self.assertEqual(got.dropped, [])
        spans = {(s["traceId"].zfill(32).removeprefix("0" * 16), s["id"]): s for trace in traces for s in trace}
        slices = [s for s in got.slices if s["ph"] == "X"]
        self.assertEqual(sorted((s["args"]["trace"], s["args"]["span"]) for s in slices), sorted(spans))
        for piece in slices:
            span = spans[piece["args"]["trace"], piece["args"]["span"]]
            self.assertEqual((piece["name"], piece["ts"], piece["dur"]),
                             (span["name"], span["timestamp"], span["duration"]))
            self.assertEqual(got.processes[piece["pid"]].split()[0], span["localEndpoint"]["serviceName"])
            self.assertEqual(piece["args"].get("tags"), span.get("tags"))
            self.assertEqual(piece["cat"] == "error", "error" in span.get("tags", {}))
            above = piece["above"]
            if above and above["ph"] == "X":
                self.assertEqual((above["args"]["trace"], above["args"]["span"]),
                                 (piece["args"]["trace"], span.get("parentId")))
        return got, spans

    def calls(self, spans):
        """Returns parent and child of different services, by ids."""
        found = set()
        for (trace, _), span in spans.items():
            parent = spans.get((trace, span.get("parentId")))
            if parent and parent["localEndpoint"] != span["localEndpoint"]:
                found.add((trace, parent["id"], span["id"]))
        return found

    def test_stack(self):
        got, spans = self.check(stack(300))
        self.assertEqual(sorted(set(got.processes.values())),
                         ["client 10.0.0.9", "gateway 10.0.0.1", "mapper 10.0.0.2", "osd.0 10.0.1.1", "osd.1 10.0.1.2",
                          "osd.2 10.0.1.3"])
        self.assertEqual({(a["args"]["trace"], a["args"]["span"], b["args"]["span"]) for a, b in got.flows},
                         self.calls(spans))
        # requests one after the other share a lane
        self.assertLess(len(got.threads), 60)
        told = sorted((e["name"], e["ts"]) for e in got.slices if e["ph"] == "i")
        self.assertEqual(told, sorted((a["value"], a["timestamp"]) for s in spans.values()
                                      for a in s.get("annotations", [])))

    def test_one_trace(self):
        traces = stack(5)
        document, _ = export(traces, traces[2][0]["traceId"])
        self.assertEqual({e["args"]["trace"] for e in document["traceEvents"] if e["ph"] == "X"},
                         {traces[2][0]["traceId"].removeprefix("0" * 16)})

    def test_at_random(self):
        """Children that overlap, outlive their parents, begin before them; the same times again and again."""
        chance = random.Random(7)
        for seed in range(40):
            traces = []
            for number in range(6):
                trace = Trace(number, BASE, chance)
                for _ in range(chance.randrange(1, 40)):
                    parent = chance.choice(trace.spans) if trace.spans and chance.random() < 0.9 else None
                    trace.span(parent, f"s{chance.randrange(3)}", "x", chance.randrange(30), chance.randrange(1, 25))
                traces.append(trace.spans)
            with self.subTest(seed=seed):
                got, spans = self.check(traces)
                led = {(a["args"]["trace"], a["args"]["span"], b["args"]["span"]) for a, b in got.flows}
                self.assertEqual(led, {(t, p, c) for t, p, c in self.calls(spans)
                                       if spans[t, c]["timestamp"] >= spans[t, p]["timestamp"]})

    def test_many_at_once(self):
        """30,000 open spans at the same time: a lane each, and no quadratic time."""
        trace = Trace(1, BASE, None)
        for i in range(30000):
            trace.span(trace.spans[0] if i else None, "osd", "x", i, 300000 - i)
        got, _ = self.check([trace.spans])
        self.assertEqual(len(got.threads), 30000 - 1)

    def test_odd(self):
        evil = "</script>\u202e\x1b\"\\\n漢"
        span = {"traceId": "aa", "id": "1", "name": evil, "timestamp": BASE, "duration": 5, "tags": {evil: evil},
                "localEndpoint": {"serviceName": evil}, "annotations": [{"timestamp": BASE, "value": evil}, {"value": 7}, 3]}
        document, said = export([[span, {"traceId": "aa", "id": "2", "parentId": "1"},
                                  {"traceId": "aa", "id": "3", "timestamp": BASE, "name": "n", "parentId": "1"}]])
        self.assertIn("1 span without a start: left out", said)
        self.assertEqual(document["otherData"]["spans_without_start"], 1)
        got = Processor(document)
        self.assertEqual(sorted(s["name"] for s in got.slices), sorted([evil, evil, "n"]))
        self.assertEqual(got.dropped, [])

    def test_usage(self):
        result = subprocess.run([BLKIN, "show", "--format=svg", "-"], input="", stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(result.returncode, 2)
        self.assertIn('expected text or perfetto, got "svg"', result.stderr)


unittest.main()
