#!/usr/bin/env python3
# The output of blkin show for a trace, for a broken trace, and for a file that is no trace.
# SPDX-License-Identifier: BSD-2-Clause
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from server import Server  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
TRACES = os.path.join(os.environ["BUILD"], "tests/plugin/traces")
os.environ["BABELTRACE_PLUGIN_PATH"] = os.path.join(os.environ["BUILD"], "plugins")
BASE = 1700000000000000
UTF8, ASCII = "C.UTF-8", "C"


def show(*args, text=None, locale=UTF8):
    env = {**os.environ, "LC_ALL": locale, "TZ": "UTC"}
    return subprocess.run([BLKIN, "show", *args], input=text, env=env, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def span(span_id, parent, name, start, duration, service="osd", trace="aa", **more):
    made = {"traceId": trace, "id": span_id, "name": name, "localEndpoint": {"serviceName": service}}
    if parent:
        made["parentId"] = parent
    if start is not None:
        made["timestamp"] = BASE + start
    if duration is not None:
        made["duration"] = duration
    return {**made, **more}


WRITE = [
    # neither in the order of time nor of the tree
    span("3", "2", "replica two", 500, 300),
    span("2", "1", "handle", 100, 800, service="gateway"),
    span("4", "2", "replica one", 200, 300, tags={"error": "No space left"}),
    span("1", None, "write", 0, 1000, service="client", kind="CLIENT",
         annotations=[{"timestamp": BASE + 10, "value": "sent"}], tags={"object": "rbd.1"}),
]


class Show(unittest.TestCase):
    def printed(self, spans, *args, locale=UTF8):
        result = show("-", *args, text=json.dumps(spans), locale=locale)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def rows(self, *args, **kw):
        """Returns the lines of the spans."""
        lines = self.printed(*args, **kw).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("service: span"))
        return list(itertools.takewhile(bool, lines[start + 1:]))

    def longest(self, *spans):
        """Returns the span with the longest self time, and that time."""
        lines = self.printed(list(spans)).splitlines()
        return [line[len("longest self time: "):] for line in lines
                if line.startswith("longest self time: ")]

    def refused(self, message, *args, status=1, **kw):
        result = show(*args, **kw)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertIn(message, result.stderr)

    def test_tree(self):
        rows = self.rows(WRITE, locale=ASCII)
        self.assertEqual([row.split("  ")[0] for row in rows if "error" not in row],
                         ["client: write", "`-gateway: handle", "", ""])
        self.assertEqual([row.strip("|`- !").split("  ")[0] for row in rows],
                         ["client: write", "gateway: handle", "osd: replica one",
                          "error = No space left", "osd: replica two"])
        for row, times in zip([r for r in rows if "error" not in r],
                              ["0 us 1.000 ms", "100 us 800 us", "200 us 300 us", "500 us 300 us"], strict=True):
            self.assertIn(times, " ".join(row.split()))

    def test_bars(self):
        bars = [row[row.index(" us |") + 4:] if " us |" in row else row[row.index(" ms |") + 4:]
                for row in self.rows(WRITE, "-w", "120", locale=ASCII) if row.endswith("|")]
        width = len(bars[0])
        self.assertEqual({len(bar) for bar in bars}, {width})
        self.assertEqual(bars[0].strip("|"), "=" * (width - 2))
        begins = [len(bar) - len(bar[1:].lstrip(" ")) for bar in bars]
        self.assertEqual(begins, sorted(begins))
        self.assertIn("x", bars[2])  # the span with an error
        self.assertAlmostEqual(bars[1].count("=") / (width - 2), 0.8, delta=0.05)

    def test_one_trace_of_two_widths(self):
        """A 64-bit id and the same one padded to 128 bits, as W3C and OTLP demand."""
        mixed = [span("1", None, "write", 0, 1000, trace="53ce929d0e0e4736", kind="CLIENT"),
                 span("2", "1", "serve", 100, 800, trace="000000000000000053CE929D0E0E4736", kind="SERVER"),
                 span("1", None, "other", 0, 10, trace="153ce929d0e0e4736")]
        self.assertEqual([line.split()[:2] for line in self.printed(mixed, "--list").splitlines()[1:]],
                         [["53ce929d0e0e4736", "2"], ["000000000000000153ce929d0e0e4736", "1"]])
        for trace in ("53ce929d0e0e4736", "000000000000000053ce929d0e0e4736"):
            self.assertEqual([row.split("  ")[0] for row in self.rows(mixed, trace, locale=ASCII)],
                             ["osd: write", "`-osd: serve"])

    def test_byte_order_mark(self):
        """Editors and shells of Windows begin a file with a byte order mark; `cat` brings it between two files."""
        text = "\ufeff" + json.dumps(WRITE[:2]) + "\r\n\ufeff" + json.dumps(WRITE[2:])
        result = show("-", text=text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, self.printed(WRITE))
        self.refused("not JSON, line 1", "-", text="[\ufeff]")
        self.refused("no spans in it", "-", text="\ufeff")

    def test_width(self):
        deep = [span(f"{i:x}", f"{i - 1:x}" if i > 1 else None, "n" * i, i, 900 - i,
                     annotations=[{"timestamp": BASE, "value": "v" * 300}])
                for i in range(1, 60)]
        for width in (60, 80, 200):
            for locale in (UTF8, ASCII):
                for line in self.printed(WRITE + deep, "aa", "-a", "-w", str(width),
                                         locale=locale).splitlines()[1:]:
                    if not line.startswith("longest self time: "):
                        self.assertLessEqual(len(line), width, line)
        # the answer is whole, even on a narrow terminal
        service, name, other = "s" * 70, "n" * 70, "o" * 70
        text = self.printed([span("1", None, name, 0, 900, service=service, kind="CLIENT"),
                             span("2", "1", "x", 100, 10, service=other)], "-w", "60")
        self.assertIn(f"longest self time: {service}: {name}, 890 us of 900 us (on the way to {other})\n", text)

    def test_usage_of_threads(self):
        def tags(on, off, delay=None):
            return {"usage.cpu_us": str(on), "usage.off_cpu_us": str(off), "usage.switches": "1",
                    **({} if delay is None else {"usage.run_delay_us": str(delay)})}

        def shown(*spans):
            lines = self.printed(list(spans), "-w", "100", locale=ASCII).splitlines()
            start = next(i for i, line in enumerate(lines) if line.startswith("service: span"))
            return [line.rsplit("|", 2)[0].split()[-3:] for line in lines[start:start + 1 + len(spans)]]

        root = span("1", None, "write", 0, 20000000, tags=tags(1040, 9960000, 40))
        apply = span("2", "1", "apply", 0, 12000000, tags=tags(40, 11999500, 999600))
        self.assertEqual(shown(root, apply), [
            ["on", "CPU", "wait", "block"][1:],
            ["1.04ms", "40us", "9.96s"],
            ["40us", "1.00s", "11.0s"]])
        self.assertEqual(shown(root, span("2", "1", "apply", 1, 2), span("3", "1", "late", 1, 2, tags=tags(7, 8)))[2:],
                         [["-", "-", "-"], ["7us", "off", "8us"]])
        self.assertEqual(self.longest(root, apply), [
            "osd: apply, 12.000 s of 20.000 s: blocked 11.000 s, waiting for a CPU 999.600 ms, no thread worked for it 460 us, "
            "on CPU 40 us"])
        # off-CPU time below level 3; a thread that was busy elsewhere
        self.assertEqual(self.longest(root, span("2", "1", "apply", 0, 12000, tags=tags(100, 900)),
                                      span("3", "2", "x", 0, 1000)),
                         ["osd: write, 19.988 s of 20.000 s: no thread worked for it 10.027 s, blocked 9.960 s, "
                          "on CPU 1.040 ms, waiting for a CPU 40 us"])
        self.assertEqual(self.longest(span("1", None, "write", 0, 5000), span("2", "1", "apply", 0, 4000,
                                                                             tags=tags(3900, 100))),
                         ["osd: apply, 4.000 ms of 5.000 ms: on CPU 3.900 ms, off CPU 100 us"])
        # a step has no usage of its own
        self.assertEqual(self.longest(span("1", None, "write", 0, 5000, tags=tags(100, 4900, 0)),
                                      span("2", "1", "journal", 0, 4000)),
                         ["osd: journal, 4.000 ms of 5.000 ms; all of write: blocked 4.900 ms, on CPU 100 us"])
        # without usage, or with nonsense in its place: the self time alone
        for nonsense in ({}, tags("-5", 1), tags("9" * 30, 1), tags("1x", 1), tags("", 1), {"usage.cpu_us": 5}):
            text = self.printed([span("1", None, "write", 0, 5000, tags=nonsense), span("2", "1", "x", 1, 2)])
            self.assertNotIn("block", text)
            self.assertIn("longest self time: osd: write, 4.998 ms of 5.000 ms\n", text)
        self.printed([span("1", None, "n", 0, 5, tags=tags("9" * 15, "9" * 15, "9" * 15)), span("2", "1", "x", 1, 2)])

    def test_annotations(self):
        text = " ".join(self.printed(WRITE, "-a").split())
        for part in ("@ +10 us sent", "object = rbd.1", "kind = CLIENT"):
            self.assertIn(part, text)
        self.assertNotIn("sent", self.printed(WRITE))

    def test_nothing_reaches_the_terminal_raw(self):
        evil = "a\x1b[2J\x07\x9b31m\u202eb\x00c\nd"
        tags = {evil.replace("\x00", ""): evil, "error": evil}
        spans = [span("1", None, evil, 0, 5, service=evil, tags=tags,
                      kind=evil, annotations=[{"timestamp": BASE, "value": evil}])]
        for args in ((), ("-a",), ("--list",)):
            out = self.printed(spans, *args, "-w", "300")
            self.assertFalse([c for c in out if c != "\n" and not c.isprintable()], repr(out))
            self.assertIn("a\\x1b[2J", out)

    def test_locale(self):
        spans = [span("1", None, "blöcke 漢字", 0, 5)]
        self.assertIn("blöcke 漢字", self.printed(spans))
        self.assertTrue(self.printed(spans, locale=ASCII).isascii())
        self.assertTrue(self.printed(WRITE, "--ascii").isascii())
        self.assertFalse(self.printed(WRITE).isascii())

    def test_broken_traces(self):
        orphan = self.printed([span("1", None, "root", 0, 9), span("2", "77", "lost", 3, 2)])
        self.assertIn("parent missing = 0000000000000077", orphan)
        cycle = self.rows([span("1", "2", "one", 0, 9), span("2", "1", "two", 1, 2)])
        self.assertEqual(len([r for r in cycle if "osd: " in r]), 2)
        twice = self.rows([span("1", None, "one", 0, 9)] * 3)
        self.assertEqual(len(twice), 3)
        timeless = self.rows([span("1", None, "none", None, None), span("2", None, "has", 5, 2)])
        self.assertIn("osd: has", timeless[0])
        self.assertEqual(timeless[1].split(), ["osd:", "none", "?", "?"])
        nameless = self.printed([{"traceId": "aa", "id": "1"}])
        self.assertIn("0000000000000001", nameless)
        for wrong in ({"timestamp": -5}, {"timestamp": 2**63 - 1, "duration": 2**63 - 1},
                      {"timestamp": "x"}, {"tags": 5, "annotations": 7, "localEndpoint": []}):
            self.printed([{**span("1", None, "n", 0, 1), **wrong}], "-a")

    def test_shared_span(self):
        rows = self.rows([span("1", None, "get", 0, 9, service="client", kind="CLIENT"),
                          span("1", None, "get", 2, 5, service="osd", kind="SERVER", shared=True),
                          span("2", "1", "read", 3, 2, service="osd")], locale=ASCII)
        self.assertEqual([row.split("  ")[0] for row in rows[:2]], ["client: get", "`-osd: get"])
        self.assertTrue(rows[2].startswith("  `-osd: read"), rows[2])

    def test_self_time(self):
        root = span("1", None, "write", 0, 1000)
        self.assertEqual(self.longest(root), [], "one span: nothing to choose from")
        # children one after the other, overlapping, or inside each other: their union counts
        self.assertEqual(self.longest(root, span("2", "1", "a", 100, 100), span("3", "1", "b", 300, 50)),
                         ["osd: write, 850 us of 1.000 ms"])
        self.assertEqual(self.longest(root, span("2", "1", "a", 0, 480), span("3", "1", "b", 400, 400),
                                      span("4", "1", "c", 500, 10)),
                         ["osd: a, 480 us of 1.000 ms"])
        # a child that outlives its parent, or begins before it, takes no more than the parent's time
        self.assertEqual(self.longest(root, span("2", "1", "a", 300, 700), span("3", "2", "b", 100, 200),
                                      span("4", "2", "c", 900, 300)),
                         ["osd: a, 600 us of 1.200 ms"])
        # the time between client and server is the network's
        call = span("2", "1", "call", 0, 1000, kind="CLIENT")
        self.assertEqual(self.longest(root, call, span("3", "2", "write", 800, 100, service="disk")),
                         ["osd: call, 900 us of 1.000 ms (on the way to disk)"])
        self.assertEqual(self.longest(root, span("2", "1", "no time", None, None)),
                         ["osd: write, 1.000 ms of 1.000 ms"])

    def test_host(self):
        """The last lines: the host's load at the longest self time."""
        def last(*spans):
            text = self.printed(list(spans))
            return [line for line in text.splitlines() if line.startswith("while ")]

        busy = {"tags": {"blkin.host": "vdb was 98 % busy, 31 in queue"}}
        self.assertEqual(last(span("1", None, "write", 0, 1000), span("2", "1", "journal", 100, 800, service="store-2", **busy)),
                         ["while store-2: journal ran, vdb was 98 % busy, 31 in queue"])
        self.assertEqual(self.printed([span("1", None, "write", 0, 1000, **busy)]).splitlines()[-2:],
                         ["", "while osd: write ran, vdb was 98 % busy, 31 in queue"], "one span")
        # no line for a quiet host, nor for a host that did not spend the time
        self.assertEqual(last(span("1", None, "write", 0, 1000), span("2", "1", "journal", 100, 800)), [])
        self.assertEqual(last(span("1", None, "write", 0, 1000, **busy), span("2", "1", "journal", 100, 800, service="store-2")), [])
        # a step of a span with such tags
        self.assertEqual(last(span("1", None, "write", 0, 1000, **busy), span("2", "1", "a step", 100, 800)),
                         ["while osd: write ran, vdb was 98 % busy, 31 in queue"])
        # a request on its way: either host may be the reason
        call = span("2", "1", "call", 0, 1000, kind="CLIENT", tags={"blkin.host": "3 of 60 TCP segments were sent again"})
        self.assertEqual(last(span("1", None, "write", 0, 1000), call, span("3", "2", "write", 800, 100, service="disk", **busy)),
                         ["while osd: call ran, 3 of 60 TCP segments were sent again",
                          "while disk: write ran, vdb was 98 % busy, 31 in queue"])
        # the text is not trusted
        self.assertNotIn("\x1b", "".join(last(span("1", None, "w", 0, 1, tags={"blkin.host": "\x1b[2J"}))))

    def test_deep_and_wide(self):
        count = 50000
        chain = [span(f"{i:x}", f"{i - 1:x}" if i > 1 else None, "n", i, 9) for i in range(1, count)]
        self.assertEqual(len(self.rows(chain)), count - 1)
        fan = [span(f"{i:x}", "1" if i > 1 else None, "n", i, 9) for i in range(1, count)]
        self.assertEqual(len(self.rows(fan)), count - 1)

    def test_several_traces(self):
        spans = WRITE + [span("9", None, "slow", 5000, 70000, trace="bb1"),
                         span("8", None, "quick", 6000, 7, trace="bb2")]
        default = self.printed(spans)
        self.assertIn("osd: slow", default)
        self.assertIn("the slowest of 3 traces", default)
        self.assertIn("osd: quick", self.printed(spans, "0000000000000BB2"))
        self.assertIn("osd: quick", self.printed(spans, "bb2"))
        self.assertIn("client: write", self.printed([WRITE, spans[4:]], "aa"))
        listed = self.printed(spans, "--list").splitlines()[1:]
        self.assertEqual([line.split()[0][-3:] for line in listed], ["0aa", "bb1", "bb2"])
        self.assertEqual(listed[0].split()[1:3], ["4", "1"])
        # the list has the root, even if a child seems to begin before it, or its parent is missing
        late = [span("2", "1", "child", 0, 5), span("1", None, "root", 3, 9),
                span("6", "5", "below", 0, 1, trace="cc"), span("5", "77", "above", 2, 9, trace="cc")]
        listed = self.printed(late, "--list").splitlines()
        self.assertTrue(listed[0].endswith("root span"))
        self.assertEqual([line.split()[-2:] for line in listed[1:]], [["osd:", "root"], ["osd:", "above"]])
        text = json.dumps(spans)
        self.refused("give more digits", "-", "0000000000000b", text=text)
        self.refused("no trace cc", "-", "cc", text=text)
        self.refused("is not a trace id", "-", "xyz", text=text)

    def test_around(self):
        """Lists the spans on a span's host during the span, of any trace, by time."""
        def on(host, *args, **more):
            return span(*args, **more, tags={"lttng.host": host})

        spans = [on("one", "1", None, "write", 100, 50), on("two", "2", "1", "elsewhere", 110, 5),
                 on("one", "a3", None, "before it", 0, 99, trace="bb"), on("one", "a4", None, "late", 140, 99, trace="bb"),
                 on("one", "a5", None, "early", 90, 20, trace="cc"), span("a6", None, "nowhere", 110, 5, trace="cc"),
                 span("a7", None, "no time", None, None, trace="dd", tags={"lttng.host": "one"})]
        lines = self.printed(spans, "--around=0000000000000001").splitlines()
        self.assertEqual(lines[0], "on one, while osd: write took 50 us:")
        self.assertEqual([(line.split()[0], line.split("osd: ")[1]) for line in lines[3:]],
                         [("-10", "early"), ("0", "write  <"), ("40", "late")])
        self.assertIn("span = 00000000000000a4", self.printed(spans, "-a", "bb"))
        text = json.dumps(spans)
        self.refused('"00zz" is not a span id', "--around=00zz", "-", text=text)
        self.refused('"" is not a span id', "--around=", "-", text=text)
        self.refused("the ids of 7 spans begin with 000", "--around=000", "-", text=text)
        self.refused("the ids of 2 spans begin with 000", "--around=000", "-", "aa", text=text)
        self.refused("no span ab", "--around=ab", "-", text=text)
        self.refused("no trace ee", "--around=000", "-", "ee", text=text)
        self.refused("has no tag lttng.host", "--around=00000000000000a6", "-", text=text)
        self.refused("has no start", "--around=00000000000000a7", "-", text=text)
        # the halves of a request share their id
        halves = [span("1", None, "get", 0, 9, kind="CLIENT"), on("one", "1", None, "get", 2, 5, kind="SERVER", shared=True)]
        self.assertIn("on one, while osd: get took 5 us", self.printed(halves, "--around=00"))
        evil = self.printed([on("\x1b[2J", "1", None, "\x1b[3J", 0, 9, service="\x1b[4J")], "--around=0")
        self.assertFalse([c for c in evil if c != "\n" and not c.isprintable()], repr(evil))

    def test_rules(self):
        """Rules apply to a recorded trace alone, once; wrong rules get a one-line message."""
        steps = os.path.join(TRACES, "steps")
        with tempfile.TemporaryDirectory() as folder:
            good, bad = os.path.join(folder, "good.rules"), os.path.join(folder, "bad.rules")
            for path, text in ((good, "[span s]\nbegin = t:a\nend = t:b\n"), (bad, "[span s]\nbegin =\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            self.refused(f'blkin: rules "{bad}", line 2: expected', f"--rules={bad}", steps)
            self.refused(f'blkin: rules "{bad}", line 2: expected', f"--rules={folder}", steps)
            self.refused("--rules: given twice", f"--rules={good}", f"--rules={bad}", steps, status=2)
            self.refused('rules "nosuch": there is neither such a file or folder, nor "/', "--rules=nosuch", steps)
            self.assertEqual(show(f"--rules={good}", steps).returncode, 0)
            odd = os.path.join(folder, 'an "odd" \\ name')
            os.rename(good, odd)
            self.assertEqual(show(f"--rules={odd}", steps).returncode, 0)
            tried = subprocess.run([BLKIN, "rules", "try", odd, steps], text=True, capture_output=True, timeout=60)
            self.assertEqual((tried.returncode, "[span s]" in tried.stdout), (0, True), tried.stderr)
            os.rename(odd, good)
            beside = show(f"--rules={good}", "-", text=json.dumps(WRITE))
            self.assertEqual((beside.returncode, "--rules is not used: standard input" in beside.stderr), (0, True))
            for args, said in ((("try", bad, steps), f'rules "{bad}", line 2'), (("try", good, "/nowhere"), "expected the folder"),
                               (("events", "/nowhere"), "expected the folder")):
                wrong = subprocess.run([BLKIN, "rules", *args], text=True, capture_output=True, timeout=60)
                self.assertEqual((wrong.returncode, len(wrong.stderr.splitlines())), (1, 1), wrong.stderr)
                self.assertIn(said, wrong.stderr)

    def test_damaged_trace(self):
        """Shows the readable part, with a one-line message and status 1."""
        damaged = os.path.join(TRACES, "corrupt")
        with tempfile.TemporaryDirectory() as folder:
            rules = os.path.join(folder, "some.rules")
            with open(rules, "w", encoding="utf-8") as file:
                file.write("[span s]\nbegin = t:a\nend = t:b\n")
            for command, expected in ((("show", "--list"), r"\n[0-9a-f]{16,32} +\d+ "), (("show",), "service: span"),
                                      (("stat", "-1"), r"^\d+ spans? in "), (("graph", "--format=json"), "^{"),
                                      (("rules", "events"), r"\n +\d+  (zipkin|blkin):"), (("rules", "try", rules), r"^\[span s\]")):
                result = subprocess.run([BLKIN, *command, damaged], text=True, capture_output=True, timeout=60)
                with self.subTest(command=command):
                    self.assertEqual(result.returncode, 1)
                    self.assertRegex(result.stdout, expected)
                    said = [line for line in result.stderr.splitlines() if not line.startswith("blkin: events: ")]
                    self.assertEqual([f'the trace "{damaged}" is damaged: only what' in line for line in said], [True], said)

    def test_what_is_no_trace(self):
        self.refused('cannot read "/nowhere": No such file', "/nowhere")
        with tempfile.TemporaryDirectory() as empty:
            self.refused(f'cannot read the trace "{empty}": babeltrace2 has failed', empty)
        self.refused("no spans in it", "/dev/null")
        self.refused("no spans in it", "-", text="[]\n[]")
        self.refused("not JSON, line 3", "-", text="[\n{},\nx]")
        self.refused("this is a web page", "-", text="<html>")
        self.refused("item 2 is not a Zipkin v2 span", "-",
                     text=json.dumps([span("1", None, "n", 0, 1), {"id": "1"}]))
        for wrong in ({"id": "12345678901234567"}, {"id": "0x1"}, {"id": 5}, {"traceId": ""}):
            self.refused("item 1 is not a Zipkin v2 span", "-",
                         text=json.dumps([{**span("1", None, "n", 0, 1), **wrong}]))

    def test_usage(self):
        self.refused("expected FILE|FOLDER|URL", status=2)
        self.refused("unrecognized option", "--frob", status=2)
        self.refused("--width: expected a number", "-w", "x", "-", status=2)
        self.refused("expected --list or --around, not both", "--list", "--around=1", "-", status=2)
        self.assertIn("usage: blkin show", show("--help").stdout)
        version = subprocess.run([BLKIN, "--version"], stdout=subprocess.PIPE, text=True)
        self.assertRegex(version.stdout, r"^blkin \d+\.\d+")
        for args in ([], ["frob"]):
            wrong = subprocess.run([BLKIN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((wrong.returncode, wrong.stdout), (2, b""))
        with open("/dev/full", "w") as full:
            failed = subprocess.run([BLKIN, "show", "-"], input=json.dumps(WRITE), text=True,
                                    stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(failed.returncode, 1)

    def test_file(self):
        with tempfile.NamedTemporaryFile("w") as f:
            json.dump(WRITE, f)
            f.flush()
            self.assertIn("client: write", show(f.name).stdout)

    def test_recorded(self):
        """A trace as LTTng records it: the tree has its steps, kinds and tags."""
        shown = show("-a", os.path.join(TRACES, "steps"), "0000000000000abc", "--ascii")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("events: 15 = 14 in spans", shown.stderr)
        lines = [line.split("  ")[0] for line in shown.stdout.splitlines() if "osd: " in line]
        self.assertEqual(lines[:4], ["osd: write", "|-osd: look up", "| `-! osd: read", "`-osd: reply"])
        read = shown.stdout[shown.stdout.index("osd: read"):shown.stdout.index("osd: reply")]
        for expected in ("! error = EIO", "kind = CLIENT", "remote = mon 10.0.0.9:6789"):
            self.assertIn(expected, read)
        listed = show("--list", os.path.join(TRACES, "steps"))
        self.assertRegex(listed.stdout, r"0000000000000abc0000000000000001 +4 ")
        missing = subprocess.run([BLKIN, "show", TRACES], env={**os.environ, "PATH": "/nowhere"}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(missing.returncode, 1)
        self.assertIn('with babeltrace2: No such file or directory', missing.stderr)


def trace(request):
    if request.path in ("/api/v2/trace/aa", "/zipkin/api/v2/trace/aa"):
        return 200, json.dumps(WRITE).encode()
    return 500 if request.path == "/broken" else 404, b"not found"


class ShowUrl(unittest.TestCase):
    refused = Show.refused

    def test_url(self):
        with Server(trace) as server:
            base = server.url
            for path in ("/api/v2/trace/aa", "/zipkin/traces/aa", "/zipkin/traces/aa?lang=en"):
                result = show(base + path)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("client: write", result.stdout)
            self.refused("no such trace or page (status 404)", f"{base}/api/v2/trace/bb")
            self.refused("status 500, expected 200", f"{base}/broken")
        self.refused(f"cannot get {base}/x: ", f"{base}/x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
