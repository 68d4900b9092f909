#!/usr/bin/env python3
# timeout: 300
"""Metrics of many hosts through a real Kafka: workers and the root are killed at random moments (RUNS=N runs), and
each sample is in the sums once.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
from pushed import Pushed  # noqa: E402
from broker import ENVIRONMENT, Broker, fetch_kafka, free_port, wait_until  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
NODES = os.path.join(os.environ["BUILD"], "tests/work/nodes")
RUNS = int(os.environ.get("RUNS", "1"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
SESSION_S = 6  # a worker's, in its group


class Service:
    """`blkin work`, or its root; started again under the same name."""

    def __init__(self, test, name, *flags, **keys):
        self.port = free_port()
        self.log = f"{test.folder}/{name}.log"
        keys = {"input": f"kafka://{test.broker.address}/{test.topic}", "host_input": test.topic, "deltas": test.deltas,
                "prometheus_listen": f"127.0.0.1:{self.port}", "log_level": "info", "host_groups": "all=*; osd=osd-*,none",
                "runtime_dir": f"{test.folder}/run-{name}", "state_dir": f"{test.folder}/state-{name}", **keys}
        self.args = [BLKIN, "work", *flags, *(f"--{key.replace('_', '-')}={value}" for key, value in keys.items())]
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def keep_up(self):
        """As systemd does."""
        if self.process.poll() is not None:
            self.start()

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def document(self):
        text = self.get("/statistics")
        return json.loads(text) if text else None


def rows(document, hosts):
    """METRIC|INSTANCE -> [samples, increase]."""
    return {f"{row['metric']}|{row['instance']}": [row["samples"], row["increase"]]
            for row in (document or {"hosts": []})["hosts"] if row["hosts"] == hosts}


def points(document, hosts="all"):
    return sum(samples for samples, _ in rows(document, hosts).values())


class Hosts(Pushed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.broker = Broker(JARS, folder.name, offsets_topic_num_partitions=4, transaction_state_log_num_partitions=4)
        cls.broker.start()
        cls.addClassCleanup(lambda: cls.broker.process.poll() is None and cls.broker.kill())
        cls.broker.wait_ready()

    def begin(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.topic, self.deltas = f"hosts-{name}", f"deltas-{name}"
        self.broker.create(self.topic, 4, message_timestamp_type="LogAppendTime")
        self.broker.create(self.deltas)

    def service(self, name, *flags, **keys):
        service = Service(self, name, *flags, **keys)
        self.addCleanup(service.end)
        return service.start()

    def nodes(self, *options):
        nodes = subprocess.Popen([NODES, self.broker.address, self.topic, *options], stdout=subprocess.PIPE, env=ENVIRONMENT)
        self.addCleanup(lambda: nodes.poll() is None and nodes.kill())
        return nodes

    def sent(self, nodes):
        text = nodes.communicate(timeout=300)[0]
        self.assertEqual(nodes.returncode, 0)
        return json.loads(text)

    def wait_points(self, root, services, expected):
        def all_are_there():
            for service in services:
                service.keep_up()
            return points(root.document()) >= expected
        wait_until(all_are_there, lambda: f"{expected} points, but {points(root.document())}: " +
                   "".join(service.said() for service in services), 90)

    def check(self, document, sent):
        self.assertEqual(rows(document, "all"), sent["metrics"])
        self.assertEqual([document["refused"], document["gaps"]], [0, 0])

    def test_killed(self):
        print("SEED", SEED)
        chance = random.Random(SEED)
        gaps = []
        for number in range(RUNS):
            with self.subTest(run=number):
                gaps.append(self.run_with_kills(f"{number}", chance))
        print("no news for", sorted(round(gap, 1) for gap in gaps), "s at most")

    def run_with_kills(self, name, chance):
        """The longest time that the root, while it ran, had nothing new to show: it may be as long as the session of a
        worker that was killed, and what it takes to hand its partitions on."""
        self.begin(name)
        workers = [self.service(f"worker-{i}", group=self.topic, instance=f"{self.topic}-{i}") for i in range(2)]
        root = self.service("root", "--root")
        wait_until(lambda: root.document() is not None, root.said, 60)
        nodes = self.nodes("hosts=12", "seconds=11", "period-ms=200", "send-ms=300", f"seed={chance.randrange(1 << 30)}")
        victims = [*workers, root]

        def something_is_shown():
            for victim in victims:
                victim.keep_up()
            return points(root.document()) > 0
        wait_until(something_is_shown, lambda: root.said() + workers[0].said(), 60)
        due = {victim: time.monotonic() + chance.uniform(0, 9) for victim in victims}
        shown, since, gap = 0, time.monotonic(), 0
        while nodes.poll() is None:
            for victim in victims:
                victim.keep_up()
                if victim in due and time.monotonic() > due[victim]:
                    del due[victim]
                    victim.kill()
                    victim.start()
            document = root.document()
            if document:
                self.assertGreaterEqual(points(document), shown)  # numbers never fall
                if points(document) > shown:
                    gap, since, shown = max(gap, time.monotonic() - since), time.monotonic(), points(document)
            time.sleep(0.05)
        sent = self.sent(nodes)
        self.wait_points(root, victims, sent["points"])
        self.check(root.document(), sent)
        self.check_page(root, sent)
        once = subprocess.run([*root.args, "--once", "--json"], stdout=subprocess.PIPE, check=True, timeout=60, env=ENVIRONMENT)
        self.check(json.loads(once.stdout), sent)
        for service in victims:
            service.end()
        return gap

    def check_page(self, root, sent):
        from prometheus_client.parser import text_string_to_metric_families

        def a_window_is_shown():
            page = root.get("/metrics") or ""
            return 'blkin_hosts_reporting{hosts="osd"} 6' in page and 'blkin_hosts_reporting{hosts="all"} 12' in page
        wait_until(a_window_is_shown, lambda: root.get("/metrics"), 60)
        families = {family.name: family for family in text_string_to_metric_families(root.get("/metrics"))}
        self.assertEqual({sample.labels["hosts"]: sample.value for sample in families["blkin_hosts_samples"].samples},
                         {"all": sent["points"], "osd": sent["points"] / 2})
        stats = {sample.labels["stat"]: sample.value for sample in
                 families["blkin_hosts_system_network_io_receive_bytes_per_second"].samples if sample.labels["hosts"] == "all"}
        self.assertAlmostEqual(stats["sum"], 12 * stats["average"], delta=stats["sum"] * 1e-9)
        self.assertLess(stats["min"], stats["average"])
        self.assertGreater(stats["max"], stats["average"])
        self.assertEqual(families["blkin_hosts_system_cpu_time_user_seconds"].type, "counter")

    def test_blkin_host(self):
        """This host, from its /proc to the root: what was acknowledged is in the sums; and its own page."""
        self.begin("real")
        worker = self.service("worker", group=self.topic)
        root = self.service("root", "--root")
        port = free_port()
        with open(self.folder + "/host.log", "wb") as log:
            host = subprocess.Popen(
                [BLKIN, "host", f"--host-endpoint=kafka://{self.broker.address}/{self.topic}", "--host-send-ms=300",
                 f"--host-listen={port}", "--cpu=200ms", f"--runtime-dir={self.folder}/run-host"], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=ENVIRONMENT)
        self.addCleanup(host.wait)
        self.addCleanup(host.kill)

        def sent():
            status = subprocess.run([BLKIN, "status", "--json", f"--runtime-dir={self.folder}/run-host", "host"],
                                    stdout=subprocess.PIPE, env=ENVIRONMENT, timeout=30, check=False).stdout
            return json.loads(status or "{}").get("sent", {})
        wait_until(lambda: sent().get("acknowledged", 0) > 200, lambda: str(sent()), 60)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        with open("/proc/stat", encoding="ascii") as file:
            ticks = int(file.readline().split()[1])
        seconds = float(next(line.split()[-1] for line in page.splitlines()
                             if line.startswith("blkin_host_system_cpu_time_user_seconds_total{") and 'name=""' in line))
        self.assertLess(seconds, ticks / os.sysconf("SC_CLK_TCK") + 0.01)
        self.assertGreater(seconds, 0)
        self.assertIn("blkin_host_cpu_busy_percent{", page)
        host.terminate()
        host.wait(30)
        self.assertEqual(host.returncode, 0)
        self.wait_points(root, [worker, root], 200)
        self.assertIn("system.cpu.time.user|", rows(root.document(), "all"))
        self.assertEqual(points(root.document(), "osd"), 0)

    def test_what_is_no_metric(self):
        self.begin("broken")
        worker = self.service("worker", group=self.topic)
        self.broker.topic("produce", self.topic, 0, input=b"of somebody else")
        nodes = self.nodes("hosts=1", "seconds=2", "period-ms=100", "send-ms=100")
        sent = self.sent(nodes)

        def page():
            return dict(line.rsplit(" ", 1) for line in (worker.get("/metrics") or "").splitlines() if line[:1] != "#")
        wait_until(lambda: page().get("blkin_work_host_points_total") == str(sent["points"]), lambda: str(page()), 60)
        self.assertEqual(page()["blkin_work_host_messages_broken_total"], "1")

    def test_wrong_groups(self):
        self.begin("groups")
        for groups in ("x", "x=", ";", "a=b;="):
            worker = self.service("worker", host_groups=groups)
            self.assertEqual(worker.process.wait(30), 1, groups)
            self.assertIn("host-groups: ", worker.said())


if __name__ == "__main__":
    JARS = fetch_kafka()
    unittest.main(verbosity=2)
