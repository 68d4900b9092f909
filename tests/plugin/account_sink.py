"""Runs babeltrace2 with our sink, and reads the sink's account. account_scenarios.py has the arguments.

SPDX-License-Identifier: BSD-2-Clause
"""
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from faulty_collector import Collector, read
from scenarios import PATIENCE, expect, wait_until

TRACE, SPANS, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
LIMIT = 30 * PATIENCE  # s, the longest wait of the test
CLIENT_TIME = 3  # s that the server waits for a client

EVENT_PARTS = ("in_spans", "foreign", "unreadable", "invalid", "no_room", "duplicate", "late",
               "of_processes")
SPAN_PARTS = ("accepted", "refused", "invalid", "too_large", "undelivered", "dropped", "no_memory",
              "spooled", "waiting")
SPOOL_PARTS = ("delivered", "refused", "invalid", "too_large", "undelivered", "dropped", "expired",
               "corrupt", "waiting")
EVENTS = []  # one element, once it is known: the number of events in the trace
NUMBERS = itertools.count()  # of the sinks


def check_sums(counters):
    """Checks all sums exactly. Returns the counters."""
    expect(counters["events"] == sum(counters["events_" + part] for part in EVENT_PARTS),
           "events do not add up: %s" % counters)
    expect(counters["spans_finished"] == sum(counters["spans_" + part] for part in SPAN_PARTS),
           "spans do not add up: %s" % counters)
    expect(counters["spool_spans"] == sum(counters["spool_" + part] for part in SPOOL_PARTS) ==
           counters["spool_found"] + counters["spans_spooled"], "the spool does not add up: %s" % counters)
    return counters


# ---- babeltrace2 with our sink --------------------------------------------------------------------------


class Sink:
    """A run of babeltrace2 that converts the trace. It ends with the with statement."""

    def __init__(self, endpoint, sigint=signal.SIG_DFL, **params):
        params = {"endpoint": endpoint, **params}
        text = ",".join("%s=%s" % (key.replace("_", "-"), json.dumps(value, ensure_ascii=False))
                        for key, value in params.items())
        self.log = os.path.join(FOLDER, "scenario-sink-%d.log" % next(NUMBERS))
        self.stats = params.get("stats_file")
        env = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        before = signal.signal(signal.SIGINT, sigint)  # the child inherits ignored signals
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["babeltrace2", "--plugin-path=" + os.environ["BUILD"] + "/plugins", TRACE,
                 "-c", "sink.blkin.zipkin", "--log-level=INFO", "-p", text],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        signal.signal(signal.SIGINT, before)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def end(self, status=0):
        """Waits for the end; returns all messages."""
        expect(self.process.wait(LIMIT) == status,
               "status %s, expected %d: %s" % (self.process.returncode, status, self.said()))
        expect("does not add up" not in self.said(), self.said())
        return self.said()

    def port(self):
        pattern = r"metrics for Prometheus: http://127\.0\.0\.1:(\d+)/metrics\n"
        return int(wait_until(lambda: re.search(pattern, self.said()), "a port")[1])

    def load_stats(self):
        """Reads the statistics file, which is whole at any time once the sink has made it."""
        wait_until(lambda: os.path.exists(self.stats), "the statistics file")
        with open(self.stats, encoding="utf-8") as file:
            stats = json.load(file)
        expect(stats["pid"] == self.process.pid and stats["sink"] == "sink.blkin.zipkin", stats)
        expect(re.fullmatch(r"\d+\.\d+\.\d+.*", stats["version"]), stats)
        for key in ("started", "written", "events_as_of"):
            expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stats[key]), stats)
        expect(stats["started"] <= stats["events_as_of"] <= stats["written"], stats)
        check_sums(stats["counters"])
        return stats


class DelayedCollector(Collector):
    """Answers no request until `released` is set: spans wait."""

    def __init__(self):
        self.released = threading.Event()
        super().__init__(default=self.fault)

    def fault(self, connection):
        request = read(connection)
        self.released.wait(LIMIT)
        return connection.answer(202, request=request)

    def __exit__(self, *args):
        self.released.set()
        return super().__exit__(*args)


class DelayedRun:
    """A run whose collector is delayed, with the page of the run's account."""

    def __init__(self, **params):
        self.collector = DelayedCollector()
        self.sink = Sink(self.collector.url + "/api/v2/spans?key=s3cret", prometheus_listen="0",
                         request_timeout_ms=1000 * LIMIT, **params)

    def __enter__(self):
        try:
            self.port = self.sink.port()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.sink.__exit__()
        self.collector.__exit__()

    def finish(self):
        self.collector.released.set()
        said = self.sink.end()
        expect(len(self.collector.accepted) == SPANS, "%d spans" % len(self.collector.accepted))
        return said


# ---- the page -------------------------------------------------------------------------------------------


def ask(port, request, limit=LIMIT):
    """Sends the bytes of a request. Returns the whole answer. Asks again if this took longer than CLIENT_TIME."""
    answer, begin = b"", time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limit) as sock:
            sock.sendall(request)
            while data := sock.recv(65536):
                answer += data
    except (ConnectionResetError, BrokenPipeError):
        answer = b""
    return answer or (ask(port, request, limit) if time.monotonic() - begin > CLIENT_TIME - 0.1 else b"")


def split_answer(answer):
    """Returns status, headers and body of an answer; ConnectionError if it is not complete."""
    if b"\r\n\r\n" not in answer:
        raise ConnectionError("cut: %r" % answer)
    head, body = answer.split(b"\r\n\r\n", 1)
    lines = head.decode("ascii").split("\r\n")
    expect(re.fullmatch(r"HTTP/1\.1 \d{3} [A-Za-z ]+", lines[0]), lines[0])
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    expect(headers["connection"] == "close", headers)
    status = int(lines[0].split()[1])
    if len(body) < int(headers["content-length"]) and body:
        raise ConnectionError("cut: %r" % answer)
    return status, headers, body


def parse_page(text):
    """Reads Prometheus' text format, as strictly as its description allows: {name: (type, value)}."""
    expect(text.endswith("\n") and "\r" not in text, repr(text[-20:]))
    metrics, lines = {}, text[:-1].split("\n")
    expect(len(lines) % 3 == 0, "not HELP, TYPE, value each")
    for i in range(0, len(lines), 3):
        help_line = re.fullmatch(r"# HELP ([a-z][a-z_]*) ([^\\]+)", lines[i])
        type_line = re.fullmatch(r"# TYPE ([a-z][a-z_]*) (counter|gauge)", lines[i + 1])
        value_line = re.fullmatch(r"([a-z][a-z_]*)(\{.*\})? (\d+(?:\.\d+)?)", lines[i + 2])
        expect(help_line and type_line and value_line, lines[i:i + 3])
        name = help_line[1]
        expect(type_line[1] == name and value_line[1] == name, lines[i:i + 3])
        expect(name not in metrics and name.startswith("blkin_"), name)
        expect((type_line[2] == "counter") == name.endswith("_total"), lines[i + 1])
        if value_line[2]:
            labels = r'\{([a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,|(?=\})))+\}'
            expect(re.fullmatch(labels, value_line[2]), value_line[2])
        metrics[name] = (type_line[2], float(value_line[3]))
    return metrics


def scrape(port):
    """Reads and checks the page: {name of the counter: value}."""
    status, headers, body = split_answer(ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))
    expect(status == 200, status)
    expect(headers["content-type"].startswith("text/plain; version=0.0.4"), headers)
    expect(int(headers["content-length"]) == len(body), headers)
    expect(b"s3cret" not in body, body)
    metrics = parse_page(body.decode("utf-8"))
    expect(metrics["blkin_sink_info"] == ("gauge", 1.0), metrics["blkin_sink_info"])
    now = time.time()
    expect(now - 1000 < metrics["blkin_start_time_seconds"][1] <= now, metrics)
    counters = {re.sub("^blkin_|_total$", "", name): int(value)
                for name, (_, value) in metrics.items() if not name.endswith("_seconds")}
    counters["rising"] = {name: value for name, (kind, value) in metrics.items()
                          if kind == "counter"}
    return check_sums(counters)


def check_rising(before, now):
    for name, value in before["rising"].items():
        expect(now["rising"][name] >= value, "%s falls" % name)
