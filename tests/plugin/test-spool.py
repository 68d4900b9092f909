#!/usr/bin/env python3
# timeout: 200
"""The spool: spans that a collector does not accept now are on disk, and arrive later. test-send.c has damaged and old records.

test-spool.py [NAME]...     all scenarios, or those whose names contain one of these

KILLS=N: how often the sink is killed (default 20; a kill takes about 0.3 s).

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import random
import signal
import socket
import subprocess
import sys
import threading

from delivery import DRIVER  # noqa: E402
from faulty_collector import *  # noqa: F403 (the scenarios use its faults)
from scenarios import PATIENCE, expect, run_scenarios, scenario
from spool_runs import Run, drain, each_once, files, fill, folder, ids

KILLS = int(os.environ.get("KILLS", "20"))


# ---- away and back -----------------------------------------------------------------------------------


@scenario
def faults_that_pass():
    """Requests of several senders fail: each span arrives.

    These faults, unlike 404 and 500, do not make the sink give up a batch. The sink gives up a batch whose connection
    breaks again and again, but only after retry-timeout-ms, which is long here.
    """
    faults = [status(503), reset_after_request(), close_at_once(), status(429), raw(b"HTTP/1.1 2"),
              status(502), reset_at_once(), status(504), raw(b"")] * 3
    script = [step for fault in faults for step in (fault, ok())]  # a success ends the growth of pauses
    with folder() as spool, Collector(script) as collector:
        run = Run(collector, "live", "add:3000", "flush", "wait:spool-accepted:1000", "close",
                  spool=spool, batch_spans=50, retry_timeout_ms=600000)
        expect(run.counts["dropped"] + run.counts["undelivered"] == 0, run.explain())
        drain(spool, collector, retry_timeout_ms=600000)
        each_once(collector, 3000)


@scenario
def several_requests_at_once():
    peak = [0, 0]
    lock, together = threading.Lock(), threading.Barrier(5)

    def count(connection):
        request = read(connection)
        with lock:
            peak[0] += 1
            peak[1] = max(peak)
        together.wait(30)
        with lock:
            peak[0] -= 1
        return connection.answer(202, request=request)

    with folder() as spool, Collector(default=count) as collector:
        fill(spool, 4000)
        drain(spool, collector, spool_senders=5).has(spool_accepted=4000)
        expect(peak[1] == 5, "%d at once" % peak[1])
        each_once(collector, 4000)


# ---- killed ----------------------------------------------------------------------------------------------


class Flighty:
    """A collector that starts and stops at random, at one port. It counts how often it got each id."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.taken = collections.Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.come_and_go, daemon=True)

    def open(self):
        return Collector(port=self.port, default=slow(0.002))

    def come_and_go(self):
        source = random.Random(13)
        while not self.stopping.is_set():
            with self.open() as collector:
                self.stopping.wait(source.uniform(0, 0.3))
            with collector.lock:
                self.taken.update(collector.accepted)
                collector.take = self.take_late
            self.stopping.wait(source.uniform(0, 0.4))

    def take_late(self, request):
        """Counts a request on a connection that outlives its collector, because the sink may get the answer."""
        self.taken.update(request.ids())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


@scenario
def killed_at_random():
    """
    Spans are added all the time, the collector starts and stops, and the sink is killed. In the end the collector has
    each span that was settled when the sink was killed. For each kill, at most one batch of each sender arrives twice.
    Spans in the queue are lost with the process, but they were not settled.
    """
    senders, batch = 3, 20
    source = random.Random(int(os.environ.get("SEED", "1")))
    settled, first, kills_in_spool = set(), 0, 0
    with folder() as spool, Flighty() as collector:
        args = [DRIVER, "endpoint=" + collector.url, "spool=" + spool, "require-collector=no",
                "spool-senders=%d" % senders, "batch-spans=%d" % batch, "batch-timeout-ms=5",
                "spool-bytes=%d" % (1 << 30), "request-timeout-ms=1000"]
        for _ in range(KILLS):
            steps = ["number:%d" % first, "live", "settled", "pace:500", "add:100000"]
            with subprocess.Popen(args + steps, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL) as sink:
                timer = threading.Timer(source.uniform(0.02, 0.5) * PATIENCE, sink.kill)
                timer.start()
                last = first
                for line in sink.stdout:
                    if line.endswith("\n"):
                        last = int(line.split()[1])
                sink.wait()
                timer.join()
                expect(sink.returncode == -signal.SIGKILL, "the sink ended by itself: %s" % sink.returncode)
            settled.update(ids(last - first, first))
            first += 1000000
            kills_in_spool += bool(files(spool))
        collector.stopping.set()
        collector.thread.join()
        with collector.open() as last_one:
            run = Run(last_one, "flush", "close", spool=spool, spool_senders=senders)
            run.has(spool_waiting=0, spool_dropped=0, spool_expired=0)
            collector.taken.update(last_one.accepted)
    lost = settled - set(collector.taken)
    twice = sum(count - 1 for count in collector.taken.values())
    print("killed %d times, %d of them with spans in the spool: %d spans settled, %d taken, "
          "%d lost, %d twice (at most %d), %d torn" %
          (KILLS, kills_in_spool, len(settled), len(collector.taken), len(lost), twice,
           KILLS * senders * batch, run.counts["spool"]["corrupt"]))
    expect(settled, "no span was settled: the test shows nothing")
    expect(not lost, "lost: %s" % sorted(lost)[:20])
    expect(twice <= KILLS * senders * batch, "too many arrived twice")
    expect(kills_in_spool or KILLS < 10, "the spool was never used")


if __name__ == "__main__":
    sys.exit(run_scenarios(4))
