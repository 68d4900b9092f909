#!/usr/bin/env python3
# timeout: 60
"""Alerts and dashboard: each alert fires for its fault and for no other. Prometheus accepts each query, and each metric
in a query exists.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SRC = os.environ["SRC"]
RULES = f"{SRC}/packaging/prometheus/blkin.rules.yml"
DASHBOARD = f"{SRC}/packaging/grafana/blkin-services.json"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def known_metrics():
    """Returns the names of metrics: those that scripts/tables finds in the code, those of account.md, and the times."""
    names = set(re.findall(r"^\.B (blkin_\w+)$", subprocess.run(
        [f"{SRC}/scripts/tables", "--man=metrics"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout, re.MULTILINE))
    for name, kind in re.findall(r"^\| `(\w+)` \| (counter|gauge) \|", read(f"{SRC}/doc/account.md"), re.MULTILINE):
        names.add(f"blkin_{name}" + ("_total" if kind == "counter" else ""))
    return names | {f"blkin_{what}_time_seconds" for what in ("start", "events", "trace")}


def metrics_of(query):
    """Yields the known metrics of each name in the query: one or none; of each pattern: those that match."""
    for pattern in re.findall(r'__name__=~"(.*?)"', query):
        yield [name for name in known_metrics() if re.fullmatch(pattern, name)]
    for name in re.findall(r"\bblkin_\w+", re.sub(r'"[^"]*"', "", query)):
        yield [name] if name in known_metrics() else []


@unittest.skipUnless(shutil.which("promtool"), "no promtool")
class Monitoring(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def check_metrics(self, query):
        for found in metrics_of(query):
            self.assertTrue(found, f"no such metric: {query}")

    def test_alerts(self):
        shutil.copy(RULES, self.folder)
        shutil.copy(f"{SRC}/tests/doc/alerts.yml", self.folder)
        self.promtool("check", "rules", "blkin.rules.yml")
        self.promtool("test", "rules", "alerts.yml")
        alerts = set(re.findall(r"alert: (\w+)", read(RULES)))
        self.assertEqual(alerts, set(re.findall(r'alertname="(\w+)"', read(f"{SRC}/tests/doc/alerts.yml"))))
        self.assertEqual(alerts, set(re.findall(r"^\| `(Blkin\w+)` \|", read(f"{SRC}/doc/operate.md"), re.MULTILINE)))
        for query in re.findall(r"expr: (?:>-\n)?(.*)", read(RULES)):
            self.check_metrics(query)

    def test_dashboard(self):
        panels = json.loads(read(DASHBOARD))["panels"]
        queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 20)
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        with open(f"{self.folder}/queries.yml", "w", encoding="utf-8") as file:
            rules = [{"record": f"query:{i}", "expr": re.sub(r"\$__rate_interval", "1m", query)}
                     for i, query in enumerate(queries)]
            json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
        self.promtool("check", "rules", "queries.yml")
        for query in queries:
            self.check_metrics(query)


if __name__ == "__main__":
    unittest.main(verbosity=2)
