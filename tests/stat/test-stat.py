#!/usr/bin/env python3
# blkin stat of files: its figures are those of the spans, and its table fits the terminal.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["SRC"] + "/tests")
from expected import check, expected  # noqa: E402
from server import Server  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
TRACES = os.path.join(os.environ["BUILD"], "tests/plugin/traces")
os.environ["BABELTRACE_PLUGIN_PATH"] = os.path.join(os.environ["BUILD"], "plugins")
BASE = 1700000000000000


def stat(*args, text=None, locale="C.UTF-8"):
    return subprocess.run([BLKIN, "stat", *args], input=text, env={**os.environ, "LC_ALL": locale}, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def span(trace, span_id, parent, name, start, duration, service="osd", **more):
    made = {"traceId": f"{trace:016x}", "id": f"{span_id:016x}", "name": name,
            "localEndpoint": {"serviceName": service}, "timestamp": BASE + start, "duration": duration, **more}
    if parent:
        made["parentId"] = f"{parent:016x}"
    return made


def random_traces(count, seed=13):
    """Makes trees of all shapes: children overlap, outlive their parents and come out of order."""
    dice = random.Random(seed)
    traces = []
    for number in range(1, count + 1):
        spans = [span(number, 1, 0, "root", dice.randrange(10**6), int(dice.lognormvariate(8, 2)) + 1, "client")]
        for i in range(2, dice.randrange(2, 12)):
            parent = dice.choice(spans)
            made = span(number, i, int(parent["id"], 16), dice.choice(["read", "write", "commit"]),
                        parent["timestamp"] - BASE + dice.randrange(-50, parent["duration"] + 50),
                        int(dice.lognormvariate(6, 2)) + 1, dice.choice(["osd", "mapper"]))
            if dice.random() < 0.1:
                made["tags"] = {"error": "EIO"}
            spans.append(made)
        dice.shuffle(spans)
        traces.append(spans)
    return traces


class Stat(unittest.TestCase):
    def report(self, traces, *args):
        result = stat("--json", "-", *args, text="\n".join(json.dumps(spans) for spans in traces))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.count("\n"), 1)
        return json.loads(result.stdout)

    def table(self, traces, *args, **kw):
        result = stat("-", *args, text=json.dumps(traces), **kw)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def refused(self, message, *args, status=1, **kw):
        result = stat(*args, **kw)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertIn(message, result.stderr)

    def test_figures(self):
        traces = random_traces(3000)
        report = self.report(traces)
        check(self, report, traces)
        self.assertEqual(report["traces"], 3000)
        spans = [span for trace in traces for span in trace]
        seconds = (max(s["timestamp"] + s["duration"] for s in spans) - min(s["timestamp"] for s in spans)) / 1e6
        self.assertAlmostEqual(report["seconds"], seconds, 3)
        for row in report["rows"]:
            self.assertAlmostEqual(row["rate"], row["spans"] / seconds, 2)

    def test_quantiles_of_all_sizes(self):
        """Each power of two and its neighbours, and values between, up to 142 years."""
        values = sorted({max(2**e + d, 1) for e in range(53) for d in (-1, 0, 1)})
        for some in (values, values[:7], values[30:32], [5], [2**52], list(range(1, 3000))):
            traces = [[span(i, 1, 0, "n", 0, value)] for i, value in enumerate(some, 1)]
            report = self.report(traces)
            row = report["rows"][0]
            self.assertEqual(row["duration"]["max"], max(some))
            for name, q in (("p50", 50), ("p90", 90), ("p99", 99)):
                exact = some[-(-q * len(some) // 100) - 1]
                self.assertLessEqual(abs(row["duration"][name] - exact), 0.006 * exact)

    def test_halves_and_missing(self):
        """Client and server of one id; spans without times, names, services."""
        shared = [span(1, 1, 0, "get", 0, 90, "client", kind="CLIENT"),
                  span(1, 1, 0, "get", 20, 50, "osd", kind="SERVER", shared=True),
                  span(1, 2, 1, "read", 30, 20, "osd")]
        report = self.report([shared])
        check(self, report, [shared])
        own = {row["service"] + " " + row["name"]: row["self"]["sum"] for row in report["rows"]}
        self.assertEqual(own, {"client get": 40, "osd get": 30, "osd read": 20})
        bare = self.report([[{"traceId": "1", "id": "1"}, {"traceId": "1", "id": "2", "timestamp": BASE}]])
        self.assertEqual(bare["rows"][0]["spans"], 2)
        self.assertEqual(bare["rows"][0]["duration"]["count"], 0)
        self.assertEqual((bare["seconds"], bare["rows"][0]["rate"]), (0, 0))

    def test_edges(self):
        """Edges: by kinds as Zipkin counts them, or by the change of service."""
        shared = [span(1, 1, 0, "get", 0, 90, "client", kind="CLIENT"),
                  span(1, 1, 0, "get", 20, 50, "osd", kind="SERVER", shared=True, tags={"error": "EIO"}),
                  span(1, 2, 1, "read", 30, 20, "osd", kind="CLIENT", remoteEndpoint={"serviceName": "disk"})]
        report = self.report([shared, shared[:2]])
        edges = [(edge["client"], edge["server"], edge["calls"], edge["errors"]) for edge in report["edges"]]
        self.assertEqual(edges, [("client", "osd", 2, 2), ("osd", "disk", 1, 0)])
        self.assertEqual(report["edges"][0]["duration"]["p50"], 50)
        traces = random_traces(300)
        calls = collections.Counter()
        for spans in traces:
            services = {span["id"]: span["localEndpoint"]["serviceName"] for span in spans}
            for one in spans:
                caller, callee = services.get(one.get("parentId")), one["localEndpoint"]["serviceName"]
                if caller and caller != callee:
                    calls[caller, callee] += 1
        report = self.report(traces)
        self.assertEqual({(edge["client"], edge["server"]): edge["calls"] for edge in report["edges"]}, calls)

    def test_sort(self):
        traces = [[span(1, 1, 0, "often", 0, 10), span(1, 2, 0, "often", 100, 10), span(1, 9, 0, "often", 200, 10),
                   span(1, 3, 0, "long", 0, 9000), span(1, 4, 3, "busy", 0, 8000),
                   span(1, 5, 0, "broken", 0, 5, tags={"error": ""}), span(1, 6, 0, "rest", 0, 6)]]
        for sort, first in (("rate", "often"), ("p99", "long"), ("self", "busy"), ("errors", "broken")):
            self.assertEqual(self.report(traces, "--sort", sort)["rows"][0]["name"], first)
            self.assertTrue(self.table(traces, "-s", sort)[3].startswith(f"osd: {first} "))

    def test_service(self):
        traces = random_traces(50)
        all_rows = self.report(traces)["rows"]
        for glob, services in (("osd", {"osd"}), ("*[dp]*", {"osd", "mapper"}), ("nobody", set())):
            report = self.report(traces, "--service", glob)
            self.assertEqual(report["rows"], [row for row in all_rows if row["service"] in services])

    def test_table(self):
        traces = random_traces(200) + [[span(99999, 1, 0, "n" * 300, 0, 5, "s" * 300), span(99999, 2, 0, "ü漢", 0, 10**13, "ä")]]
        rows = expected(traces)
        for width in (60, 80, 109, 130, 300):
            for locale in ("C.UTF-8", "C"):
                lines = self.table(traces, f"--width={width}", locale=locale)
                self.assertEqual(len(lines), 3 + len(rows))
                for line in lines[2:]:
                    cells = line.replace("漢", "漢 ") if locale == "C.UTF-8" else line
                    self.assertLessEqual(len(cells), width, line)
        lines = self.table(traces, "-w", "140")
        self.assertEqual(lines[2].split()[2:], "spans rate/s errors p50 p90 p99 max self50 self90 self99 selfmx self%".split())
        root = next(line for line in lines if line.startswith("client: root")).split()
        self.assertEqual(root[2], str(rows["client", "root"]["spans"]))
        self.assertTrue(all(line.isascii() for line in self.table(traces, "--ascii")))
        self.assertEqual(self.table(traces, "--ascii")[0].split()[:2], [str(sum(map(len, traces))), "spans"])
        evil = self.table([[span(1, 1, 0, "a\x1b[2J\nb", 0, 5, "\x9b31m\u202e")]])
        self.assertTrue(all(c.isprintable() for line in evil for c in line), evil)

    def test_many_names(self):
        """Memory is bounded: names without a row count as other."""
        with tempfile.NamedTemporaryFile("w") as file:
            for i in range(30000):
                json.dump([span(i + 1, 1, 0, f"name {i}", i, 1 + i % 977)], file)
            file.flush()
            result = stat("--json", file.name)
        report = json.loads(result.stdout)
        self.assertEqual(len(report["rows"]), 4096)
        other = [row for row in report["rows"] if row.get("other")]
        self.assertEqual(len(other), 1)
        self.assertEqual(other[0]["spans"], 30000 - 4095)
        self.assertEqual(other[0]["self"]["count"], 30000 - 4095)
        self.assertEqual(sum(row["spans"] for row in report["rows"]), 30000)

    def test_folder(self):
        folder = os.path.join(TRACES, "steps")
        result = stat("--json", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        with tempfile.TemporaryDirectory() as work:
            subprocess.run(["babeltrace2", folder, "--component=sink.blkin.zipkin",
                            f'--params=endpoint="file:{work}/spans"'], check=True, stderr=subprocess.DEVNULL)
            with open(f"{work}/spans", encoding="utf-8") as file:
                spans = json.load(file)
        traces = collections.defaultdict(list)
        for one in spans:
            traces[one["traceId"]].append(one)
        check(self, json.loads(result.stdout), list(traces.values()))

    def test_url(self):
        traces = random_traces(20)

        with Server(lambda request: (200, json.dumps(traces).encode())) as server:
            result = stat("--json", server.url + "/api/v2/traces")
        self.assertEqual(result.returncode, 0, result.stderr)
        check(self, json.loads(result.stdout), traces)

    def test_what_is_wrong(self):
        self.refused('cannot read "/nowhere": No such file', "/nowhere")
        self.refused("no spans in it", "/dev/null")
        self.refused("item 1 is not a Zipkin v2 span", "-", text="{}")
        self.refused("expected one FILE", "a", "b", status=2)
        self.refused("--interval: expected 0.1 to 86400 seconds", "-i", "0", status=2)
        self.refused("--interval: expected 0.1 to 86400 seconds", "-i", "2x", status=2)
        self.refused("--sort: expected rate, p99, self or errors", "-s", "max", status=2)
        self.refused("--width: expected a number", "-w", "x", "-", status=2)
        self.refused("--rules needs the FOLDER", "--rules=pthread", status=2)
        self.refused("unrecognized option", "--frob", status=2)
        with tempfile.TemporaryDirectory() as empty:
            self.refused(f'no service answers in "{empty}"', f"--runtime-dir={empty}")
        with open("/dev/full", "w") as full:
            failed = subprocess.run([BLKIN, "stat", "-"], input=json.dumps(random_traces(1)), text=True,
                                    stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(failed.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
