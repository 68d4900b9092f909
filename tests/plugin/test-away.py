#!/usr/bin/env python3
# timeout: 150
"""Delivery to collectors that are away or stand still, and to pipes whose readers are away or stand still:
how long the exporter tries, the queue, the end.

In every case the account is exact: see delivery.py.

test-away.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.environ["SRC"] + "/tests")
from delivery import FailsAtFirst, Fifo, away, case, counts, delivers, drive, refuses_to_start  # noqa: E402
from faulty_collector import *  # noqa: E402,F403 (the scenarios use its faults)
from scenarios import PATIENCE, expect, run_scenarios, scenario, scenarios_of  # noqa: E402


# ---- a collector that is not there ----------------------------------------------------------------------


def start_is_refused(collector_options, *said, **options):
    with Collector(**collector_options) as collector:
        refuses_to_start(collector, *said, **options)


scenarios_of(start_is_refused, {
    "start_with_wrong_path": (({"probe": lambda connection, _: connection.answer(404)}, "not a Zipkin collector",
                               "check the path"), {}),
    "start_with_busy_collector": (({"probe": lambda connection, _: connection.answer(503)},
                                   "the collector does not work", "answered 503"), {}),
    "start_with_hanging_collector": (({"probe": lambda connection, _: connection.collector.stopping.wait()},
                                      "no collector is there"), {"request_timeout_ms": 300, "within_s": 15}),
    "start_with_something_else": (({"connect": {1: lambda connection: connection.send(b"220 mail ready\r\n")}},
                                   "no collector is there"), {}),
})


@scenario
def start_without_collector():
    refuses_to_start(away(), "no collector is there", within_s=15)
    refuses_to_start("http://no-such-host.invalid:9411", "Could not resolve host")


@scenario
def collector_starts_later():
    with Collector(listening=False) as collector:
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", require_collector="no",
                    when=("trying again", collector.start))
        counts(run, accepted=100)
        for words in ("no collector is there", "trying again", "answers again"):
            expect(words in run.messages, run.messages)


@scenario
def collector_goes_and_comes_back():
    is_missed = threading.Event()

    def goes(_):
        is_missed.set()
        return False

    with Collector([ok(headers=["Connection: close"], keep=False)], default=goes) as first:
        port = first.port

        def replace():
            expect(is_missed.wait(20 * PATIENCE), "nobody asks for more")
            first.__exit__()
            second.append(Collector(port=port))

        second = []
        thread = threading.Thread(target=replace)
        thread.start()
        run = drive(first, "add:10", "wait:accepted:10", "add:90", "flush", "close", batch_spans=10)
        thread.join()
        with second[0]:
            counts(run, accepted=100)
            # a batch arrives twice if the first collector took it, but did not answer
            expect(set(first.accepted + second[0].accepted) == set(range(1, 101)), "not all")


@scenario
def away_longer_than_patience_live():
    """The sink does not give up a batch for an absent collector while the queue has room."""
    with Collector(listening=False) as collector:
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", require_collector="no",
                    retry_timeout_ms=200, when=("trying again", threading.Timer(1, collector.start).start))
        counts(run, accepted=100)


@scenario
def one_request_of_a_batch_always_fails_live():
    """Of a batch that takes several requests, the exporter gives up only the request that fails."""
    with Collector(default=judge(has_bad_span, 500)) as collector:
        run = drive(collector, "live", "add:200", "wait:accepted:120", "close", batch_bytes=10000, bad=15,
                    retry_timeout_ms=400)
        failed = next(len(request.spans) for request in collector.requests if has_bad_span(request))
        counts(run, accepted=200 - failed, undelivered=failed)


@scenario
def passing_refusal():
    """A refusal that passes, such as that of a proxy with a new configuration, is no fault of the spans."""
    for code in (400, 401, 403, 404, 405, 301, 501):
        trouble = FailsAtFirst(code, 6)
        with Collector(default=trouble.send, probe=trouble.probe) as collector:
            run = delivers(collector, batch_spans=50)
            expect("trying again" in run.messages and "answered %d" % code in run.messages,
                   run.messages)


scenarios_of(case, {
    # a recorded trace: the conversion fails soon, and reads no more events
    "never_there_recorded": ((None, "add:50000 flush close"), {
        "batch_spans": 100, "retry_timeout_ms": 500, "undelivered": 50000, "failed": True, "within_s": 15,
        "says": ["spans undelivered"]}),
    # a live trace: the queue keeps all spans that it has room for, until the end
    "never_there_live": ((None, "live add:100 requests:3 add:100 flush close"), {
        "batch_spans": 100, "retry_timeout_ms": 1, "undelivered": 200}),
    # a collector that fails on one batch gets all other batches
    "one_batch_always_fails_live": (({"default": judge(has_bad_span, 500)}, "live add:100 wait:accepted:90 close"), {
        "batch_spans": 10, "bad": 15, "batch_timeout_ms": 60000, "retry_timeout_ms": 400, "accepted": 90,
        "undelivered": 10}),
    # the refusal lasts longer than retry_timeout_ms, but the queue has room
    "passing_refusal_live": ((FailsAtFirst(404, 12).collector_options, "live add:100 wait:accepted:100 close"), {
        "retry_timeout_ms": 20, "accepted": 100}),
    # a recorded trace: the exporter gives up, as if the collector were away
    "refusal_for_ever": ((FailsAtFirst(404, 10**9).collector_options, "add:100 flush close"), {
        "batch_spans": 50, "retry_timeout_ms": 300, "undelivered": 100, "failed": True,
        "says": ["spans undelivered", "answered 404"]}),
    # a tunnel whose far end is away: every connection is accepted and closed
    "peer_accepts_and_closes_live": (({"connect": dict.fromkeys(range(1, 15), lambda connection: connection.read_head())},
                                      "live add:100 wait:accepted:100 close"), {
        "require_collector": "no", "retry_timeout_ms": 20, "accepted": 100}),
})


# ---- the queue ------------------------------------------------------------------------------------------


@scenario
def full_queue_keeps_the_newest():
    released = threading.Event()

    def wait_for_release(connection):
        request = read(connection)
        released.wait(60)
        return connection.answer(202, request=request)

    with Collector([wait_for_release]) as collector:
        run = drive(collector, "live", "add:10", "requests:1", "add:5000", "say:all added", "flush", "close",
                    queue_bytes=100000, batch_bytes=20000, batch_spans=10, batch_timeout_ms=60000,
                    when=("all added", released.set))
        expect(run.dropped > 1000 and run.accepted + run.dropped == 5010, run.explain())
        newest = list(range(5010 - (run.accepted - 10) + 1, 5011))
        expect(sorted(collector.accepted) == list(range(1, 11)) + newest, "not the newest were kept")
        expect("the queue is full" in run.messages, run.messages)


@scenario
def full_queue_is_reported_at_once():
    """A message reports a full queue at once. A later message has the number of dropped spans. A live trace never
    waits."""
    with Collector(default=hang()) as collector:
        run = drive(collector, "live", "add:10", "add:20000", "say:all added", "close",
                    queue_bytes=50000, batch_bytes=20000, flush_timeout_ms=100)
        said = run.messages
        expect("the queue is full" in said and said.index("the queue is full") < said.index("all added"),
               said)
        expect("%d spans were dropped" % run.dropped in said[said.index("all added"):], run.explain())
        expect(run.dropped and run.slowest_add_ms < 200 * PATIENCE, run.explain())


@scenario
def full_queue_blocks():
    with Collector(default=slow(0.01)) as collector:
        run = delivers(collector, spans=5000, queue_bytes=50000, batch_bytes=20000, batch_spans=100)
        expect(run.slowest_add_ms >= 5, "nothing was blocked: " + run.explain())


SMALL_QUEUE = {"on_full": "block", "queue_bytes": 50000, "batch_bytes": 20000}
scenarios_of(case, {
    "block_on_order_also_live": (({"default": slow(0.01)}, "live add:2000 flush close"), {
        **SMALL_QUEUE, "batch_spans": 100, "accepted": 2000}),
    "interrupted_while_blocked": (({"default": hang()}, "interrupt add:20000 close"), {
        **SMALL_QUEUE, "flush_timeout_ms": 300, "undelivered": 20000, "within_s": 15}),
    # the assembler gives out its spans after an interruption: a sender must still run
    "interrupted_before_last_spans": (({"default": slow(0.01)}, "interrupt add:5000 wait:accepted:5000 add:300 close"), {
        **SMALL_QUEUE, "batch_spans": 100, "accepted": 5300}),
})


# ---- the end --------------------------------------------------------------------------------------------

scenarios_of(case, {
    "close_delivers_without_flush": (({"default": slow(0.02)}, "add:1000 close"), {"batch_spans": 100, "accepted": 1000}),
    "close_keeps_its_time": (({"default": hang()}, "add:1000 close"), {
        "batch_spans": 100, "flush_timeout_ms": 300, "undelivered": 1000, "within_s": 15}),
    "close_keeps_its_time_in_a_pause": (({"default": status(503, ["Retry-After: 99"])}, "live add:10 reported close"), {
        "flush_timeout_ms": 300, "undelivered": 10, "within_s": 15}),
    "close_without_waiting": (({"default": hang()}, "add:1000 close"), {"flush_timeout_ms": 0, "undelivered": 1000}),
    # the pause after a failure does not delay the last attempt
    "close_tries_at_once": (({"script": [status(503, ["Retry-After: 3600"])]}, "live add:10 reported close"), {
        "accepted": 10, "within_s": 15}),
    "flush_in_the_middle": (({}, "add:10 flush add:10 flush close"), {"accepted": 20}),
    "interrupted_flush": (({"default": hang()}, "add:10 interrupt flush close"), {
        "flush_timeout_ms": 300, "undelivered": 10, "within_s": 15}),
})


@scenario
def no_spans():
    with Collector() as collector:
        run = drive(collector, "flush", "close")
        counts(run)
        expect(collector.requests == [] and collector.connections == 1, run.explain())


# ---- pipes ----------------------------------------------------------------------------------------------


@scenario
def pipe():
    for spans in (0, 1, 20000):
        with Fifo() as fifo:
            run = drive(fifo, "add:%d" % spans, "flush", "close")
            counts(run, accepted=spans)
            fifo.thread.join(20 * PATIENCE)
            expect(len(json.loads(fifo.data)) == spans, fifo.data[-100:])


@scenario
def pipe_reader_pauses():
    """Without an interruption, the reader may pause for a long time, also at the end."""
    released = threading.Event()
    with Fifo(waits_for=released) as fifo:
        run = drive(fifo, "add:20000", "say:all added", "flush", "close", retry_timeout_ms=100, request_timeout_ms=100,
                    flush_timeout_ms=100, when=("all added", threading.Timer(1, released.set).start))
        counts(run, accepted=20000)
        fifo.thread.join(20 * PATIENCE)
        expect(len(json.loads(fifo.data)) == 20000, fifo.data[-100:])


@scenario
def pipe_reader_stands_still():
    """An interruption ends the wait, and the account is exact. The fifth request finds no room in the pipe."""
    with Fifo(waits_for=threading.Event()) as fifo:
        run = drive(fifo, "add:600", "requests:5", "interrupt", "add:20000", "flush", "close", on_full="block",
                    queue_bytes=50000, batch_bytes=20000, batch_timeout_ms=60000, flush_timeout_ms=300)
        expect(run.status == 0, run.explain())
        expect(run.accepted + run.undelivered == 20600 and run.undelivered > 10000, run.explain())
        expect(run.unsure == run.accepted and "its reader stands still" in run.messages, run.explain())
        expect(run.seconds < 15 * PATIENCE, "took %.1f s" % run.seconds)


@scenario
def pipe_reader_leaves():
    """The sink does not die by SIGPIPE, but prints an account."""
    with Fifo(reads=1) as fifo:
        run = drive(fifo, "add:20000", "flush", "close")
        expect(run.status == 0, run.explain())
        expect(run.accepted + run.refused == 20000 and run.refused > 0, run.explain())
        expect(run.unsure == run.accepted and "Broken pipe" in run.messages, run.explain())


@scenario
def pipe_without_reader():
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(folder + "/fifo")
        run = refuses_to_start("file:%s/fifo" % folder, "interrupted before", interrupted="yes")
        expect(run.seconds < 15 * PATIENCE, "took %.1f s" % run.seconds)


@scenario
def link_to_nowhere():
    with tempfile.TemporaryDirectory() as folder:
        os.symlink("/nowhere/at/all", folder + "/link")
        refuses_to_start("file:%s/link" % folder, "is a symbolic link to /nowhere/at/all")
        os.symlink("made", folder + "/good")
        counts(drive("file:%s/good" % folder, "add:3", "flush", "close"), accepted=3)
        with open(folder + "/made", encoding="utf-8") as file:
            expect(len(json.load(file)) == 3, "not what was sent")


if __name__ == "__main__":
    sys.exit(run_scenarios(8))
