"""The parts of the scale runs: a broker, loads and workers; and the sum of their results.

SPDX-License-Identifier: BSD-2-Clause
"""
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
import broker
import check
import common
import kafka
import part
import received
from broker import ENVIRONMENT, free_port
from common import pause  # noqa: F401
from kafka import Failed

BUILD = pathlib.Path(os.environ["BUILD"])
BLKIN = BUILD / "bin/blkin"
PRODUCE = BUILD / "tests/scale/produce"
PARTITIONS = 12
OUT_PARTITIONS = 4  # of deltas and kept traces
FOR_SPEED = ["java", "-Xmx1g", "-XX:-UsePerfData"]  # the options of the tests are for a quick start


wait_until = functools.partial(common.wait_until, every_s=0.3, fails=Failed)


class RunningBroker:
    """A broker, and the folder of the runs."""

    def __init__(self, java=None):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        broker.JAVA = java or broker.JAVA
        (self.folder / "kafka").mkdir()
        self.broker = broker.Broker(broker.fetch_kafka(), self.folder / "kafka", offsets_topic_num_partitions=4,
                                    transaction_state_log_num_partitions=4)

    def __enter__(self):
        self.broker.start()
        self.broker.wait_ready()
        return self

    def __exit__(self, *_):
        self.broker.kill()
        self.temporary.cleanup()


class Load:
    """The program produce, which makes spans and prints a line each second."""

    def __init__(self, run, rate, seconds, *more, seed=1):
        self.account = run.folder / "made.json"
        self.log = run.folder / "produce.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [PRODUCE, f"--brokers={run.broker.address}", f"--topic={run.topic}", f"--out={self.account}",
                 f"--rate={rate}", f"--seconds={seconds}", f"--seed={seed}", *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)

    def runs(self):
        return self.process.poll() is None

    def seconds(self):
        """Returns [time_ms, made, acknowledged, failed, queued] of each second."""
        return [list(map(int, line.split())) for line in self.log.read_text().splitlines() if line.count(" ") == 4]

    def expected(self):
        if self.process.wait(400):
            raise Failed("produce: " + self.log.read_text()[-500:])
        return check.read_expected(self.account)


class Worker(part.Part):
    """`blkin work`. It keeps its instance name when it is started again."""

    def __init__(self, run, name, ahead_ms=0, notify="", **keys):
        self.name = name
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/metrics"
        keys = {"input": run.url(run.topic), "deltas": run.deltas, "endpoint": run.url(run.kept), "format": "otlp",
                "group": run.group, "instance": f"{name}-{run.name}", "tail_sampling": run.rules, "wait_ms": run.wait_ms,
                "prometheus_listen": f"127.0.0.1:{port}", "runtime_dir": run.folder / f"run-{name}",
                "state_dir": run.folder / f"state-{name}", **keys}
        super().__init__(run.folder / f"{name}.log", [BLKIN, "work", *part.options(keys)],
                         BABELTRACE_PLUGIN_PATH=str(BUILD / "plugins"), NOTIFY_SOCKET=str(notify))
        if ahead_ms:
            clock = run.folder / f"{name}.clock"
            clock.write_bytes((ahead_ms * 10**6).to_bytes(8, "little"))
            self.environment.update(LD_PRELOAD=f"{BUILD}/tests/agent/parts/set_clock.so", SET_CLOCK=str(clock))
        self.ends = 0

    def keep_up(self):
        """Restarts the worker if it has ended by itself, as systemd does; not if the test has stopped or killed it."""
        if self.process is not None and self.process.poll() is not None:
            self.ends += 1
            self.start()

    def kill(self):
        super().kill()
        self.process = None

    def stop(self):
        """Stops the worker. While its group rebalances, the worker may drop uncommitted work."""
        status = self.end()
        self.process = None
        self.ends += status == 1
        if status not in (0, 1, -signal.SIGTERM):  # -SIGTERM: the worker was still starting
            raise Failed(f"worker {self.name} ended with status {status}: {self.said()[-1500:]}")

    def page(self):
        """Returns name -> value of its metrics, without their labels; {} while it does not answer."""
        return {name: float(value) for name, value in
                re.findall(r"^(\w+)(?:{[^}]*})? ([-0-9.e+]+)$", part.page(self.url) or "", re.M)}

    def metrics(self):
        """Returns its page, once it answers."""
        return wait_until(lambda: self.keep_up() or self.page(), self.said)

    def peak_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


class Run:
    """Topics, a consumer group, and the workers that read the topics."""

    def __init__(self, running, name, wait_ms=3000, rules=check.RULES):
        self.broker, self.name, self.wait_ms = running.broker, name, wait_ms
        self.folder = running.folder / name
        self.folder.mkdir()
        self.topic, self.deltas, self.kept, self.group = (f"{what}-{name}" for what in
                                                          ("spans", "deltas", "kept", "group"))
        self.rules = self.folder / "rules"
        self.rules.write_text(rules)
        self.broker.create(self.topic, PARTITIONS, message_timestamp_type="LogAppendTime")
        for topic in (self.deltas, self.kept):
            self.broker.create(topic, OUT_PARTITIONS)
        self.workers = []
        self.of_group = kafka.Client(self.broker, group=self.group)
        wait_until(self.has_topics, "the broker knows its topics", 30)

    def has_topics(self):
        """The broker reports new topics with a delay."""
        try:
            for topic, partitions in ((self.topic, PARTITIONS), (self.deltas, OUT_PARTITIONS),
                                      (self.kept, OUT_PARTITIONS)):
                self.of_group.ends(topic, partitions)
        except Failed:
            return False
        return True

    def url(self, topic):
        return f"kafka://{self.broker.address}/{topic}"

    def worker(self, **keys):
        self.workers.append(Worker(self, f"w{len(self.workers)}", **keys).start())
        return self.workers[-1]

    def keep_up(self):
        for worker in self.workers:
            worker.keep_up()

    def is_read(self):
        """Checks that the group has read everything. The committed offset is the beginning of the oldest open
        trace."""
        try:
            ends = self.of_group.ends(self.topic, PARTITIONS)
            committed = self.of_group.committed(self.topic, PARTITIONS)
        except Failed:
            return False  # the broker is away
        return all(max(done, 0) >= end for (done, _), end in zip(committed, ends))

    def wait_read(self, limit_s=120):
        def is_so():
            self.keep_up()
            return self.is_read()
        wait_until(is_so, self.state, limit_s)

    def state(self):
        committed = self.of_group.committed(self.topic, PARTITIONS)
        return (f"{self.group} has committed {[done for done, _ in committed]} of"
                f" {self.of_group.ends(self.topic, PARTITIONS)}; " +
                "; ".join(f"{worker.name} has {worker.page().get('blkin_work_partitions')} partitions:"
                          f" {worker.said()[-300:]}" for worker in self.workers))

    def end_workers(self):
        for worker in self.workers:
            if worker.runs():
                worker.stop()

    def results(self):
        """Returns the sum of the deltas, and the kept traces, once all workers have ended."""
        deltas, kept = received.Deltas(), check.Kept()
        reader = kafka.Reader(self.broker, {self.deltas: OUT_PARTITIONS, self.kept: OUT_PARTITIONS})
        for message in reader.all(limit_s=300):
            (deltas if message.topic == self.deltas else kept).add(message.value)
        reader.close()
        return deltas, kept

    def check(self, expected):
        """Returns the faults, and the sum of the deltas, once all workers have ended."""
        deltas, kept = self.results()
        faults = check.Faults()
        if expected.failed:
            faults.append(f"{expected.failed} spans were not acknowledged: nothing can be said of this run")
        faults += check.check_table(expected, deltas) + check.check_kept(expected, kept)
        return faults, deltas

    def close(self):
        for worker in self.workers:
            if worker.runs():
                worker.kill()
        self.of_group.close()
