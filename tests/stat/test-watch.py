#!/usr/bin/env python3
# blkin stat of running services: an interval is their current counts minus the earlier ones.
# SPDX-License-Identifier: BSD-2-Clause
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import LIMIT_S, wait_until  # noqa: E402
from control_socket import Service  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")


def histogram(*counts):
    """Returns a histogram. counts: pairs of a value in ns, which is a power of 2 (the end of its bucket), and its count."""
    values = [value for value, count in counts if count]
    return {"count": sum(count for _, count in counts), "zeros": 0, "sum": sum(value * count for value, count in counts),
            "min": min(values, default=0), "max": max(values, default=0),
            "buckets": [number for value, count in counts if count
                        for number in ((value - 1).bit_length() * 128 - 1, count)]}


class Source:
    """Counts spans as a service does. add() counts spans that take 2^power ns."""

    def __init__(self, name):
        self.name, self.seconds, self.rows, self.edges = name, 0.0, {}, []
        self.traces = self.early = self.open = 0

    def add(self, name, power, count=1, errors=0, selfs=None):
        self.seconds += 0.25
        spans, wrong, durations, own = self.rows.setdefault(name, [0, 0, {}, {}])
        durations[power] = durations.get(power, 0) + count
        own[power] = own.get(power, 0) + (count if selfs is None else selfs)
        self.rows[name][:2] = spans + count, wrong + errors

    def document(self):
        rows = [{"service": "osd", "name": name, "spans": spans, "errors": errors,
                 "duration": histogram(*((1 << power, count) for power, count in durations.items())),
                 "self": histogram(*((1 << power, count) for power, count in own.items()))}
                for name, (spans, errors, durations, own) in self.rows.items()]
        return {"blkin": "statistics", "source": self.name, "seconds": self.seconds, "traces": self.traces,
                "traces_early": self.early, "traces_open": self.open, "spans": sum(row["spans"] for row in rows),
                "scale": 7, "rows": rows, "edges": self.edges}


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.lock = threading.Lock()  # of the sources: an answer has all changes of a step, or none
        self.counters = {"spans_finished": 100, "spans_accepted": 93, "spans_dropped": 7, "lttng_events_discarded": 4711}

    def stat(self, *args, interval="0.3", **kw):
        process = subprocess.Popen([BLKIN, "stat", "--interval", interval, f"--runtime-dir={self.folder}",
                                    "--config=/dev/null", *args], text=True,
                                   **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def service(self, name, *sources, **more):
        """Answers requests on NAME.sock; its list of sources may be changed."""
        sources = list(sources)

        def answer(request):
            if service.mute:
                service.mute -= 1
                return None
            if request == "status":
                return {"counters": self.counters}
            with self.lock:
                return {"sources": [source.document() for source in sources], **more} if request == "statistics" else None

        service = Service(os.path.join(self.folder, name + ".sock"), answer)
        service.sources, service.mute = sources, 0
        return service

    def report(self, process):
        line = process.stdout.readline()
        self.assertTrue(line, f"it ended: {process.poll()}")
        return json.loads(line)

    def until(self, process, condition):
        """Reads reports until the condition holds for one; returns all of them."""
        reports = [self.report(process)]
        while not condition(reports[-1]):
            reports.append(self.report(process))
        return reports

    def ends(self, process, status, message=""):
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, status, err)
        self.assertIn(message, err)
        return out

    def test_intervals(self):
        source = Source("1-1")
        source.add("before", 20, 1000)  # counted before this reader
        service = self.service("live", source)
        self.addCleanup(service.end)
        process = self.stat("--json")
        first = self.report(process)
        self.assertEqual((first["spans"], first["rows"], first["sources"]), (0, [], 1))
        with self.lock:
            source.open = 1
            source.add("child", 15, 2, errors=1, selfs=0)
        reports = self.until(process, lambda report: report["spans"])
        row = reports[-1]["rows"][0]
        self.assertEqual((row["name"], row["spans"], row["errors"], row["duration"]["max"], row["self"]["count"]),
                         ("child", 2, 1, 33, 0))
        self.assertEqual((reports[-1]["traces"], reports[-1]["traces_open"]), (0, 1))
        self.assertAlmostEqual(row["rate"], 2 / reports[-1]["seconds"], 2)
        with self.lock:
            source.traces, source.open = 1, 0
            source.add("child", 15, 0, selfs=2)
            source.add("before", 10, 5)  # shorter than the earlier spans
        reports = self.until(process, lambda report: any(row["self"]["count"] for row in report["rows"]))
        rows = {row["name"]: row for row in reports[-1]["rows"]}
        self.assertEqual((reports[-1]["traces"], rows["child"]["spans"], rows["child"]["self"]["sum"]), (1, 0, 65.536))
        self.assertEqual(rows["before"]["duration"]["count"], 5)
        for least_or_greatest in ("min", "p50", "max"):
            self.assertEqual(rows["before"]["duration"][least_or_greatest], 1)
        # the next interval has no spans of this one
        self.assertEqual(self.report(process)["rows"], [])

    def test_services_and_sources(self):
        one, two, slow = Source("1-1"), Source("2-1"), Source("3-1")
        live = self.service("live", one)
        agent = self.service("agent", slow, only="slow and failed requests")
        process = self.stat("--json")
        self.report(process)
        with self.lock:
            one.add("one", 15)
            slow.add("slow", 30)
            live.sources.append(two)  # a new source: all of its spans are new
            two.add("one", 16, 3)
        seen = {}
        while seen != {"one": 4, "slow": 1}:
            report = self.report(process)
            for row in report["rows"]:
                seen[row["name"]] = seen.get(row["name"], 0) + row["spans"]
        self.assertEqual(report["sources"], 3)
        self.assertEqual(report["services"]["live"]["lttng_events_discarded"], 4711)
        self.assertEqual(report["only"], {"agent": "slow and failed requests"})
        again = Source("1-2")
        again.add("one", 15, 7)
        with self.lock:
            live.sources.remove(one)  # a session has ended
            live.sources.append(again)  # and begins again: with larger counts, but another session
        report = self.until(process, lambda report: report["spans"])[-1]
        self.assertEqual(report["rows"][0]["spans"], 7)
        live.end()
        self.until(process, lambda report: report["sources"] == 1)
        agent.end()
        self.ends(process, 0, "the service has ended")

    def test_no_answer(self):
        source = Source("1-1")
        service = self.service("live", source)
        process = self.stat("--json", interval="0.1")
        self.report(process)
        with self.lock:
            source.add("one", 15, 3)
        service.mute = 3
        wait_until(lambda: not service.mute, "three questions without an answer")
        self.assertEqual(self.until(process, lambda report: report["spans"])[-1]["spans"], 3)
        service.end()
        self.ends(process, 0, "the service has ended")

    def test_once_waits_for_self_times(self):
        class Begun(Source):
            """A source that counts a span after the second question for it: the interval has begun then."""
            asked = 0

            def document(self):
                document = super().document()
                self.asked += 1
                if self.asked == 2:
                    self.add("n", 15)
                return document

        service = self.service("live", Begun("1-1"))
        self.addCleanup(service.end)
        begin = time.monotonic()
        process = self.stat("--json", "--once", interval="0.5")
        report = json.loads(self.ends(process, 0))
        self.assertGreater(time.monotonic() - begin, 3 - 0.1)  # 2.5 s until self times are known, then the interval
        self.assertEqual(report["rows"][0]["spans"], 1)

    def test_asks_within_long_intervals(self):
        service = self.service("live", Source("1-1"))
        self.addCleanup(service.end)
        self.stat("--json", interval="3600")
        wait_until(lambda: service.requests.count("statistics") >= 2, "two questions", 60)

    def test_accounts(self):
        source = Source("1-1")
        source.early = 2
        for name, more in (("live", {}), ("agent", {"only": "slow and failed requests"})):
            service = self.service(name, source, **more)
            self.addCleanup(service.end)
        process = self.stat("--once")
        account = "events: 0; spans: 100 = 93 accepted + 7 dropped; lost by LTTng: 4711 events"
        out = self.ends(process, 0)
        self.assertIn(f"\nlive: {account}\n", out)
        self.assertIn(f"\nagent (slow and failed requests only): {account}\n", out)

    def test_no_service_and_wrong_answers(self):
        self.ends(self.stat(), 1, f'no service answers in "{self.folder}"')
        right = Source("1-1")
        for wrong in ({"scale": 21}, {"rows": [7]}, {"edges": [{"duration": 1}]},
                      {"rows": [{"service": "a", "name": "b", "duration": histogram(), "self": {"buckets": [1 << 40, 1]}}]}):
            document = {**right.document(), **wrong}
            with Service(os.path.join(self.folder, "live.sock"), {"status": {}, "statistics": {"sources": [document]}}.get):
                self.ends(self.stat("--json"), 1, "the answer of a service")
        # without sources there are no spans; a value that is no number is 0
        for answer in ({}, [], {"sources": 7}, {"sources": [7, [], {"seconds": "x", "spans": []}]}):
            with Service(os.path.join(self.folder, "live.sock"), {"status": {}, "statistics": answer}.get):
                self.assertEqual(self.report(self.stat("--json"))["spans"], 0)

    def on_terminal(self, rows, columns, *args):
        """Returns the output on a terminal of this size in its first intervals."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        service = self.service("live")
        process = self.stat(*args, stdout=slave)
        wait_until(lambda: service.requests.count("statistics") >= 2, "the first question's answer")
        many = Source("1-1")
        for i in range(1, 101):
            many.add(f"op {i} of many that have long names", 10 + i // 10)
        service.sources.append(many)
        os.close(slave)
        text = b""
        while b"more" not in text and text.count(b"\x1b[H") < 100:
            text += os.read(master, 100000)
        process.kill()
        process.wait()
        while True:
            try:
                text += os.read(master, 100000)
            except OSError:
                break
        os.close(master)
        service.end()
        return text.decode()

    def test_terminal(self):
        for rows, columns in ((24, 80), (10, 60), (50, 200), (5, 80)):
            text = self.on_terminal(rows, columns, "--sort=p99")
            screens = [screen for screen in text.split("\x1b[H\x1b[2J") if "more)" in screen]
            self.assertTrue(screens, text)
            lines = screens[0].splitlines()
            taken = sum(max(1, -(-len(line) // columns)) for line in lines)
            if rows >= 10:
                self.assertLessEqual(taken, rows - 1, lines)
            self.assertTrue(all(len(line) <= columns for line in lines[3:]), lines)
            self.assertIn("op 100 of", screens[0])
            # nothing is left out: hidden rows are summed up
            more = next(line for line in lines if "more)" in line)
            shown = [line for line in lines if line.startswith("osd: ")]
            self.assertEqual(int(more[1:].split()[0]) + len(shown), 100)

    def test_stopped(self):
        """A `blkin stat` that was stopped continues with the spans of that time; another one is not disturbed."""
        source = Source("1-1")
        service = self.service("live", source)
        self.addCleanup(service.end)
        process = self.stat("--json")
        self.report(process)
        process.send_signal(signal.SIGSTOP)
        other = self.stat("--json")
        with self.lock:
            source.add("n", 15)
        self.until(other, lambda report: report["sources"])
        process.send_signal(signal.SIGCONT)
        self.until(process, lambda report: report["spans"] == 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
