#!/usr/bin/env python3
"""Metrics of five hosts through two levels of real Prometheus servers, with the shipped rules and dashboard. A host, a
server of the lower level and one of the upper level are killed and started again; the sums are correct.

SPDX-License-Identifier: BSD-2-Clause
"""
# timeout: 180
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import free_port, wait_until  # noqa: E402
from part import Part, page  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
SHIPPED = os.path.join(os.environ["SRC"], "packaging/prometheus")
DASHBOARD = os.path.join(os.environ["SRC"], "packaging/grafana/blkin-hosts.json")
GROUPS = {"store": (1, 2, 3), "gateway": (4, 5)}
LIMIT_S = 40
PRESSURE = "some avg10=0 avg60=0 avg300=0 total={0}\nfull avg10=0 avg60=0 avg300=0 total={0}\n"
TCP = "RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs"


class Host:
    """`blkin agent` over a /proc that the test writes. Host N has N0 % of its memory available and N running threads
    beside the sampler's own, which does not count."""

    def __init__(self, folder, number):
        self.number, self.root, self.port = number, f"{folder}/host-{number}", free_port()
        self.ticks = 0
        os.makedirs(self.root + "/proc/pressure")
        os.makedirs(self.root + "/proc/net")
        os.makedirs(self.root + "/proc/7")
        self.write("meminfo", f"MemTotal: 1000 kB\nMemAvailable: {number * 100} kB\n")
        self.write("7/stat", "7 (daemon) S 1 1 1 0 -1 0 0 0 0 0 10 10 0 0 20 0 4 0 1 4096 1 0\n")
        self.tick()
        shell = f"hostname host-{number}; exec \"$@\""
        self.part = Part(f"{self.root}/log", [
            "unshare", "--uts", "sh", "-c", shell, "sh", BLKIN, "agent", "--host=yes", f"--host-root={self.root}",
            f"--prometheus-listen=127.0.0.1:{self.port}", f"--ring-socket={self.root}/rings", f"--runtime-dir={self.root}/run", f"--state-dir={self.root}/state",
            "--network=100ms eth0", "--disk=100ms sda", "--memory=100ms", "--cpu=100ms", "--run-queue=100ms",
            "--pressure=100ms", "--tcp=100ms", "--process=100ms daemon"])
        self.part.start()

    def write(self, name, text):
        """Writes in one call and never less than before, because the sampler keeps files open."""
        descriptor = os.open(f"{self.root}/proc/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(descriptor, text.encode(), 0)
        os.close(descriptor)

    def tick(self):
        """Lets the host's counters grow."""
        self.ticks += 1
        n = self.ticks
        self.write("stat", f"cpu  {10**6 + n} 0 {10**6 + n} {10**7 + 8 * n} 0 0 0 0 0 0\nctxt {10**6 + n}\nprocesses {10**6}\n"
                           f"procs_running {self.number + 1}\nprocs_blocked 0\n")
        self.write("diskstats", f"8 0 sda {10**6 + n} 0 {10**6 + n} {10**6 + n} {10**6 + n} 0 {10**6 + n} {10**6 + n} 0 {10**6 + n} {10**6 + n}\n")
        self.write("net/dev", f"Inter-|   Receive |  Transmit\n face |bytes|bytes\n  eth0: {10**6 + n * self.number} 1 0 0 0 0 0 0 {10**6 + n} 1 0 0 0 0 0 0\n")
        self.write("net/snmp", f"Tcp: {TCP}\nTcp: 1 200 120000 -1 1 1 0 0 1 {10**6 + n} {10**6 + n} {10**6}\n")
        for name in ("cpu", "io", "memory"):
            self.write(f"pressure/{name}", PRESSURE.format(10**6 + n))

    def received(self):
        return 10**6 + self.ticks * self.number


class Server:
    """A Prometheus server."""

    def __init__(self, folder, name, shipped, targets, **labels):
        self.port, place = free_port(), f"{folder}/{name}"
        os.mkdir(place)
        for rules in os.listdir(SHIPPED):
            shutil.copy(f"{SHIPPED}/{rules}", place)
        with open(f"{place}/{shipped}", encoding="utf-8") as file:
            text = file.read().replace("interval: 10s", "interval: 1s").replace("{replica: a}", json.dumps(labels))
        # replaces the example's targets, which are the rest of the file
        text = text[:text.index("    static_configs:")] + "    static_configs: " + json.dumps(targets) + "\n"
        with open(f"{place}/prometheus.yml", "w", encoding="utf-8") as file:
            file.write(text)
        self.part = Part(f"{place}/log", ["prometheus", f"--config.file={place}/prometheus.yml",
                                          f"--storage.tsdb.path={place}/data", f"--web.listen-address=127.0.0.1:{self.port}"])
        self.part.start()

    def target(self):
        return f"127.0.0.1:{self.port}"

    def ask(self, query):
        """Returns labels and values; empty also while the server starts or is away."""
        try:
            with urllib.request.urlopen(f"http://{self.target()}/api/v1/query?" + urllib.parse.urlencode({"query": query}),
                                        timeout=10) as answer:
                return [(one["metric"], float(one["value"][1])) for one in json.load(answer)["data"]["result"]]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []
            raise AssertionError(error.read().decode()) from error
        except (OSError, http.client.HTTPException):
            return []

    def value(self, query):
        found = self.ask(query)
        return round(found[0][1], 6) if len(found) == 1 else None


@unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
class Hierarchy(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.hosts = {number: Host(folder, number) for numbers in GROUPS.values() for number in numbers}
        self.lower, self.upper = [], []
        for group, numbers in GROUPS.items():
            targets = [{"targets": [f"127.0.0.1:{self.hosts[number].port}" for number in numbers],
                        "labels": {"hosts": group}}]
            for replica in "ab":
                self.lower.append(Server(folder, f"{group}-{replica}", "prometheus-hosts.yml", targets, replica=replica))
        for name in ("top-a", "top-b"):
            self.upper.append(Server(folder, name, "prometheus-top.yml",
                                     [{"targets": [server.target() for server in self.lower]}]))
        for part in self.parts():
            self.addCleanup(part.process.wait)
            self.addCleanup(part.kill)

    def parts(self):
        return [one.part for one in (*self.hosts.values(), *self.lower, *self.upper)]

    def sums(self, server):
        return {(metric, what): server.value(f"blkin_all_hosts:{metric}:{what}")
                for metric in ("memory_available_share_percent", "system_process_count_running")
                for what in ("sum", "count", "min", "max")} | {"up": server.value("blkin_all_hosts:reporting:sum")}

    def expected(self, numbers):
        of = {"memory_available_share_percent": [10 * number for number in numbers], "system_process_count_running": list(numbers)}
        return {(metric, what.__name__ if what is not len else "count"): what(values)
                for metric, values in of.items() for what in (sum, len, min, max)} | {"up": len(numbers)}

    def check(self, numbers, servers):
        """Checks that the sums of these upper servers are those of these hosts."""
        expected = self.expected(numbers)
        for server in servers:
            wait_until(lambda server=server: self.sums(server) == expected,
                       lambda server=server: f"{expected}, but {self.sums(server)}: {server.part.said()[-500:]}", LIMIT_S, 0.2)

    def check_counters(self, servers):
        """Checks that the lower servers have lost no count, whichever part was away."""
        for host in self.hosts.values():
            host.tick()
        for server, group in servers:
            expected = sum(self.hosts[number].received() for number in GROUPS[group])
            query = "sum(blkin_host_system_network_io_receive_bytes_total)"
            wait_until(lambda server=server, expected=expected: server.value(query) == expected,
                       lambda server=server, expected=expected: f"{group}: {expected}, but {server.value(query)}", LIMIT_S, 0.2)

    def test_kills(self):
        everyone = range(1, 6)
        lower = [(server, group) for server, group in zip(self.lower, ("store", "store", "gateway", "gateway"))]
        self.check(everyone, self.upper)
        self.check_counters(lower)

        self.lower[0].part.kill()
        self.check_counters(lower[1:])
        self.check(everyone, self.upper)
        self.upper[0].part.kill()
        self.check(everyone, self.upper[1:])
        self.hosts[5].part.kill()
        self.check(range(1, 5), self.upper[1:])

        self.hosts[5].part.start()
        self.lower[0].part.start()
        self.upper[0].part.start()
        self.check(everyone, self.upper)
        self.check_counters(lower)
        self.dashboard()

    def dashboard(self):
        """Checks that each query of the dashboard has an answer, and that the page of a host is well-formed."""
        with open(DASHBOARD, encoding="utf-8") as file:
            dashboard = json.load(file)
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 15)
        for variable in dashboard["templating"]["list"][1:]:
            metric, label = variable["definition"][len("label_values("):-1].split(", ")
            queries.append(f"count by ({label}) ({metric})")
        for query in queries:
            asked = query.replace("$hosts", ".*").replace("$host", ".*").replace("$__rate_interval", "1m")
            self.assertNotIn("$", asked)

            def answered(asked=asked):
                for host in self.hosts.values():
                    host.tick()
                return self.lower[1].ask(asked)
            wait_until(answered, asked, LIMIT_S, 0.2)
        said = page(f"http://127.0.0.1:{self.hosts[1].port}/metrics")
        self.assertIn('blkin_host_system_network_io_receive_bytes_total{host="host-1",name="eth0"} ', said)
        self.assertEqual(len(re.findall("^# TYPE", said, re.MULTILINE)), len(set(re.findall("^# TYPE .*", said, re.MULTILINE))))
        checked = subprocess.run(["promtool", "check", "metrics"], input=said.encode(), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False)
        self.assertIn(checked.returncode, (0, 3), checked.stdout[:2000])  # 3: advice on names only


if __name__ == "__main__":
    unittest.main(verbosity=2)
