#!/usr/bin/env python3
# timeout: 150
"""Delivery by HTTP to collectors that misbehave: transient faults, batches, several requests at once, refusals.

After a transient fault, every span arrives. In every case the account is exact: see delivery.py. test-away.py has collectors
that are away; test-http-tls.py has TLS, credentials and proxies.

test-http.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import email.utils
import gzip
import os
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.environ["SRC"] + "/tests")
from delivery import bisects, case, compresses, counts, delivers, drive, is_not_understood  # noqa: E402
from faulty_collector import *  # noqa: E402,F403 (the scenarios use its faults)
from scenarios import PATIENCE, expect, run_scenarios, scenario, scenarios_of  # noqa: E402


# ---- transient faults: (script, other arguments of delivers()) ----------------------------------------

RECOVERS = {
    **{"status_%d" % code: ([status(code)], {}) for code in (408, 502, 503, 504)},
    **{"retry_after_" + name: ([status(503, ["Retry-After: " + value])], {}) for name, value in {
        "nonsense": "soon", "zero": "0", "negative": "-7", "past_date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "overflow": "99999999999999999999"}.items()},
    "accepted": ([], {}),
    "accepted_200_with_json": ([ok(200, ["Content-Type: application/json"], b"{}")], {}),
    "accepted_202_with_body": ([ok(202, body=b"{}")], {}),
    "page_in_place_of_an_answer": ([status(200, ["Content-Type: text/html"], b"<!DOCTYPE html><p>log in")] * 2, {}),
    "json_that_is_a_page": ([status(200, ["Content-Type: text/plain"], b"{}")], {}),
    "accepted_204": ([raw(b"HTTP/1.1 204 No Content\r\n\r\n", takes=True, keep=True)], {}),
    "accepted_207": ([ok(207)], {}),
    "status_429": ([status(429)] * 2, {}),
    "status_500_for_a_while": ([status(500)] * 4, {}),
    "mixed_trouble": ([status(503), reset_after_request(), status(429), close_at_once()], {}),
    "close_after_head": ([close_at_once()] * 2, {}),
    "reset_after_head": ([reset_at_once()] * 2, {}),
    "reset_in_body": ([reset_in_body()], {"spans": 5000, "batch_spans": 5000}),
    "reset_after_request": ([reset_after_request()], {}),
    "taken_then_reset": ([take_and_reset()], {"once": False}),
    "close_without_answer": ([raw(b"")], {}),
    "status_line_garbage": ([raw(b"HTTP/1.1 abc def\r\n\r\n")], {}),
    "binary_noise": ([raw(bytes(range(256)) * 8)], {}),
    "http_09": ([raw(b"<html>hello</html>")], {}),
    "body_cut_after_202": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 99\r\n\r\n{ }", takes=True)], {}),
    "body_cut_after_503": ([raw(b"HTTP/1.1 503 x\r\nContent-Length: 99\r\n\r\nabc")], {}),
    "chunks_broken_after_202": ([raw(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n!",
                                     takes=True)], {}),
    "chunks_broken_after_500": ([raw(b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")],
                                {}),
    "chunked_202": ([raw(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{ }\r\n0\r\n\r\n",
                         takes=True, keep=True)], {}),
    "continue_then_202": ([raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 x\r\n"
                               b"Content-Length: 0\r\n\r\n", takes=True, keep=True)], {}),
    "http_10": ([raw(b"HTTP/1.0 202 x\r\n\r\n", takes=True)], {}),
    "answer_in_single_bytes": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 2\r\n\r\n{}", takes=True,
                                    keep=True, delay=0.001, piece=1)], {}),
    "slow_answer": ([slow(0.3)], {}),
    "hang_then_well": ([hang()], {"request_timeout_ms": 300 * PATIENCE}),
    "hang_without_reading": ([hang_without_reading()], {"request_timeout_ms": 300 * PATIENCE}),
    "answer_drips_for_ever": ([raw(b"HTTP/1.1 202 x\r\n" + b"X: y\r\n" * 100, delay=0.02, piece=1)],
                              {"request_timeout_ms": 300 * PATIENCE}),
    "body_drips_after_202": ([drip(b"HTTP/1.1 202 x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9999\r\n\r\n", 0.02)],
                             {"request_timeout_ms": 300 * PATIENCE}),
    "head_cut_after_202": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 0\r\n")], {}),
    "late_answer": ([slow(0.6 * PATIENCE)], {"request_timeout_ms": 300 * PATIENCE, "once": False}),
    "read_in_small_pieces": ([read_slowly(97)], {}),
    "read_in_single_bytes": ([read_slowly(1)], {"spans": 50}),
    "huge_body": ([forever(b"HTTP/1.1 202 x\r\nContent-Length: 999999999999\r\n\r\n", b" " * 65536,
                           takes=True)], {}),
    "endless_chunks": ([forever(b"HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n",
                                b"1000\r\n" + b" " * 4096 + b"\r\n", takes=True)], {}),
    "endless_headers": ([forever(b"HTTP/1.1 202 x\r\n", b"X-More: yes\r\n" * 100)], {}),
    "endless_header_line": ([forever(b"HTTP/1.1 202 x\r\nX: ", b"x" * 65536)], {}),
    "connection_close": ([], {"default": ok(headers=["Connection: close"], keep=False),
                              "batch_spans": 10}),
    "silent_close_after_each": ([], {"default": ok(keep=False), "batch_spans": 10}),
    "unasked_gzip_answer": ([ok(202, ["Content-Encoding: gzip"], gzip.compress(b"x" * 100000))], {}),
    "set_cookie": ([ok(202, ["Set-Cookie: a=b; Path=/"])], {}),
    "two_content_lengths": ([raw(b"HTTP/1.1 202 x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
                                 takes=True)], {"once": False}),  # libcurl 8.23 refuses it
    "upgrade": ([raw(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n")],
                {"request_timeout_ms": 300 * PATIENCE}),
}


def recovers(script, options):
    given = dict(options)
    if "request_timeout_ms" in given:  # on a busy machine, a good answer may be too late, too
        given = {"once": False, "require_collector": "no", **given}
    with Collector(script, default=given.pop("default", None)) as collector:
        delivers(collector, **given)


scenarios_of(recovers, {recovery: (its, {}) for recovery, its in RECOVERS.items()})


def retry_after(header):
    """header() gives a pause of 1 to 2 s."""
    def at_fault_time(connection):
        read(connection)
        return connection.answer(503, ["Retry-After: " + header()])

    with Collector([at_fault_time]) as collector:
        delivers(collector)
        gap = collector.requests[1].time - collector.requests[0].time
        expect(0.9 <= gap < 15 * PATIENCE, "the second request arrived after %.2f s" % gap)


scenarios_of(retry_after, {
    "retry_after_seconds": ((lambda: "1",), {}),
    "retry_after_date": ((lambda: email.utils.formatdate(time.time() + 2, usegmt=True),), {}),
})


scenarios_of(case, {
    # a collector that asks for more time than there is gets no second request
    "retry_after_beyond_patience": (({"default": status(503, ["Retry-After: 3600"])}, "add:10 flush close"), {
        "retry_timeout_ms": 500000, "undelivered": 10, "requests_seen": 1, "within_s": 15,
        "says": ["longer pause (Retry-After) than retry-timeout-ms leaves"]}),
    "batches_by_time": (({}, "live add:3 wait:accepted:3 add:4 wait:accepted:7 close"), {
        "batch_timeout_ms": 2500 * PATIENCE, "accepted": 7, "requests_seen": 2}),
    # an interruption ends all requests
    "requests_at_once_and_an_end": (({"default": hang()}, "add:1000 requests:4 close"), {
        "batch_spans": 100, "requests": 4, "flush_timeout_ms": 300, "undelivered": 1000, "within_s": 15}),
    # a recorded trace: the first request that is given up ends all
    "requests_at_once_without_collector": ((None, "add:50000 flush close"), {
        "batch_spans": 100, "retry_timeout_ms": 500, "requests": 6, "undelivered": 50000, "failed": True,
        "within_s": 15}),
    "status_999": (({"default": raw(b"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n", keep=True)}, "add:10 flush close"), {
        "refused": 10}),
    # settled spans stay settled
    "trouble_for_ever_in_search": (({"script": [judge(has_bad_span)] * 2, "default": status(503)}, "add:100 flush close"), {
        "bad": 99, "retry_timeout_ms": 300, "accepted": 50, "undelivered": 50}),
    "too_large_by_spans": (({"default": judge(lambda request: len(request.spans) > 10, 413)}, "add:100 flush close"), {
        "accepted": 100}),
    "too_large_alone": (({"default": judge(lambda request: request.bytes > 5000, 413)}, "add:10 flush close"), {
        "big": "4:9000", "accepted": 9, "too_large": 1, "says": ["lower batch-bytes"]}),
})


@scenario
def pauses_grow():
    with Collector(default=status(503)) as collector:
        run = drive(collector, "add:10", "flush", "close", retry_timeout_ms=6000 * PATIENCE)
        counts(run, undelivered=10)
        expect(3 <= len(collector.requests) <= 60 * PATIENCE, "%d attempts" % len(collector.requests))
        expect(6 * PATIENCE <= run.seconds < 21 * PATIENCE, "took %.1f s" % run.seconds)
        expect(run.requests == len(collector.requests) and run.retries == run.requests - 1, run.explain())


@scenario
def keep_alive():
    with Collector() as collector:
        delivers(collector, spans=1000, batch_spans=10)
        expect(len(collector.requests) == 100 and collector.connections == 1, "%d connections" % collector.connections)


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
def batches_by_spans_and_bytes():
    with Collector() as collector:
        delivers(collector, spans=100, batch_spans=30)
        sizes = [len(request.spans) for request in collector.requests]
        expect(sizes == [30, 30, 30, 10], sizes)
    with Collector() as collector:
        delivers(collector, spans=1000, batch_bytes=10000)
        sizes = [request.bytes for request in collector.requests]
        # the last spans of a batch may be a small request
        expect(max(sizes) <= 10000 and sum(sizes) / len(sizes) > 5000, sizes)


scenarios_of(compresses, {"gzip_to_order": (("gzip", 5), {})})
scenarios_of(is_not_understood, {"gzip_not_understood": (("gzip", 202), {"probe": None})})


# ---- several requests at once -----------------------------------------------------------------------------


@scenario
def requests_at_once():
    """The collector answers none of four requests before all have arrived."""
    together = threading.Barrier(4)

    def wait_for_others(connection):
        request = read(connection)
        together.wait(30 * PATIENCE)
        return connection.answer(202, request=request)

    with Collector(default=wait_for_others) as collector:
        run = delivers(collector, spans=400, batch_spans=50, requests=4)
        expect(run.requests >= 8 and collector.connections >= 4, run.explain())  # a busy machine may give up a connection


@scenario
def requests_at_once_in_trouble():
    trouble = [judge(has_bad_span), status(503), reset_after_request(), close_at_once(),
               status(429, ["Retry-After: 1"]), reset_in_body(), judge(has_bad_span)] * 6
    with Collector(trouble, default=judge(has_bad_span)) as collector:
        bad = range(7, 2000, 97)
        run = drive(collector, "add:2000", "flush", "close", batch_spans=20, requests=8, bad=",".join(map(str, bad)))
        counts(run, accepted=2000 - len(bad), invalid=len(bad))
        expect(sorted(collector.accepted) == sorted(set(range(1, 2001)) - {number + 1 for number in bad}),
               "not each span once")


@scenario
def requests_at_once_settle_in_order():
    """Spans count as settled only without a gap, although later requests are faster."""
    released, held = threading.Event(), []

    def wait_for_release(connection):
        request = read(connection)
        held.append(request)
        released.wait(30 * PATIENCE)
        return connection.answer(202, request=request)

    def release_late(connection):
        request = read(connection)
        if 101 in request.ids():
            released.set()
        return connection.answer(202, request=request)

    with Collector([wait_for_release], default=release_late) as collector:
        run = drive(collector, "settled", "add:100", "wait:accepted:90", "add:1", "flush", "settled:101",
                    "add:1", "close", batch_spans=10, batch_timeout_ms=60000, requests=3)
        counts(run, accepted=102)
        first = held[0].ids()[0] - 1
        expect(run.settled[-1] == 101, run.settled)
        expect(all(value <= first for value in run.settled[:-1]), (first, run.settled))


@scenario
def requests_at_once_with_a_spool():
    with tempfile.TemporaryDirectory() as folder:
        with Collector([status(503)] * 5 + [reset_after_request()] * 3) as collector:
            run = drive(collector, "add:3000", "flush", "close", batch_spans=100, requests=4,
                        spool=folder + "/spool")
            expect(run.spooled + run.accepted == 3000, run.explain())
            left = run.spool["waiting"]
            expect(run.spool["accepted"] + left == run.spooled, run.explain())
            run = drive(collector, "wait:spool-accepted:%d" % left, "close", requests=4, spool=folder + "/spool")
            expect(run.spool["found"] == run.spool["accepted"] == left, run.explain())
            expect(sorted(collector.accepted) == list(range(1, 3001)), "not each span once")


# ---- refusals -------------------------------------------------------------------------------------------


def refuses(code):
    with Collector(default=status(code)) as collector:
        run = drive(collector, "add:100", "flush", "close", batch_spans=50)
        counts(run, refused=100)
        # the exporter sends each batch again after the collector has accepted an empty one: the fault might have passed
        expect(len(collector.requests) == 4 and collector.accepted == [], run.explain())
        expect(run.messages.count("spans refused") == 1, "said not once: " + run.explain())
        expect("answered %d" % code in run.messages, run.messages)


scenarios_of(refuses, {"status_%d" % code: ([code], {}) for code in (
    402, 403, 404, 405, 406, 409, 410, 411, 418, 422, 451, 499, 501, 505, 507, 599, 304)})


@scenario
def redirect():
    """A redirect is not followed, because it could lead spans and credentials anywhere."""
    with Collector() as other:
        for code in (301, 302, 303, 307, 308):
            location = "Location: %s/api/v2/spans" % other.url
            with Collector(default=status(code, [location])) as collector:
                run = drive(collector, "add:10", "flush", "close")
                counts(run, refused=10)
                expect("redirects are not followed" in run.messages, run.messages)
        expect(other.connections == 0, "the redirect was followed")


@scenario
def answer_is_not_shown_raw():
    with Collector(default=status(404, body=b"\x1b[31mred\x07\xff\nline" + b"long" * 1000)) as collector:
        run = drive(collector, "add:1", "flush", "close")
        counts(run, refused=1)
        expect("\x1b" not in run.messages and "\x07" not in run.messages, repr(run.messages))
        expect("[31mred" in run.messages and len(run.messages) < 1200, repr(run.messages))


@scenario
def one_bad_span():
    run = bisects([70], spans=1000, most_requests=22)
    expect('"id":"%016x"' % 71 in run.messages, "the span is not named: " + run.messages)


BISECTS = {
    "one_bad_span_first": ([[0]], {}),
    "one_bad_span_last": ([[99]], {}),
    "one_bad_span_alone": ([[0]], {"spans": 1}),
    "two_bad_neighbours": ([[49, 50]], {}),
    "every_third_span_bad": ([range(0, 100, 3)], {}),
    "all_spans_bad": ([range(100)], {"most_requests": 200}),
    "bad_spans_in_many_batches": ([[5, 15, 25, 35]], {"batch_spans": 10, "says_once": "span refused"}),
    "bad_span_with_gzip": ([[5, 60]], {"compression": "gzip"}),
    # the search for the bad span continues after faults
    "bad_span_in_trouble": ([[42]], {"script": [judge(has_bad_span), status(503), reset_after_request(),
                                                judge(has_bad_span), status(500), close_at_once()]}),
}
scenarios_of(bisects, BISECTS)


@scenario
def too_large_is_learnt():
    with Collector(default=judge(lambda request: request.bytes > 20000, 413)) as collector:
        run = drive(collector, "add:400", "wait:accepted:400", "add:2000", "close", batch_spans=400,
                    batch_timeout_ms=60000)
        counts(run, accepted=2400)
        late = [request.bytes for request in collector.requests[-5:]]
        expect(max(late) <= 20000, late)


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


if __name__ == "__main__":
    sys.exit(run_scenarios(8))
