# Drives the exporter, and checks its account: the accepted spans are those that the collector has taken, and the
# outcomes add up.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import subprocess
import tempfile
import threading
import time

from faulty_collector import *  # noqa: F403 (the scenarios use its faults)
from scenarios import PATIENCE, expect
from common import free_port

DRIVER = os.environ["BUILD"] + "/tests/plugin/exporter-driver"
OUTCOMES = ("accepted", "refused", "invalid", "too_large", "undelivered", "dropped", "no_memory", "spooled")
FORMAT = []  # arguments of the driver; test-otlp-http.py sets other ones
# These steps may wait for spans of a batch that is not full, and that only the batch time-out sends.
WAITING = "wait:", "add-until:", "requests:", "settled:", "reported"


class Run:
    """The output of a run of the driver."""

    def __init__(self, target, *steps, when=(), env=None, **options):
        """target: a collector or a URL. when: (words, function): the function is called when the driver first prints the
        words. Without steps of WAITING, the batch time-out is long, so that a busy machine does not divide a batch."""
        options = {**dict.fromkeys(("request_timeout_ms", "flush_timeout_ms"), 20000 * PATIENCE), **options}
        if not any(step.startswith(WAITING) for step in steps):
            options.setdefault("batch_timeout_ms", 60000)
        args = [DRIVER, "endpoint=" + (target if isinstance(target, str) else target.url), *FORMAT,
                *("%s=%s" % (key.replace("_", "-"), value) for key, value in options.items())]
        clean = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        begin = time.monotonic()
        self.messages = ""
        with (tempfile.TemporaryFile("w+", encoding="utf-8") as output,
              subprocess.Popen([*args, *steps], env={**clean, **(env or {})}, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.PIPE, text=True) as driver):
            timer = threading.Timer(60 * PATIENCE, driver.kill)
            timer.start()
            for line in driver.stderr:
                self.messages += line
                if when and when[0] in line:
                    when[1]()
                    when = ()
            _, waited, self.usage = os.wait4(driver.pid, 0)
            self.status = driver.returncode = os.waitstatus_to_exitcode(waited)
            timer.cancel()
            self.seconds = time.monotonic() - begin
            output.seek(0)
            said = output.read().splitlines()
        self.settled = [int(line.split()[1]) for line in said[:-1]]  # see the driver's step of this name
        self.counts = json.loads(said[-1]) if self.status == 0 else {}

    def __getattr__(self, name):
        return self.counts[name]

    def explain(self):
        return "status %d, %s\n%s" % (self.status, self.counts, self.messages)


def drive(*target_and_steps, **options):
    """Runs the driver, whose account must be exact."""
    run = Run(*target_and_steps, **options)
    if "request_timeout_ms" not in options and run.status == 1 and (
            "onnection time" in run.messages or "Resolving time" in run.messages):
        return drive(*target_and_steps, **options)  # a handshake has 5 s, and a busy machine took longer: again
    if run.status == 0:
        total = sum(run.counts[outcome] for outcome in OUTCOMES) + run.waiting
        expect(total == run.spans, "the sum is wrong: " + run.explain())
    return run


def counts(run, **expected):
    """Checks these outcomes, and that all other ones are 0."""
    expect(run.status == 0, run.explain())
    for outcome in OUTCOMES:
        expect(run.counts[outcome] == expected.get(outcome, 0), "%s: expected %d: %s" %
               (outcome, expected.get(outcome, 0), run.explain()))


def settles(*target_and_steps, says=(), says_once=None, within_s=None, **options):
    """Drives, and checks the counters that are among the options, the messages and the time."""
    expected = {name: options.pop(name) for name in OUTCOMES if name in options}
    has_failed = options.pop("failed", None)
    run = drive(*target_and_steps, **options)
    counts(run, **expected)
    expect(has_failed in (None, run.failed), run.explain())
    for words in says:
        expect(words in run.messages, "no message has \"%s\": %s" % (words, run.explain()))
    expect(says_once is None or run.messages.count(says_once) == 1, "said not once: " + run.explain())
    expect(within_s is None or run.seconds < within_s * PATIENCE, "took %.1f s" % run.seconds)
    return run


def away():
    """Returns a URL at which nobody listens."""
    return "http://127.0.0.1:%d" % free_port()


def case(collector_options, steps, requests_seen=None, **options):
    """Runs steps, separated by blanks, with a collector with these options. None: there is no collector."""
    if collector_options is None:
        settles(away(), *steps.split(), require_collector="no", **options)
        return
    with Collector(**collector_options) as collector:
        run = settles(collector, *steps.split(), **options)
        expect(len(set(collector.accepted)) >= run.accepted, "the collector lacks spans: " + run.explain())
        expect(requests_seen in (None, len(collector.requests)), "%d requests" % len(collector.requests))


def delivers(collector, spans=100, once=True, **options):
    """Checks that all spans arrive. once: no span arrives twice."""
    run = drive(collector, "add:%d" % spans, "flush", "close", **options)
    counts(run, accepted=spans)
    expect(set(collector.accepted) == set(range(1, spans + 1)), "some are missing")
    if once:
        expect(len(collector.accepted) == spans, "some arrived twice")
    return run


def refuses_to_start(target, *said, within_s=None, **options):
    run = drive(target, "add:1", "flush", "close", **options)
    expect(run.status == 1, "it has started: " + run.explain())
    for words in said:
        expect(words in run.messages, "no message has \"%s\": %s" % (words, run.explain()))
    expect(within_s is None or run.seconds < within_s * PATIENCE, "took %.1f s" % run.seconds)
    return run


def compresses(coding, times):
    with Collector() as collector:
        delivers(collector, spans=1000, compression=coding)
        request = collector.requests[0]
        expect(request.headers["content-encoding"] == coding, request.headers)
        expect(request.wire_bytes < request.bytes / times, request.wire_bytes)


def is_not_understood(coding, good, **options):
    """The collector refuses a compressed body. From then on the exporter sends bodies without compression."""
    def respond(connection):
        request = read(connection)
        if "content-encoding" in request.headers:
            return connection.answer(415)
        return connection.answer(good, request=request)

    with Collector(default=respond, **options) as collector:
        delivers(collector, spans=100, batch_spans=50, compression=coding)
        expect(len(collector.requests) == 3, len(collector.requests))


def bisects(bad, spans=100, most_requests=None, script=(), says_once=None, **options):
    with Collector(script, default=judge(has_bad_span)) as collector:
        run = drive(collector, "add:%d" % spans, "flush", "close",
                    bad=",".join(str(number) for number in bad), **options)
        counts(run, accepted=spans - len(bad), invalid=len(bad))
        expected = set(range(1, spans + 1)) - {number + 1 for number in bad}
        expect(sorted(collector.accepted) == sorted(expected), "not the right spans")
        if most_requests:
            expect(len(collector.requests) <= most_requests, "%d requests" % len(collector.requests))
        expect(says_once is None or run.messages.count(says_once) == 1, "said not once: " + run.messages)
        return run


class FailsAtFirst:
    """The first requests fail, and so do probes after the first request; the later ones succeed."""

    def __init__(self, code, times):
        self.code = code
        self.left = times
        self.lock = threading.Lock()
        self.collector_options = {"default": self.send, "probe": self.probe}

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


class Fifo:
    """A FIFO, and the bytes that its reader has got."""

    def __init__(self, reads=None, waits_for=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/fifo"
        os.mkfifo(self.path)
        self.url = "file:" + self.path
        self.reads = reads  # the reader closes the FIFO after so many bytes; None: it reads all
        self.waits_for = waits_for  # the reader waits for this event first
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
        self.thread.join(20 * PATIENCE)
        self.folder.cleanup()
