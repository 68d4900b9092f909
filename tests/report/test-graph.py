#!/usr/bin/env python3
# blkin graph: the figures of services and calls, its forms, hostile names, graphs of any shape.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import os
import random
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom

from made import BASE, Trace, document, stack

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
HERE = os.path.join(os.environ["SRC"], "tests/report")


def graph(*args, traces=None, text=None, locale="C.UTF-8", path=os.environ["PATH"]):
    env = {**os.environ, "LC_ALL": locale, "TZ": "UTC", "PATH": path}
    return subprocess.run([BLKIN, "graph", *args], input=text if traces is None else json.dumps(traces), env=env,
                          timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def calls_of(pairs, seed=1):
    """Returns a trace for each pair, in which the first service calls the second."""
    traces = []
    for i, (caller, callee) in enumerate(pairs):
        trace = Trace(seed * 100000 + i, BASE + i * 1000, random.Random(i))
        root = trace.span(None, caller, "do", 0, 900)
        trace.call(root, caller, callee, "do", 10, 800)
        traces.append(trace.spans)
    return traces


class Graph(unittest.TestCase):
    maxDiff = None

    def shown(self, traces, *args, **kw):
        result = graph(*args, "-", traces=traces, **kw)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def json(self, traces, *args):
        return json.loads(self.shown(traces, "-f", "json", *args))

    def golden(self, name, text):
        path = os.path.join(HERE, name)
        if os.environ.get("GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read(), f"{name}: if the change is intended, run with GOLDEN=1, and read the diff")

    def test_golden(self):
        traces = stack(60)
        self.golden("stack.txt", self.shown(traces, "-w", "100"))
        self.golden("stack.dot", self.shown(traces, "-f", "dot"))

    def test_figures(self):
        """Services and calls, counted independently; exact except for quantiles."""
        traces = stack(200)
        report = self.json(traces)
        spans, calls = collections.defaultdict(list), collections.defaultdict(list)
        for trace in traces:
            by_id = {s["id"]: s for s in trace}
            for span in trace:
                service = span["localEndpoint"]["serviceName"]
                spans[service].append(span)
                parent = by_id.get(span.get("parentId"))
                if span.get("kind") == "SERVER":
                    calls[parent["localEndpoint"]["serviceName"], service].append(span)
                elif span.get("remoteEndpoint"):
                    calls[service, span["remoteEndpoint"]["serviceName"]].append(span)
        self.assertEqual((report["spans"], report["traces"]), (sum(map(len, traces)), 200))
        self.assertEqual({(s["name"], s["spans"], s["errors"]) for s in report["services"]},
                         {(n, len(s), sum("error" in x.get("tags", {}) for x in s)) for n, s in spans.items()} |
                         {("audit-log", 0, 0)})
        self.assertEqual({(c["parent"], c["child"], c["callCount"], c["errorCount"], c["duration"]["max"],
                           c["duration"]["sum"]) for c in report["calls"]},
                         {(*k, len(s), sum("error" in x.get("tags", {}) for x in s), max(x["duration"] for x in s),
                           sum(x["duration"] for x in s)) for k, s in calls.items()})
        for call in report["calls"]:
            durations = sorted(s["duration"] for s in calls[call["parent"], call["child"]])
            for name, q in (("p50", 0.5), ("p99", 0.99)):
                exact = durations[max(-int(-q * len(durations) // 1), 1) - 1]
                self.assertLessEqual(abs(call["duration"][name] - exact), 0.01 * exact)

    def lines(self, traces, *args, locale="C"):
        text = self.shown(traces, *args, locale=locale)
        return text[text.index("who calls whom"):text.index("\n\n", text.index("who calls whom"))].splitlines()[1:]

    def test_tree(self):
        """Each call is one line; a repeated one is marked; cycles end."""
        pairs = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("e", "d"), ("d", "d")]
        lines = self.lines(calls_of(pairs))
        self.assertEqual([line[:line.index("  ") if "  " in line.strip() else None].rstrip() if line[0] not in "| `" else
                          re.split(r"  +\d", line)[0].rstrip() for line in lines],
                         ["a", "|- b", "|  `- d", "|     |- d *", "|     `- e", "|        `- d *", "`- c", "   `- d *",
                          "* the calls of this service are shown above"])
        # two services that call only each other
        lines = self.lines(calls_of([("x", "y"), ("y", "x")]))
        self.assertEqual([line.split("  ")[0].rstrip() for line in lines[:2]], ["x", "`- y"])
        self.assertIn("no service calls another one", self.shown([stack(1)[0][:1]]))

    def test_width(self):
        chain = calls_of([(f"service-{i}", f"service-{i + 1}") for i in range(40)] + [("n" * 300, "service-0")])
        for width in (60, 80, 200):
            for locale in ("C", "C.UTF-8"):
                for line in self.shown(chain, "-w", str(width), locale=locale).splitlines():
                    self.assertLessEqual(len(line), width, line)
        self.assertTrue(self.shown(chain, "--ascii").isascii())

    def test_limit(self):
        """Services beyond the limit are one service, and no sum changes."""
        traces = stack(100)
        whole, cut = self.json(traces), self.json(traces, "-n", "3")
        self.assertEqual([s["name"] for s in cut["services"]][:3], [s["name"] for s in whole["services"]][:3])
        self.assertEqual(cut["services"][3]["name"], "(4 more)")
        for key in ("spans", "errors", "self"):
            self.assertEqual(sum(s[key] for s in cut["services"]), sum(s[key] for s in whole["services"]))
        for key in ("callCount", "errorCount"):
            self.assertEqual(sum(c[key] for c in cut["calls"]), sum(c[key] for c in whole["calls"]))
        self.assertEqual(len({(c["parent"], c["child"]) for c in cut["calls"]}), len(cut["calls"]))

    def test_hostile_names(self):
        evil = ["</script>\"'&", "\u202ea", "\x1b[2J\x07", "a\\\"b", "\ufffe", "]]>", "x" * 5000, "שלום", "\n};evil->x;\n"]
        pairs = [(a, b) for i, a in enumerate(evil) for b in evil[i + 1:i + 3]]
        for locale in ("C", "C.UTF-8"):
            text = self.shown(calls_of(pairs), locale=locale)
            self.assertFalse([c for c in text if c != "\n" and not c.isprintable()])
        xml.dom.minidom.parseString(self.shown(calls_of(pairs), "-f", "svg"))
        dot = self.shown(calls_of(pairs), "-f", "dot")
        line = re.compile(r'(  s\d+( -> s\d+)? \[label="([^"\\]|\\["\\n])*"(, color="#[0-9a-f]{6}", class=bad)?\];'
                          r'|digraph blkin \{|  bgcolor=transparent;|  (node|edge) \[.*\];|\})')
        self.assertEqual([row for row in dot.splitlines() if not line.fullmatch(row)], [])
        names = {s["name"] for s in self.json(calls_of(pairs))["services"]}
        self.assertEqual(names, set(evil))

    def test_picture(self):
        """dot draws a box for each service and an arrow for each pair, with hostile names, too; without dot, graph
        prints an error."""
        shapes = [[("a", "b")], [("a", "a")], [(f"s{i}", f"s{i + 1}") for i in range(40)], [("a&lt;\\N", "\ufffe\"</text>")]]
        for shape in shapes:
            with self.subTest(shape=str(shape[:4])):
                groups = [g.getAttribute("class").split()[0] for g in xml.dom.minidom.parseString(
                    self.shown(calls_of(shape), "-f", "svg")).getElementsByTagName("g")]
                self.assertEqual((groups.count("node"), groups.count("edge")),
                                 (len({s for pair in shape for s in pair}), len(shape)))
        text = self.shown(calls_of(shapes[3]), "-f", "svg")
        self.assertIn("a&amp;lt;\\N<", text)
        self.assertEqual(text.count("</text>") , text.count("<text "))
        with tempfile.TemporaryDirectory() as folder:
            result = graph("-f", "svg", "-", traces=calls_of(shapes[0]), path=folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("install the package graphviz", result.stderr)
            os.symlink("/bin/false", os.path.join(folder, "dot"))
            result = graph("-f", "svg", "-", traces=calls_of(shapes[0]), path=folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn("did not draw", result.stderr)

    def test_document_of_a_root(self):
        """The statistics of blkin work --root: {"blkin": "statistics"}."""
        given = document()
        report = json.loads(graph("-f", "json", "-", text=json.dumps(given)).stdout)
        self.assertEqual((report["spans"], report["seconds"]), (300, 10.0))
        self.assertEqual([(c["parent"], c["child"], c["callCount"], c["errorCount"], c["duration"]["p99"])
                          for c in report["calls"]], [("gate", "store", 200, 3, 1000)])
        self.assertRegex(graph("-", text=json.dumps(given)).stdout, r"gate +\n.*store +20\.0 +3 +1\.00 ms")
        self.assertIn("300 spans in 10.0 s, 3 with an error", graph("-", text=json.dumps(given)).stdout)
        stat = json.loads(subprocess.run([BLKIN, "stat", "-j", "-"], input=json.dumps(given), timeout=60, check=True,
                                         stdout=subprocess.PIPE, encoding="utf-8").stdout)
        self.assertEqual((stat["spans"], [(r["service"], r["spans"], r["errors"], r["duration"]["p99"]) for r in stat["rows"]]),
                         (300, [("store", 200, 3, 1000), ("gate", 100, 0, 1000)]))
        given["rows"][0]["duration"] = 7
        result = graph("-", text=json.dumps(given))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn('standard input: "rows", element 0: expected an element as `blkin work --root` writes', result.stderr)

    def test_usage(self):
        for args, message in ((("-f", "png", "x"), 'expected text, svg, dot or json, got "png"'), ((), "expected one FILE"),
                              (("-n", "0", "x"), "expected a number of 1 to 200"), (("-n", "x", "x"), "expected a number"),
                              (("a", "b"), "expected one FILE"), (("-w", "1", "x"), "expected a number of 60")):
            result = graph(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
        result = graph("/nowhere")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn('cannot read "/nowhere"', result.stderr)


unittest.main()
