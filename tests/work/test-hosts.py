#!/usr/bin/env python3
# timeout: 300
"""Metrics of many hosts through a real Kafka: workers and the root are killed at random moments (RUNS=N runs), and
each sample is in the sums once.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path[:0] = [os.path.join(os.environ["SRC"], folder) for folder in ("tests/kafka", "tests/otel", "bench")]
import figures  # noqa: E402
import kafka  # noqa: E402
from broker import ENVIRONMENT, fetch_kafka, free_port, start_broker, wait_until  # noqa: E402
from common import otelcol_config  # noqa: E402
from part import Part  # noqa: E402
import semconv  # noqa: E402
import together  # noqa: E402
from pushed import Pushed  # noqa: E402
from services import BLKIN, SPAN, Service, start_collector  # noqa: E402

NODES = os.path.join(os.environ["BUILD"], "tests/work/nodes")
SLOW = os.path.join(os.environ["BUILD"], "tests/scale/slow.so")
FIRST = int(os.environ.get("FIRST", "0"))  # the number of the first run: with SEED, that one is done again
RUNS = range(FIRST, FIRST + int(os.environ.get("RUNS", "1")))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
LENGTH_S = int(os.environ.get("LENGTH_S", "11"))  # of a run with kills: a window has to begin in it
SESSION_S = 6  # a worker's, in its group
SPARE_S = float(os.environ.get("SPARE_S", "inf"))  # beyond a session: nothing new is shown; a matter of speed, so not of each check
PARTITIONS = 4


RECEIVER = """
receivers:
  kafka:
    brokers: ["{broker}"]
    group_id: otel
    initial_offset: earliest
    metrics: {{topic: {topic}, encoding: otlp_proto}}
exporters:
  file: {{path: {file}, flush_interval: 100ms}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    metrics: {{receivers: [kafka], exporters: [file]}}
"""


class Worker(Service):
    """Or the root."""

    def __init__(self, test, name, *flags, **keys):
        super().__init__(test.folder, name, *flags, **{
            "input": f"kafka://{test.broker.address}/{test.topic}", "host_input": test.topic, "deltas": test.deltas,
            "host_groups": "all=*; osd=osd-*,none", **keys})
        self.back = 0  # it is killed until then

    def kill_for(self, pause_s):
        self.kill()
        self.back = time.monotonic() + pause_s

    def keep_up(self):
        """As systemd does. Returns whether it was started again."""
        is_due = self.process.poll() is not None and time.monotonic() >= self.back
        if is_due:
            self.start()
        return is_due

    def value(self, name):
        """Of a metric without labels."""
        return next((float(line.split()[1]) for line in (self.get("/metrics") or "").splitlines()
                     if line.split()[0] == name), 0)


def rows(document, hosts):
    """METRIC|INSTANCE -> [samples, increase]."""
    return {f"{row['metric']}|{row['instance']}": [row["samples"], row["increase"]]
            for row in (document or {"hosts": []})["hosts"] if row["hosts"] == hosts}


def points(document, hosts="all"):
    return sum(samples for samples, _ in rows(document, hosts).values())


def print_figure(name, value, unit, target, anchor):
    """As bench/bench reads them."""
    figures.say(name, figures.exact(value, unit, target, anchor))


class News:
    """The longest time in which nothing new was shown. A worker that is killed, or back when there was no other, begins it
    anew, as what heals does."""

    def __init__(self):
        self.begin = self.since = time.monotonic()
        self.shown = self.gap = 0
        self.where = ""

    def take(self, shown):
        """0: it is away. Returns false if there is less than there was."""
        if shown > self.shown:
            self.begin_anew()
            self.shown = shown
        return shown in (0, self.shown)

    def begin_anew(self):
        now = time.monotonic()
        if now - self.since > self.gap:
            self.gap, self.where = now - self.since, f"{self.since - self.begin:.1f} to {now - self.begin:.1f}"
        self.since = now


class Hosts(Pushed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.data = pathlib.Path(folder)
        cls.broker = start_broker(cls, JARS, folder, offsets_topic_num_partitions=4, transaction_state_log_num_partitions=4)

    def begin(self, name):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.topic, self.deltas = f"hosts-{name}", f"deltas-{name}"
        self.broker.create(self.topic, PARTITIONS, message_timestamp_type="LogAppendTime")
        self.broker.create(self.deltas)

    def service(self, name, *flags, **keys):
        service = Worker(self, name, *flags, **keys)
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
        gaps = [[], []]
        for number in RUNS:
            with self.subTest(run=number):
                is_at_once = number % 2 == 1
                gap, said = self.run_with_kills(number, is_at_once, random.Random(f"{SEED}/{number}"))
                gaps[is_at_once].append(gap)
                self.assertLessEqual(gap, SPARE_S + SESSION_S * (1 if is_at_once else 2), said)
        print_figure("fleet.exact", round(sum(map(len, gaps)) / len(RUNS), 4), "share", ">= 1",
                     f"of {len(RUNS)} runs, those in which the sums of each metric are what was sent")
        for name, sessions, what in (("gap_any", 2, "killed at any time"), ("gap", 1, "all workers killed at once")):
            each = sorted(gaps[sessions == 1])
            if each:
                print_figure(f"fleet.{name}_s", round(each[-1], 1), "s", f"<= {SESSION_S * sessions + 3}",
                             f"{what}: of {len(each)} runs; the median: {each[len(each) // 2]:.1f} s")

    def run_with_kills(self, number, is_at_once, chance):
        """Returns the longest time in which the root's document, with what was under way, showed nothing new, and what
        happened. A worker that is killed has its partitions until its session times out; one that is killed while the group
        waits for that is missed one session later. So in each second run all workers are killed at once, so that nothing can
        come, and a session is the limit; else all are killed at any time, one of them twice, and two sessions are."""
        self.begin(str(number))
        workers = [self.service(f"worker-{i}", group=self.topic, instance=f"{self.topic}-{i}") for i in range(2)]
        root = self.service("root", "--root")
        victims = [*workers, root]
        wait_until(lambda: root.document() is not None, root.said, 60)
        self.wait_member(workers)
        times = [chance.uniform(0, LENGTH_S) for _ in range(4)]
        which = [0, 1, 2, chance.randrange(3)]
        if is_at_once:
            times, which = [times[0], times[0], times[2]], [0, 1, 2]
        # at once, when systemd does it, or, of a worker, when its host is back
        due = sorted((at, one, chance.choice([0, 1, chance.uniform(0, 8) if one < 2 else 1])) for at, one in zip(times, which))
        nodes = self.nodes("hosts=12", f"seconds={LENGTH_S}", "period-ms=200", "send-ms=300", f"seed={chance.randrange(1 << 30)}")
        news = News()
        kills = []

        def look():
            while due and time.monotonic() > news.begin + due[0][0]:
                at, one, pause = due.pop(0)
                kills.append(f"{victims[one].name} at {at:.1f} for {pause:.1f} s")
                victims[one].kill_for(pause)
                if one < 2:
                    news.begin_anew()
            are_away = not any(worker.runs() for worker in workers)
            for victim in victims:
                if victim.keep_up() and are_away and victim != root:
                    news.begin_anew()
            self.assertTrue(news.take(points(root.document())), "numbers fell")

        def all_is_sent():
            look()
            return nodes.poll() is not None and not due
        wait_until(all_is_sent, "all is sent", 600, every_s=0.05)
        sent = self.sent(nodes)

        def all_is_there():
            look()
            return news.shown >= sent["points"]

        def said():
            return f"{sent['points']} samples, nothing new for {news.gap:.1f} s ({news.where}); {', '.join(kills)}"
        wait_until(all_is_there, lambda: said() + f"; {news.shown} shown\n" + "".join(one.said() for one in victims), 60)
        print(f"run {number}: {said()}", flush=True)
        self.check(root.document(), sent)
        self.check_once(root, sent)
        if number == RUNS.start:  # it waits for a window to be whole
            self.check_page(root, sent)
        for service in victims:
            service.end()
        return news.gap, said() + "\n" + "".join(one.said() for one in victims)

    def wait_member(self, workers):
        """They have shared the partitions: who is killed before is not a member yet that a session is known of."""
        def each_has_its_share():
            for worker in workers:
                worker.keep_up()  # one may end while the group is formed
            return all(worker.value("blkin_work_partitions") == PARTITIONS / len(workers) for worker in workers)
        wait_until(each_has_its_share, lambda: "".join(worker.said() for worker in workers), 60)

    def check_once(self, root, sent):
        once = subprocess.run([*root.args, "--once", "--json"], stdout=subprocess.PIPE, check=True, timeout=60, env=ENVIRONMENT)
        self.check(json.loads(once.stdout), sent)

    def check_page(self, root, sent):
        from prometheus_client.parser import text_string_to_metric_families

        page = ""

        def a_window_is_shown():
            nonlocal page
            page = root.get("/metrics") or ""
            return ('blkin_hosts_reporting{hosts="osd"} 6' in page and 'blkin_hosts_reporting{hosts="all"} 12' in page and
                    'stat="sum"' in page)
        wait_until(a_window_is_shown, lambda: root.get("/metrics"), 60)
        families = {family.name: family for family in text_string_to_metric_families(page)}
        self.assertEqual({sample.labels["hosts"]: sample.value for sample in families["blkin_hosts_samples"].samples},
                         {"all": sent["points"], "osd": sent["of_osd"]})
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

    def send_on(self, data):
        """To each partition, all the time, until the test's end."""
        writer, is_over = kafka.Writer(self.broker, self.topic), threading.Event()

        def send():
            while not is_over.wait(0.005):
                for i in range(10 * PARTITIONS):
                    writer.write(i % PARTITIONS, data)
            writer.close()
        sender = threading.Thread(target=send)
        sender.start()
        self.addCleanup(sender.join)
        self.addCleanup(is_over.set)

    def test_spans_while_hosts_send(self):
        """What is due of spans is closed though nothing more comes of them, and messages of hosts never cease."""
        self.begin("busy")
        self.broker.create("spans-busy", message_timestamp_type="LogAppendTime")
        worker = Worker(self, "worker", group=self.topic, input=f"kafka://{self.broker.address}/spans-busy", wait_ms="500")
        worker.environment.update(LD_PRELOAD=SLOW, SLOW_SPAN_NS="1000000")
        self.addCleanup(worker.end)
        worker.start()
        wait_until(lambda: worker.value("blkin_work_partitions") == PARTITIONS + 1, worker.said, 60)
        self.send_on(b"." * 200)  # more than it takes
        wait_until(lambda: worker.value("blkin_work_host_messages_total") > 100, worker.said, 60)
        self.broker.produce("spans-busy", 0, SPAN)
        wait_until(lambda: worker.value("blkin_work_spans_counted_total") == 1, lambda: worker.get("/metrics"), 15)

    def test_reloaded_without_brokers(self):
        """What no broker has taken by then is counted as given up, and said; the account goes on."""
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        host = Part(self.folder + "/host.log", [
            BLKIN, "host", f"--host-endpoint=kafka://127.0.0.1:{free_port()}/none", "--host-send-ms=100", "--cpu=100ms",
            f"--runtime-dir={self.folder}/run", f"--state-dir={self.folder}/state"]).start()
        self.addCleanup(host.end)

        def blkin(*args):
            return subprocess.run([BLKIN, *args, f"--runtime-dir={self.folder}/run", "host"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, env=ENVIRONMENT, timeout=30, check=False).stdout

        def sent():
            return json.loads(blkin("status", "--json") or "{}").get("sent", {})
        wait_until(lambda: sent().get("waiting", 0) > 100, host.said, 60)
        before = sent()
        blkin("reload")
        after = sent()
        self.assertGreaterEqual(after["points"], before["points"])
        self.assertGreaterEqual(after["failed"] + after["dropped"], before["points"])
        self.assertEqual(after["points"], sum(after[name] for name in ("acknowledged", "failed", "dropped", "waiting")))
        self.assertIn(" points are lost: the brokers did not take them in time", host.said())
        self.assertEqual(host.end(), 0)

    def test_otel_reads_them(self):
        """A real OpenTelemetry collector reads what hosts write: by its semantic conventions, or as ours; nothing is lost."""
        self.begin("conventions")
        stored = self.folder + "/stored.json"
        start_collector(self, RECEIVER.format(broker=self.broker.address, topic=self.topic, file=stored))
        sent = self.sent(self.nodes("hosts=2", "seconds=3", "period-ms=200", "send-ms=200"))

        def found():
            """Each data point: of which metric, of what shape."""
            if not os.path.exists(stored):
                return []
            with open(stored, encoding="utf-8") as file:
                return [(metric["name"], metric.get("unit", ""), kind, point)
                        for line in file.read().split("\n")[:-1] for group in json.loads(line)["resourceMetrics"]
                        for scope in group["scopeMetrics"] for metric in scope["metrics"]
                        for kind in {"sum", "gauge"} & metric.keys() for point in metric[kind]["dataPoints"]]
        wait_until(lambda: len(found()) >= sent["points"], lambda: f"{len(found())} of {sent['points']} points", 90)
        points, known = found(), semconv.metrics()
        self.assertEqual(len(points), sent["points"])
        sums = {}
        for name, unit, kind, point in points:
            values = {one["key"]: one["value"] for one in point.get("attributes", [])}
            key = (name, *sorted(next(iter(value.values())) for value in values.values()))
            sums[key] = sums.get(key, 0) + float(point.get("asDouble", point.get("asInt", 0)))
            self.assertNotEqual(unit, "ns", name)
            if name not in known:
                self.assertTrue(name.startswith("blkin.host."), name)
                continue
            instrument, wanted, attributes = known[name]
            self.assertEqual((unit, kind), (wanted, "sum" if instrument == "counter" else "gauge"), name)
            self.assertEqual("asDouble" in point, unit == "s", name)
            self.assertLessEqual(values.keys(), attributes, name)
            for attribute in values.keys() & semconv.VALUES.keys():
                self.assertIn(values[attribute]["stringValue"], semconv.VALUES[attribute])
        print(f"{len({name for name, *_ in points} & known.keys())} names of the conventions, "
              f"{len({name for name, *_ in points} - known.keys())} of ours")

        def increase(key):
            return sent["metrics"][key][1]
        for key, expected in ((("system.disk.io_time", "vda"), increase("system.disk.io_time|vda") / 1e9),
                              (("system.cpu.time", "softirq"), increase("system.cpu.time.softirq|") / 1e9),
                              (("system.disk.io", "read", "vdb"), increase("system.disk.io.read|vdb")),
                              (("system.network.io", "eth0", "receive"), increase("system.network.io.receive|eth0")),
                              (("process.cpu.time", "123", "redis-server", "user"),
                               increase("process.cpu.time.user|redis-server") / 1e9),
                              (("blkin.host.system.disk.weighted_io_time", "vda"),
                               increase("system.disk.weighted_io_time|vda") / 1e9)):
            self.assertAlmostEqual(sums[key], expected, delta=1e-9 * max(expected, 1), msg=key)

    def test_otel_takes_them(self):
        """A real OpenTelemetry collector gets from the root what was sent: cumulative sums, and the window that is shown."""
        self.begin("pushed")
        port, stored = free_port(), self.folder + "/stored.json"
        start_collector(self, otelcol_config(port, stored, "metrics"))
        self.service("worker", group=self.topic)
        root = self.service("root", "--root", otlp_metrics=f"http://127.0.0.1:{port}")
        sent = self.sent(self.nodes("hosts=4", "seconds=11", "period-ms=200", "send-ms=200"))
        expected = {"blkin.hosts.samples": {key: samples for key, (samples, _) in sent["metrics"].items()},
                    "blkin.hosts.increase": {key: increase for key, (_, increase) in sent["metrics"].items()}}

        def points():
            """Of all hosts, as they came: METRIC, METRIC|INSTANCE, the data point, its attributes, and of what kind it is."""
            with open(stored, encoding="utf-8") as file:
                for group in (group for line in file.read().split("\n")[:-1] for group in json.loads(line)["resourceMetrics"]):
                    for metric in (metric for scope in group["scopeMetrics"] for metric in scope["metrics"]):
                        for kind in {"sum", "gauge"} & metric.keys():
                            for point in metric[kind]["dataPoints"]:
                                names = {one["key"]: one["value"].get("stringValue", "") for one in point.get("attributes", [])}
                                if names.get("hosts") == "all":
                                    yield (metric["name"], f"{names['metric']}|{names['instance']}", point, names,
                                           (kind, metric[kind].get("aggregationTemporality"), metric[kind].get("isMonotonic")))

        def latest(until_ns=None):
            """METRIC -> METRIC|INSTANCE -> the last of these, or that of the window that ends then."""
            found = {}
            for name, key, *one in points():
                if until_ns in (None, one[0]["timeUnixNano"]):
                    found.setdefault(name, {})[key] = one
            return found

        def whole_window():
            """The end of a window that has samples of each metric of all hosts; None: there was none so far."""
            windows = {}
            for name, key, point, *_ in points():
                if name == "blkin.hosts.window.hosts":
                    windows.setdefault(point["timeUnixNano"], {})[key] = int(point["asInt"])
            return next((end for end, hosts in windows.items() if hosts == dict.fromkeys(sent["metrics"], 4)), None)

        def values(name):
            return {key: int(point["asInt"]) for key, (point, _, _) in latest().get(name, {}).items()}
        wait_until(lambda: os.path.exists(stored) and values("blkin.hosts.samples") == expected["blkin.hosts.samples"] and
                   whole_window(), root.said, 60)
        counters = {key for key, (_, names, _) in latest()["blkin.hosts.samples"].items() if names["kind"] == "counter"}
        self.assertEqual(values("blkin.hosts.increase"),
                         {key: increase for key, increase in expected["blkin.hosts.increase"].items() if key in counters})
        for name in expected:
            self.assertEqual({kind for _, _, kind in latest()[name].values()}, {("sum", 2, True)})
        found = latest()
        units = {key: names["unit"] for key, (_, names, _) in found["blkin.hosts.samples"].items()}
        self.assertEqual((units["system.cpu.time.user|"], units["system.network.io.receive|eth0"]), ("ns", "By"))
        window = latest(whole_window())
        shown = {what: window[f"blkin.hosts.window.{what}"] for what in ("average", "sum", "min", "max")}
        self.assertEqual({key: kind for key, (_, _, kind) in shown["sum"].items()},
                         {key: ("gauge", None, None) for key in sent["metrics"]})
        for key, (point, _, _) in shown["sum"].items():
            average, least, most = (shown[what][key][0] for what in ("average", "min", "max"))
            self.assertAlmostEqual(point["asDouble"], 4 * average["asDouble"], delta=abs(point["asDouble"]) * 1e-9)
            self.assertTrue(least["asDouble"] <= average["asDouble"] * (1 + 1e-9), key)
            self.assertTrue(average["asDouble"] <= most["asDouble"] * (1 + 1e-9), key)
            self.assertEqual(int(point["timeUnixNano"]) - int(point["startTimeUnixNano"]), 10 ** 10)

    def test_what_is_no_metric(self):
        self.begin("broken")
        worker = self.service("worker", group=self.topic)
        self.broker.produce(self.topic, 0, b"of somebody else")
        nodes = self.nodes("hosts=1", "seconds=2", "period-ms=100", "send-ms=100")
        sent = self.sent(nodes)

        def page():
            return dict(line.rsplit(" ", 1) for line in (worker.get("/metrics") or "").splitlines() if line[:1] != "#")
        wait_until(lambda: page().get("blkin_work_host_points_total") == str(sent["points"]), lambda: str(page()), 60)
        self.assertEqual(page()["blkin_work_host_messages_broken_total"], "1")

    def test_a_broker_loses_the_end(self):
        """The log is shorter than what was read: what is written after the cut is counted, though its offsets were read before."""
        self.begin("cut")
        worker = self.service("worker", group=self.topic)
        root = self.service("root", "--root")
        first = self.sent(self.nodes("hosts=4", "seconds=2", "period-ms=100", "send-ms=100"))
        self.wait_points(root, [worker, root], first["points"])
        worker.end()
        self.broker.kill()
        for log in self.data.glob(f"**/{self.topic}-*/*.log"):
            os.truncate(log, log.stat().st_size // 3)
        self.broker.start()
        self.broker.wait_ready()
        second = self.sent(self.nodes("hosts=4", "seconds=1", "period-ms=100", "send-ms=1000", "seed=2"))
        worker.start()
        self.wait_points(root, [worker, root], first["points"] + second["points"])
        self.assertEqual(points(root.document()), first["points"] + second["points"])
        self.assertGreater(worker.value("blkin_work_offsets_missing_total"), 0)
        self.assertIn("offsets are missing", worker.said())

    def test_wrong_groups(self):
        self.begin("groups")
        for groups in ("x", "x=", ";", "a=b;="):
            worker = self.service("worker", host_groups=groups)
            self.assertEqual(worker.process.wait(30), 1, groups)
            self.assertIn("host-groups: ", worker.said())


if __name__ == "__main__":
    JARS = fetch_kafka()
    together.main(Hosts, alone=["test_a_broker_loses_the_end", "test_pushed"])
