#!/usr/bin/env python3
# blkin stat of sinks that run: what their taps show is in its intervals, however fast it comes.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import wait_until  # noqa: E402
from control_socket import Service  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
DRIVER = os.path.join(os.environ["BUILD"], "tests/plugin/exporter-driver")
BASE = 1700000000000000


def span(trace, span_id, parent, name, start, duration, **more):
    made = {"traceId": f"{trace:016x}", "id": f"{span_id:016x}", "name": name,
            "localEndpoint": {"serviceName": "osd"}, "timestamp": BASE + start, "duration": duration, **more}
    if parent:
        made["parentId"] = f"{parent:016x}"
    return made


class Sink:
    """A tap that shows what it is told to."""

    def __init__(self, path):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.path = path
        self.asked = b""
        self.socket = None

    def accept(self, before=0):
        self.socket, _ = self.listening.accept()
        self.socket.settimeout(20)
        self.say({"before": before, "passed": 0, "dropped": 0, "share": 1, "spans": []})

    def show(self, spans, dropped=0, share=1, passed=None):
        self.say({"passed": len(spans) + dropped if passed is None else passed, "dropped": dropped, "share": share,
                  "spans": spans})

    def say(self, what):
        self.socket.sendall(json.dumps(what).encode() + b"\n")

    def wait_asked(self, text):
        while text not in self.asked:
            got = self.socket.recv(1000)
            if not got:
                raise AssertionError(f"{text} was not asked for, but {self.asked}")
            self.asked += got

    def close(self):
        if self.socket:
            self.socket.close()
        self.listening.close()


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "tap")

    def stat(self, *args, interval="0.3", **kw):
        process = subprocess.Popen([BLKIN, "stat", "--interval", interval, *args], text=True,
                                   **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def sink(self, name="tap"):
        sink = Sink(os.path.join(self.folder, name))
        self.addCleanup(sink.close)
        return sink

    def watched(self, *args, **kw):
        sink = self.sink()
        process = self.stat(self.path, *args, **kw)
        sink.accept()
        return sink, process

    def report(self, process):
        return json.loads(process.stdout.readline())

    def until(self, process, condition):
        """The reports until one is as wanted."""
        reports = []
        while not reports or not condition(reports[-1]):
            line = process.stdout.readline()
            self.assertTrue(line, f"it ended: {process.poll()}")
            reports.append(json.loads(line))
        return reports

    def ends(self, process, status, message=""):
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, status, err)
        self.assertIn(message, err)
        return out

    def test_spans_now_self_times_when_complete(self):
        sink, process = self.watched("--json")
        begin = time.monotonic()
        sink.show([span(1, 2, 1, "child", 10, 30)])
        reports = self.until(process, lambda report: report["spans"])
        self.assertEqual(reports[-1]["rows"][0]["duration"]["max"], 30)
        self.assertEqual((reports[-1]["rows"][0]["self"]["count"], reports[-1]["traces_open"]), (0, 1))
        sink.show([span(1, 1, 0, "root", 0, 100, tags={"error": "EIO"})])
        reports = self.until(process, lambda report: report["traces"])
        self.assertGreater(time.monotonic() - begin, 2)
        self.assertEqual([report["spans"] for report in reports if report["spans"]], [1])
        self.assertEqual(sum(row["errors"] for report in reports for row in report["rows"]), 1)
        self.assertEqual({row["name"]: (row["spans"], row["self"]["max"]) for row in reports[-1]["rows"]},
                         {"root": (0, 70), "child": (0, 30)})
        self.assertEqual(reports[-1]["traces_open"], 0)
        # nothing is left of an interval in the next
        self.assertEqual(self.report(process)["rows"], [])
        sink.close()
        self.ends(process, 0)

    def test_once(self):
        sink, process = self.watched("--json", "--once", interval="1")
        sink.show([span(1, 2, 1, "child", 10, 30), span(1, 1, 0, "root", 0, 100)])
        report = json.loads(self.ends(process, 0))
        self.assertAlmostEqual(report["seconds"], 1, delta=0.5)
        self.assertEqual({row["name"]: row["self"]["sum"] for row in report["rows"]}, {"root": 70, "child": 30})
        self.assertAlmostEqual(report["rows"][0]["rate"], 1 / report["seconds"], 2)

    def test_a_share_is_asked_for_when_spans_are_dropped(self):
        sink, process = self.watched("--json", interval="0.2")
        sink.show([span(1, 1, 0, "n", 0, 100)], dropped=999)
        report = self.until(process, lambda report: report["spans"])[-1]
        self.assertEqual((report["passed"], report["dropped"], report["share"]), (1000, 999, 1))
        self.assertAlmostEqual(report["rows"][0]["rate"], 1000 / report["seconds"], delta=0.01)
        sink.wait_asked(b"1/2\n")
        sink.show([], dropped=5)
        sink.wait_asked(b"1/2\n1/4\n")
        sink.wait_asked(b"1/2\n1/4\n1/2\n1/1\n")  # nothing more is dropped
        self.until(process, lambda report: report["share"] == 1 and report["passed"] == 0)

    def test_all_of_a_fast_sink(self):
        """Whatever is dropped, shown and given up: they are as many as there were."""
        total = 400000
        driver = subprocess.Popen(
            [DRIVER, "endpoint=file:" + self.folder + "/spans", f"tap={self.path}", "per-trace=5", "add:10", "pause", "live",
             f"add:{total}", f"wait:accepted:{total + 10}", "pause", "close"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(driver.communicate)
        self.addCleanup(driver.kill)
        wait_until(lambda: os.path.exists(self.path), "the tap")
        process = self.stat(self.path, "--json", interval="0.5")
        self.report(process)
        driver.stdin.write("\n")
        driver.stdin.flush()
        reports, passed = [], 0
        while passed < total:
            reports.append(self.report(process))
            passed += reports[-1]["passed"]
            seen, dropped = reports[-1]["spans"], reports[-1]["dropped"]
            self.assertLessEqual(seen + dropped, reports[-1]["passed"])
            if reports[-1]["share"] == 1 and all(r["share"] == 1 for r in reports):
                self.assertEqual(seen + dropped, reports[-1]["passed"])
        self.assertEqual(passed, total)
        driver.stdin.write("\n")
        driver.stdin.flush()
        counts = json.loads(driver.communicate(timeout=60)[0])
        self.assertEqual(counts["accepted"], total + 10)
        self.ends(process, 0)

    def test_memory_is_bounded(self):
        """A million names, and traces that never end, in an interval that is long."""
        sink, process = self.watched("--json", interval="3600")
        for begin in range(0, 1000000, 5000):
            spans = ",".join(f'{{"traceId":"{i % 200000:x}","id":"{i:x}","name":"name {i}","duration":{1 + i % 977}}}'
                             for i in range(begin + 1, begin + 5001))
            sink.socket.sendall(b'{"passed":5000,"dropped":0,"spans":[%s]}\n' % spans.encode())
        sink.close()
        report = json.loads(self.ends(process, 0))
        self.assertEqual((report["spans"], len(report["rows"])), (1000000, 4096))
        self.assertGreater(report["traces_early"], 0)
        self.assertEqual(sum(row["spans"] for row in report["rows"]), 1000000)
        self.assertEqual(sum(row["self"]["count"] for row in report["rows"]), 1000000)
        self.assertEqual(sum(row["spans"] for row in report["rows"] if row.get("other")), 1000000 - 4095)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 200 << 10)

    def test_a_huge_trace(self):
        sink, process = self.watched("--json", interval="3600")
        for begin in range(0, 50000, 5000):
            sink.show([span(7, 1 + i % 3, 9, "n", 0, 5) for i in range(begin, begin + 5000)])
        sink.close()
        report = json.loads(self.ends(process, 0))
        self.assertEqual(report["rows"][0]["self"]["count"], 50000)
        self.assertEqual((report["traces"], report["traces_early"]), (0, 5))

    def test_what_is_no_tap(self):
        for said, message in (("nonsense\n", "not a line of a sink's tap"), ("[]\n", 'expected an object with "spans"'),
                              ('{"error":"8 readers"}\n', "8 readers"), ('{"spans":[{"id":1}]}\n', "not a Zipkin v2 span"),
                              ('{"spans":{}}\n', "not a line"), ("\0\n", "not a line"), ("\n", "not a line")):
            sink, process = self.watched("--json")
            sink.socket.sendall(said.encode())
            self.ends(process, 1, message)
            sink.close()
            os.unlink(self.path)
        sink = self.sink()
        sink.listening.close()
        self.ends(self.stat(self.path), 1, f'check that a sink with tap="{self.path}" runs')

    def test_lines_in_pieces(self):
        sink, process = self.watched("--json", "--once", interval="1.5")
        text = json.dumps({"passed": 2, "dropped": 0, "share": 1, "spans": [span(1, 1, 0, "ü" * 200, 0, 5)] * 2}) + "\n"
        data = text.encode()
        for i in range(0, len(data), 97):
            sink.socket.sendall(data[i:i + 97])
            time.sleep(0.001)
        sink.socket.sendall(data[:50])  # and half a line at the end
        sink.close()
        self.assertEqual(json.loads(self.ends(process, 0))["rows"][0]["spans"], 2)

    def on_terminal(self, rows, columns, *args, spans=()):
        """What it writes to a terminal of this size in its first intervals."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        sink, process = self.watched(*args, stdout=slave)
        sink.show(list(spans), dropped=7)
        os.close(slave)
        text = b""
        while b"more" not in text and text.count(b"\x1b[H") < 4:
            text += os.read(master, 100000)
        process.kill()
        process.wait()
        while True:
            try:
                text += os.read(master, 100000)
            except OSError:
                break
        os.close(master)
        sink.close()
        os.unlink(self.path)
        return text.decode()

    def test_terminal(self):
        spans = [span(i, 1, 0, f"op {i} of many that have long names", 0, i) for i in range(1, 101)]
        for rows, columns in ((24, 80), (10, 60), (50, 200), (5, 80)):
            text = self.on_terminal(rows, columns, "--sort=p99", spans=spans)
            screens = [screen for screen in text.split("\x1b[H\x1b[2J") if "more)" in screen]
            self.assertTrue(screens, text)
            lines = screens[0].splitlines()
            taken = sum(max(1, -(-len(line) // columns)) for line in lines)
            if rows >= 10:
                self.assertLessEqual(taken, rows - 1, lines)
            self.assertTrue(all(len(line) <= columns for line in lines[3:]), lines)
            self.assertIn("op 100 of", screens[0])
            # nothing is left out: what is not shown is summed up
            more = next(line for line in lines if "more)" in line)
            shown = [line for line in lines if line.startswith("osd: ")]
            self.assertEqual(int(more[1:].split()[0]) + len(shown), 100)
            titles = next(line for line in lines if line.startswith("service: span")).split()
            self.assertEqual(more.split()[titles.index("max") - len(titles)], f"{100 - len(shown)}us")

    # ---- services: they are asked where the taps are

    def service(self, name, answers):
        """Answers requests on NAME.sock; returns what ends it."""
        return Service(os.path.join(self.folder, name + ".sock"), answers.get).end

    def test_services(self):
        one, two = self.sink("one"), self.sink("two")
        answers = {"taps": [one.path], "status": {"counters": {"spans_finished": 100, "spans_accepted": 93, "spans_dropped": 7,
                                                              "lttng_events_discarded": 4711}}}
        end = self.service("live", answers)
        process = self.stat("--json", f"--runtime-dir={self.folder}")
        one.accept()
        one.show([span(1, 1, 0, "one", 0, 5)])
        report = self.until(process, lambda report: report["spans"])[-1]
        self.assertEqual((report["taps"], report["services"]["live"]["lttng_events_discarded"]), (1, 4711))
        answers["taps"] = [one.path, two.path, self.path + "gone"]  # a second host's session has come
        two.accept()
        one.show([span(2, 1, 0, "one", 0, 5)])
        two.show([span(2, 2, 1, "two", 1, 3)])
        rows = collections.Counter()
        reports = []
        while not reports or not any(row["name"] == "two" and row["self"]["count"] for row in reports[-1]["rows"]):
            reports.append(self.report(process))
            for row in reports[-1]["rows"]:
                rows[row["name"]] += row["spans"]
        # a trace over two hosts is one
        self.assertEqual({row["name"]: row["self"]["max"] for row in reports[-1]["rows"] if row["self"]["count"]},
                         {"one": 2, "two": 3})
        self.assertEqual((rows, reports[-1]["taps"]), ({"one": 1, "two": 1}, 2))
        one.close()  # a session has ended, its tap is gone
        answers["taps"] = [two.path]
        self.until(process, lambda report: report["taps"] == 1)
        end()
        two.close()
        self.ends(process, 0, "the service has ended")

    def test_account_of_a_service(self):
        one = self.sink("one")
        self.addCleanup(self.service("live", {"taps": [one.path], "status": {"counters": {
            "spans_finished": 100, "spans_accepted": 93, "spans_dropped": 7, "lttng_events_discarded": 4711}}}))
        process = self.stat("--once", f"--runtime-dir={self.folder}")
        one.accept()
        one.show([span(1, 1, 0, "one", 0, 5)])
        out = self.ends(process, 0)
        self.assertIn("live: events: 0; spans: 100 = 93 accepted + 7 dropped; lost before by LTTng: 4711 events", out)
        self.assertIn("osd: one", out)

    def test_stopped_and_killed(self):
        sink, process = self.watched("--json")
        self.report(process)
        process.send_signal(signal.SIGSTOP)
        sink.socket.settimeout(1)
        with self.assertRaises(TimeoutError):
            while True:
                sink.show([span(1, 1, 0, "n", 0, 5)] * 100)
        process.kill()
        process.communicate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
