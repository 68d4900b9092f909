#!/usr/bin/env python3
"""One user harms the agent in every way; another user's slow traces stay whole, and arrive at most twice as late.

TRACES=100 MUTATIONS=1000000000 is the long run. MEASURE=1 checks the latencies, too: the machine must be idle.
SPDX-License-Identifier: BSD-2-Clause
"""
# timeout: 600
import contextlib
import http.client
import json
import mmap
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path[:0] = [os.environ["SRC"] + "/tests", os.environ["SRC"] + "/tests/otlp"]
from common import ENVIRONMENT, LIMIT_S, ask, free_port, pause, wait_until  # noqa: E402
from parts import request, span  # noqa: E402
from server import Server  # noqa: E402

BUILD, SRC = os.environ["BUILD"], os.environ["SRC"]
PARTS = SRC + "/tests/agent/parts"
TRACES = int(os.environ.get("TRACES", "10"))
MUTATIONS = int(os.environ.get("MUTATIONS", "20000000"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
VICTIM, ATTACKER, NEWCOMER, CROWD = 7421, 7422, 7423, 7500
HOUR_NS = 3600 * 10 ** 9


def user(number):
    return {"user": number, "group": number, "extra_groups": []}


class Collector:
    """The times at which the spans of each trace arrived."""

    def __init__(self):
        self.spans = {}

    def answer(self, got):
        now = time.monotonic()
        for span in json.loads(got.body or b"[]"):
            trace = span["traceId"].rjust(32, "0")
            if span["name"] != "incomplete":
                self.spans.setdefault(trace, {})[span["id"]] = now
        return 202


def end(process):
    process.kill()
    process.communicate()


class Requests:
    """The program requests.c, which makes requests of three spans."""

    def __init__(self, number, rules, environment):
        self.process = subprocess.Popen([BUILD + "/tests/agent/parts/requests"], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env={**environment, "BLKIN_SLOW": rules}, **user(number))

    def make(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()[-1]


class Shares(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0 or any(subprocess.run(["test", "-x", what], check=False, **user(VICTIM)).returncode
                                   for what in (BUILD + "/bin/blkin", sys.executable)):
            print("not root, or no build that others may read: no other users")
            sys.exit(77)
        for private in (os.environ.get("BLKIN_PRIVATE"), os.environ.get("TMPDIR")):
            if private:
                os.chmod(private, 0o711)
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o711)
        cls.quiet = None

    def setUp(self):
        self.collector, self.port = Collector(), free_port()
        server = Server(self.collector.answer)
        server.__enter__()
        self.addCleanup(server.__exit__)
        work = tempfile.mkdtemp(dir=self.folder)
        os.chmod(work, 0o755)
        self.clock, self.control = work + "/clock", work + "/run/agent.sock"
        with open(self.clock, "wb") as file:
            file.write(bytes(8))
        with open(work + "/slow", "w", encoding="ascii") as file:
            file.write("error, *>1s\n")
        self.environment = {**ENVIRONMENT, "BLKIN_RINGS": work + "/rings"}
        preload = {} if "ASAN_OPTIONS" in os.environ else {
            "LD_PRELOAD": BUILD + "/tests/agent/parts/set_clock.so", "SET_CLOCK": self.clock}
        self.log = open(work + "/log", "wb")
        self.agent = subprocess.Popen([BUILD + "/bin/blkin", "agent", "--log-level=info"], stdout=self.log, stderr=self.log, env={
            **ENVIRONMENT, **preload, "BLKIN_STATE_DIR": work + "/state", "BLKIN_RUNTIME_DIR": work + "/run",
            "BLKIN_RING_SOCKET": work + "/rings", "BLKIN_SEND": "all" if self.id().endswith("_all") else "slow", "BLKIN_RING_BYTES": "2M", "BLKIN_HOST": "no",
            "BLKIN_ENDPOINT": server.url + "/api/v2/spans", "BLKIN_OTLP_LISTEN": "127.0.0.1:%d" % self.port,
            "BLKIN_OTLP_SOCKET": work + "/otlp", "BLKIN_SLOW_FILE": work + "/slow", "BLKIN_LINGER_MS": "300",
            "BLKIN_ANSWER_TIMEOUT_MS": str(LIMIT_S * 1000), "BABELTRACE_PLUGIN_PATH": BUILD + "/plugins"})
        self.addCleanup(self.end_agent)
        wait_until(self.is_up, "the agent records")
        self.socket = work + "/rings"
        self.program = self.requests(VICTIM, "*>15ms, max=1000/s")

    def end_agent(self):
        self.agent.terminate()
        try:
            status = self.agent.wait(LIMIT_S)
        finally:
            self.agent.kill()
            self.log.close()
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            self.assertEqual(status, 0, log.read()[-4000:])

    def is_up(self):
        self.assertIsNone(self.agent.poll(), "the agent has ended")
        with contextlib.suppress(OSError, ValueError):
            return self.status()["state"] == "recording"
        return False

    def status(self):
        return ask(self.control)

    def verdicts(self):
        """Returns a dictionary: for each trace "found whole", or "incomplete" with the reason."""
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return dict(re.findall("trace ([0-9a-f]{32}) is (found whole|incomplete: [^(]*)", log.read()))

    def share(self, number):
        return next((one for one in self.status()["shares"] if one["of"] == "user %d" % number), None)

    def requests(self, number, rules):
        """Starts a program, and waits until it has its rings."""
        program = Requests(number, rules, self.environment)
        self.addCleanup(end, program.process)

        def writes():
            program.make("fast 1")
            return any(one["user"] == number and one["written_bytes"] for one in self.status()["rings"]["memories"])
        wait_until(writes, "the program writes into its rings", every_s=0.1)
        return program

    def hostile(self, number, *what, program=(sys.executable, PARTS + "/hostile.py")):
        process = subprocess.Popen([*program, self.socket, *map(str, what)],
                                   stdout=subprocess.PIPE, env=self.environment, **user(number))
        self.addCleanup(end, process)
        self.assertTrue(process.stdout.readline(), what)
        return process

    def check(self, what, program=None, meanwhile=lambda number: None):
        """Checks that the slow traces of the program are whole."""
        ended, latencies = {}, []
        for number in range(TRACES):
            trace = (program or self.program).make("slow 20")
            ended[trace] = time.monotonic()
            meanwhile(number)
            pause(0.03)
        wait_until(lambda: all(len(self.collector.spans.get(trace, ())) == 3 for trace in ended),
                   lambda: "%s: %s of 3 spans; %s" % (what, [len(self.collector.spans.get(trace, ())) for trace in ended],
                                                      json.dumps(self.status())), 60)
        marked = {}
        if self.status()["send"] == "slow":
            wait_until(lambda: set(ended) <= set(self.verdicts()), lambda: "%s: a verdict on each of %s" % (what, ended), 60)
            verdicts = self.verdicts()
            marked = {trace: verdicts[trace] for trace in ended if verdicts[trace] != "found whole"}
        latencies = sorted(max(self.collector.spans[trace].values()) - end for trace, end in ended.items())
        print("%-28s %d of %d whole, p50 %.2f s, p99 %.2f s" %
              (what, TRACES - len(marked), TRACES, latencies[TRACES // 2], latencies[(TRACES - 1) * 99 // 100]), flush=True)
        self.assertEqual(marked, {}, what)
        if os.environ.get("MEASURE") and Shares.quiet:
            self.assertLessEqual(latencies[(TRACES - 1) * 99 // 100], 2 * Shares.quiet, what)
        return latencies[(TRACES - 1) * 99 // 100]

    def test_0_quiet(self):
        Shares.quiet = self.check("quiet")

    def test_alarms(self):
        """Every request of the other user is slow."""
        flood = self.requests(ATTACKER, "*>1ns, max=1000000/s")
        flood.make("rate 2000")
        wait_until(lambda: (self.share(ATTACKER) or {"dropped": 0})["dropped"] > 1000, "alarms beyond the share")
        self.check("a flood of alarms")
        victim = self.share(VICTIM)
        self.assertGreaterEqual(victim["alarms"], TRACES)
        self.assertEqual(victim["dropped"], 0)

    def test_forged_alarms(self):
        self.hostile(ATTACKER, "alarms")
        wait_until(lambda: (self.share(ATTACKER) or {"dropped": 0})["dropped"] > 1000, "alarms beyond the share")
        self.check("a flood of forged alarms")
        status = self.status()
        self.assertEqual({one["of"] for one in status["shares"]}, {"user %d" % VICTIM, "user %d" % ATTACKER})
        self.assertEqual(self.share(VICTIM)["dropped"], 0)
        self.assertLess(len(json.dumps(status)), 20000)

    def post(self, body):
        with contextlib.suppress(OSError, http.client.HTTPException):
            urllib.request.urlopen(urllib.request.Request(
                "http://127.0.0.1:%d/v1/traces" % self.port, body, {"Content-Type": "application/x-protobuf"}), timeout=10)

    def test_failed_otlp_spans(self):
        """A sender of OTLP sends failed spans, each of another trace."""
        ends = threading.Event()

        def flood():
            while not ends.is_set():
                self.post(request([span(random.getrandbits(128), 1, name="failed", error=True) for _ in range(1000)]))
        thread = threading.Thread(target=flood)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ends.set)
        wait_until(lambda: self.status()["otlp"]["counts"]["alarms_held_back"] > 1000, "alarms beyond the share")
        self.check("a flood of failed OTLP spans")

    def test_connections(self):
        """Twenty users open as many connections as possible; then another user's program starts."""
        for number in range(20):
            self.hostile(CROWD + number, "idle", 300)
        wait_until(lambda: sum(one["connections"] + one["hung_up"] + one["refused"] for one in self.status()["rings"]["shares"]) >= 6000,
                   lambda: json.dumps(self.status()["rings"]["shares"]))
        self.check("6000 idle connections")
        self.check("a program that starts then", self.requests(NEWCOMER, "*>15ms, max=1000/s"))

    def test_first_programs(self):
        self.check("first programs of users",
                   meanwhile=lambda number: self.hostile(CROWD + number % 20, "first") if number % 2 == 0 else None)

    def damage(self, damaged):
        """A program mutates its rings at random while another program of the same user writes into them."""
        other = self.requests(ATTACKER, "*>15ms, max=1000/s")
        for seed in range(SEED, SEED + 20):  # on a busy host, all mutations may be made between two scans
            print("seed %d" % seed, flush=True)
            hostile = self.hostile(ATTACKER, MUTATIONS, seed, program=[BUILD + "/tests/agent/parts/mutate"])
            self.check("a damaged ring", meanwhile=lambda number: other.make("fast 1"))
            while hostile.poll() is None:
                self.check("a damaged ring", meanwhile=lambda number: other.make("fast 1"))
            print(hostile.stdout.read().decode().strip(), flush=True)
            self.assertEqual(hostile.returncode, 0)
            if damaged(self.status()):
                break
        self.assertTrue(damaged(self.status()), json.dumps(self.status()))
        print({name: count for name, count in {**self.status()["totals"], **self.status()["rings"]}.items()
               if name in ("rings_damaged", "damaged_bytes", "jumps", "alarms_lost", "alarms_dropped")}, flush=True)

    def test_damage(self):
        self.damage(lambda status: status["totals"]["rings_damaged"])

    def test_damage_all(self):
        self.damage(lambda status: status["rings"]["jumps"] + status["rings"]["damaged_bytes"])

    def test_clock(self):
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("a preloaded library comes before AddressSanitizer's")
        self.check("the clock is right")
        with open(self.clock, "r+b") as file, mmap.mmap(file.fileno(), 8) as ahead:
            def set_clock(hours):
                struct.pack_into("<q", ahead, 0, hours * HOUR_NS)
            self.check("the clock is set back", meanwhile=lambda number: set_clock(-1) if number == TRACES // 2 else None)
            self.check("a program that starts then", self.requests(ATTACKER, "*>15ms, max=1000/s"))


if __name__ == "__main__":
    unittest.main()
