#!/usr/bin/env python3
"""Of a recording with many traces just those are sent that only-traces names: whole, as they are without
it, and tagged; the account has all events; only-found tells what there was.

    test-only-traces.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import re
import signal
import sys
import tempfile
import threading

from conversion import Conversion
from faulty_collector import Collector, read
from make_traces import (CONTEXT, HEX, I32, MS, S, TEXT, U32, U64, BLKIN, Thread, Trace,
                         add_blkin, add_zipkin, annotation, context, step, step_id, zipkin)
from scenarios import SCENARIOS, expect, run_scenarios, wait_until

EPOCH = 1700000000 * S
HIGH = 0x7D5C0E9BF1A3C4D2
WHY = "slow: osd write took 25 ms, more than 20 ms"


def scenario(function):
    """In a folder of its own."""
    def run():
        with tempfile.TemporaryDirectory() as folder:
            function(folder)
    SCENARIOS[function.__name__] = run
    return function


def same(what, actual, expected):
    expect(actual == expected, f"{what}: expected {expected}, got {actual}")


# ---- the recording -------------------------------------------------------------------------------

REQUESTS = 400  # a trace each: a client's span, a server's on another host, a step, an original half
SLOW = {"mark": U64, "trace_id": HEX, "trace_id_high": HEX, "span_id": HEX, "duration": U64, "monotonic": U64,
        "pid": U32, "sequence": U32, "dropped": U32, "why": TEXT, "name": TEXT, "service": TEXT}


def low(request):
    return 0xA1B2C3D4_00000000 + request


def add_all(trace):
    add_blkin(trace)
    add_zipkin(trace)
    trace.event_class("blkin:slow", SLOW)
    trace.event_class("some:other", {"number": I32})


def slow(time, request, where):
    return (time, "blkin:slow", {
        "mark": 0x31776F6C736B6C62, "trace_id": low(request), "trace_id_high": HIGH, "span_id": 1, "duration": S,
        "monotonic": time, "pid": 1, "sequence": request, "dropped": 0, "why": "*>1s", "name": "write",
        "service": "osd"}, where)


def record(folder, picked=True):
    """Two hosts, each of which lacks packets, as what was picked does, and lost events before the first."""
    hosts = [Trace(number, hostname=f"node{number}", context=CONTEXT) for number in (1, 2)]
    places = [context(100, 101, "client"), context(200, 201, "osd")]
    client, osd = Thread(2, "client", context=places[0]), Thread(4, "osd", context=places[1])
    streams = [host.stream() for host in map(lambda host: (add_all(host), host)[1], hosts)]
    for first in range(0, REQUESTS, 20):
        events = [[], []]
        for request in range(first, first + 20):
            at = 10 * S + request * 10 * MS
            span = 10 * request
            ids = {"trace_id": low(request), "high": HIGH}
            if picked:
                client.sequence += 7
            events[1] += [
                osd.span(at + 3 * MS, span + 2, parent=span + 1, log=annotation(MS, "queued") + step(
                    0, "journal", end=MS), **ids),
                (at + 4 * MS, "zipkin:timestamp", zipkin(span + 3, "store", trace_id=low(request) - 2**64, parent=span + 2,
                                                         event="sr"), places[1]),
                slow(at + 4 * MS, request, places[1]),
                (at + 5 * MS, "some:other", {"number": 1}, places[1]),
            ]
            events[0] += [client.span(at + 5 * MS, span + 1, kind=1, duration=5 * MS, **ids)]
        events[0].append(Thread(2, context=places[0]).process(events[0][-1][0]))
        for stream, its in zip(streams, events):
            stream.packet(its, discarded=3, skipped=5 if picked else 0)
    for number, host in enumerate(hosts):
        host.write(os.path.join(folder, f"host{number}"))


def span_ids(request):
    """Of the spans that there are of it."""
    span = 10 * request
    return {f"{value:016x}" for value in (span + 1, span + 2, span + 3, step_id(span + 2, 1))}


EVENTS = REQUESTS * 5 + REQUESTS // 20


# ---- running the sink ----------------------------------------------------------------------------

class Run(Conversion):
    """Waits for its end unless told otherwise."""

    def __init__(self, folder, *parameters, lines=None, endpoint=None, wait=True, status=0):
        self.found_path, only = folder + "/found", folder + "/only"
        if lines is not None:
            with open(only, "w") as file:
                file.write("".join(line + "\n" for line in lines))
            parameters += f'only-traces="{only}"', f'only-found="{self.found_path}"'
        super().__init__(folder, folder + "/trace", parameters=parameters, endpoint=endpoint)
        if wait:
            self.end(status)

    def found(self):
        with open(self.found_path) as file:
            return json.load(file)

    def has_found(self):
        return os.path.exists(self.found_path)

    def check_sums(self, **expected):
        counters = self.counters()
        parts = [name for name in counters if name.startswith("events_") and name not in (
            "events_missing", "events_held")]
        same("the sum of events", sum(counters[name] for name in parts), counters["events"])
        line = re.search(r"events: (\d+) = ([^;]*)", self.said)
        same("the line's sum", sum(int(number) for number in re.findall(r"\d+", line[2])), int(line[1]))
        for name, value in expected.items():
            same(name, counters[name], value)


def untagged(span):
    """As it is without only-traces."""
    span = json.loads(json.dumps(span))
    for tag in ("blkin.kept", "blkin.lost"):
        span.get("tags", {}).pop(tag, None)
    return json.dumps(span, sort_keys=True)


def of_requests(spans, *requests):
    wanted = {low(request) for request in requests}
    return [span for span in spans if int(span["traceId"][-16:], 16) in wanted]


def why_of(spans):
    return {span.get("tags", {}).get("blkin.kept") for span in spans}


def check_found(found, spans, wants):
    """What is told is what was sent; wants: of each trace."""
    traces = {trace["id"]: trace for trace in found["traces"]}
    same("traces found", len(traces), len(wants))
    for request, want in wants.items():
        trace = traces[f"{HIGH:016x}{low(request):016x}"]
        its = of_requests(spans, request)
        same("begin", trace["begin"], min(span["timestamp"] for span in its) * 1000)
        same("spans", trace["spans"], len(its))
        same("have", set(trace["have"]), {span["id"] for span in its})
        same("want", trace["want"], [f"{value:016x}" for value in want])
        same("cut", trace["cut"], False)


# ---- what is sent --------------------------------------------------------------------------------

@scenario
def wanted_traces(folder):
    """Just these, whole and as they are without it, and each with its reason; steps, too."""
    record(folder + "/trace")
    everything = Run(folder).spans()
    same("spans of all", len(everything), 4 * REQUESTS)
    run = Run(folder, lines=[f"{HIGH:016x}{low(7):016x} 0 0 {WHY}", f"{low(100):016X} 0 0 by hand",
                             f"{HIGH:016x}{low(399):016x} 0 0 fünf |\\\" Wörter",
                             f"{HIGH + 1:016x}{low(50):016x} 0 0 another trace",
                             "00000000000000aa 0 0 not there"])
    spans = run.spans()
    # of 50 the original's half, which knows the lower half of its id only
    expected = of_requests(everything, 7, 100, 399) + [
        span for span in of_requests(everything, 50) if span["localEndpoint"]["serviceName"] == "store"]
    same("spans", sorted(map(untagged, spans)), sorted(map(untagged, expected)))
    same("ids", {span["id"] for span in of_requests(spans, 7)}, span_ids(7))
    same("why 7", why_of(of_requests(spans, 7)), {WHY})
    same("why 100", why_of(of_requests(spans, 100)), {"by hand"})
    same("why 399", why_of(of_requests(spans, 399)), {"fünf |\\\" Wörter"})
    run.check_sums(events=EVENTS, events_in_spans=10, events_of_alarms=REQUESTS, events_foreign=REQUESTS,
                   events_unwanted=3 * REQUESTS - 10, events_of_processes=REQUESTS // 20, events_unreadable=0,
                   spans_finished=13, spans_accepted=13)
    found = run.found()
    same("oldest", found["oldest"], EPOCH + 10 * S + 3 * MS)
    same("newest", found["newest"], EPOCH + 10 * S + (REQUESTS - 1) * 10 * MS + 5 * MS)
    fifty = [trace for trace in found["traces"] if trace["id"] == f"{low(50):032x}"]
    same("what was found of 50", fifty, [{"id": f"{low(50):032x}", "begin": EPOCH + 10 * S + 504 * MS,
                                          "spans": 1, "have": [f"{503:016x}"], "want": [f"{502:016x}"], "cut": False}])
    found["traces"].remove(fifty[0])
    check_found(found, spans, {7: [], 100: [], 399: []})
    same("mode", oct(os.stat(run.found_path).st_mode & 0o777), "0o600")
    same("files", sorted(os.listdir(folder)), ["found", "log", "only", "spans.json", "stats", "trace"])


@scenario
def nothing_is_told_as_lost(folder):
    """What a picked trace lacks on purpose; without the parameter all of that is told."""
    record(folder + "/trace")
    told = Run(folder)
    spans = told.spans()
    expect(told.counters()["events_missing"] > 1000 and told.counters()["lttng_packets_discarded"] == 190,
           "the recording should lack packets and events")
    expect(any("blkin.lost" in span["tags"] for span in spans), "a span should be tagged blkin.lost")
    run = Run(folder, lines=[f"* 0 0 {WHY}"])
    run.check_sums(events_missing=0, lttng_packets_discarded=0, lttng_events_discarded=0, spans_with_loss=0,
                   events_unwanted=0, spans_finished=4 * REQUESTS)
    same("tagged", [span for span in run.spans() if "blkin.lost" in span["tags"]], [])
    same("why", why_of(run.spans()), {WHY})


@scenario
def what_lttng_discarded(folder):
    """Between two packets that are there: told. Before the first one: maybe long ago, and not told."""
    trace = Trace(hostname="node1", context=CONTEXT)
    add_blkin(trace)
    thread = Thread(2, context=context(100, 101, "osd"))
    stream = trace.stream()
    for number, discarded in ((1, 1000), (2, 1000), (3, 1005)):
        stream.packet([thread.span(number * S, number, trace_id=number)], discarded=discarded,
                      skipped=number)
    trace.write(folder + "/trace")
    run = Run(folder, lines=["* 0 0 x"])
    run.check_sums(lttng_events_discarded=5, lttng_packets_discarded=0, spans_with_loss=1)
    same("tagged", [(span["id"][-1], span["tags"]["blkin.lost"]) for span in run.spans()
                    if "blkin.lost" in span["tags"]],
         [("3", "up to 5 events lost on node1 while it was open: spans below it may be missing")])


@scenario
def only_of_a_time(folder):
    """What was recorded from FROM on, and before UNTIL: two runs that meet there send each span once."""
    record(folder + "/trace")
    first, second = (EPOCH + 10 * S + request * 10 * MS + 5 * MS for request in (100, 200))
    spans = Run(folder, lines=[f"* {first} {second} x"]).spans()
    # at its end the client's span of a request is recorded: that of 100 is in, that of 200 is not
    clients = {int(span["id"], 16) // 10 for span in spans if span["localEndpoint"]["serviceName"] == "client"}
    same("requests", clients, set(range(100, 200)))
    request = 150
    border = EPOCH + 10 * S + request * 10 * MS + 4 * MS
    name = f"{HIGH:016x}{low(request):016x}"
    before, after = Run(folder, lines=[f"{name} 0 {border} x"]), None
    ids = [span["id"] for span in before.spans()]
    check_found(before.found(), before.spans(), {request: [10 * request + 1]})
    after = Run(folder, lines=[f"{name} {border} 0 x"])
    check_found(after.found(), after.spans(), {request: [10 * request + 2]})
    same("each once", sorted(ids + [span["id"] for span in after.spans()]), sorted(span_ids(request)))


@scenario
def clock_that_was_set(folder):
    """All spans are moved alike, whatever blkin:process tells; FROM and UNTIL are the trace's own."""
    record(folder + "/trace")
    line = f"{HIGH:016x}{low(7):016x} {EPOCH + 10 * S + 70 * MS} {EPOCH + 10 * S + 80 * MS} x"

    def times(span):
        return [span["timestamp"], *(annotation["timestamp"] for annotation in span.get("annotations", []))]

    plain = {span["id"]: times(span) for span in Run(folder, lines=[line]).spans()}
    same("spans", set(plain), span_ids(7))
    for ahead in 3600 * S, -3600 * S, MS, -MS, MS - 1, 0:  # less than 1 ms is noise
        run = Run(folder, lines=[f"clock {EPOCH + ahead}", line])
        moved = ahead // 1000 if abs(ahead) >= MS else 0
        same(f"{ahead} ns ahead", {span["id"]: times(span) for span in run.spans()},
             {name: [time + moved for time in its] for name, its in plain.items()})
        run.check_sums(spans_corrected=4 if moved else 0)
    run = Run(folder, "clock-correction=no", lines=[f"clock {EPOCH + S}", line])
    same("clock-correction=no", {span["id"]: times(span) for span in run.spans()}, plain)


@scenario
def original_events(folder):
    """A span of these has no end: what is open at the end of the trace is sent, and found."""
    trace = Trace()
    add_zipkin(trace)
    trace.stream().packet([
        (10 * S, "zipkin:timestamp", zipkin(2, "osd", trace_id=-5, event="sr")),
        (10 * S, "zipkin:timestamp", zipkin(2, "osd", trace_id=6, event="sr")),
        (10 * S + MS, "zipkin:keyval_string", zipkin(2, "osd", trace_id=-5, key="object", val="rbd.1")),
        (10 * S + MS, "zipkin:timestamp", zipkin(3, "osd", trace_id=-5, parent=2, event="queued"))])
    trace.write(folder + "/trace")
    run = Run(folder, lines=["12345678123456780000000000000000"[:16] + "fffffffffffffffb 0 0 x"])
    same("spans", sorted(span["id"][-1] for span in run.spans()), ["2", "3"])
    same("found", run.found()["traces"], [{
        "id": "0" * 16 + "fffffffffffffffb", "begin": EPOCH + 10 * S, "spans": 2, "have": ["0000000000000002", "0000000000000003"],
        "want": [], "cut": False}])
    run.check_sums(events=4, events_in_spans=3, events_unwanted=1)


@scenario
def streamed_events(folder):
    """Of these all but blkin:begin know the lower half of the id only."""
    trace = Trace()
    add_blkin(trace)
    thread = Thread(2)

    def of(trace_id, event):
        return (*event[:2], {**event[2], "trace_id": trace_id}, event[3])

    trace.stream().packet([
        of(5, thread.begin(10 * S, 2)), of(6, thread.begin(10 * S, 3)),
        of(5, thread.detail(10 * S + MS, "annotation_info", 2, text="queued")),
        of(6, thread.detail(10 * S + MS, "end", 3)), of(5, thread.detail(10 * S + MS, "end", 2))])
    trace.write(folder + "/trace")
    run = Run(folder, lines=["0000000000000005 0 0 x"])
    same("spans", [(span["id"][-1], span["annotations"][0]["value"], "blkin.incomplete" in span["tags"])
                   for span in run.spans()], [("2", "queued", False)])
    run.check_sums(events_in_spans=3, events_unwanted=2, events_late=0)


@scenario
def alarms_are_known(folder):
    """Whatever their fields are, and without the parameter, too."""
    trace = Trace()
    trace.event_class("blkin:slow", {"other": I32})
    trace.event_class("blkin:process", BLKIN["blkin:process"])
    trace.stream().packet([(10 * S, "blkin:slow", {"other": 1}), (10 * S, "blkin:slow", {"other": 2})])
    trace.write(folder + "/trace")
    for lines in None, ["* 0 0 x"]:
        run = Run(folder, lines=lines)
        run.check_sums(events=2, events_of_alarms=2)
        expect("unreadable;" not in run.said and "is unreadable" not in run.said, run.said)


# ---- when it is told -----------------------------------------------------------------------------

@scenario
def found_before_delivery_ends(folder):
    """It is there while the collector keeps the sink waiting."""
    record(folder + "/trace")
    goes_on = threading.Event()

    def wait(connection):
        request = read(connection)
        goes_on.wait()
        return connection.answer(202, request=request)

    with Collector(default=wait) as collector:
        run = Run(folder, lines=["* 0 0 x"], endpoint=collector.url, wait=False)
        wait_until(run.has_found, "the file of what was found")
        expect(run.process.poll() is None, "it should still be waiting")
        same("accepted", collector.accepted, [])
        goes_on.set()
        run.end()
        same("accepted", len(collector.accepted), 4 * REQUESTS)
        same("spans found", sum(trace["spans"] for trace in run.found()["traces"]), 4 * REQUESTS)


@scenario
def interrupted(folder):
    """A part is not to be taken for the whole: nothing is told, and that of a run before is gone."""
    record(folder + "/trace")
    Run(folder, lines=["* 0 0 x"])
    expect(os.path.exists(folder + "/found"), "a run before has told")
    arrived = threading.Event()

    def hang(connection):
        read(connection)
        arrived.set()
        while True:
            connection.receive()

    with Collector(default=hang) as collector:
        # the queue has room for a small part of the trace
        run = Run(folder, 'batch-bytes=4096', 'queue-bytes=8192', 'flush-timeout-ms=100', lines=["* 0 0 x"],
                  endpoint=collector.url, wait=False)
        wait_until(arrived.is_set, "the first spans")
        run.process.send_signal(signal.SIGTERM)
        run.end(2)
    expect(not run.has_found(), "it has told of a part")
    run.check_sums()


@scenario
def cut_off(folder):
    """The same where the trace cannot be read to its end."""
    record(folder + "/trace")
    path = folder + "/trace/host0/channel0_0"
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 100)
    run = Run(folder, lines=["* 0 0 x"], status=1)
    expect(not run.has_found(), "it has told of a part")


@scenario
def found_cannot_be_written(folder):
    """All is delivered, and the status says that it is not told."""
    record(folder + "/trace")
    os.mkdir(folder + "/found.new")
    run = Run(folder, lines=["* 0 0 x"], status=1)
    same("spans", len(run.spans()), 4 * REQUESTS)
    expect('cannot be written: Is a directory' in run.said, run.said)


# ---- with other parameters -----------------------------------------------------------------------

@scenario
def refused(folder):
    """What is wrong is named, before anything is read."""
    record(folder + "/trace")
    for parameters, lines, words in (
            (['only-found="f"'], None, 'only-found needs only-traces="FILE"'),
            (['only-traces="/nowhere"'], None, 'only-traces "/nowhere": cannot be opened: No such file'),
            (["only-traces=5"], None, 'parameter "only-traces": expected a string, got an integer'),
            ([], ["* 0 0 x", "abc 0 0 x"], 'line 2: expected a trace id of 16 or 32 hexadecimal digits, not all 0, '
                                           'or *, got "abc"')):
        run = Run(folder, *parameters, lines=lines, status=1)
        expect(words in run.said, run.said)
        expect(not os.path.exists(run.output), "something was sent")


@scenario
def spool(folder):
    """The spool takes what the collector does not, and it is found all the same."""
    record(folder + "/trace")
    run = Run(folder, f'spool="{folder}/spool"', "require-collector=no",
              lines=["* 0 0 x"], endpoint="http://127.0.0.1:1")
    run.check_sums(spans_spooled=4 * REQUESTS)
    same("spans found", sum(trace["spans"] for trace in run.found()["traces"]), 4 * REQUESTS)


if __name__ == "__main__":
    sys.exit(run_scenarios(1))
