#!/usr/bin/env python3
"""The account of a recorded trace's conversion, in all its forms: for test-account.sh.

account_scenarios.py TRACE SPANS FOLDER [NAME]...

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import time

from account_sink import (SPANS, FOLDER, LIMIT, CLIENT_TIME, EVENTS, Sink, DelayedRun, ask, split_answer, scrape,
                          check_rising)
from faulty_collector import Collector
from scenarios import expect, run_scenarios, scenario, wait_until

# ---- what is shown --------------------------------------------------------------------------------------


@scenario
def file_endpoint():
    """The last statistics file, the summary and the spans agree."""
    stats_file, spans_file = FOLDER + "/a \u00e9.stats", FOLDER + "/a \u00e9.json"
    for name in ("new", "asked"):  # `blkin stat` asks for FOLDER/x, which cannot be written
        os.makedirs(FOLDER + "/x." + name)
        os.utime(FOLDER + "/x." + name, (4e9, 4e9))
    for _ in range(2):  # the second run replaces the file of the first
        with Sink("file:" + spans_file, stats_file=stats_file, statistics_file=FOLDER + "/x") as sink:
            said = sink.end()
            stats = sink.load_stats()
        counters = stats["counters"]
        expect(stats["state"] == "ended" and stats["endpoint"] == "file:" + spans_file, stats)
        with open(spans_file, encoding="utf-8") as file:
            expect(len(json.load(file)) == SPANS == counters["spans_accepted"], counters)
        expect("events: %d = %d in spans" % (counters["events"], counters["events_in_spans"]) in said
               and "spans: %d = %d accepted" % (SPANS, SPANS) in said, said)
        expect(said.count("/x\": cannot be written") == 1, said)
        os.unlink(spans_file)
        EVENTS[:] = [counters["events"]]
    os.unlink(stats_file)
    expect(not [name for name in os.listdir(FOLDER) if "stats" in name], os.listdir(FOLDER))


@scenario
def slow_collector():
    """The statistics file, the page and the progress line show the spans that wait during a run."""
    stats_file = FOLDER + "/slow.stats"
    with DelayedRun(stats_file=stats_file, stats_period_ms=50, batch_spans=100) as run:
        def is_all(counters):
            return counters["spans_waiting"] == SPANS and counters["events"] == (
                EVENTS or [counters["events"]])[0]

        page = wait_until(lambda: is_all(p := scrape(run.port)) and p, "all spans waiting")
        stats = wait_until(lambda: is_all((s := run.sink.load_stats())["counters"]) and s,
                           "all spans waiting in the file")
        expect(stats["state"] == "running", stats)
        for name, value in stats["counters"].items():
            expect(page[name] == value or name in ("requests", "streams_open"), "%s: %d" % (name, value))
        expect(page["events_in_spans"] > 0 and page["spans_open"] == 0, page)
        wait_until(lambda: re.search(
            r"^blkin: running for \d+ s: events: %d = %d in spans.*; spans: %d = %d waiting"
            % (page["events"], page["events_in_spans"], SPANS, SPANS), run.sink.said(), re.M),
                   "a progress line")
        run.collector.released.set()
        try:
            while True:
                later = scrape(run.port)
                check_rising(page, later)
                page = later
                run.sink.load_stats()
        except OSError:
            pass  # the run has ended
        expect(page["spans_finished"] == SPANS, page)
        said = run.finish()
        stats = run.sink.load_stats()
        expect(stats["state"] == "ended" and stats["counters"]["spans_accepted"] == SPANS, stats)
        expect(stats["counters"]["spans_waiting"] == 0, stats)
        expect(stats["endpoint"] == run.collector.url + "/api/v2/spans", stats)
        expect("s3cret" not in said, said)


@scenario
def interrupted():
    """Waiting spans are counted as undelivered, and the account is printed."""
    stats_file = FOLDER + "/interrupted.stats"
    for number, sigint in ((signal.SIGINT, signal.SIG_DFL), (signal.SIGTERM, signal.SIG_DFL),
                           (signal.SIGHUP, signal.SIG_DFL), (signal.SIGTERM, signal.SIG_IGN)):
        with DelayedRun(stats_file=stats_file, flush_timeout_ms=200, sigint=sigint) as run:
            wait_until(lambda: scrape(run.port)["spans_waiting"] == SPANS, "all spans waiting")
            run.sink.process.send_signal(number)
            status = 2 if sigint == signal.SIG_DFL else 1
            expect(run.sink.process.wait(LIMIT) == status, run.sink.said())
            stats = run.sink.load_stats()
            expect(stats["state"] == "ended", stats)
            expect(stats["counters"]["spans_undelivered"] == SPANS, stats)
            expect("%d undelivered" % SPANS in run.sink.said(), run.sink.said())


@scenario
def spooled():
    """Without a collector, the run stores the spans on disk and ends with status 0. The next sink sends them."""
    stats_file, spool = FOLDER + "/spooled.stats", FOLDER + "/spool"
    with Sink("http://127.0.0.1:1", require_collector=False, spool=spool,
              stats_file=stats_file) as sink:
        said = sink.end()
        counters = sink.load_stats()["counters"]
        expect(counters["spans_spooled"] == SPANS == counters["spool_waiting"], counters)
        expect("has %d spans left: the next process that uses the spool sends them" % SPANS in said, said)
        expect("; spool: %d = 0 delivered" % SPANS in said, said)
    with Collector() as collector:
        with Sink(collector.url, spool=spool, stats_file=stats_file, request_timeout_ms=1000 * LIMIT) as sink:
            said = sink.end()
            counters = sink.load_stats()["counters"]
        expect("has %d spans of an earlier run" % SPANS in said, said)
        expect(counters["spool_found"] == SPANS == counters["spool_delivered"] - counters["spans_spooled"], counters)
        expect(counters["spans_accepted"] + counters["spans_spooled"] == SPANS, counters)
        expect(len(collector.accepted) == 2 * SPANS, "accepted: %d" % len(collector.accepted))
    shutil.rmtree(spool)
    os.unlink(stats_file)


# ---- clients of the page --------------------------------------------------------------------------------


@scenario
def requests_of_all_kinds():
    host = b"Host: blkin\r\n"  # newer versions of libmicrohttpd require it
    page = b"GET /metrics HTTP/1.1\r\n" + host
    cases = [
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (page + b"X: " + b"y" * 16384 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + host + b"\r\n", 404),
        (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n" + host + b"Content-Length: 3\r\n\r\nabc", 405),
        (b"DELETE /metrics HTTP/1.1\r\n" + host + b"\r\n", 405),
    ]
    with DelayedRun() as run:
        for request, expected in cases:
            status, headers, body = split_answer(ask(run.port, request))
            expect(status == expected, "%r: %d" % (request[:60], status))
            expect(int(headers["content-length"]) == len(body), headers)
        status, headers, body = split_answer(ask(run.port, b"HEAD /metrics HTTP/1.1\r\n" + host + b"\r\n"))
        expect(status == 200 and int(headers["content-length"]) > 1000 and body == b"", headers)
        headers = split_answer(ask(run.port, b"PUT /metrics HTTP/1.1\r\n" + host + b"\r\n"))[1]
        expect(headers["allow"] == "get, head", headers)
        for _ in range(50):  # clients that close the connection before the answer, one of two with RST
            with socket.create_connection(("127.0.0.1", run.port)) as sock:
                sock.sendall(page)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with socket.create_connection(("127.0.0.1", run.port)) as sock:
                sock.sendall(page + b"\r\n")
        scrape(run.port)
        run.finish()


@scenario
def account_blocks_signals():
    """The account's thread blocks signals, so that SIGINT reaches the thread that reads the trace."""
    with DelayedRun() as run:
        tasks = "/proc/%d/task/" % run.sink.process.pid

        def signals_of_threads():
            blocked = {}
            for task in os.listdir(tasks):
                with open(tasks + task + "/status", encoding="utf-8") as status:
                    fields = dict(line.split(":", 1) for line in status)
                blocked[fields["Name"].strip()] = int(fields["SigBlk"], 16)
            return blocked if "blkin-account" in blocked else None  # the thread gets its name a bit later

        blocked = wait_until(signals_of_threads, "the thread of the account")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            expect(blocked["blkin-account"] >> (number - 1) & 1, blocked)
        expect(not blocked["babeltrace2"] >> (signal.SIGINT - 1) & 1, blocked)
        run.finish()


@scenario
def idle_clients():
    """With many idle clients, a scrape gets its answer before the server closes their connections."""
    with DelayedRun() as run:
        def is_one_left():
            with contextlib.ExitStack() as stack:
                idle = [stack.enter_context(socket.create_connection(("127.0.0.1", run.port), timeout=LIMIT))
                        for _ in range(40)]
                scrape(run.port)
                return any(is_open(sock) for sock in idle)

        # on a busy machine, the server may have closed all connections before its answer
        expect(any(is_one_left() for _ in range(5)), "the scrape was answered after all idle clients were disconnected")
        run.finish()


def is_open(sock):
    sock.setblocking(False)
    try:
        sock.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


@scenario
def slow_clients():
    """Slow clients delay neither other clients nor the end, and are disconnected in time."""
    with DelayedRun(stats_file=FOLDER + "/clients.stats", stats_period_ms=50) as run:
        def connect():
            return socket.create_connection(("127.0.0.1", run.port), timeout=LIMIT)

        def is_served():
            """Returns whether the page was served, and the file written, before the slow clients are disconnected."""
            begin, written = time.monotonic(), run.sink.load_stats()["written"]
            silent, dripping, unread = (clients.enter_context(connect()) for _ in range(3))
            unread.sendall(b"GET /metrics HTTP/1.1\r\nHost: blkin\r\n\r\n")  # and never reads
            silent.settimeout(0.05)
            for scrapes in range(1, 1000 * LIMIT):
                with contextlib.suppress(OSError):
                    dripping.sendall(b"G")
                scrape(run.port)
                with contextlib.suppress(TimeoutError):
                    expect(silent.recv(1) == b"", "an answer without a request")
                    break
                expect(time.monotonic() < begin + LIMIT, "the silent client is never disconnected")
            took = time.monotonic() - begin
            expect(CLIENT_TIME - 0.5 < took, "disconnected after %.1f s" % took)
            return scrapes > 2 and run.sink.load_stats()["written"] > written

        with contextlib.ExitStack() as clients:
            # a busy machine may stand still for all this time
            expect(any(is_served() for _ in range(5)), "slow clients delay other ones, or the file")
            # more clients than the server has room for: the scrape waits until the server closes a connection
            for _ in range(12):
                clients.enter_context(connect())
            scrape(run.port)
            run.finish()


@scenario
def slow_clients_at_the_end():
    """The end of the run does not wait for slow clients."""
    def end_s():
        with DelayedRun() as run, contextlib.ExitStack() as crowd:
            for _ in range(12):
                crowd.enter_context(socket.create_connection(("127.0.0.1", run.port), timeout=LIMIT))
            scrape(run.port)
            for _ in range(12):
                crowd.enter_context(socket.create_connection(("127.0.0.1", run.port), timeout=LIMIT))
            begin = time.monotonic()
            run.finish()
            return time.monotonic() - begin

    # a busy machine may delay an end by more than CLIENT_TIME, but not each of six
    took = []
    while not took or (min(took) >= 0.9 * CLIENT_TIME and len(took) < 6):
        took.append(end_s())
    expect(min(took) < 0.9 * CLIENT_TIME, "the ends took %s s" % took)


del sys.argv[1:4]
sys.exit(run_scenarios(1))
