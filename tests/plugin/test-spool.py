#!/usr/bin/env python3
# timeout: 200
"""The spool: spans that a collector does not accept now are on disk, and arrive later.

test-spool.py [NAME]...     all scenarios, or those whose names contain one of these

KILLS=N: how often the sink is killed (default 20; a kill takes about 0.3 s).

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading

from delivery import DRIVER  # noqa: E402
from faulty_collector import *  # noqa: F403 (the scenarios use its faults)
from scenarios import PATIENCE, expect, run_scenarios, scenario, scenarios_of
from spool_runs import AWAY, DONE, HEAD, Run, change, drain, each_once, files, fill, filled, folder, ids, records

KILLS = int(os.environ.get("KILLS", "20"))


# ---- away and back -----------------------------------------------------------------------------------


@scenario
def empty_while_the_collector_works():
    with folder() as spool, Collector() as collector:
        run = Run(collector, "live", "add:5000", "flush", "close", spool=spool)
        run.has(accepted=5000, spooled=0, retries=0, spool_spans=0, spool_bytes=0)
        expect(os.listdir(spool) == ["lock"], "files: %s" % os.listdir(spool))
        expect(collector.accepted == ids(5000), "not in order")


@scenario
def away_then_back_in_order():
    """With one sender all spans arrive in order: spooled spans, spans added while these are sent, and later ones."""
    with folder() as spool, Collector(listening=False) as collector:
        run = Run(collector, "live", "add:1000", "wait:spooled:1000", "requests:3", "say:back", "pace:1000", "add:1000",
                  "wait:spool-accepted:1000", "add-until:accepted:100", "flush", "close", spool=spool,
                  spool_senders=1, batch_spans=100, when=("back\n", collector.start))
        expect(collector.accepted == ids(run.counts["spans"]), "not in order, or not all")
        run.has(undelivered=0, dropped=0, waiting=0, spool_waiting=0, spool_bytes=0)
        run.says("not delivered yet, but spooled").says("the collector answers again")


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
        run = Run(collector, "live", "add:3000", "flush", "wait:spool-accepted:500", "close",
                  spool=spool, batch_spans=50, retry_timeout_ms=600000)
        expect(run.counts["dropped"] + run.counts["undelivered"] == 0, run.explain())
        Run(collector, "wait:spool-accepted:%d" % run.spool["waiting"], "close", spool=spool, retry_timeout_ms=600000)
        each_once(collector, 3000)


@scenario
def slow_collector_and_full_queue():
    """The collector of a live session is slower than the program: no span is dropped."""
    all_added = threading.Event()

    def take_late(connection):
        """However slowly a busy machine makes the spans, the collector is slower."""
        all_added.wait(60)
        return slow(0.2)(connection)

    with folder() as spool, Collector(default=take_late) as collector:
        run = Run(collector, "live", "pace:20", "add:2500", "wait:spooled:2000", "add:2500", "say:all added", "flush",
                  "close", spool=spool, batch_spans=50, batch_bytes=1 << 16, queue_bytes=1 << 19,
                  request_timeout_ms=100000, when=("all added\n", all_added.set))
        run.has(dropped=0, undelivered=0, spool_waiting=0)
        expect(run.counts["spooled"] > 2500, run.explain())
        each_once(collector, 5000)


@scenario
def recorded_and_slow_goes_directly():
    """A conversion that waits for room needs no disk for a slow collector."""
    with folder() as spool, Collector(default=slow(0.02)) as collector:
        run = Run(collector, "add:10000", "flush", "close", spool=spool, batch_spans=200,
                  queue_bytes=1 << 18, on_full="block")
        run.has(accepted=10000, spooled=0)


@scenario
def several_requests_at_once():
    peak = [0, 0]
    lock, together = threading.Lock(), threading.Barrier(5)

    def count(connection):
        request = read(connection)
        with lock:
            peak[0] += 1
            peak[1] = max(peak)
        together.wait(30 * PATIENCE)
        with lock:
            peak[0] -= 1
        return connection.answer(202, request=request)

    with folder() as spool, Collector(default=count) as collector:
        fill(spool, 4000)
        drain(spool, collector, spool_senders=5).has(spool_accepted=4000)
        expect(peak[1] == 5, "%d at once" % peak[1])
        each_once(collector, 4000)


@scenario
def one_sender_probes_while_away():
    """Each of eight senders has a record when the collector goes. Only one sender probes: eight would make 50 requests."""
    have_all, first = threading.Barrier(8), iter(range(8))

    def goes(connection):
        read(connection)
        if next(first, None) is not None:
            have_all.wait(20 * PATIENCE)
        return False

    with folder() as spool, Collector(default=goes) as collector:
        fill(spool, 10000)
        run = Run(collector, "requests:9", "sleep:2000", "interrupt", "close", spool=spool)  # the requests of 2 s
        run.has(spool_waiting=10000)
        expect(run.counts["requests"] < 10 + 10 * run.seconds, run.explain())


def retry_after_is_obeyed(code):
    """The asked pause of a sender goes on after another sender's answer and beyond retry-timeout-ms, and takes no CPU time."""
    asked = threading.Event()

    def take_later(connection):
        """Until the other sender knows the pause: this one may not begin a request meanwhile."""
        request, _ = read(connection), asked.wait(60)
        return connection.answer(202, request=request)

    with folder() as spool:
        fill(spool, 1000, batch_spans=100)
        with Collector([take_later, status(code, ["Retry-After: 3"])]) as collector:
            run = Run(collector, "live", "wait:spool-accepted:1000", "flush", "close", spool=spool, spool_senders=2,
                      retry_timeout_ms=1000, when=("answered %d" % code, asked.set))
        times = sorted(request.time for request in collector.requests)
        expect(max(b - a for a, b in zip(times, times[1:])) > 2, "the senders did not wait: %s" % times)
        expect(run.usage.ru_utime + run.usage.ru_stime < 2, "%s" % (run.usage,))


scenarios_of(retry_after_is_obeyed, {"retry_after_%d_is_obeyed" % code: ([code], {}) for code in (429, 500)})


# ---- what the collector refuses ----------------------------------------------------------------------


scenarios_of(filled, {
    "invalid_span_in_a_record": (({"default": judge(has_bad_span)}, {"bad": "777", "batch_spans": 1000}, 2000), {
        "but": [777], "spool_accepted": 1999, "spool_invalid": 1, "spool_waiting": 0, "spool_lost_own": 0}),
    "too_large_records_are_split": (({"default": judge(lambda r: r.bytes > 10000, 413)},
                                     {"big": "5:30000", "batch_spans": 1000}, 2000), {
        "but": [5], "spool_accepted": 1999, "spool_too_large": 1}),
    "refused_record": (({"script": [status(422), status(422)]}, {}, 300, {"spool_senders": 1}), {
        "spool_accepted": 200, "spool_refused": 100}),
})


@scenario
def poison_does_not_stop_the_others():
    """The sink gives up a batch that the collector always answers with 500. The batch does not delay other batches."""
    with folder() as spool, Collector(default=judge(has_bad_span, 500)) as collector:
        fill(spool, 1000, bad="5")
        run = Run(collector, "wait:spool-accepted:900", "wait:spool-undelivered:100", "close",
                  spool=spool, retry_timeout_ms=500)
        run.has(spool_accepted=900, spool_undelivered=100, spool_waiting=0)


# ---- damaged records ---------------------------------------------------------------------------------


@scenario
def corrupt_records():
    """A changed text, a changed head, a changed start, a torn end: the intact records arrive."""
    with folder() as spool, Collector() as collector:
        fill(spool, 1000)
        [path] = files(spool)
        all_records = list(records(path))
        expect([spans for _, spans, _ in all_records] == [100] * 10, "records: %s" % all_records)
        at, _, size = all_records[2]
        change(path, at + size - 50, b"X")
        change(path, all_records[5][0] + 20, b"XXXX")
        change(path, all_records[7][0] + HEAD.size + 4 * 10, b"X")
        os.truncate(path, all_records[9][0] + 300)
        run = drain(spool, collector)
        run.has(spool_found=900, spool_corrupt=300, spool_unreadable=1, spool_accepted=600,
                spool_bytes=0).says("0 because it was full, 0 too old, 300 in damaged records; 1 pieces")
        kept = [i for i in ids(900) if (i - 1) // 100 not in (2, 5, 7)]
        expect(sorted(collector.accepted) == kept, "not the others")


@scenario
def rubbish_in_files():
    with folder() as spool, Collector() as collector:
        fill(spool, 300)
        [path] = files(spool)
        with open(path, "rb") as file:
            data = file.read()
        second = list(records(path))[1][0]
        magic = data[:4]
        with open(path, "wb") as file:
            file.write(b"hello " + magic + data[:second] + magic * 9 + data[second:] + bytes(5000))
        with open(spool + "/00000000000000ff.spool", "wb") as file:
            file.write(os.urandom(200000))
        open(spool + "/0000000000000100.spool", "wb").close()
        with open(spool + "/notes.txt", "w", encoding="ascii") as file:
            file.write("not ours")
        drain(spool, collector).has(spool_accepted=300, spool_unreadable=4, spool_bytes=0)
        expect(sorted(os.listdir(spool)) == ["lock", "notes.txt"], "left: %s" % os.listdir(spool))


@scenario
def done_records_are_not_sent_again():
    with folder() as spool, Collector() as collector:
        fill(spool, 500)
        [path] = files(spool)
        for at, _, _ in list(records(path))[:3]:
            change(path, at + 4, struct.pack("<I", DONE))
        drain(spool, collector).has(spool_found=200, spool_accepted=200)


# ---- killed ----------------------------------------------------------------------------------------------


class Flighty:
    """A collector that starts and stops at random, at one port. It counts how often it got each id."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.taken, self.times = collections.Counter(), 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.come_and_go, daemon=True)

    def open(self):
        self.times += 1
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
    """Spans are added all the time, the collector starts and stops, and the sink is killed. In the end the collector has
    each span that was settled when the sink was killed. For each kill, and each stop of the collector, at most one batch
    of each sender arrives twice. Spans in the queue are lost with the process, but they were not settled.
    """
    senders, batch = 3, 20
    source = random.Random(int(os.environ.get("SEED", "1")))
    settled, first, kills_in_spool = set(), 0, 0
    with folder() as spool, Flighty() as collector:
        args = [DRIVER, "endpoint=" + collector.url, "spool=" + spool, "require-collector=no",
                "spool-senders=%d" % senders, "batch-spans=%d" % batch, "batch-timeout-ms=5",
                "spool-bytes=%d" % (1 << 30), "request-timeout-ms=%d" % (20000 * PATIENCE)]
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
           (KILLS + collector.times) * senders * batch, run.counts["spool"]["corrupt"]))
    expect(settled, "no span was settled: the test shows nothing")
    expect(not lost, "lost: %s" % sorted(lost)[:20])
    expect(twice <= (KILLS + collector.times) * senders * batch, "too many arrived twice")
    expect(kills_in_spool or KILLS < 10, "the spool was never used")


if __name__ == "__main__":
    sys.exit(run_scenarios(4))
