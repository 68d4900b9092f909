#!/usr/bin/env python3
# The root on a real Kafka shows the sum of three workers' commits, and its page for Prometheus has the same sum. The sum
# holds after kills at random moments (KILLS=N), after the broker was away, and after the topic has lost messages.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
from broker import ENVIRONMENT, fetch_kafka, free_port, start_broker, wait_until  # noqa: E402
from common import LIMIT_S, PATIENCE, look_for  # noqa: E402
from services import BLKIN, SPAN, Service  # noqa: E402
import together  # noqa: E402

FEED = os.path.join(os.environ["BUILD"], "tests/work/feed")
KILLS = int(os.environ.get("KILLS", "4"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)


def same(document):
    """Returns the parts, sorted, that are equal in all documents of the same spans."""
    def histogram(one):
        return {**one, "sum": float(f"{one['sum']:.9g}")}
    rows = [(row["service"], row["name"], row["spans"], row["errors"], histogram(row["duration"]), histogram(row["self"]))
            for row in document["rows"]]
    edges = [(edge["client"], edge["server"], edge["calls"], edge["errors"], histogram(edge["duration"]))
             for edge in document["edges"]]
    return sorted(rows, key=repr), sorted(edges, key=repr)


class Root(Service):
    def __init__(self, test, **keys):
        super().__init__(test.folder, "root", "--root", **{
            "input": test.url(), "deltas": test.topic_name, "runtime_dir": test.folder + "/run", "state_dir": test.folder + "/state",
            **keys})

    def wait_spans(self, spans):
        def has_them():
            if self.process.poll() is not None:
                raise AssertionError("the root has ended: " + self.said())
            document = self.document()
            return document and document["spans"] >= spans
        wait_until(has_them, lambda: f"{spans} spans, but {(self.document() or {}).get('spans')}: {self.said()}", 60)
        return self.document()


class RootTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.broker = start_broker(cls, JARS, folder)

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.topic_name = self.id().rsplit(".", 1)[1]
        self.broker.create(self.topic_name, 2)

    def url(self):
        return f"kafka://{self.broker.address}/traces"

    def root(self, **keys):
        root = Root(self, **keys)
        self.addCleanup(root.end)
        return root.start()

    def feed(self, rounds, pause_ms):
        return subprocess.Popen([FEED, self.broker.address, self.topic_name, str(rounds), str(pause_ms)],
                                stdout=subprocess.PIPE, env=ENVIRONMENT)

    def fed(self, feeding):
        text = feeding.communicate(timeout=4 * LIMIT_S)[0]
        self.assertEqual(feeding.returncode, 0)
        return json.loads(text)

    def once(self, *args, stdout=subprocess.PIPE):
        run = subprocess.run([BLKIN, "work", "--root", "--once", f"--input={self.url()}", f"--deltas={self.topic_name}",
                              *args], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, env=ENVIRONMENT,
                             check=False)
        return run.returncode, run.stdout, run.stderr

    def check_same(self, document, expected):
        self.assertEqual(document["spans"], expected["spans"])
        self.assertTrue(same(document) == same(expected), "rows, edges or histograms are other ones")

    def status(self):
        command = [BLKIN, "status", "--json", f"--runtime-dir={self.folder}/run", "work-root"]  # gives up after 5 s
        said = wait_until(lambda: subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout, "a status")
        return json.loads(said)

    def test_killed(self):
        """Committed counts are counted once, after any kills of the root; and numbers never fall."""
        print("SEED", SEED)
        chance = random.Random(SEED)
        root = self.root()
        feeding = self.feed(40 * KILLS, 50)
        shown = [0]

        def look():
            document = root.document()
            if document:
                shown.append(document["spans"])
                self.assertGreaterEqual(*shown[:-3:-1])
        for _ in range(KILLS):
            look_for(chance.uniform(0, 4), look)
            root.kill()
            root.start()
        expected = self.fed(feeding)
        document = root.wait_spans(expected["spans"])
        self.check_same(document, expected)
        self.assertEqual([document["refused"], document["gaps"]], [0, 0])
        self.assertEqual(sorted(worker["instance"] for worker in document["workers"]),
                         ["worker-0", "worker-1", "worker-2"])
        self.assertEqual(sum(worker["spans_counted"] for worker in document["workers"]), expected["spans"])
        # ended in order: its file has everything
        self.assertEqual(root.end(), 0)
        self.assertEqual(os.stat(self.folder + "/state/work-root.json").st_mode & 0o777, 0o600)
        self.broker.delete(self.topic_name)
        self.broker.create(self.topic_name, 2)
        with open(self.folder + "/state/work-root.json", encoding="utf-8") as file:
            self.check_same(json.load(file)["statistics"], expected)

    def test_page_and_once(self):
        expected = self.fed(self.feed(3, 0))
        self.broker.produce(self.topic_name, 0, b"of somebody else")
        root = self.root()
        document = root.wait_spans(expected["spans"])
        self.check_same(document, expected)
        self.assertEqual(document["refused"], 1)
        page = root.get("/metrics")
        self.check_page(page, expected)
        self.assertIsNone(root.get("/other"))
        for options in (["--json"], ["--since=1h", "--json"]):
            status, text, _ = self.once(*options)
            self.assertEqual((status, same(json.loads(text))), (0, same(expected)))
        status, text, _ = self.once("--since=2099-01-01T00:00:00Z", "--json")
        self.assertEqual((status, json.loads(text)["spans"]), (0, 0))
        self.assertIn("worker-1", self.once()[1])
        with open("/dev/full", "wb") as full:
            status, _, errors = self.once(stdout=full)
        self.assertEqual(status, 1)
        self.assertIn("cannot write the sums to the standard output", errors)
        status = wait_until(lambda: (status := self.status())["state"] == "serving" and status, "it serves", 60)
        self.assertEqual((status["mode"], len(status["workers"])), ("work-root", 3))
        self.assertGreater(status["deltas"], 0)
        self.assertIn("BK7047", [message["id"] for message in status["messages"]])
        self.check_no_reload(root)
        # the page has no busy share of a worker that is away: that was silent for 10 s
        feeding = self.feed(10000, 100)
        for cleanup in (feeding.stdout.close, feeding.wait, feeding.kill):
            self.addCleanup(cleanup)
        wait_until(lambda: root.get("/metrics").count("\nblkin_work_busy_ratio{") == 3, lambda: root.get("/metrics"))

    def check_no_reload(self, root):
        """A reload, by socket or signal, is refused with a message, and changes nothing."""
        words = "the root reads its configuration only at its start"
        for name, said in (["work-root"], words), ([], "(live or agent) runs"):
            run = subprocess.run([BLKIN, "reload", f"--runtime-dir={self.folder}/run", *name], stderr=subprocess.PIPE,
                                 text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(said, run.stderr)
        root.process.send_signal(signal.SIGHUP)
        wait_until(lambda: root.said().count("BK1022 blkin work --root: reload: " + words) == 2, root.said)
        wait_until(lambda: self.status()["state"] == "serving", "it serves", 60)

    def check_page(self, page, expected):
        from prometheus_client.parser import text_string_to_metric_families
        families = {family.name: family for family in text_string_to_metric_families(page)}
        calls = sum(sample.value for sample in families["blkin_traces_spanmetrics_calls"].samples)
        self.assertEqual(calls, expected["spans"])
        graph = families["blkin_traces_service_graph_request"].samples
        self.assertEqual({(sample.labels["client"], sample.labels["server"]): sample.value for sample in graph},
                         {(edge["client"], edge["server"]): edge["calls"] for edge in expected["edges"]})
        for name, key in (("blkin_traces_spanmetrics_latency", "duration"), ("blkin_self_time_seconds", "self")):
            self.assertEqual(families[name].type, "histogram")
            found = {}
            for sample in families[name].samples:
                if sample.name.endswith("_bucket"):
                    row = (sample.labels["service"], sample.labels["span_name"])
                    found.setdefault(row, []).append((float(sample.labels["le"]), sample.value))
            for row in expected["rows"]:
                buckets = found[row["service"], row["name"]]
                self.assertEqual(buckets, sorted(buckets))
                self.assertEqual(buckets[-1], (float("inf"), row[key]["count"]))
                pairs = list(zip(row[key]["buckets"][::2], row[key]["buckets"][1::2]))
                for bound, count in buckets[:-1]:
                    below = row[key]["zeros"] + sum(n for i, n in pairs if 2 ** ((i + 1) / 128) <= bound * 1e9 * 1.0000001)
                    self.assertEqual(count, below)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout[:2000])

    def test_the_broker_is_away(self):
        """While the broker is away, the root reports that, and still shows its counts. A restarted root waits for the
        broker. It counts nothing twice although the broker has lost messages, and skips no new ones."""
        expected = self.fed(self.feed(2, 0))
        log = f"{self.broker.folder}/data/{self.topic_name}-0/{0:020}.log"
        size = os.path.getsize(log)
        for _ in range(30):
            self.broker.produce(self.topic_name, 0, b"of somebody else")
        root = self.root()
        wait_until(lambda: (root.document() or {}).get("refused") == 30, root.said, 60)
        self.broker.kill()
        try:
            # "Disconnected" comes first
            wait_until(lambda: "Connect to" in self.status().get("error", ""), lambda: str(self.status()), 60)
            self.assertEqual(self.status()["state"], "waiting")
            self.assertEqual(root.document()["spans"], expected["spans"])
            root.end()
            root.start()
            wait_until(lambda: root.said().count("continues after") == 1, root.said)
            self.assertIsNone(root.document())  # the topic may have deltas that the root has not read
            self.check_answers(root)
            root.process.send_signal(signal.SIGSTOP)
        finally:
            os.truncate(log, size)
            self.broker.start()
            self.broker.wait_ready()
        more = self.fed(self.feed(1, 0))
        root.process.send_signal(signal.SIGCONT)
        document = root.wait_spans(expected["spans"] + more["spans"])
        self.assertEqual((document["spans"], document["gaps"]), (expected["spans"] + more["spans"], 1))
        self.check_same(document, json.loads(self.once("--json")[1]))
        self.assertIn("partition 0: a broker has lost messages at the end", root.said())

    def check_answers(self, root):
        """The root answers requests while the broker, which it asks every 3 s, is away. A root that waits for the
        broker does so in each 7 s; a busy machine does not."""
        def is_quick():
            took = [time.monotonic()]
            look_for(7, lambda: (root.get("/metrics"), took.append(time.monotonic())))
            slowest = sorted(after - before for before, after in zip(took, took[1:]))[-2:]
            return slowest and slowest[0] < 0.6 * PATIENCE
        wait_until(is_quick, "the root answers at once")

    def test_topic_has_lost_messages(self):
        """Messages that the topic lost while the root was away are a gap of their partition, which the root counts once.
        It counts the spans of all other messages."""
        first = self.fed(self.feed(2, 0))
        root = self.root()
        root.wait_spans(first["spans"])
        self.assertEqual(root.end(), 0)
        self.fed(self.feed(2, 0))
        self.broker.trim(self.topic_name)
        last = self.fed(self.feed(1, 0))
        root.start()
        document = root.wait_spans(first["spans"] + last["spans"])
        self.assertEqual((document["spans"], document["gaps"]), (first["spans"] + last["spans"], 2))
        for partition in (0, 1):
            self.assertIn(f"partition {partition}: messages were deleted before the root read them", root.said())
        self.assertTrue("blkin_work_root_gaps_total 2\n" in root.get("/metrics"))
        self.assertEqual(root.end(), 0)
        root.start()
        document = root.wait_spans(first["spans"] + last["spans"])
        self.assertEqual((document["spans"], document["gaps"]), (first["spans"] + last["spans"], 2))

    def test_state_cannot_be_saved(self):
        """A root that cannot save reports this once, and continues. After a kill, the next root reads unsaved messages
        again, and counts them once. When saving works again, the root saves."""
        in_its_way = self.folder + "/state/work-root.json.new"
        os.makedirs(in_its_way, 0o700)
        expected = self.fed(self.feed(2, 0))
        root = self.root()
        root.wait_spans(expected["spans"])
        words = f"cannot write {self.folder}/state/work-root.json: Is a directory: a restart reads again the messages since the last save"
        wait_until(lambda: words in root.said(), root.said)
        again = self.fed(self.feed(1, 0))  # saving is tried again, and fails again
        root.wait_spans(expected["spans"] + again["spans"])
        root.kill()
        self.assertEqual(root.said().count(words), 1)
        root.start()
        document = root.wait_spans(expected["spans"] + again["spans"])
        self.assertEqual((document["spans"], document["gaps"]), (expected["spans"] + again["spans"], 0))
        wait_until(lambda: root.said().count(words) == 2, root.said)
        os.rmdir(in_its_way)
        wait_until(lambda: os.path.exists(in_its_way[:-4]), "the state is saved")

    def test_the_disk_hangs(self):
        """While the disk hangs, the root reads and answers. When the disk works again, the root saves its counts, at its
        end at the latest. A pipe without a reader stands for the disk."""
        pipe = self.folder + "/state/work-root.json.new"
        os.makedirs(os.path.dirname(pipe), 0o700)
        os.mkfifo(pipe)
        feeding = self.feed(2, 1000)  # of 300 spans
        root = self.root()
        root.wait_spans(1)
        wait_until(lambda: self.status()["saving_ms"] > 0, "a disk that hangs")
        root.wait_spans(600)
        self.assertGreater(self.status()["saving_ms"], 0)
        os.rename(pipe, self.folder + "/pipe")
        with open(self.folder + "/pipe", "rb") as file:  # the interrupted write has failed, with a message
            file.read()
        wait_until(lambda: "a restart reads again the messages since the last save" in root.said(), root.said)
        self.assertEqual(self.fed(feeding)["spans"], 600)
        self.assertEqual(root.end(), 0)
        with open(pipe[:-4], encoding="utf-8") as file:
            self.assertEqual(json.load(file)["statistics"]["spans"], 600)

    def doctor(self, *args):
        """Returns level and words of each check."""
        run = subprocess.run([BLKIN, "doctor", "--json", "--section=work", f"--runtime-dir={self.folder}/run",
                              f"--state-dir={self.folder}", *args], stdout=subprocess.PIPE, timeout=LIMIT_S, env=ENVIRONMENT,
                             check=False)
        checks = json.loads(run.stdout)["checks"]
        self.assertEqual(run.returncode, int(any(check["level"] == "bad" for check in checks)))
        return {check["id"]: (check["level"], check["saw"] + " -> " + check.get("mend", "")) for check in checks}

    def test_doctor(self):
        """Faults of brokers, topics and their contents."""
        mine = f"--deltas={self.topic_name}"

        def names(check, level, words, topic, *args):
            found = {}  # the doctor gives a broker 1.5 s for an answer, and a busy one may need longer
            wait_until(lambda: found.clear() or found.update(self.doctor(
                f"--input=kafka://{self.broker.address}/{topic}", *args)) or (
                    found.get(check, "")[:1] == (level,) and words in found[check][1]), lambda: str(found))
        self.assertEqual(self.doctor()["work.settings"][0], "bad")
        self.assertIn("expected kafka://", self.doctor("--input=x")["work.settings"][1])
        wait_until(lambda: "Connection refused" in self.doctor(f"--input=kafka://127.0.0.1:{free_port()}/x").get(
            "broker.answers", ("", ""))[1], "a broker that is not there")
        names("input.topic", "bad", "--create --topic none --partitions 12 --config message.timestamp.type=LogAppendTime",
              "none", mine)
        names("deltas.topic", "bad", "--create --topic none", self.topic_name, "--deltas=none")
        names("input.time", "bad", "--add-config message.timestamp.type=LogAppendTime", self.topic_name, mine)
        self.broker.create("right", 3, message_timestamp_type="LogAppendTime")
        names("input.messages", "note", "has no messages", "right", mine)
        for check in ("broker.answers", "input.time", "deltas.topic", "deltas.kept", "transactions.log"):
            names(check, "ok", "", "right", mine)
        names("input.topic", "ok", "3 partitions", "right", mine)
        self.broker.produce("right", 1, b'[{"traceId":"1"}]')
        names("input.messages", "bad", "Zipkin's JSON?", "right", mine)
        self.broker.produce("right", 2, SPAN)
        self.broker.create("read", 1, message_timestamp_type="LogAppendTime")
        self.broker.produce("read", 0, SPAN)
        names("input.messages", "ok", "OTLP traces: a message has 1 spans", "read", mine)
        self.broker.create("compacted", 1, cleanup_policy="compact", max_message_bytes=1000)
        names("deltas.kept", "bad", "cleanup.policy=delete", "right", "--deltas=compacted")
        names("input.size", "bad", "max.message.bytes", "compacted", mine)
        names("deltas.topic", "bad", "the same topic", "right", "--deltas=right")

    def test_wrong_keys(self):
        for keys, text in [({"input": ""}, "input: expected kafka://BROKER"), ({"input": "kafka://x"}, "expected kafka://"),
                           ({"deltas": ""}, "deltas: expected the name"),
                           ({"prometheus_listen": "x"}, "prometheus-listen")]:
            root = self.root(**keys)
            self.assertEqual(root.process.wait(LIMIT_S), 1, root.said())
            self.assertIn(text, root.said())
            os.unlink(root.log)
        self.assertEqual(subprocess.run([BLKIN, "work", "--root", "--since=x", "--once"], stderr=subprocess.DEVNULL,
                                        check=False).returncode, 2)


if __name__ == "__main__":
    JARS = fetch_kafka()
    together.main(RootTest, alone=["test_the_broker_is_away"])
