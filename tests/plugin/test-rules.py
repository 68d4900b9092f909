#!/usr/bin/env python3
# Spans by rules, in the plugin: fields of all types, and a recording of several traces. Events that no rule names have the
# same spans as without rules. test-pairing.c compares rules with a model; test-shipped-rules.py has every form of a rule.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
import os
import unittest

from ctf import Enum, Float, Integer, String, Structure
from recorded import Recorded

US = 1000


class Rules(Recorded):
    def test_where(self):
        """`where` gives a field another name: in the key, the parent's key, the name, tags and errors, but not in
        conditions."""
        classes = {"t:a": {"id": Integer(64), "what": String(), "size": Integer(32)}, "t:in": {"of": Integer(64), "id": Integer(64)},
                   "t:out": {"id": Integer(64)}, "t:b": {"old": Integer(64), "id": Integer(64), "why": String()}}
        folder = self.record(classes, [
            (1000 * US, "t:a", {"id": 1, "what": "one", "size": 5}), (2000 * US, "t:in", {"of": 1, "id": 9}),
            (3000 * US, "t:out", {"id": 9}), (4000 * US, "t:b", {"old": 1, "id": 2, "why": "moved"}),
            (6000 * US, "t:b", {"old": 2, "id": 0, "why": "gone"})])
        spans, counters = self.convert(folder, rules=self.rules(
            "[span {name}]\nbegin = t:a where name=what\nbegin = t:b if id != 0 where name=why\nend = t:b where id=old reason=why\n"
            "key = id\ntags = size id\nerror = reason == gone as reason\n[span in]\nbegin = t:in where up=of\nend = t:out\n"
            "key = id\nparent = {name} by up\n"))
        spans.sort(key=lambda span: span["timestamp"])
        self.assertEqual([(span["name"], span["duration"], "parentId" in span) for span in spans],
                         [("one", 3000, False), ("in", 1000, True), ("moved", 2000, False)])
        self.assertEqual([{key: value for key, value in span["tags"].items() if not key.startswith("lttng.")} for span in spans],
                         [{"size": "5", "id": "1"}, {}, {"id": "2", "error": "gone"}])
        self.assertEqual((counters["rule_begins_unmatched"], counters["rule_keyless"]), (0, 0))

    def test_types(self):
        labels = Enum(8, False, {"IN": 0, "OUT": 1})
        inner = Structure({"id": Integer(64), "ratio": Float()})
        folder = self.record(
            {"t:io": {"what": labels, "req": inner, "name": String(), "delta": Integer(32, True)}},
            [(1000, "t:io", {"what": 0, "req": {"id": 2**63 + 5, "ratio": 0.5}, "name": "a b", "delta": -7}),
             (2000, "t:io", {"what": 0, "req": {"id": 5, "ratio": 1.5}, "name": "c", "delta": 7}),
             (5000, "t:io", {"what": 1, "req": {"id": 5, "ratio": 2.5}, "name": "end", "delta": 1}),
             (9000, "t:io", {"what": 1, "req": {"id": 2**63 + 5, "ratio": 0.25}, "name": "end", "delta": 2})])
        spans, _ = self.convert(folder, rules=self.rules(
            "[span {what} {name}]\nbegin = t:io if what == IN\nend = t:io if what == 1 and delta > 0\nkey = req.id\n"
            "tags = what req.ratio delta thread=$vtid no.such\nerror = delta == 2 as name\n"))
        spans.sort(key=lambda span: span["timestamp"])
        self.assertEqual([span["name"] for span in spans], ["IN a b", "IN c"])
        tags = [{key: value for key, value in span["tags"].items() if not key.startswith("lttng.")} for span in spans]
        self.assertEqual(tags[0], {"what": "IN", "req.ratio": "0.5", "delta": "-7", "thread": "11", "error": "end"})
        self.assertEqual(tags[1], {"what": "IN", "req.ratio": "1.5", "delta": "7", "thread": "11"})
        self.assertEqual(spans[0]["localEndpoint"]["serviceName"], "prog")

    def test_pods(self):
        """Two containers of a host, whose programs are both pid 1 and thread 1: the pid namespace distinguishes
        them."""
        events = [(ms * 1000 * US, name, {"id": 5, "pod": pod}, {"vpid": 1, "vtid": 1, "procname": "p", "pid_ns": space})
                  for ms, name, pod, space in ((0, "p:begin", "a", 4026531836), (100, "p:begin", "b", 4026531837),
                                               (300, "p:end", "a", 4026531836), (400, "p:end", "b", 4026531837))]
        folder = self.record({name: {"id": Integer(64), "pod": String()} for name in ("p:begin", "p:end")}, events,
                             pid_ns=Integer(64))
        for key in ("", "key = id\n", "key = id\nscope = thread\n", "key = $vtid\n"):
            with self.subTest(key=key):
                spans, counters = self.convert(folder, rules=self.rules(
                    f"[span {{pod}}]\nbegin = p:begin\nend = p:end\n{key}parent = thread\n"))
                self.assertEqual([(span["name"], span["duration"], span.get("parentId"), span["tags"]["lttng.vpid"])
                                  for span in sorted(spans, key=lambda span: span["name"])],
                                 [(pod, 300 * 1000, None, "1") for pod in "ab"])
                self.assertEqual(len({span["traceId"] for span in spans}), 2)
        # with scope = host, a key is the same in all containers of the host
        spans, _ = self.convert(folder, rules=self.rules(
            "[span s]\nbegin = p:begin if pod == a\nend = p:end if pod == b\nkey = id\nscope = host\n"))
        self.assertEqual([span["duration"] for span in spans], [400 * 1000])

    def test_all_tags(self):
        folder = self.record({"t:a": {"k": Integer(64, base=16), "x": String()}, "t:b": {"k": Integer(64), "y": Float()}},
                             [(1000, "t:a", {"k": 255, "x": "begin"}), (2000, "t:b", {"k": 255, "y": 1.25})])
        spans, _ = self.convert(folder, rules=self.rules("[span s]\nbegin = t:a\nend = t:?\nkey = k\ntags = all\n"))
        tags = {key: value for key, value in spans[0]["tags"].items() if not key.startswith("lttng.")}
        self.assertEqual(tags, {"k": "0xff", "x": "begin", "y": "1.25"})

    def test_join(self):
        """Both sides of a request, on two hosts: one trace."""
        fields = {"id": Integer(64)}
        client = self.record({"c:send": fields, "c:reply": fields}, [
            event for i in range(50) for event in ((10**9 + i * 10**7, "c:send", {"id": i}),
                                                   (10**9 + i * 10**7 + 5000 * US, "c:reply", {"id": i}))], host="near")
        server = self.record({"s:get": fields, "s:put": fields}, [
            event for i in range(50) for event in ((10**9 + i * 10**7 + 1000 * US, "s:get", {"id": i}),
                                                   (10**9 + i * 10**7 + 3000 * US, "s:put", {"id": i}))], host="far")
        rules = self.rules(
            "[span call {id}]\nbegin = c:send\nend = c:reply\nkey = id\nkind = client\njoin = id\n"
            "[span serve {id}]\nbegin = s:get\nend = s:put\nkey = id\nkind = server\njoin = id\n")
        all_traces = self.rules("1/1\n", "all")
        for more, traces, joined in (("join-wait-ms=0", 100, 0), (f'tail-sampling="{all_traces}"', 50, 50)):
            spans, counters = self.convert(client, server, rules=rules, parameters=[more])
            self.assertEqual((len({span["traceId"] for span in spans}), len(spans), counters["join_halves"],
                              counters["traces_kept"]), (traces, 100, joined, joined), more)
        spans, counters = self.convert(client, server, rules=rules)
        self.assertEqual(counters["join_joined"], 50)
        calls = {span["id"]: span for span in spans if span["kind"] == "CLIENT"}
        for span in spans:
            if span["kind"] == "SERVER":
                call = calls[span["parentId"]]
                self.assertEqual((call["name"], call["traceId"]),
                                 (span["name"].replace("serve", "call"), span["traceId"]))
        self.assertEqual(len(spans), 100)

    def test_events_without_a_rule(self):
        other = self.record({"t:a": {"k": Integer(64)}, "t:b": {"k": Integer(64)}},
                            [(1000, "t:a", {"k": 1}), (2000, "t:b", {"k": 1})])
        rules = self.rules("[span s]\nbegin = x:a\nend = x:b\nkey = k\n")
        without, before = self.convert(other)
        spans, counters = self.convert(other, rules=rules)
        self.assertEqual((spans, counters["events_foreign"]), (without, before["events_foreign"]))

    def test_several_files(self):
        """Files and folders, separated by commas. The section that `parent` names is looked up in the
        same file first."""
        folder = self.record({"t:a": {"k": Integer(64)}, "t:b": {"k": Integer(64)}, "t:c": {"k": Integer(64)}},
                             [(1000, "t:a", {"k": 1}), (2000, "t:b", {"k": 1}), (3000, "t:c", {"k": 1})])
        first = self.rules("[span s]\nbegin = t:a\nend = t:c\nkey = k\n", "first.rules")
        second = self.rules("[span s]\nbegin = t:b\nend = t:c\nkey = k\n"
                            "[span of s]\nbegin = t:b\nend = t:c\nkey = k\nparent = s by k\n", "second.rules")
        for both in (f"{first},{second}", f"{second}, {first}"):
            spans, _ = self.convert(folder, rules=both)
            times = {span["id"]: span["timestamp"] % US for span in spans}
            self.assertEqual(sorted((span["name"], times[span["id"]]) for span in spans),
                             [("of s", 2), ("s", 1), ("s", 2)])
            self.assertEqual([times[span["parentId"]] for span in spans if span["name"] == "of s"], [2])
        os.mkdir(self.path("folder"))
        os.rename(second, self.path("folder/second.rules"))
        spans, _ = self.convert(folder, rules=f"{first},{self.path('folder')}")
        self.assertEqual(len(spans), 3)
        copy = self.rules("\n[span s]\nend = t:c\nbegin = t:a\nkey = k\n", "copy.rules")
        said = self.convert(folder, rules=f"{first},{copy}", fails=True)
        self.assertIn(f'copy.rules", line 4: the same event t:a is in the section of the same name in "{first}", line 1',
                      said)
        said = self.convert(folder, rules=f"{first},,{copy}", fails=True)
        self.assertIn("with commas in between", said)
        said = self.convert(folder, rules=f"{first},{first}", fails=True)
        self.assertIn("the same event t:a", said)
        self.assertIn("cannot be opened", self.convert(folder, rules=self.path("none"), fails=True))


if __name__ == "__main__":
    unittest.main()
