#!/usr/bin/env python3
# timeout: 300
"""Workers with a real broker: although one is killed in the middle, each span is counted once, and each kept trace is
there once. tests/scale measures the rate.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/scale"))
from parts import BLKIN, RunningBroker, Load, Run, common, pause, wait_until  # noqa: E402
import together  # noqa: E402


class Work(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.running = RunningBroker().__enter__()
        cls.addClassCleanup(cls.running.__exit__)

    def run_of(self, name, **keys):
        run = Run(self.running, name, **keys)
        self.addCleanup(run.close)
        return run

    def check(self, run, expected):
        """Checks that all spans are counted: spans that a busy machine delayed are counted as late."""
        faults, deltas = run.check(expected)
        self.assertGreater(expected.acknowledged, 10000)
        late = deltas.counters["spans_late"]
        for spans in (deltas.spans(), deltas.counters["spans_in"], deltas.counters["spans_counted"] + late):
            self.assertEqual(spans, expected.acknowledged)
        self.assertTrue(late or not faults, faults)
        return deltas

    def test_one_is_killed(self):
        run = self.run_of("killed", wait_ms=2000)
        first, second = run.worker(), run.worker()
        # The workers share the partitions before there are spans: a worker that commits while the other one joins the group
        # ends, and is started again.
        wait_until(lambda: run.keep_up() or [worker.page().get("blkin_work_partitions") for worker in (first, second)] == [6, 6],
                   lambda: f"both have partitions: {first.said()}{second.said()}", 60)
        load = Load(run, rate=8000, seconds=12)
        wait_until(lambda: run.keep_up() or second.page().get("blkin_work_spans_counted_total", 0) > 3000,
                   lambda: f"the second counts: {second.said()}", 60)
        second.kill()
        second.start()
        expected = load.expected()
        run.wait_read()
        page = first.metrics()
        self.assertEqual(page["blkin_work_spans_in_total"] + page["blkin_work_spans_taken_over_total"],
                         sum(page[f"blkin_work_spans_{what}"] for what in (
                             "counted_total", "late_total", "over_total", "invalid_total", "handed_over_total",
                             "open")))
        self.assertEqual(page["blkin_work_offsets_missing_total"], 0)
        self.assertLessEqual(page["blkin_work_busy_ratio"], 1)
        run.end_workers()
        self.check(run, expected)

    def test_some_end_as_they_begin(self):
        """Some workers end while the group shares its partitions: Worker.stop() fails for one that is aborted."""
        run = self.run_of("early")
        first = run.worker()
        wait_until(lambda: first.page().get("blkin_work_partitions", 0) == 12, first.said, 60)
        others = [run.worker() for _ in range(6)]
        for number, worker in enumerate(others):
            pause(0.1 * number)  # so that they are at different points
            worker.stop()
        run.workers = [first]
        wait_until(lambda: run.keep_up() or first.page().get("blkin_work_partitions", 0) == 12,
                   first.said, 60)
        run.end_workers()

    def test_kept_by_an_exporter(self):
        """The output has another format or cluster than the input, so the sink's exporter sends it. A worker also starts
        without its collector."""
        run = self.run_of("exporter", wait_ms=1000)
        away = run.worker(endpoint="http://127.0.0.1:1", format="zipkin")
        wait_until(lambda: away.page().get("blkin_work_partitions"), away.said, 15)
        run.workers.pop().kill()
        kept = run.folder / "kept.json"
        worker = run.worker(endpoint=f"file:{kept}", format="zipkin", log_level="info")
        expected = Load(run, rate=8000, seconds=2).expected()
        run.wait_read()
        run.end_workers()
        faults, deltas = run.check(expected)
        self.assertEqual(deltas.spans(), expected.acknowledged)
        text = kept.read_text()
        self.assertTrue(text.startswith("[") and text.rstrip().endswith("]"))
        self.assertIn("open; ", worker.said())
        if not deltas.counters["spans_late"]:
            spans = json.loads(text)
            self.assertEqual(len({span["traceId"] for span in spans}), expected.kept)
            self.assertEqual(len({(span["traceId"], span["id"]) for span in spans}), len(spans))

    def test_a_broker_loses_the_end(self):
        """The log loses messages that were read, while a worker runs, and while another one is away. No span is
        counted twice, and new ones are counted. A worker that waits for the broker ends before systemd kills it."""
        runs = [self.run_of(name, wait_ms=1000) for name in ("cut", "cut-away")]
        systemd = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        systemd.bind(str(self.running.folder / "notify"))
        runs_on, is_away = [run.worker(notify=self.running.folder / "notify") for run in runs]
        first = [load.expected() for load in [Load(run, rate=8000, seconds=2) for run in runs]]
        for run in runs:
            run.wait_read()
        runs[1].end_workers()
        ending = self.run_of("ending").worker(deltas="", commit_ms=5000)
        wait_until(lambda: ending.page().get("blkin_work_partitions") == 12, ending.said, 60)  # to commit
        self.running.broker.produce(runs[0].topic, 0, b"of somebody else")  # gives the worker an offset to commit
        wait_until(lambda: runs_on.page().get("blkin_work_messages_broken_total"), runs_on.said)
        self.running.broker.kill()
        self.check_waits(runs_on, systemd)
        wait_until(lambda: "nothing is lost" in ending.said(), ending.said, 60)
        self.assertEqual(ending.end(), 1)
        self.assertIn("BK7022", ending.said())
        for run in runs:
            for log in self.running.folder.glob(f"kafka/data/{run.topic}-*/*.log"):
                os.truncate(log, log.stat().st_size * 2 // 3)
        self.running.broker.start()
        self.running.broker.wait_ready()
        is_away.start()
        for run, worker in zip(runs, (runs_on, is_away)):
            wait_until(lambda run=run, worker=worker: run.keep_up() or "offsets are missing" in worker.said(), worker.said, 60)
        ends = runs_on.ends, is_away.ends
        for run in runs:
            run.wait_read()
        second = [load.expected() for load in [Load(run, rate=8000, seconds=1, seed=2) for run in runs]]
        for run in runs:
            run.wait_read()
        for worker, before in zip((runs_on, is_away), ends):
            if worker.ends == before:  # the metrics of a restarted worker lack what it had committed before
                self.assertGreater(worker.metrics()["blkin_work_offsets_missing_total"], 10)
        for run, *expected in zip(runs, first, second):
            run.end_workers()
            deltas, kept = run.results()
            self.assertEqual(deltas.spans(), sum(each.acknowledged for each in expected))
            # a trace whose slow span was late on a busy machine is not kept
            self.assertGreaterEqual(len(kept.traces) + deltas.counters["spans_late"], sum(each.kept for each in expected))
            self.assertLessEqual(len(kept.traces), sum(each.kept for each in expected))
            self.assertGreater(deltas.counters["offsets_missing"], 10)

    def check_waits(self, worker, systemd):
        """While a worker waits for the broker, in a commit, it feeds the watchdog; if not, systemd would kill it."""
        wait_until(lambda: "the worker tries again, nothing is lost" in worker.said(), worker.said, 60)
        systemd.setblocking(False)
        try:
            while systemd.recv(4096):
                pass
        except BlockingIOError:
            systemd.settimeout(60)
        while systemd.recv(4096) != b"WATCHDOG=1":
            pass

    def test_a_clock_is_ahead(self):
        """A worker's clock is ahead by more than the wait for a trace: no trace is closed early. A busy machine has
        time to deliver the spans of a trace."""
        run = self.run_of("ahead", wait_ms=6000 * common.PATIENCE)
        worker = run.worker(ahead_ms=12000 * common.PATIENCE)
        wait_until(lambda: worker.page().get("blkin_work_partitions", 0) == 12, worker.said, 60)
        expected = Load(run, 40, 5, "--spread-ms=1500").expected()
        run.wait_read()
        self.assertEqual(worker.metrics()["blkin_work_messages_skewed_total"], 0)
        run.end_workers()
        deltas = run.results()[0]
        self.assertEqual(deltas.spans(), expected.acknowledged)
        self.assertEqual(deltas.counters["spans_late"], 0)

    def test_what_is_wrong_is_said(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BLKIN_")}
        with tempfile.TemporaryDirectory() as folder:
            for arguments, status, said in (
                    ([], 2, "input: expected the topic to read"),
                    (["--input=kafka://a"], 2, "input"),
                    (["--input=kafka://127.0.0.1:1/spans", "--wait-ms=0"], 2, "wait-ms"),
                    (["--input=kafka://127.0.0.1:1/spans?group.id=x"], 1, "group.id"),
                    (["--input=kafka://127.0.0.1:1/spans", "surplus"], 2, "operand")):
                done = subprocess.run([BLKIN, "work", f"--state-dir={folder}", *arguments], capture_output=True,
                                      text=True, timeout=60, check=False, env=environment)
                self.assertEqual((done.returncode, said in done.stderr), (status, True), done)
            waiting = subprocess.Popen([BLKIN, "work", f"--state-dir={folder}", "--input=kafka://127.0.0.1:1/spans"],
                                       stderr=subprocess.PIPE, text=True, env=environment)
            self.assertTrue(any("no broker answers" in line for line in waiting.stderr))
            waiting.terminate()
            waiting.stderr.close()
            self.assertEqual(waiting.wait(60), 0)


if __name__ == "__main__":
    together.main(Work, alone=["test_a_broker_loses_the_end"])
