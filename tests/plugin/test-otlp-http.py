#!/usr/bin/env python3
# timeout: 150
"""OTLP to collectors that misbehave: the faults of test-http.py and test-away.py, and those of OTLP alone.

After a transient fault, every span arrives. In every case the account is exact.

test-otlp-http.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import importlib
import json
import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/..")
sys.path.insert(0, HERE + "/../otel")
from delivery import (FORMAT, FailsAtFirst, away, bisects, case, compresses, counts, delivers,  # noqa: E402
                      drive, is_not_understood, refuses_to_start)
from faulty_collector import *  # noqa: E402,F403 (the scenarios use its faults)
from scenarios import PATIENCE, SCENARIOS, expect, run_scenarios, scenario, scenarios_of  # noqa: E402
import otlp  # noqa: E402

http = importlib.import_module("test-http")
RECOVERS, refuses = http.RECOVERS, http.refuses
importlib.import_module("test-away")
FORMAT.append("format=otlp")

# Scenarios of both files that run with OTLP, too: all faults of the connection and of the answer, and faults that divide
# or refuse a batch. Scenarios that do not depend on the format are left out (pipes, TLS, credentials, proxies, the
# queue), and those whose outcome differs in OTLP.
SHARED = [name for name in RECOVERS if name not in (
    "status_408", "status_500_for_a_while", "unasked_gzip_answer", "chunks_broken_after_500")] + [
    "retry_after_seconds", "retry_after_beyond_patience", "keep_alive", "batches_by_spans",
    "gzip_to_order", "gzip_not_understood", "status_404", "status_501", "redirect",
    "answer_is_not_shown_raw", "one_bad_span_first", "one_bad_span_last", "one_bad_span_alone",
    "two_bad_neighbours", "every_third_span_bad", "all_spans_bad", "bad_span_with_gzip",
    "bad_spans_in_many_batches", "trouble_for_ever_in_search", "too_large_by_spans", "too_large_is_learnt",
    "too_large_alone", "too_large_and_bad", "collector_goes_and_comes_back", "passing_refusal",
    "refusal_for_ever", "requests_at_once_in_trouble", "requests_at_once_with_a_spool", "peer_accepts_and_closes_live", "close_tries_at_once"]
for name in set(SCENARIOS) - set(SHARED):
    del SCENARIOS[name]


# ---- the request ----------------------------------------------------------------------------------------


@scenario
def request_is_as_receivers_want_it():
    with Collector() as collector:
        delivers(collector)
        request = collector.requests[0]
        expect(request.line == "POST /v1/traces HTTP/1.1", request.line)
        expect(request.headers["content-type"] == "application/x-protobuf", request.headers)
        expect(request.headers["b3"] == "0", request.headers)


@scenario
def format_by_path():
    """Without the parameter, the path gives the format."""
    with Collector() as collector:
        run = drive(collector.url + "/tenant/v1/traces?a=b", "add:1", "flush", "close", format="auto")
    counts(run, accepted=1)
    expect(collector.requests[0].headers["content-type"] == "application/x-protobuf", "JSON was sent")


scenarios_of(compresses, {"zstd_to_order": (("zstd", 3), {})})
scenarios_of(is_not_understood, {"zstd_not_understood": (("zstd", 200), {})})
scenarios_of(bisects, {
    "bad_span_with_zstd": ([[5, 60]], {"compression": "zstd"}),
    # the search for the bad span continues after faults
    "bad_span_in_trouble": ([[42]], {"script": [judge(has_bad_span), status(503), reset_after_request(),
                                                judge(has_bad_span), status(502), close_at_once()]}),
})


@scenario
def one_bad_span():
    run = bisects([70], spans=1000, most_requests=22)
    expect("span %016x" % 71 in run.messages, "the span is not named: " + run.messages)


# ---- several services, whose spans are sent together -----------------------------------------------------


def services_of(requests):
    """Returns the service of each span; no span may have two."""
    found = {}
    for request in requests:
        for span in request.spans:
            service = span["localEndpoint"]["serviceName"]
            expect(found.setdefault(span["id"], service) == service, "span %s is of two services" % span["id"])
    return found


@scenario
def grouped_by_service():
    with Collector() as collector:
        delivers(collector, spans=1000, batch_spans=1000, services=4)
        named = [span["localEndpoint"]["serviceName"] for request in collector.requests for span in request.spans]
        changes = sum(a != b for a, b in zip(named, named[1:]))
        expect(len(set(named)) == 4 and changes == 3, (set(named), changes))


@scenario
def divided_services():
    """However a batch is divided, each span keeps its service, and no span is lost or arrives twice."""
    with Collector() as collector:
        delivers(collector, spans=500, services=4)
        right = services_of(collector.requests)
    for fault in (judge(lambda request: len(request.spans) > 3, 400), judge(lambda request: len(request.spans) > 3, 413)):
        with Collector(default=fault) as collector:
            delivers(collector, spans=500, services=4)
            expect(services_of(collector.requests) == right, "a span is with another service")


@scenario
def spool_of_services():
    """A reader can read records of the spool, and parts of records, without their former batch."""
    with tempfile.TemporaryDirectory() as folder:
        with Collector(listening=False) as collector:
            collector.default = judge(lambda request: len(request.spans) > 30, 400)
            run = drive(collector, "live", "add:3000", "wait:spooled:3000", "say:back", "wait:spool-accepted:3000",
                        "flush", "close", services=4, batch_spans=100, require_collector="no", spool=folder + "/spool",
                        when=("back\n", collector.start))
            expect(run.spooled == 3000 and run.spool["accepted"] == 3000, run.explain())
            expect(sorted(collector.accepted) == list(range(1, 3001)), "not each span once")
            expect(len(set(services_of(collector.requests).values())) == 4, "services are missing")


@scenario
def spool_of_another_format():
    with tempfile.TemporaryDirectory() as folder:
        spool = folder + "/spool"
        nobody = away()
        drive(nobody, "add:100", "close", require_collector="no", spool=spool, flush_timeout_ms=300, format="zipkin")
        run = refuses_to_start(nobody, "holds 100 spans", 'another format than "otlp"', spool=spool)
        expect("another folder" in run.messages, run.messages)
        with Collector() as collector:
            run = drive(collector, "flush", "close", spool=spool, format="zipkin")
            expect(run.spool["accepted"] == 100, run.explain())
        with Collector() as collector:
            delivers(collector, spool=spool)


@scenario
def half_of_a_batch_is_not_settled():
    """The spans of a batch are sent sorted by service: the ten spans that are sent first are not the ten that arrived first."""
    released = threading.Event()

    def hold_back(connection):
        request = read(connection)
        if len(request.spans) > 10:
            return connection.answer(413)
        if 41 in request.ids():
            released.set()
        elif min(request.ids()) <= 20 and any(ident <= 20 for ident in connection.collector.accepted):
            released.wait(30 * PATIENCE)
        return connection.answer(200, request=request)

    with Collector(default=hold_back) as collector:
        run = drive(collector, "settled", "add:20", "wait:accepted:10", "add:20", "wait:accepted:30", "add:1", "flush",
                    "settled:41", "add:1", "close", services=4, batch_spans=20, batch_timeout_ms=60000, requests=3)
        counts(run, accepted=42)
        expect(run.settled == [41], run.settled)


# ---- statuses -------------------------------------------------------------------------------------------


# a proxy with a new configuration: the spans are not at fault, because an empty request is refused, too
scenarios_of(case, {"passing_500": ((FailsAtFirst(500, 6).collector_options, "add:100 flush close"), {
    "batch_spans": 50, "accepted": 100, "says": ["trying again", "answered 500"]})})
scenarios_of(refuses, {"final_%d" % code: ([code], {}) for code in (408, 500, 507)})


# a google.rpc.Status, as receivers answer: the message is shown, not its bytes
scenarios_of(case, {"reason_of_a_refusal": (({
    "default": status(422, ["Content-Type: application/x-protobuf"], otlp.rpc_status(3, "trace id has the wrong length"))},
    "add:10 flush close"), {"refused": 10, "says": ["answered 422: trace id has the wrong length"]})})


# ---- partial success ------------------------------------------------------------------------------------


@fault
def partial(connection, rejected, message=""):
    """Answers 200, and refuses the first `rejected` spans for good."""
    request = read(connection)
    request.spans = request.spans[min(max(rejected, 0), len(request.spans)):]
    return connection.answer(200, ["Content-Type: application/x-protobuf"], otlp.response(rejected, message), request)


@scenario
def partial_none():
    """The usual answer of receivers: 0a 00."""
    with Collector(default=raw(b"HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\n\n\0", takes=True,
                               keep=True)) as collector:
        run = delivers(collector)
        expect(run.messages == "", run.messages)


scenarios_of(case, {"partial_" + name: ((collector, "add:100 flush close"), options) for name, (collector, options) in {
    "some": ({"script": [partial(7, "7 spans are too old")]}, {
        "batch_spans": 50, "accepted": 93, "refused": 7, "requests_seen": 2,
        "says": ["7 of 50 spans refused", "7 spans are too old"]}),
    "all": ({"default": partial(50, "quota")}, {
        "batch_spans": 50, "refused": 100, "requests_seen": 2, "says_once": "quota"}),
    # a number from the network: no more spans than sent can be refused
    "more_than_all": ({"default": partial(10**15, "nonsense")}, {"refused": 100}),
    "in_json": ({"default": ok(body=b'{"partialSuccess":{"rejectedSpans":"40","errorMessage":"quota"}}')}, {
        "accepted": 60, "refused": 40, "says": ["40 of 100 spans refused", ": quota"]}),
    "negative": ({"default": partial(-5, "nonsense")}, {"accepted": 100, "requests_seen": 1}),
    "without_reason": ({"default": partial(3)}, {"accepted": 97, "refused": 3, "says": ["3 of 100 spans refused"]}),
    # no span is refused, but the answer has a message
    "warning": ({"default": partial(0, "deprecated field")}, {
        "batch_spans": 50, "accepted": 100, "requests_seen": 2, "says_once": "deprecated field"}),
    "in_trouble": ({"script": [status(503), partial(5, "late"), reset_after_request()]}, {
        "batch_spans": 50, "accepted": 95, "refused": 5}),
    # halves of a refused batch have answers of their own
    "of_a_half": ({"script": [judge(has_bad_span), partial(10, "late")], "default": judge(has_bad_span)}, {
        "bad": 70, "accepted": 89, "refused": 10, "invalid": 1}),
}.items()})


@scenario
def partial_message_is_not_shown_raw():
    with Collector(default=partial(1, "\x1b[31mred\x07" + "long" * 2000)) as collector:
        run = drive(collector, "add:10", "flush", "close")
        counts(run, accepted=9, refused=1)
        expect("\x1b" not in run.messages and "[31mred" in run.messages, repr(run.messages))
        expect(len(run.messages) < 1200, len(run.messages))


def odd_answer(body):
    """After a good status, the spans count as accepted; the body of the answer does not matter."""
    with Collector(default=ok(200, ["Content-Type: application/x-protobuf"], body)) as collector:
        delivers(collector)


scenarios_of(odd_answer, {"answer_" + name: ([body], {}) for name, body in {
    "empty": b"", "cut": b"\n\x0c\x08", "wild_length": b"\n\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x00",
    "groups": b"\x0b\x0c", "zeros": b"\0" * 64, "endless_varint": b"\x80" * 64, "page": b"<html>hello</html>",
    "json": b'{"partialSuccess":{}}', "long": b"\x12" + b"x" * 5000}.items()})


# ---- a collector that is not there ----------------------------------------------------------------------


@scenario
def start_with_something_else():
    """Zipkin answers an empty text with 415 or 400."""
    for code, *said in ((404, "/v1/traces"), (415,)):
        with Collector(probe=lambda connection, _, code=code: connection.answer(code)) as collector:
            refuses_to_start(collector, "not an OTLP collector", *said)


# ---- files ----------------------------------------------------------------------------------------------


@scenario
def file():
    """All requests in the file can be read as one request; the size of the batches does not matter."""
    for spans in (0, 1, 2500):
        with tempfile.TemporaryDirectory() as folder:
            run = drive("file:" + folder + "/spans", "add:%d" % spans, "flush", "close", batch_spans=100)
            counts(run, accepted=spans)
            with open(folder + "/spans", "rb") as data:
                found = [int(span.span_id.hex(), 16) for _, _, span in otlp.spans(data.read())]
            expect(found == list(range(1, spans + 1)), found[:10])


if __name__ == "__main__":
    sys.exit(run_scenarios(8))
