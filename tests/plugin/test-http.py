#!/usr/bin/env python3
# timeout: 150
"""Delivery by HTTP to collectors that misbehave in every way known, and to pipes that do.

Where the fault passes, every span arrives; in every case the account is exact: what the sender
counts as accepted is what the collector has taken, and nothing is missing from the sum.

    test-http.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import email.utils
import gzip
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.environ["SRC"] + "/tests"]
from common import free_port  # noqa: E402
from faulty_collector import *  # noqa: E402,F403 (faults are words here)
from scenarios import SCENARIOS, SLOW, expect, run_scenarios, scenario  # noqa: E402

DRIVER = os.environ["BUILD"] + "/tests/plugin/exporter-driver"
OUTCOMES = ("accepted", "refused", "invalid", "too_large", "undelivered", "dropped", "no_memory", "spooled")
FORMAT = []  # of the driver's arguments: test-otlp-http.py has another one


class Run:
    """What a run of the driver has said."""

    def __init__(self, args, env):
        clean = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        begin = time.monotonic()
        done = subprocess.run([DRIVER] + [str(arg) for arg in args], env={**clean, **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60 * SLOW, check=False)
        self.seconds = time.monotonic() - begin
        self.status = done.returncode
        self.messages = done.stderr
        said = done.stdout.splitlines()
        self.settled = [int(line.split()[1]) for line in said[:-1]]  # see the driver's step of this name
        self.counts = json.loads(said[-1]) if done.returncode == 0 else {}

    def __getattr__(self, name):
        return self.counts[name]

    def explain(self):
        return "status %d, %s\n%s" % (self.status, self.counts, self.messages)


def drive(target, *steps, env=None, **options):
    """Runs the driver; target is a collector or a URL. The account must be exact."""
    url = target if isinstance(target, str) else target.url
    args = ["endpoint=" + url] + FORMAT
    args += ["%s=%s" % (key.replace("_", "-"), value) for key, value in options.items()]
    run = Run(args + list(steps), env or {})
    if run.status == 0:
        total = sum(run.counts[outcome] for outcome in OUTCOMES) + run.waiting
        expect(total == run.spans, "the sum is wrong: " + run.explain())
    return run


def counts(run, **expected):
    """These outcomes, and none of the others."""
    expect(run.status == 0, run.explain())
    for outcome in OUTCOMES:
        expect(run.counts[outcome] == expected.get(outcome, 0), "%s: expected %d: %s" %
               (outcome, expected.get(outcome, 0), run.explain()))


def delivers(collector, spans=100, once=True, **options):
    """All spans arrive; once: and none of them twice."""
    run = drive(collector, "add:%d" % spans, "flush", "close", **options)
    counts(run, accepted=spans)
    expect(set(collector.accepted) == set(range(1, spans + 1)), "some are missing")
    if once:
        expect(len(collector.accepted) == spans, "some came twice")
    return run


def refuses_to_start(target, *said, **options):
    run = drive(target, "add:1", "flush", "close", **options)
    expect(run.status == 1, "it has started: " + run.explain())
    for words in said:
        expect(words in run.messages, "it does not say \"%s\": %s" % (words, run.explain()))
    return run


# ---- faults that pass: (script, other arguments of delivers()) ----------------------------------------

RECOVERS = {
    "accepted": ([], {}),
    "accepted_200_with_body": ([ok(200, body=b"thank you")], {}),
    "accepted_204": ([raw(b"HTTP/1.1 204 No Content\r\n\r\n", takes=True, keep=True)], {}),
    "accepted_207": ([ok(207)], {}),
    "status_408": ([status(408)], {}),
    "status_429": ([status(429)] * 2, {}),
    "status_500_for_a_while": ([status(500)] * 4, {}),
    "status_502": ([status(502)], {}),
    "status_503": ([status(503)], {}),
    "status_504": ([status(504)], {}),
    "mixed_trouble": ([status(503), reset_after_request(), status(429), close_at_once()], {}),
    "retry_after_nonsense": ([status(503, ["Retry-After: soon"])], {}),
    "retry_after_zero": ([status(503, ["Retry-After: 0"])], {}),
    "retry_after_negative": ([status(503, ["Retry-After: -7"])], {}),
    "retry_after_past_date": ([status(503, ["Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"])], {}),
    "close_after_head": ([close_at_once()] * 2, {}),
    "reset_after_head": ([reset_at_once()] * 2, {}),
    "reset_in_body": ([reset_in_body()], {"spans": 5000, "batch_spans": 5000}),
    "reset_after_request": ([reset_after_request()], {}),
    "taken_then_reset": ([take_and_reset()], {"once": False}),
    "close_without_answer": ([raw(b"")], {}),
    "status_line_cut": ([raw(b"HTTP/1.1 2")], {}),
    "status_line_garbage": ([raw(b"HTTP/1.1 abc def\r\n\r\n")], {}),
    "status_line_too_small": ([raw(b"HTTP/1.1 000 x\r\n\r\n")], {}),
    "head_cut": ([raw(b"HTTP/1.1 503 x\r\nContent-Le")], {}),
    "not_http": ([raw(b"SSH-2.0-OpenSSH_9.2p1\r\n")], {}),
    "binary_noise": ([raw(bytes(range(256)) * 8)], {}),
    "http_09": ([raw(b"<html>hello</html>")], {}),
    "informational_only": ([raw(b"HTTP/1.1 100 Continue\r\n\r\n")], {}),
    "body_cut_after_202": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 99\r\n\r\nabc", takes=True)], {}),
    "body_cut_after_503": ([raw(b"HTTP/1.1 503 x\r\nContent-Length: 99\r\n\r\nabc")], {}),
    "chunks_broken_after_202": ([raw(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n!",
                                     takes=True)], {}),
    "chunks_broken_after_500": ([raw(b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")],
                                {}),
    "chunked_202": ([raw(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                         takes=True, keep=True)], {}),
    "trailer_after_202": ([raw(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                               b"3\r\nabc\r\n0\r\nX-Sum: 3\r\n\r\n", takes=True, keep=True)], {}),
    "continue_then_202": ([raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 x\r\n"
                               b"Content-Length: 0\r\n\r\n", takes=True, keep=True)], {}),
    "early_hints_then_202": ([raw(b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 202 x\r\n"
                                  b"Content-Length: 0\r\n\r\n", takes=True, keep=True)], {}),
    "http_10": ([raw(b"HTTP/1.0 202 x\r\n\r\n", takes=True)], {}),
    "answer_in_single_bytes": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 2\r\n\r\nok", takes=True,
                                    keep=True, delay=0.001, piece=1)], {}),
    "slow_answer": ([slow(0.3)], {}),
    "hang_then_well": ([hang()], {"request_timeout_ms": 300}),
    "hang_without_reading": ([hang_without_reading()], {"request_timeout_ms": 300}),
    "answer_drips_for_ever": ([raw(b"HTTP/1.1 202 x\r\n" + b"X: y\r\n" * 100, delay=0.02, piece=1)],
                              {"request_timeout_ms": 300}),
    "body_drips_after_202": ([drip(b"HTTP/1.1 202 x\r\nContent-Length: 9999\r\n\r\n", 0.02)],
                             {"request_timeout_ms": 300}),
    "head_cut_after_202": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 0\r\n")], {}),
    "retry_after_overflow": ([status(503, ["Retry-After: 99999999999999999999"])], {}),
    "late_answer": ([slow(0.6)], {"request_timeout_ms": 300, "once": False}),
    "read_in_small_pieces": ([read_slowly(97)], {}),
    "read_in_single_bytes": ([read_slowly(1)], {"spans": 50}),
    "huge_body": ([forever(b"HTTP/1.1 202 x\r\nContent-Length: 999999999999\r\n\r\n", b"x" * 65536,
                           takes=True)], {}),
    "endless_chunks": ([forever(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n",
                                b"1000\r\n" + b"x" * 4096 + b"\r\n", takes=True)], {}),
    "endless_headers": ([forever(b"HTTP/1.1 202 x\r\n", b"X-More: yes\r\n" * 100)], {}),
    "endless_header_line": ([forever(b"HTTP/1.1 202 x\r\nX: ", b"x" * 65536)], {}),
    "connection_close": ([], {"default": ok(headers=["Connection: close"], keep=False),
                              "batch_spans": 10}),
    "silent_close_after_each": ([], {"default": ok(keep=False), "batch_spans": 10}),
    "unasked_gzip_answer": ([ok(200, ["Content-Encoding: gzip"], gzip.compress(b"x" * 100000))], {}),
    "set_cookie": ([ok(202, ["Set-Cookie: a=b; Path=/"])], {}),
    "two_content_lengths": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
                                 takes=True)], {"once": False}),  # libcurl 8.23 refuses it
    "upgrade": ([raw(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n")],
                {"request_timeout_ms": 300}),
}


def make_recovery(name, script, options):
    def function():
        given = dict(options)
        with Collector(script, default=given.pop("default", None)) as collector:
            delivers(collector, **given)

    SCENARIOS[name] = function


for recovery, (its_script, its_options) in RECOVERS.items():
    make_recovery(recovery, its_script, its_options)


@scenario
def retry_after_seconds():
    with Collector([status(429, ["Retry-After: 1"])]) as collector:
        delivers(collector)
        gap = collector.requests[1].time - collector.requests[0].time
        expect(0.9 <= gap < 2.5 * SLOW, "the second request came after %.2f s" % gap)


@scenario
def retry_after_date():
    def at_fault_time(connection):
        date = email.utils.formatdate(time.time() + 2, usegmt=True)
        return status(503, ["Retry-After: " + date])(connection)

    with Collector([at_fault_time]) as collector:
        delivers(collector)
        gap = collector.requests[1].time - collector.requests[0].time
        expect(0.9 <= gap < 4 * SLOW, "the second request came after %.2f s" % gap)


@scenario
def retry_after_beyond_patience():
    """Who asks for more time than there is gets no second request."""
    with Collector(default=status(503, ["Retry-After: 3600"])) as collector:
        run = drive(collector, "add:10", "flush", "close", retry_timeout_ms=3000)
        counts(run, undelivered=10)
        expect(len(collector.requests) == 1 and run.seconds < 2, run.explain())
        expect("longer pause (Retry-After) than retry-timeout-ms leaves" in run.messages, run.messages)


@scenario
def pauses_grow():
    with Collector(default=status(503)) as collector:
        run = drive(collector, "add:10", "flush", "close", retry_timeout_ms=2000)
        counts(run, undelivered=10)
        expect(3 <= len(collector.requests) <= 40, "%d attempts" % len(collector.requests))
        expect(2 <= run.seconds < 4 * SLOW, "took %.1f s" % run.seconds)
        expect(run.requests == len(collector.requests) and run.retries == run.requests - 1,
               run.explain())


@scenario
def keep_alive():
    with Collector() as collector:
        delivers(collector, spans=1000, batch_spans=10)
        expect(len(collector.requests) == 100 and collector.connections == 1,
               "%d connections" % collector.connections)


@scenario
def request_is_as_receivers_want_it():
    with Collector() as collector:
        delivers(collector)
        request = collector.requests[0]
        expect(request.line == "POST /api/v2/spans HTTP/1.1", request.line)
        expect(request.headers["content-type"] == "application/json", request.headers)
        expect(request.headers["b3"] == "0", request.headers)
        for header in ("expect", "authorization", "content-encoding"):
            expect(header not in request.headers, request.headers)


@scenario
def path_given():
    with Collector() as collector:
        run = drive(collector.url + "/zipkin/api/v2/spans?a=b", "add:1", "flush", "close")
        counts(run, accepted=1)
        expect(collector.requests[0].line.startswith("POST /zipkin/api/v2/spans?a=b "),
               collector.requests[0].line)


@scenario
def ipv6():
    try:
        collector = Collector(host="::1")
    except OSError:
        return "no IPv6 here"
    with collector:
        delivers(collector)
    return None


# ---- batches --------------------------------------------------------------------------------------------


@scenario
def batches_by_spans():
    with Collector() as collector:
        delivers(collector, spans=100, batch_spans=30)
        sizes = [len(request.spans) for request in collector.requests]
        expect(sizes == [30, 30, 30, 10], sizes)


@scenario
def batches_by_bytes():
    with Collector() as collector:
        delivers(collector, spans=1000, batch_bytes=10000)
        sizes = [request.bytes for request in collector.requests]
        # what is left of a batch is a request of its own
        expect(max(sizes) <= 10000 and sum(sizes) / len(sizes) > 7000, sizes)


@scenario
def batches_by_time():
    with Collector() as collector:
        run = drive(collector, "live", "add:3", "wait:accepted:3", "add:4", "wait:accepted:7", "close",
                    batch_timeout_ms=100)
        counts(run, accepted=7)
        expect([len(request.spans) for request in collector.requests] == [3, 4], run.explain())


def compresses(coding, times):
    with Collector() as collector:
        delivers(collector, spans=1000, compression=coding)
        request = collector.requests[0]
        expect(request.headers["content-encoding"] == coding, request.headers)
        expect(request.wire_bytes < request.bytes / times, request.wire_bytes)


def is_not_understood(coding, good, **options):
    """From then on it is sent as it is."""
    def respond(connection):
        request = read(connection)
        if "content-encoding" in request.headers:
            return connection.answer(415)
        return connection.answer(good, request=request)

    with Collector(default=respond, **options) as collector:
        delivers(collector, spans=100, batch_spans=50, compression=coding)
        expect(len(collector.requests) == 3, len(collector.requests))


@scenario
def gzip_to_order():
    compresses("gzip", 5)


@scenario
def gzip_not_understood():
    is_not_understood("gzip", 202, probe=None)


# ---- several requests at once -----------------------------------------------------------------------------


@scenario
def requests_at_once():
    """None of four is answered before all are there."""
    together = threading.Barrier(4)

    def wait_for_others(connection):
        request = read(connection)
        together.wait(30)
        return connection.answer(202, request=request)

    with Collector(default=wait_for_others) as collector:
        run = delivers(collector, spans=400, batch_spans=50, requests=4)
        expect(run.requests == 8 and collector.connections == 4, run.explain())


@scenario
def requests_at_once_in_trouble():
    trouble = [judge(has_bad_span), status(503), reset_after_request(), close_at_once(),
               status(429, ["Retry-After: 1"]), reset_in_body(), judge(has_bad_span)] * 6
    with Collector(trouble, default=judge(has_bad_span)) as collector:
        bad = range(7, 2000, 97)
        run = drive(collector, "add:2000", "flush", "close", batch_spans=20, requests=8,
                    bad=",".join(map(str, bad)))
        counts(run, accepted=2000 - len(bad), invalid=len(bad))
        expect(sorted(collector.accepted) == sorted(set(range(1, 2001)) - {number + 1 for number in bad}),
               "not each span once")


@scenario
def requests_at_once_settle_in_order():
    """What is told to be settled is all of the first so many spans, though later ones are faster."""
    gate = threading.Event()

    def wait_for_gate(connection):
        request = read(connection)
        gate.wait(30)
        return connection.answer(202, request=request)

    def open_gate_late(connection):
        request = read(connection)
        if 101 in request.ids():
            gate.set()
        return connection.answer(202, request=request)

    with Collector([wait_for_gate], default=open_gate_late) as collector:
        run = drive(collector, "settled", "add:100", "wait:accepted:90", "add:1", "wait:accepted:101", "sleep:200",
                    "add:1", "close", batch_spans=10, requests=3)
        counts(run, accepted=102)
        first = collector.requests[0].ids()[0] - 1
        expect(run.settled[-1] == 101, run.settled)
        expect(all(value <= first for value in run.settled[:-1]), (first, run.settled))


@scenario
def requests_at_once_and_an_end():
    """An interruption ends all of them."""
    with Collector(default=hang()) as collector:
        run = drive(collector, "add:1000", "requests:4", "close", batch_spans=100, requests=4,
                    flush_timeout_ms=300, request_timeout_ms=20000)
        counts(run, undelivered=1000)
        expect(run.seconds < 3 * SLOW, "took %.1f s" % run.seconds)


@scenario
def requests_at_once_without_collector():
    """A recorded trace: the first that gives up ends all."""
    run = drive("http://127.0.0.1:%d" % free_port(), "add:5000", "flush", "close",
                require_collector="no", batch_spans=100, retry_timeout_ms=500, requests=6)
    counts(run, undelivered=5000)
    expect(run.failed and run.seconds < 5 * SLOW, run.explain())


@scenario
def requests_at_once_with_a_spool():
    with tempfile.TemporaryDirectory() as folder:
        with Collector([status(503)] * 5 + [reset_after_request()] * 3) as collector:
            run = drive(collector, "add:3000", "flush", "close", batch_spans=100, requests=4,
                        spool=folder + "/spool")
            expect(run.spooled + run.accepted == 3000, run.explain())
            left = run.spool["waiting"]
            expect(run.spool["accepted"] + left == run.spooled, run.explain())
            run = drive(collector, "flush", "close", requests=4, spool=folder + "/spool")
            expect(run.spool["found"] == run.spool["accepted"] == left, run.explain())
            expect(sorted(collector.accepted) == list(range(1, 3001)), "not each span once")


# ---- refusals -------------------------------------------------------------------------------------------


def make_refusal(code, *headers):
    def function():
        with Collector(default=status(code, headers)) as collector:
            run = drive(collector, "add:100", "flush", "close", batch_spans=50)
            counts(run, refused=100)
            # each batch once more, after an empty one was taken: the trouble might have passed
            expect(len(collector.requests) == 4 and collector.accepted == [], run.explain())
            expect(run.messages.count("spans refused") == 1, "said not once: " + run.explain())
            expect("answered %d" % code in run.messages, run.messages)

    SCENARIOS["status_%d" % code] = function


for refusal in (402, 403, 404, 405, 406, 409, 410, 411, 418, 422, 451, 499, 501, 505, 507, 599, 304):
    make_refusal(refusal)


@scenario
def redirect():
    """Not followed: it could lead spans and credentials anywhere."""
    with Collector() as other:
        for code in (301, 302, 303, 307, 308):
            location = "Location: %s/api/v2/spans" % other.url
            with Collector(default=status(code, [location])) as collector:
                run = drive(collector, "add:10", "flush", "close")
                counts(run, refused=10)
                expect("redirects are not followed" in run.messages, run.messages)
        expect(other.connections == 0, "it was followed")


@scenario
def status_999():
    with Collector(default=raw(b"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n", keep=True)) as collector:
        counts(drive(collector, "add:10", "flush", "close"), refused=10)


@scenario
def answer_is_not_shown_raw():
    with Collector(default=status(404, body=b"\x1b[31mred\x07\xff\nline" + b"long" * 1000)) as collector:
        run = drive(collector, "add:1", "flush", "close")
        counts(run, refused=1)
        expect("\x1b" not in run.messages and "\x07" not in run.messages, repr(run.messages))
        expect("[31mred" in run.messages and len(run.messages) < 1200, repr(run.messages))


def bisects(bad, spans=100, most_requests=None, script=(), **options):
    with Collector(script, default=judge(has_bad_span)) as collector:
        run = drive(collector, "add:%d" % spans, "flush", "close",
                    bad=",".join(str(number) for number in bad), **options)
        counts(run, accepted=spans - len(bad), invalid=len(bad))
        expected = set(range(1, spans + 1)) - {number + 1 for number in bad}
        expect(sorted(collector.accepted) == sorted(expected), "not the right spans")
        if most_requests:
            expect(len(collector.requests) <= most_requests, "%d requests" % len(collector.requests))
        return run


@scenario
def one_bad_span():
    run = bisects([70], spans=1000, most_requests=22)
    expect('"id":"%016x"' % 71 in run.messages, "the span is not named: " + run.messages)


@scenario
def one_bad_span_first():
    bisects([0])


@scenario
def one_bad_span_last():
    bisects([99])


@scenario
def one_bad_span_alone():
    bisects([0], spans=1)


@scenario
def two_bad_spans():
    bisects([3, 97])


@scenario
def two_bad_neighbours():
    bisects([49, 50])


@scenario
def every_third_span_bad():
    bisects(range(0, 100, 3))


@scenario
def all_spans_bad():
    bisects(range(100), most_requests=200)


@scenario
def bad_span_with_gzip():
    bisects([5, 60], compression="gzip")


@scenario
def bad_span_in_trouble():
    """The search goes on where it was interrupted."""
    bisects([42], script=[judge(has_bad_span), status(503), reset_after_request(),
                          judge(has_bad_span), status(500), close_at_once()])


@scenario
def bad_spans_in_many_batches():
    run = bisects([5, 15, 25, 35], batch_spans=10)
    expect(run.messages.count("span refused") == 1, "said too often: " + run.messages)


@scenario
def trouble_for_ever_in_search():
    """What was settled before stays settled."""
    with Collector([judge(has_bad_span)] * 2, default=status(503)) as collector:
        run = drive(collector, "add:100", "flush", "close", bad=99, retry_timeout_ms=300)
        counts(run, accepted=50, undelivered=50)


@scenario
def too_large_by_spans():
    with Collector(default=judge(lambda request: len(request.spans) > 10, 413)) as collector:
        delivers(collector, spans=100)


@scenario
def too_large_is_learnt():
    with Collector(default=judge(lambda request: request.bytes > 20000, 413)) as collector:
        run = drive(collector, "add:400", "wait:accepted:400", "add:2000", "flush", "close")
        counts(run, accepted=2400)
        late = [request.bytes for request in collector.requests[-5:]]
        expect(max(late) <= 20000, late)


@scenario
def too_large_alone():
    with Collector(default=judge(lambda request: request.bytes > 5000, 413)) as collector:
        run = drive(collector, "add:10", "flush", "close", big="4:9000")
        counts(run, accepted=9, too_large=1)
        expect("lower batch-bytes" in run.messages, run.messages)


@scenario
def too_large_and_bad():
    def picky(connection):
        request = read(connection)
        if len(request.spans) > 16:
            return connection.answer(413)
        return connection.answer(400 if has_bad_span(request) else 202,
                                 request=None if has_bad_span(request) else request)

    with Collector(default=picky) as collector:
        run = drive(collector, "add:100", "flush", "close", bad="7,8,90")
        counts(run, accepted=97, invalid=3)


# ---- a collector that is not there ----------------------------------------------------------------------


@scenario
def start_without_collector():
    run = refuses_to_start("http://127.0.0.1:%d" % free_port(), "no collector is there")
    expect(run.seconds < 2 * SLOW, "it took %.1f s" % run.seconds)


@scenario
def start_with_wrong_path():
    with Collector(probe=lambda connection, _: connection.answer(404)) as collector:
        refuses_to_start(collector, "not a Zipkin collector", "no collector at this path?")


@scenario
def start_with_busy_collector():
    with Collector(probe=lambda connection, _: connection.answer(503)) as collector:
        refuses_to_start(collector, "the collector does not work", "answered 503")


@scenario
def start_with_hanging_collector():
    def never(connection, _):
        time.sleep(5)
        return False

    with Collector(probe=never) as collector:
        run = refuses_to_start(collector, "no collector is there", request_timeout_ms=300)
        expect(run.seconds < 3 * SLOW, "it took %.1f s" % run.seconds)


@scenario
def start_with_something_else():
    with Collector(connect={1: lambda connection: connection.send(b"220 mail ready\r\n")}) as collector:
        refuses_to_start(collector, "no collector is there")


@scenario
def start_without_host():
    refuses_to_start("http://no-such-host.invalid:9411", "Could not resolve host")


@scenario
def collector_comes_later():
    with Collector(listening=False) as collector:
        timer = threading.Timer(0.5, collector.start)
        timer.start()
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", require_collector="no")
        counts(run, accepted=100)
        for words in ("no collector is there", "trying again", "answers again"):
            expect(words in run.messages, run.messages)
        timer.join()


@scenario
def collector_goes_and_comes_back():
    with Collector([ok(headers=["Connection: close"], keep=False)]) as first:
        port = first.port

        def replace():
            while len(first.accepted) < 10:
                time.sleep(0.01)
            first.__exit__()
            time.sleep(0.3)
            second.append(Collector(port=port))

        second = []
        thread = threading.Thread(target=replace)
        thread.start()
        run = drive(first, "add:10", "wait:accepted:10", "sleep:200", "add:90", "flush", "close",
                    batch_spans=10)
        thread.join()
        with second[0]:
            counts(run, accepted=100)
            # a batch that was taken, and its answer cut off, came twice
            expect(set(first.accepted + second[0].accepted) == set(range(1, 101)), "not all")


@scenario
def never_there_recorded():
    """A recorded trace: the conversion fails soon, rather than to read on."""
    run = drive("http://127.0.0.1:%d" % free_port(), "add:5000", "flush", "close",
                require_collector="no", batch_spans=100, retry_timeout_ms=500)
    counts(run, undelivered=5000)
    expect(run.failed and run.seconds < 5 * SLOW, run.explain())
    expect("spans undelivered" in run.messages, run.messages)


@scenario
def never_there_live():
    """A live trace: all that the queue has room for is kept, until the end."""
    run = drive("http://127.0.0.1:%d" % free_port(), "live", "add:100", "sleep:900", "add:100",
                "flush", "close", require_collector="no", batch_spans=100, retry_timeout_ms=300)
    counts(run, undelivered=200)


@scenario
def away_longer_than_patience_live():
    """Being away is no reason to give a batch up while there is room for it."""
    with Collector(listening=False) as collector:
        timer = threading.Timer(1.2, collector.start)
        timer.start()
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", require_collector="no",
                    retry_timeout_ms=200)
        counts(run, accepted=100)
        timer.join()


@scenario
def one_batch_always_fails_live():
    """A collector that fails on one batch gets the others."""
    with Collector(default=judge(has_bad_span, 500)) as collector:
        run = drive(collector, "live", "add:100", "wait:accepted:90", "close", batch_spans=10, bad=15,
                    retry_timeout_ms=400)
        counts(run, accepted=90, undelivered=10)


@scenario
def one_request_of_a_batch_always_fails_live():
    """A batch that takes several requests is given up one request at a time."""
    with Collector(default=judge(has_bad_span, 500)) as collector:
        run = drive(collector, "live", "add:200", "wait:accepted:120", "close", batch_bytes=10000, bad=15,
                    retry_timeout_ms=400)
        failed = len(collector.requests[0].spans)
        counts(run, accepted=200 - failed, undelivered=failed)


class FailsAtFirst:
    """The first of these answers to anything, probes too; what comes later is well."""

    def __init__(self, code, times):
        self.code = code
        self.left = times
        self.lock = threading.Lock()

    def fails(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def send(self, connection):
        if self.fails():
            return status(self.code)(connection)
        return ok()(connection)

    def probe(self, connection, request):
        request_is_first = not connection.collector.requests
        return connection.answer(202 if request_is_first or not self.fails() else self.code)


@scenario
def passing_refusal():
    """A proxy that is configured anew, a token server that is away: no fault of the spans'."""
    for code in (400, 401, 403, 404, 405, 301, 501):
        trouble = FailsAtFirst(code, 6)
        with Collector(default=trouble.send, probe=trouble.probe) as collector:
            run = delivers(collector, batch_spans=50)
            expect("trying again" in run.messages and "answered %d" % code in run.messages,
                   run.messages)


@scenario
def passing_refusal_live():
    """Longer than a batch is tried, while the queue has room."""
    trouble = FailsAtFirst(404, 12)
    with Collector(default=trouble.send, probe=trouble.probe) as collector:
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", retry_timeout_ms=20)
        counts(run, accepted=100)


@scenario
def refusal_for_ever():
    """A recorded trace: given up like a collector that is away."""
    trouble = FailsAtFirst(404, 10**9)
    with Collector(default=trouble.send, probe=trouble.probe) as collector:
        run = drive(collector, "add:100", "flush", "close", batch_spans=50, retry_timeout_ms=300)
        counts(run, undelivered=100)
        expect(run.failed and "spans undelivered" in run.messages, run.explain())
        expect("answered 404" in run.messages, run.messages)


@scenario
def peer_accepts_and_closes_live():
    """A tunnel whose far end is away: every connection is taken and closed."""

    class First:
        def __init__(self, count):
            self.count = count

        def __contains__(self, number):
            return number <= self.count

        def __getitem__(self, _):
            return lambda connection: connection.read_head()

    with Collector(connect=First(14)) as collector:
        run = drive(collector, "live", "add:100", "wait:accepted:100", "close", require_collector="no",
                    retry_timeout_ms=20)
        counts(run, accepted=100)


# ---- the queue ------------------------------------------------------------------------------------------


@scenario
def full_queue_drops_oldest():
    with Collector(default=hang()) as collector:
        run = drive(collector, "add:100", "requests:1", "add:20000", "close", on_full="drop-oldest",
                    queue_bytes=100000, batch_bytes=20000, batch_spans=100, flush_timeout_ms=200,
                    request_timeout_ms=20000)
        expect(run.dropped > 19000 and run.undelivered > 100, run.explain())
        expect(run.dropped + run.undelivered == 20100, run.explain())
        expect(run.slowest_add_ms < 200 * SLOW, "the graph was blocked: " + run.explain())


@scenario
def full_queue_keeps_the_newest():
    gate = threading.Event()

    def wait_for_gate(connection):
        request = read(connection)
        gate.wait(10)
        return connection.answer(202, request=request)

    with Collector([wait_for_gate]) as collector:
        threading.Timer(1.0, gate.set).start()
        run = drive(collector, "live", "add:10", "requests:1", "add:5000", "flush",
                    "close", queue_bytes=100000, batch_bytes=20000, batch_spans=10)
        expect(run.dropped > 1000 and run.accepted + run.dropped == 5010, run.explain())
        newest = list(range(5010 - (run.accepted - 10) + 1, 5011))
        expect(sorted(collector.accepted) == list(range(1, 11)) + newest, "not the newest were kept")
        expect("the queue is full" in run.messages, run.messages)


@scenario
def full_queue_is_said_at_once():
    """Not only when the collector is back, and then how many spans it was."""
    with Collector(default=hang()) as collector:
        run = drive(collector, "live", "add:10", "add:20000", "say:all added", "close",
                    queue_bytes=50000, batch_bytes=20000, flush_timeout_ms=100,
                    request_timeout_ms=20000)
        said = run.messages
        expect("the queue is full" in said and said.index("the queue is full") < said.index("all added"),
               said)
        expect("%d spans were dropped" % run.dropped in said[said.index("all added"):], run.explain())


@scenario
def full_queue_blocks():
    with Collector(default=slow(0.01)) as collector:
        run = delivers(collector, spans=5000, queue_bytes=50000, batch_bytes=20000, batch_spans=100)
        expect(run.slowest_add_ms >= 5, "nothing was blocked: " + run.explain())


@scenario
def live_does_not_block():
    with Collector(default=hang()) as collector:
        run = drive(collector, "live", "add:20000", "close", queue_bytes=50000, batch_bytes=20000,
                    flush_timeout_ms=100, request_timeout_ms=20000)
        expect(run.dropped and run.slowest_add_ms < 200 * SLOW, run.explain())


@scenario
def block_on_order_also_live():
    with Collector(default=slow(0.01)) as collector:
        run = drive(collector, "live", "add:2000", "flush", "close", on_full="block",
                    queue_bytes=50000, batch_bytes=20000, batch_spans=100)
        counts(run, accepted=2000)


@scenario
def interrupted_while_blocked():
    with Collector(default=hang()) as collector:
        run = drive(collector, "interrupt", "add:20000", "close", on_full="block", queue_bytes=50000,
                    batch_bytes=20000, flush_timeout_ms=300, request_timeout_ms=20000)
        counts(run, undelivered=20000)
        expect(run.seconds < 3 * SLOW, "took %.1f s" % run.seconds)


@scenario
def interrupted_and_more_to_come():
    """What the assembler still holds follows an interruption: there must be a sender for it."""
    with Collector(default=slow(0.01)) as collector:
        run = drive(collector, "interrupt", "add:5000", "wait:accepted:5000", "add:300",
                    "close", on_full="block", queue_bytes=50000, batch_bytes=20000, batch_spans=100,
                    flush_timeout_ms=20000)
        counts(run, accepted=5300)


# ---- the end --------------------------------------------------------------------------------------------


@scenario
def close_delivers_without_flush():
    with Collector(default=slow(0.02)) as collector:
        run = drive(collector, "add:1000", "close", batch_spans=100)
        counts(run, accepted=1000)


@scenario
def close_keeps_its_time():
    with Collector(default=hang()) as collector:
        run = drive(collector, "add:1000", "close", batch_spans=100, flush_timeout_ms=300,
                    request_timeout_ms=20000)
        counts(run, undelivered=1000)
        expect(run.seconds < 2 * SLOW, "took %.1f s" % run.seconds)


@scenario
def close_keeps_its_time_in_a_pause():
    with Collector(default=status(503, ["Retry-After: 60"])) as collector:
        run = drive(collector, "live", "add:10", "sleep:300", "close", flush_timeout_ms=300,
                    retry_timeout_ms=100000)
        counts(run, undelivered=10)
        expect(run.seconds < 2 * SLOW, "took %.1f s" % run.seconds)


@scenario
def close_without_waiting():
    with Collector(default=hang()) as collector:
        counts(drive(collector, "add:1000", "close", flush_timeout_ms=0), undelivered=1000)


@scenario
def close_tries_at_once():
    """The pause after a failure does not delay the last attempt."""
    with Collector([status(503, ["Retry-After: 30"])]) as collector:
        run = drive(collector, "live", "add:10", "sleep:300", "close", retry_timeout_ms=100000)
        counts(run, accepted=10)
        expect(run.seconds < 3 * SLOW, "took %.1f s" % run.seconds)


@scenario
def flush_in_the_middle():
    with Collector() as collector:
        run = drive(collector, "add:10", "flush", "add:10", "flush", "close")
        counts(run, accepted=20)


@scenario
def interrupted_flush():
    with Collector(default=hang()) as collector:
        run = drive(collector, "add:10", "interrupt", "flush", "close", flush_timeout_ms=300,
                    request_timeout_ms=20000)
        counts(run, undelivered=10)
        expect(run.seconds < 2 * SLOW, "took %.1f s" % run.seconds)


@scenario
def no_spans():
    with Collector() as collector:
        run = drive(collector, "flush", "close")
        counts(run)
        expect(collector.requests == [] and collector.connections == 1, run.explain())


# ---- pipes ----------------------------------------------------------------------------------------------


class Fifo:
    """A FIFO, and what its reader has got."""

    def __init__(self, reads=None, waits_for=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/fifo"
        os.mkfifo(self.path)
        self.url = "file:" + self.path
        self.reads = reads  # bytes, then it closes; None: all
        self.waits_for = waits_for  # an event, before it reads
        self.data = b""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with open(self.path, "rb", buffering=0) as pipe:
            if self.waits_for:
                self.waits_for.wait(60)
            while self.reads is None or len(self.data) < self.reads:
                data = pipe.read(65536)
                if not data:
                    break
                self.data += data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.waits_for:
            self.waits_for.set()
        self.thread.join(10)
        self.folder.cleanup()


@scenario
def pipe():
    for spans in (0, 1, 20000):
        with Fifo() as fifo:
            run = drive(fifo, "add:%d" % spans, "flush", "close")
            counts(run, accepted=spans)
            fifo.thread.join(10)
            expect(len(json.loads(fifo.data)) == spans, fifo.data[-100:])


@scenario
def pipe_reader_pauses():
    """As long as it likes, also at the very end: nobody is interrupted."""
    gate = threading.Event()
    with Fifo(waits_for=gate) as fifo:
        threading.Timer(1.0, gate.set).start()
        run = drive(fifo, "add:20000", "flush", "close", retry_timeout_ms=100, request_timeout_ms=100,
                    flush_timeout_ms=100)
        counts(run, accepted=20000)
        fifo.thread.join(10)
        expect(len(json.loads(fifo.data)) == 20000, fifo.data[-100:])


@scenario
def pipe_reader_stands_still():
    """An interruption is heeded, and the account is exact."""
    with Fifo(waits_for=threading.Event()) as fifo:
        run = drive(fifo, "interrupt", "add:20000", "flush", "close", on_full="block", queue_bytes=50000,
                    batch_bytes=20000, flush_timeout_ms=300)
        expect(run.status == 0, run.explain())
        expect(run.accepted + run.undelivered == 20000 and run.undelivered > 10000, run.explain())
        expect(run.unsure == run.accepted and "its reader stands still" in run.messages, run.explain())
        expect(run.seconds < 10 * SLOW, "took %.1f s" % run.seconds)


@scenario
def pipe_reader_leaves():
    """No death by SIGPIPE, but an account."""
    with Fifo(reads=1) as fifo:
        run = drive(fifo, "add:20000", "flush", "close")
        expect(run.status == 0, run.explain())
        expect(run.accepted + run.refused == 20000 and run.refused > 0, run.explain())
        expect(run.unsure == run.accepted and "Broken pipe" in run.messages, run.explain())


@scenario
def pipe_reader_never_comes():
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(folder + "/fifo")
        run = refuses_to_start("file:%s/fifo" % folder, "interrupted before", interrupted="yes")
        expect(run.seconds < 10 * SLOW, "took %.1f s" % run.seconds)


@scenario
def link_to_nowhere():
    with tempfile.TemporaryDirectory() as folder:
        os.symlink("/nowhere/at/all", folder + "/link")
        refuses_to_start("file:%s/link" % folder, "is a symbolic link to /nowhere/at/all")
        os.symlink("made", folder + "/good")
        counts(drive("file:%s/good" % folder, "add:3", "flush", "close"), accepted=3)
        with open(folder + "/made", encoding="utf-8") as file:
            expect(len(json.load(file)) == 3, "not what was sent")


# ---- TLS ------------------------------------------------------------------------------------------------

OPENSSL_CONFIG = """
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
"""


class Certificates:
    """A CA of our own, and certificates of all kinds."""

    def __init__(self, folder):
        self.folder = folder
        with open(self.path("config"), "w", encoding="ascii") as config:
            config.write(OPENSSL_CONFIG)
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("ca.key"),
                     "-out", self.path("ca.pem"), "-subj", "/CN=test CA", "-days", "2",
                     "-extensions", "ca", "-config", self.path("config"))
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("self.key"),
                     "-out", self.path("self.pem"), "-subj", "/CN=localhost", "-days", "2",
                     "-addext", "subjectAltName=IP:127.0.0.1", "-config", self.path("config"))
        self.sign("good", "subjectAltName=IP:127.0.0.1", 2)
        self.sign("wrong_host", "subjectAltName=DNS:elsewhere.example", 2)
        self.sign("expired", "subjectAltName=IP:127.0.0.1", 0)  # OpenSSL 3.5 refuses -1
        self.sign("client", "extendedKeyUsage=clientAuth", 2)
        self.openssl("rsa", "-aes256", "-passout", "pass:secret", "-in", self.path("client.key"),
                     "-out", self.path("encrypted.key"))

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl"] + list(args), check=True, capture_output=True)

    def sign(self, name, extension, days):
        with open(self.path("extension"), "w", encoding="ascii") as file:
            file.write(extension)
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path(name + ".key"),
                     "-out", self.path("request"), "-subj", "/CN=" + name, "-config",
                     self.path("config"))
        self.openssl("x509", "-req", "-in", self.path("request"), "-CA", self.path("ca.pem"), "-CAkey",
                     self.path("ca.key"), "-CAcreateserial", "-days", str(days), "-extfile",
                     self.path("extension"), "-out", self.path(name + ".pem"))

    def server(self, name, wants_client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path("ca.pem"))
        return context


CERTIFICATES = None


@scenario
def tls():
    with Collector([status(503)], tls=CERTIFICATES.server("good")) as collector:
        delivers(collector, spans=1000, batch_spans=100, tls_ca=CERTIFICATES.path("ca.pem"))
        expect(collector.connections == 1, "%d connections" % collector.connections)


@scenario
def tls_unknown_ca():
    with Collector(tls=CERTIFICATES.server("good")) as collector:
        refuses_to_start(collector, "SSL certificate", "name the CA of its certificate")


@scenario
def tls_self_signed():
    with Collector(tls=CERTIFICATES.server("self")) as collector:
        refuses_to_start(collector, "SSL certificate", tls_ca=CERTIFICATES.path("ca.pem"))


@scenario
def tls_self_signed_but_trusted():
    with Collector(tls=CERTIFICATES.server("self")) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("self.pem"))


@scenario
def tls_wrong_host():
    with Collector(tls=CERTIFICATES.server("wrong_host")) as collector:
        refuses_to_start(collector, "no alternative certificate subject name",
                         tls_ca=CERTIFICATES.path("ca.pem"))


@scenario
def tls_expired():
    with Collector(tls=CERTIFICATES.server("expired")) as collector:
        refuses_to_start(collector, "certificate has expired", tls_ca=CERTIFICATES.path("ca.pem"))


@scenario
def tls_client_certificate():
    with Collector(tls=CERTIFICATES.server("good", True)) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("ca.pem"),
                 tls_cert=CERTIFICATES.path("client.pem"), tls_key=CERTIFICATES.path("client.key"))


@scenario
def tls_client_certificate_missing():
    with Collector(tls=CERTIFICATES.server("good", True)) as collector:
        refuses_to_start(collector, tls_ca=CERTIFICATES.path("ca.pem"))


@scenario
def tls_encrypted_key():
    """No question on the terminal, which would never be answered."""
    with Collector(tls=CERTIFICATES.server("good", True)) as collector:
        refuses_to_start(collector, "tls-key", tls_ca=CERTIFICATES.path("ca.pem"),
                         tls_cert=CERTIFICATES.path("client.pem"),
                         tls_key=CERTIFICATES.path("encrypted.key"))


@scenario
def tls_no_such_file():
    for option in ("tls_ca", "tls_cert"):
        refuses_to_start("https://127.0.0.1:1", option.replace("_", "-"), "cannot read it",
                         **{option: "/nowhere/file.pem"})


@scenario
def tls_to_plain_port():
    with Collector() as collector:
        refuses_to_start(collector.url.replace("http:", "https:"), "no collector is there",
                         request_timeout_ms=500)

    def answer(connection):
        connection.receive()
        return connection.answer(400)

    with Collector(connect={1: answer}) as collector:
        refuses_to_start(collector.url.replace("http:", "https:"), "write http:// in")


@scenario
def plain_to_tls_port():
    with Collector(tls=CERTIFICATES.server("good")) as collector:
        refuses_to_start(collector.url.replace("https:", "http:"), "no collector is there")


# ---- credentials ----------------------------------------------------------------------------------------


def wants(authorization):
    def fault(connection):
        request = read(connection)
        if request.headers.get("authorization") != authorization:
            return connection.answer(401)
        return connection.answer(202, request=request)

    return fault


def wants_at_probe(authorization):
    def fault(connection, request):
        good = request.headers.get("authorization") == authorization
        return connection.answer(202 if good else 401)

    return fault


class Secret:
    """A file with a secret in it."""

    def __init__(self, text):
        self.file = tempfile.NamedTemporaryFile("w+")
        self.write(text)
        self.path = self.file.name

    def write(self, text):
        self.file.seek(0)
        self.file.truncate()
        self.file.write(text)
        self.file.flush()

    def __str__(self):
        return self.path


@scenario
def bearer_token_from_file():
    secret = Secret("t0p-s3cret\n")
    with Collector(default=wants("Bearer t0p-s3cret"),
                   probe=wants_at_probe("Bearer t0p-s3cret")) as collector:
        delivers(collector, bearer_token_file=secret.path)


@scenario
def bearer_token_from_environment():
    with Collector(default=wants("Bearer abc")) as collector:
        delivers(collector, bearer_token_env="MY_TOKEN", env={"MY_TOKEN": "abc"})


@scenario
def basic_credentials_from_file():
    secret = Secret("user:pass:word")
    with Collector(default=wants("Basic dXNlcjpwYXNzOndvcmQ=")) as collector:
        delivers(collector, basic_auth_file=secret.path)


@scenario
def basic_credentials_from_environment():
    with Collector(default=wants("Basic dXNlcjpwYXNzOndvcmQ=")) as collector:
        delivers(collector, basic_auth_env="LOGIN", env={"LOGIN": "user:pass:word"})


@scenario
def token_is_renewed():
    secret = Secret("old")

    def expire(connection):
        secret.write("new")
        return wants("Bearer new")(connection)

    with Collector([expire], default=wants("Bearer new")) as collector:
        delivers(collector, bearer_token_file=secret.path, batch_spans=50)


@scenario
def secrets_are_not_told():
    secret = Secret("t0p-s3cret")
    with Collector(default=status(401)) as collector:
        run = drive(collector, "add:10", "flush", "close", bearer_token_file=secret.path)
        counts(run, refused=10)
        expect("s3cret" not in run.messages, run.messages)
    with Collector(probe=lambda connection, _: connection.answer(401)) as collector:
        run = refuses_to_start(collector, "other credentials", bearer_token_file=secret.path)
        expect("s3cret" not in run.messages, run.messages)


@scenario
def secret_in_url():
    run = refuses_to_start("http://user:s3cret@127.0.0.1:9411/", "basic-auth-file")
    expect("s3cret" not in run.messages, run.messages)
    run = refuses_to_start("http://user:s3cret@127.0.0.1:94111111/", "endpoint")
    expect("s3cret" not in run.messages, run.messages)
    for url in ("http://127.0.0.1:1/spans?key=s3cret", "http://127.0.0.1:94111111/?key=s3cret"):
        run = refuses_to_start(url, "endpoint")
        expect("s3cret" not in run.messages, run.messages)
    with Collector(probe=lambda connection, _: connection.answer(403)) as collector:
        run = refuses_to_start(collector.url + "/api/v2/spans?key=s3cret", "403")
        expect("s3cret" not in run.messages, run.messages)


@scenario
def secret_in_something_else():
    """What is no URL of ours may be one with a secret."""
    for url in ("htp://user:s3cret@host/", "postgres:user:s3cret@host", "htp:/user:s3cret@host",
                "//user:s3cret@host", "ftp://host/?key=s3cret", "user:s3/cret@host"):
        run = refuses_to_start(url, "expected http://")
        expect("cret" not in run.messages and "user" not in run.messages, run.messages)
    refuses_to_start("ftp://x/y", 'endpoint "ftp://x/y": expected http://')


@scenario
def secret_in_the_open():
    """Over http:// to another host: said once."""
    proxy = Proxy()
    secret = Secret("t0p-s3cret")
    with proxy.collector:
        for options in ({"bearer_token_file": secret.path}, {}):
            for url in ("http://zipkin.example:9411", "http://127.example:9411",
                        "http://localhost:9411"):
                run = drive(url, "add:10", "flush", "close", env={"http_proxy": proxy.url}, **options)
                counts(run, accepted=10)
                warned = run.messages.count("the credential goes over http://")
                expect(warned == (1 if options and "example" in url else 0), run.explain())
                expect("s3cret" not in run.messages, run.messages)


@scenario
def bad_secrets():
    url = "http://127.0.0.1:1"
    refuses_to_start(url, "expected one line", bearer_token_file=Secret("a\nX-Evil: b"))
    refuses_to_start(url, "is empty", bearer_token_file=Secret("\n"))
    refuses_to_start(url, "expected USER:PASSWORD", basic_auth_file=Secret("user"))
    refuses_to_start(url, "longer than", bearer_token_file=Secret("x" * 9000))
    refuses_to_start(url, "cannot read", bearer_token_file="/nowhere/token")
    refuses_to_start(url, "is not set", bearer_token_env="NO_SUCH_VARIABLE")
    refuses_to_start(url, "got several", bearer_token_env="A", basic_auth_env="B")


@scenario
def bad_urls():
    for url in ("http://", "http://[::1", "https://:80", "http://host:99999"):
        refuses_to_start(url, "endpoint")


# ---- proxies --------------------------------------------------------------------------------------------


class Proxy:
    """An HTTP proxy: for plain requests and for CONNECT."""

    def __init__(self, refuses=None):
        self.refuses = refuses
        self.asked = []
        self.collector = Collector(connect=self)
        self.url = self.collector.url

    def __contains__(self, _):
        return True

    def __getitem__(self, _):
        return self.serve

    def serve(self, connection):
        while True:
            while b"\r\n\r\n" not in connection.buffer:
                connection.receive()
            line = connection.buffer.split(b"\r\n")[0].decode()
            self.asked.append(line)
            if self.refuses:
                connection.read()
                connection.answer(self.refuses)
                continue
            method, target, _ = line.split()
            if method == "CONNECT":
                connection.read_head()
                host, port = target.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as peer:
                    connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
                    self.pump(connection.sock, peer)
                return
            request = connection.read()
            connection.answer(202, request=request)

    @staticmethod
    def pump(left, right):
        def one_way(source, sink):
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        thread = threading.Thread(target=one_way, args=(right, left), daemon=True)
        thread.start()
        one_way(left, right)
        thread.join()


@scenario
def proxy_for_http():
    proxy = Proxy()
    with proxy.collector:
        run = drive("http://zipkin.example:9411", "add:10", "flush", "close", compression="none",
                    env={"http_proxy": proxy.url})
        counts(run, accepted=10)
        expect(proxy.asked[0].startswith("POST http://zipkin.example:9411/api/v2/spans "), proxy.asked)


@scenario
def proxy_for_https():
    proxy = Proxy()
    with proxy.collector, Collector(tls=CERTIFICATES.server("good")) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("ca.pem"), env={"https_proxy": proxy.url})
        expect(proxy.asked == ["CONNECT 127.0.0.1:%d HTTP/1.1" % collector.port], proxy.asked)


@scenario
def proxy_refuses():
    proxy = Proxy(refuses=407)
    with proxy.collector, Collector(tls=CERTIFICATES.server("good")) as collector:
        refuses_to_start(collector, "the proxy answered 407", env={"https_proxy": proxy.url})


@scenario
def proxy_is_down():
    with Collector() as collector:
        refuses_to_start(collector, "no collector is there",
                         env={"http_proxy": "http://127.0.0.1:%d" % free_port()})


@scenario
def no_proxy():
    with Collector() as collector:
        delivers(collector, env={"http_proxy": "http://127.0.0.1:%d" % free_port(),
                                 "no_proxy": "127.0.0.1"})


# ---- all of it ------------------------------------------------------------------------------------------


def main():
    global CERTIFICATES  # pylint: disable=global-statement
    with tempfile.TemporaryDirectory() as folder:
        CERTIFICATES = Certificates(folder)
        return run_scenarios(8)


if __name__ == "__main__":
    sys.exit(main())
