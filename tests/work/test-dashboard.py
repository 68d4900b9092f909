#!/usr/bin/env python3
# timeout: 120
"""The dashboard for Grafana: each of its queries has an answer of a real Prometheus, which reads our page.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import ENVIRONMENT, free_port, wait_until  # noqa: E402
from server import Server  # noqa: E402

PAGES = os.path.join(os.environ["BUILD"], "tests/work/pages")
DASHBOARD = os.path.join(os.environ["SRC"], "packaging/grafana/blkin-hosts.json")
CONFIG = """
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: blkin
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


def page(_, begin=time.monotonic()):
    made = subprocess.run([PAGES, str(int(time.monotonic() - begin))], stdout=subprocess.PIPE, check=True).stdout
    return 200, made, "text/plain; version=0.0.4; charset=utf-8"


class Dashboard(unittest.TestCase):
    def setUp(self):
        if not shutil.which("prometheus"):
            self.skipTest("no prometheus")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        server = self.enterContext(Server(page))
        self.port = free_port()
        with open(folder + "/prometheus.yml", "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=server.server_port))
        with open(folder + "/log", "wb") as log:
            prometheus = subprocess.Popen(
                ["prometheus", f"--config.file={file.name}", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=ENVIRONMENT)
        self.addCleanup(prometheus.wait)
        self.addCleanup(prometheus.kill)

    def ask(self, path, **query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(query),
                                        timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it begins
                return None
            raise AssertionError(error.read().decode()) from error
        except (urllib.error.URLError, ConnectionError):
            return None

    def test_each_query_has_an_answer(self):
        with open(DASHBOARD, encoding="utf-8") as file:
            dashboard = json.load(file)
        # two scrapes, for rates
        wait_until(lambda: float(((self.ask("query", query="sum(count_over_time(up[5m]))") or {}).get("result") or
                                  [{"value": [0, 0]}])[0]["value"][1]) >= 3, "Prometheus has read the page", 60)
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 20)
        for query in queries:
            with self.subTest(query=query):
                asked = query.replace("$hosts", ".*").replace("$host", ".*").replace("$__rate_interval", "1m")
                self.assertNotIn("$", asked)
                found = self.ask("query", query=asked)["result"]
                self.assertTrue(found)
                self.assertTrue(all(0 <= float(one["value"][1]) < 1e12 for one in found), found)
        for variable in dashboard["templating"]["list"][1:]:
            metric, label = variable["definition"][len("label_values("):-1].split(", ")
            found = self.ask("query", query=f"count by ({label}) ({metric})")["result"]
            self.assertGreaterEqual(len(found), 2, variable)

    def test_the_page_is_right(self):
        page = subprocess.run([PAGES, "7"], stdout=subprocess.PIPE, check=True).stdout
        checked = subprocess.run(["promtool", "check", "metrics"], input=page, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False)
        # 3: words of advice on names only
        self.assertIn(checked.returncode, (0, 3), checked.stdout[:2000])


if __name__ == "__main__":
    unittest.main(verbosity=2)
