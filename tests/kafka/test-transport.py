#!/usr/bin/env python3
# The sink's Kafka transport with a real broker. Each span comes once, in its trace's partition, in messages of the
# right size. Brokers are away, killed, or refuse the user; topics are missing, or grow. In = out + counted.
#
# KILLS: how often the broker is killed (default: 1). If it is set, test_killed_with_little_patience runs, too.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 900
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path[:0] = [os.path.join(os.environ["SRC"], "tests", folder) for folder in ("kafka", "otel")]
import otlp  # noqa: E402
from broker import ENVIRONMENT, PASSWORD, START_S, fetch_kafka, free_port, start_broker, wait_until  # noqa: E402
from common import PATIENCE, pause  # noqa: E402

DRIVER = os.path.join(os.environ["BUILD"], "tests/plugin/exporter-driver")
KILLS = int(os.environ.get("KILLS", "1"))
# the sink's defaults for kafka://, but more time for a request
DEFAULTS = {"batch_spans": 8000, "batch_bytes": 8 << 20, "batch_timeout_ms": 20, "request_timeout_ms": 90000,
           "retry_timeout_ms": 60000}
# outcomes that a span may have
OUTCOMES = ("accepted", "refused", "invalid", "too_large", "possibly_persisted", "undelivered", "dropped", "no_memory")


class Driver:
    """exporter-driver, which checks in = out + counted all the time."""

    def __init__(self, endpoint, *steps, **options):
        args = [f"{name.replace('_', '-')}={value}" for name, value in {**DEFAULTS, **options}.items()]
        self.process = subprocess.Popen([DRIVER, f"endpoint={endpoint}", *args, *steps], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.messages, self.counts = "", {}
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.messages += line

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, status=0, limit_s=120):
        timer = threading.Timer(limit_s * PATIENCE, self.process.kill)
        timer.start()
        said = self.process.stdout.read()
        got = self.process.wait()
        timer.cancel()
        self.reader.join()
        for pipe in (self.process.stdout, self.process.stderr, self.process.stdin):
            pipe.close()
        if got != status:
            raise AssertionError(f"status {got}: {said} {self.messages}")
        if status == 0:
            self.counts = json.loads(said.splitlines()[-1])
        return self

    def count(self, name):
        """Returns a counter's sum over direct and spooled batches."""
        return self.counts[name] + self.counts["spool"][name]


def drive(endpoint, *steps, status=0, **options):
    return Driver(endpoint, *steps, **options).end(status)


def spans_of(message):
    """Returns (trace id, span id) of each span of a message in Zipkin's JSON or OTLP."""
    if message[:1] == b"[":
        return [(span["traceId"].rjust(32, "0"), int(span["id"], 16)) for span in json.loads(message)]
    return [(span.trace_id.hex(), int(span.span_id.hex(), 16)) for _, _, span in otlp.spans(message)]


def partition_of(trace, partitions):
    """Returns the partition that Sarama and librdkafka choose for this key: the absolute value of its signed 32-bit
    FNV-1a hash, modulo the partitions."""
    value = 0x811c9dc5
    for byte in trace.encode():
        value = (value ^ byte) * 0x01000193 & 0xffffffff
    return (2**32 - value if value >> 31 else value) % partitions


class Transport(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.certificate(folder, "ca")
        cls.certificate(folder, "other")
        cls.tls_folder = folder
        cls.broker = start_broker(cls, JARS, folder, tls=f"{folder}/ca.both", auto_create_topics_enable="false")

    @staticmethod
    def certificate(folder, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/{name}.key",
                        "-out", f"{folder}/{name}.pem", "-days", "2", "-subj", f"/CN={name}", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
        with open(f"{folder}/{name}.both", "w", encoding="utf-8") as both:
            for part in (f"{folder}/{name}.key", f"{folder}/{name}.pem"):
                with open(part, encoding="utf-8") as file:
                    both.write(file.read())

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.topic = self.id().rsplit(".", 1)[1]

    def url(self, options="", port=None, topic=None):
        return f"kafka://127.0.0.1:{port or self.broker.port}/{topic or self.topic}{options and '?'}{options}"

    def settings(self, *lines, mode=0o600):
        path = os.path.join(self.folder, "kafka.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# of librdkafka\n\n" + "\n".join(lines) + "\n")
        os.chmod(path, mode)
        return path

    def spans(self, topic=None):
        """Returns the ids of all spans in the log, after a check of the messages' sizes."""
        ids, messages = [], self.broker.read(topic or self.topic)
        for _, _, message in messages:
            self.assertLessEqual(len(message), 900100)
            self.assertLessEqual(len(spans_of(message)), 2000)
            ids += [span for _, span in spans_of(message)]
        return ids

    def check_partitions(self, partitions, topic=None):
        """Returns the messages, after the check that each span is in its partition."""
        messages = self.broker.read(topic or self.topic)
        for partition, _, message in messages:
            self.assertEqual({partition_of(trace, partitions) for trace, _ in spans_of(message)}, {partition})
        return messages

    # ---- a broker in order

    def test_each_trace_in_its_partition(self):
        for form in ("zipkin", "otlp"):
            topic = f"{self.topic}_{form}"
            self.broker.create(topic, 8)
            run = drive(self.url(topic=topic), "add:20000", "flush", "close", per_trace=7, format=form,
                        batch_timeout_ms=60000)
            self.assertEqual((run.counts["accepted"], run.messages), (20000, ""))
            self.assertCountEqual(self.spans(topic), range(1, 20001))
            messages = self.check_partitions(8, topic)
            for _, _, message in messages:
                if form == "otlp":  # all spans have one resource, which is written once
                    self.assertEqual(len(otlp.request(message).resource_spans), 1)
            self.assertLess(len(messages), 40)  # of 3 batches

    def test_one_partition_and_full_messages(self):
        self.broker.create(self.topic)
        drive(self.url(), "add:4000", "flush", "close", format="otlp", batch_timeout_ms=60000)
        self.assertCountEqual(self.spans(), range(1, 4001))
        self.assertEqual([len(spans_of(message)) for _, _, message in self.broker.read(self.topic)], [2000] * 2)

    def test_large_spans(self):
        """No message is above 900 kB. For a topic with a smaller limit, the messages have the spans that fit."""
        big = ",".join(f"{number}:200000" for number in range(0, 40, 2))
        self.broker.create(self.topic)
        run = drive(self.url(), "add:40", "flush", "close", big=big)
        self.assertEqual(run.counts["accepted"], 40)
        self.assertCountEqual(self.spans(), range(1, 41))
        self.broker.create(self.topic + "_small", max_message_bytes=20000)
        # lz4 compresses a text of one letter to almost nothing
        run = drive(self.url("compression.codec=none", topic=self.topic + "_small"), "add:40", "flush", "close",
                    big="7:15000,21:40000")
        self.assertEqual((run.counts["accepted"], run.counts["too_large"]), (40, 0))
        run = drive(self.url("compression.codec=none", topic=self.topic + "_small"), "number:40", "add:400", "flush",
                    "close", noise=3000)
        self.assertEqual((run.counts["accepted"], run.counts["too_large"]), (400, 0))
        self.assertCountEqual(self.spans(self.topic + "_small"), range(1, 441))

    def test_parts_of_a_partition(self):
        """A broker judges each message by itself, even if several go into one partition at once."""
        self.broker.create(self.topic, max_message_bytes=20000)
        for spans in range(278, 287):  # the spans of a message of 900 kB, and some more
            run = drive(self.url("compression.codec=none"), f"add:{spans}", "flush", "close", noise=3000)
            self.assertEqual((run.counts["accepted"], run.counts["too_large"]), (spans, 0))

    def test_a_span_too_large(self):
        self.broker.create(self.topic, max_message_bytes=5000)
        for form in ("zipkin", "otlp"):
            run = drive(self.url("compression.codec=none"), "add:40", "flush", "close", big="7:12000,21:12000", format=form)
            self.assertEqual((run.counts["accepted"], run.counts["too_large"]), (38, 2), run.messages)
            self.assertIn("span refused: " + self.url(), run.messages)
        self.assertCountEqual(self.spans(), [i for i in range(1, 41) if i not in (8, 22)] * 2)

    def test_partitions_are_added(self):
        self.broker.create(self.topic, 2)
        run = Driver(self.url(), "add:2000", "wait:accepted:2000", "pause", "add:2000", "flush", "close", per_trace=2)
        wait_until(lambda: len(self.spans()) == 2000, "the first half")
        self.broker.grow(self.topic, 16)
        run.go_on()
        self.assertEqual(run.end().counts["accepted"], 4000)
        again = drive(self.url(), "number:4000", "add:2000", "flush", "close", per_trace=2)
        self.assertEqual(again.counts["accepted"], 2000)
        self.assertCountEqual(self.spans(), range(1, 6001))
        self.assertGreater(len({partition for partition, _, _ in self.broker.read(self.topic)}), 12)

    # ---- a broker that is away

    def test_topic_that_is_not_there(self):
        run = drive(self.url(), "add:1", status=1)
        self.assertIn("Unknown topic", run.messages)
        self.assertIn("make the topic", run.messages)
        for form in ("zipkin", "otlp"):  # the batches are divided when the number of partitions is known
            topic = f"{self.topic}_{form}"
            # an unacknowledged message is neither sent again nor counted as accepted
            run = Driver(self.url(topic=topic), "add:5000", "flush", "close", require_collector="no", per_trace=3,
                         format=form, request_timeout_ms=60000)
            wait_until(lambda: "trying again" in run.messages, "the message 'trying again'", 60)
            self.broker.create(topic, 8)
            self.assertEqual(run.end().counts["accepted"], 5000)
            self.assertCountEqual(self.spans(topic), range(1, 5001))
            self.check_partitions(8, topic)

    def test_spooled_then_in_its_partition(self):
        """Spans that were encoded before the partitions were known are ordered when they are sent."""
        self.broker.create(self.topic, 8)
        for form in ("zipkin", "otlp"):
            spool = f"{self.folder}/{form}"
            run = drive(self.url(port=free_port()), "live", "add:6000", "flush", "close", require_collector="no",
                        per_trace=3, spool=spool, format=form, batch_timeout_ms=60000)
            self.assertEqual(run.counts["spooled"], 6000, run.messages)
            self.assertIn("Connection refused", run.messages)
            run = drive(self.url(), "flush", "close", spool=spool, format=form)
            self.assertEqual((run.counts["spool"]["accepted"], run.counts["spool"]["waiting"]), (6000, 0), run.messages)
        self.assertCountEqual(self.spans(), list(range(1, 6001)) * 2)
        self.assertLess(len(self.check_partitions(8)), 80)

    def test_nobody_is_there(self):
        start = time.monotonic()
        run = drive(self.url(port=free_port()), "add:1", status=1)
        self.assertIn("no broker is there", run.messages)
        self.assertIn("Connection refused", run.messages)
        self.assertLess(time.monotonic() - start, 15 * PATIENCE)
        # a flush reports the failure, and does not wait for ever
        run = drive(self.url(port=free_port()), "add:10", "flush", "close", require_collector="no", retry_timeout_ms=1500)
        self.assertEqual((run.counts["undelivered"], run.counts["failed"]), (10, True))

    def unread(self):
        """Returns how many bytes wait in the broker's connections."""
        rows = [row.split() for name in ("tcp", "tcp6") for row in open("/proc/net/" + name, "rb") if b" 01 " in row]
        return sum(int(row[4][9:], 16) for row in rows if row[1].endswith(b":%04X" % self.broker.port))

    def test_hangs(self):
        """A broker that stands still: an interruption ends the wait. Messages that may be in the log are reported."""
        self.broker.create(self.topic, 4)
        run = Driver(self.url(), "add:8000", "wait:accepted:8000", "pause", "add:16000", "requests:8",
                     "pause", "interrupt", "close",  # the broker hangs, so it does not acknowledge the messages
                     flush_timeout_ms=1000, on_full="block", batch_timeout_ms=60000)  # full batches, of four messages
        wait_until(lambda: len(self.spans()) == 8000, "the first ones")
        self.broker.process.send_signal(signal.SIGSTOP)
        try:
            run.go_on()
            wait_until(lambda: self.unread() > 5000, "messages that wait for the broker")
            run.go_on()
            start = time.monotonic()
            counts = run.end().counts
            took = time.monotonic() - start
        finally:
            self.broker.process.send_signal(signal.SIGCONT)
        self.assertEqual(counts["accepted"] + counts["possibly_persisted"] + counts["undelivered"], 24000, counts)
        self.assertGreater(counts["possibly_persisted"], 0, run.messages)
        self.assertIn("may have arrived", run.messages)
        self.assertLess(took, 15 * PATIENCE)

    # ---- a broker that is killed

    def kill_broker(self, down_s):
        self.broker.kill()
        pause(down_s)
        self.broker.start()
        self.broker.wait_ready()

    def under_kills(self, down_s, **keys):
        spans = 15000 + 5000 * KILLS
        run = Driver(self.url(), "live", "pace:200", f"add:{spans}", "flush", "close", per_trace=3, format="otlp",
                     queue_bytes=256 << 20, **keys)
        wait_until(lambda: self.spans(), "the first spans")
        for _ in range(KILLS):
            pause(random.uniform(0.2, 1.5))
            self.kill_broker(down_s())
        run.end(limit_s=6 * START_S + 60 * KILLS)
        return spans, run, self.spans()

    def test_killed_under_load(self):
        """With patience and a queue, all spans arrive once."""
        self.broker.create(self.topic, 4)
        # longer than a broker's start on a busy machine: a message that times out earlier may be in the log, and
        # counts as possibly persisted
        spans, run, log = self.under_kills(lambda: random.uniform(0, 2), request_timeout_ms=START_S * 3000,
                                           retry_timeout_ms=START_S * 6000)
        print(KILLS, "kills,", spans, "spans:", run.counts, len(log), "in the log")
        self.assertEqual(len(set(log)), len(log), "a span twice")
        self.assertEqual((run.counts["accepted"], len(log)), (spans, spans), run.counts)

    @unittest.skipUnless("KILLS" in os.environ, "a long one: KILLS=10")
    def test_killed_with_little_patience(self):
        """The report agrees with the log: acknowledged, or possibly persisted, or not at all."""
        self.broker.create(self.topic, 4)
        spans, run, log = self.under_kills(lambda: random.uniform(1, 4), request_timeout_ms=1500, retry_timeout_ms=1000,
                                           spool=self.folder + "/spool", spool_bytes=1 << 20, noise=200)
        accepted, possibly = run.count("accepted"), run.count("possibly_persisted")
        print(KILLS, "kills,", spans, "spans:", run.counts, len(log), "in the log")
        self.assertEqual(len(set(log)), len(log), "a span twice")
        self.assertGreaterEqual(len(log), accepted)
        self.assertLessEqual(len(log), accepted + possibly)
        self.assertEqual(sum(run.count(name) for name in OUTCOMES) + run.counts["spool"]["expired"] +
                         run.counts["spool"]["waiting"], spans, run.counts)

    # ---- users, TLS, and wrong settings

    def user(self, password):
        return self.settings("security.protocol=sasl_plaintext", "sasl.mechanisms=PLAIN", "sasl.username=blkin",
                             f"sasl.password={password}")

    def test_wrong_password(self):
        self.broker.create(self.topic)
        path = self.user("open-says-me")
        run = drive(self.url(port=self.broker.sasl_port), "add:1", require_collector="no", status=1, kafka_file=path)
        self.assertIn("Authentication failed", run.messages)
        self.assertIn("see kafka-file", run.messages)
        self.assertNotIn("open-says-me", run.messages)

    def test_password_is_renewed(self):
        """The password file is read again while the sink runs."""
        self.broker.create(self.topic)
        run = Driver(self.url(port=self.broker.sasl_port), "add:4", "wait:accepted:4", "pause", "add:4", "flush", "close",
                     kafka_file=self.user(PASSWORD))
        wait_until(lambda: len(self.spans()) == 4, "the first ones")
        self.addCleanup(self.broker.set_password, PASSWORD, "another")
        self.broker.set_password("another")
        self.user("another")
        self.kill_broker(0)
        run.go_on()
        self.assertEqual(run.end().counts["accepted"], 8, run.messages)

    def test_tls(self):
        self.broker.create(self.topic)
        url = self.url(port=self.broker.tls_port)
        for ca, status in (("ca", 0), ("other", 1)):
            path = self.settings("security.protocol=ssl", f"ssl.ca.location={self.tls_folder}/{ca}.pem")
            run = drive(url, "add:3", "flush", "close", kafka_file=path, status=status)
            if status:
                self.assertIn("verify failed", run.messages)
                self.assertIn("to the CA of its certificate in kafka-file", run.messages)
            else:
                self.assertEqual(run.counts["accepted"], 3)
        run = drive(self.url("security.protocol=ssl"), "add:3", status=1)
        self.assertIn("security.protocol", run.messages)

    def test_what_is_wrong_is_said(self):
        for url, words in [
                ("kafka://", "expected kafka://BROKER"), ("kafka://a", "expected kafka://BROKER"),
                ("kafka://user:secret@a/t", "are in kafka-file"), ("kafka://a/t/x", "expected kafka://BROKER"),
                ("kafka://a/t#x", "expected kafka://BROKER"), ("kafka://a/t?linger.ms", "expected OPTION=VALUE"),
                ("kafka://a/t?no.such.key=1", "No such configuration property"),
                ("kafka://a/t?sasl.password=secret", "all users of this machine can see it: set it in kafka-file"),
                ("kafka://a/t?acks=0", "acks cannot be set")]:
            with self.subTest(url=url, words=words):
                run = drive(url, "add:1", status=1)
                self.assertIn(words, run.messages)
                self.assertNotIn("secret", run.messages)
        for line, mode, words in [
                ("enable.idempotence=false", 0o600, "guarantees of the delivery"),
                ("sasl.password", 0o600, "expected lines of key=value"), (None, 0, "cannot read the file"),
                ("sasl.password=secret", 0o640, "chmod 600")]:
            with self.subTest(line=line, words=words):
                path = self.settings(line, mode=mode) if line else self.folder + "/none"
                run = drive("kafka://a/t", "add:1", status=1, kafka_file=path)
                self.assertIn(words, run.messages)
                self.assertNotIn("secret", run.messages)


if __name__ == "__main__":
    JARS = fetch_kafka()
    unittest.main(verbosity=2)
