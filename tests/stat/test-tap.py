#!/usr/bin/env python3
# The sink's tap: what its readers are shown, and that none of them holds the sink up.
# SPDX-License-Identifier: BSD-2-Clause
import fcntl
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import wait_until  # noqa: E402
from server import Server  # noqa: E402

DRIVER = os.path.join(os.environ["BUILD"], "tests/plugin/exporter-driver")
READER_BYTES = 4 << 20


class Reader:
    """A client of the tap."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.file = self.socket.makefile("r", encoding="utf-8")
        self.first = json.loads(self.file.readline())

    def ask(self, text):
        self.socket.sendall(text.encode())

    def is_heard(self):
        """Has the sink taken all that was asked?"""
        unread = fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4))
        return unread == bytes(4)

    def lines(self):
        """All that come until the sink ends."""
        return [json.loads(line) for line in self.file]

    def until(self, passed):
        """Those in which so many spans pass."""
        lines = []
        while sum(line["passed"] for line in lines) < passed:
            lines.append(json.loads(self.file.readline()))
        return lines

    def close(self):
        self.file.close()
        self.socket.close()


def spans_of(lines):
    return [span for line in lines for span in line["spans"]]


class Tap(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "tap")
        self.output = os.path.join(self.folder, "spans.json")

    def driver(self, *args, tap=None, wait=True, endpoint=None):
        """A sink that is fed; it waits at each step "pause" for go()."""
        driver = subprocess.Popen(
            [DRIVER, f"endpoint={endpoint or 'file:' + self.output}", f"tap={tap or self.path}", "batch-timeout-ms=1", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, driver)
        if wait:
            wait_until(lambda: self.is_there() or driver.poll() is not None)
        return driver

    @staticmethod
    def end(driver):
        driver.kill()
        driver.communicate()

    def is_there(self):
        try:
            Reader(self.path).close()
            return True
        except (OSError, ValueError):
            return False

    @staticmethod
    def go(driver):
        driver.stdin.write("\n")
        driver.stdin.flush()

    def counts(self, driver):
        out, err = driver.communicate(timeout=60)
        self.assertEqual(driver.returncode, 0, err)
        return json.loads(out)

    def delivered(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)

    def test_all_spans_are_shown(self):
        driver = self.driver("batch-spans=100", "per-trace=7", "pause", "add:2500", "pause", "close")
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        readers = [Reader(self.path) for _ in range(3)]
        for reader in readers:
            self.assertEqual(reader.first, {"before": 0, "passed": 0, "dropped": 0, "share": 1, "spans": []})
        self.go(driver)
        shown = [reader.until(2500) for reader in readers]
        late = Reader(self.path)
        self.assertEqual((late.first["before"], late.first["passed"]), (2500, 0))
        late.close()
        self.go(driver)
        for reader, lines in zip(readers, shown):
            self.assertEqual(reader.lines(), [])
            self.assertEqual(sum(line["passed"] for line in lines), 2500)
            self.assertEqual(sum(line["dropped"] for line in lines), 0)
            self.assertTrue(all(len(line["spans"]) <= 100 for line in lines))
            self.assertEqual(spans_of(lines), self.delivered())
            reader.close()
        self.assertEqual(self.counts(driver)["tap_dropped"], 0)
        self.assertFalse(os.path.exists(self.path))

    def test_a_share_is_of_whole_traces(self):
        driver = self.driver("batch-spans=1000", "per-trace=7", "pause", "add:35000", "pause", "close")
        seen = {}
        readers = {share: Reader(self.path) for share in (2, 16, 65536)}
        for share, reader in readers.items():
            reader.ask(f"1/{share}\n")
            wait_until(reader.is_heard, "the tap's thread takes it")
        self.go(driver)
        for share, reader in readers.items():
            lines = reader.until(35000)
            self.assertEqual({line["share"] for line in lines}, {share})
            self.assertEqual(sum(line["passed"] for line in lines), 35000)
            spans = spans_of(lines)
            traces = {}
            for span in spans:
                traces[span["traceId"]] = traces.get(span["traceId"], 0) + 1
            self.assertEqual(set(traces.values()) - {7}, set(), "a trace is in it in part")
            self.assertLess(abs(len(traces) - 5000 / share), 6 * (5000 / share) ** 0.5 + 2)
            seen[share] = set(traces)
            reader.close()
        self.assertLessEqual(seen[16], seen[2])
        self.go(driver)
        self.counts(driver)

    def test_who_says_something_else_is_put_out(self):
        driver = self.driver("pause", "close")
        for wrong in ("1/0\n", "1/65537\n", "2/3\n", "1/\n", "1/99999999999\n", "1/-1\n", "x" * 16, "\n", "\0\n"):
            reader = Reader(self.path)
            reader.ask(wrong)
            self.assertEqual(reader.lines(), [], repr(wrong))
            reader.close()
        silent = Reader(self.path)  # has nothing to say, and still listens
        silent.socket.shutdown(socket.SHUT_WR)
        split = Reader(self.path)
        for part in ("1", "/", "2", "\n1/3\n1/4", "\n"):
            split.ask(part)
        self.go(driver)
        self.assertEqual(silent.lines(), [])
        self.counts(driver)
        for reader in (silent, split):
            reader.close()

    def test_a_slow_reader_misses_whole_batches_and_is_told(self):
        driver = self.driver("batch-spans=500", "pause", "add:200000", "wait:accepted:200000", "pause", "add:10",
                             "pause", "close")
        slow, quick, gone = Reader(self.path), Reader(self.path), Reader(self.path)
        self.go(driver)
        quick_lines = quick.until(200000)
        gone.close()
        wait_until(lambda: len(self.delivered()) == 200000)  # with nobody at slow's end
        # now it reads: what it has missed is told, at the latest when all the rest has been read
        self.go(driver)
        lines = slow.until(200010)
        quick_lines += quick.until(10)
        self.go(driver)
        lines += slow.lines()
        for line in lines:  # whole batches
            self.assertEqual(len(line["spans"]), line["passed"] - line["dropped"])
        shown, dropped = spans_of(lines), sum(line["dropped"] for line in lines)
        self.assertGreater(dropped, 0)
        self.assertEqual(len(shown) + dropped, 200010)
        self.assertEqual(len({span["id"] for span in shown}), len(shown))
        self.assertLess(sum(len(json.dumps(line)) for line in lines), 3 * READER_BYTES)
        quick_dropped = sum(line["dropped"] for line in quick_lines)
        self.assertEqual(len(spans_of(quick_lines)) + quick_dropped, 200010)
        counts = self.counts(driver)
        self.assertEqual((counts["accepted"], counts["dropped"]), (200010, 0))
        self.assertGreaterEqual(counts["tap_dropped"], dropped + quick_dropped)
        slow.close()
        quick.close()

    def test_each_span_is_shown_once(self):
        """However often its batch is tried, split, or put aside on disk while the collector is away."""
        answers = itertools.cycle([202, 503, 503, 202, 400, 202, 413, 202])

        with Server(lambda request: 202 if request.body == b"[]" else next(answers)) as server:
            for more in ([], [f"spool={self.folder}/spool"]):
                driver = self.driver(*more, "pause", "live", *["add:200", "sleep:10"] * 20, "pause", "close",
                                     endpoint=server.url)
                reader = Reader(self.path)
                self.go(driver)
                shown = [int(span["id"], 16) for span in spans_of(reader.until(4000))]
                self.go(driver)
                self.assertEqual(reader.lines(), [])
                self.assertEqual(sorted(shown), list(range(1, 4001)))
                self.counts(driver)
                reader.close()

    def test_nobody_holds_up_the_end(self):
        driver = self.driver("pause", "add:100000", "close")
        stopped = [Reader(self.path) for _ in range(8)]
        self.go(driver)
        counts = self.counts(driver)
        self.assertEqual((counts["accepted"], len(self.delivered())), (100000, 100000))
        # what is in the kernel's buffers they could read; the rest is counted
        self.assertGreater(counts["tap_dropped"], 8 * 90000)
        for reader in stopped:
            reader.close()

    def test_readers_come_and_go(self):
        driver = self.driver("batch-spans=50", *["add:1000", "sleep:5"] * 40, "pause", "close")
        for _ in range(100):
            reader = Reader(self.path)
            reader.close()
        for _ in range(10):  # killed in the middle of reading
            child = subprocess.Popen([sys.executable, "-c", f"import socket; s = socket.socket(socket.AF_UNIX); "
                                      f"s.connect({self.path!r}); print(flush=True); s.recv(100); import signal; signal.pause()"],
                                     stdout=subprocess.PIPE)
            child.stdout.readline()
            child.send_signal(signal.SIGKILL)
            child.communicate()
        self.go(driver)
        self.assertEqual(self.counts(driver)["accepted"], 40000)

    def test_eight_readers(self):
        driver = self.driver("pause", "add:10", "close")
        readers = [Reader(self.path) for _ in range(8)]
        ninth = Reader(self.path)
        self.assertIn("8 readers", ninth.first["error"])
        self.assertEqual(ninth.lines(), [])
        ninth.close()
        readers.pop().close()
        wait_until(self.has_room)
        self.go(driver)
        for reader in readers:
            self.assertEqual(len(spans_of(reader.lines())), 10)
            reader.close()
        self.counts(driver)

    def has_room(self):
        reader = Reader(self.path)
        reader.close()
        return "error" not in reader.first

    def refused(self, message, **kw):
        driver = self.driver("close", wait=False, **kw)
        _, err = driver.communicate(timeout=20)
        self.assertEqual(driver.returncode, 1)
        self.assertIn(message, err)

    def test_the_path(self):
        first = self.driver("pause", "close")
        self.output += "2"
        self.refused("another process listens there")
        self.assertTrue(self.is_there(), "the first one's socket is gone")
        first.kill()  # leaves its socket, which nobody listens at
        first.wait()
        self.assertTrue(os.path.exists(self.path))
        second = self.driver("pause", "add:1", "close")
        reader = Reader(self.path)
        self.go(second)
        self.assertEqual(len(spans_of(reader.lines())), 1)
        reader.close()
        self.counts(second)
        with open(self.path, "w", encoding="ascii") as file:
            file.write("of somebody")
        self.refused("the file exists and is no socket")
        with open(self.path, encoding="ascii") as file:
            self.assertEqual(file.read(), "of somebody")
        self.refused("expected a path of 1 to 107 bytes, got 120", tap="/" + "x" * 119)
        self.refused("cannot listen: No such file or directory", tap=self.folder + "/none/tap")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
