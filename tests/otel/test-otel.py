#!/usr/bin/env python3
# timeout: 150
"""A real OpenTelemetry collector accepts all spans by OTLP and stores all their fields. scripts/fetch-otelcol builds the
collector; the test is skipped without it.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
sys.path[:0] = [SRC + "/tests", SRC + "/tests/otel", SRC + "/tests/plugin"]
import otlp  # noqa: E402
from common import PATIENCE, expect, free_port, otelcol_config, wait_until  # noqa: E402

DRIVER = BUILD + "/tests/plugin/exporter-driver"

_spec = importlib.util.spec_from_file_location("encoder", SRC + "/tests/plugin/test-otlp.py")
encoder = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(encoder)


class Otelcol:
    """A collector, and its stored spans."""

    def __init__(self, program, folder):
        self.port = free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.file = folder + "/stored.json"
        self.taken = 0
        self.log = open(folder + "/otelcol.log", "w+", encoding="utf-8")
        with open(folder + "/otelcol.yaml", "w", encoding="utf-8") as config:
            config.write(otelcol_config(self.port, self.file, "traces"))
        self.process = subprocess.Popen([program, "--config", config.name], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        self.wait_for(self.is_up, "the collector does not start")

    def wait_for(self, condition, what):
        def explain():
            self.log.seek(0)
            return "%s:\n%s" % (what, self.log.read()[-3000:])

        wait_until(condition, explain, 60, ended=lambda: self.process.poll() is not None)

    def is_up(self):
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self):
        self.process.terminate()
        self.process.wait(30 * PATIENCE)
        self.log.close()

    def stored(self):
        """Returns (resource, span) of each span stored since the last take(). Reads only complete lines."""
        if not os.path.exists(self.file):
            return []
        with open(self.file, "rb") as file:
            file.seek(self.taken)
            lines = file.read().split(b"\n")[:-1]
        return [(group["resource"], span) for line in lines for group in json.loads(line)["resourceSpans"]
                for scope in group["scopeSpans"] for span in scope["spans"]]

    def take(self, count):
        """Waits for `count` spans stored since the last call, and returns all since then."""
        self.wait_for(lambda: len(self.stored()) >= count, "%d spans are not all stored" % count)
        found = self.stored()
        self.taken = os.path.getsize(self.file)
        return found


def ids(stored):
    return sorted(int(span["spanId"], 16) for _, span in stored)


def drive(collector, *args):
    done = subprocess.run([DRIVER, "endpoint=" + collector.url, "format=otlp", "request-timeout-ms=90000", *args],
                          capture_output=True, text=True, timeout=100 * PATIENCE, check=False)
    expect(done.returncode == 0, done.stderr)
    return json.loads(done.stdout), done.stderr


def value_of(value):
    kind, content = next(iter(value.items()))
    if kind == "intValue":
        return int(content)
    if kind == "arrayValue":
        return [value_of(element) for element in content["values"]]
    return content


def attributes_of(pairs):
    return {pair["key"]: value_of(pair["value"]) for pair in pairs}


def plain(resource, span):
    """Returns the collector's stored span in the form of readable()."""
    return {
        "resource": attributes_of(resource.get("attributes", [])),
        "trace": span["traceId"], "id": span["spanId"], "parent": span.get("parentSpanId", ""),
        "name": span.get("name", ""), "kind": span.get("kind", 0), "flags": span.get("flags", 0),
        "start": int(span.get("startTimeUnixNano", 0)), "end": int(span.get("endTimeUnixNano", 0)),
        "attributes": attributes_of(span.get("attributes", [])),
        "events": [(int(event["timeUnixNano"]), event.get("name", ""), attributes_of(event.get("attributes", [])))
                   for event in span.get("events", [])],
        "links": [(link["traceId"], link["spanId"]) for link in span.get("links", [])],
        "status": (span.get("status", {}).get("code", 0), span.get("status", {}).get("message", "")),
        "dropped": [span.get("dropped%sCount" % what, 0) for what in ("Attributes", "Events", "Links")],
    }


def readable(resource, span):
    """Returns the span as Google's library reads it."""
    return {
        "resource": resource,
        "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
        "name": span.name, "kind": span.kind, "flags": span.flags,
        "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
        "attributes": otlp.attributes(span.attributes),
        "events": [(event.time_unix_nano, event.name, otlp.attributes(event.attributes)) for event in span.events],
        "links": [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        "status": (span.status.code, span.status.message),
        "dropped": [span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count],
    }


def everything_is_stored(collector):
    for options in (["compression=none"], ["compression=gzip"], ["compression=zstd"]):
        counts, said = drive(collector, *options, "batch-spans=700", "add:20000", "flush", "close")
        expect(counts["accepted"] == 20000 and said == "", (counts, said))
        expect(ids(collector.take(20000)) == list(range(1, 20001)), "not each span once: %s" % options)


def more_than_it_takes_at_once(collector):
    """The collector answers 400 to a body above 20 MiB. The sink halves the batch, and all spans are stored."""
    counts, said = drive(collector, "compression=none", "noise=4000", "batch-spans=100000", "batch-bytes=67108864",
                         "queue-bytes=200000000", "batch-timeout-ms=90000", "add:7000", "flush", "close")
    expect(counts["accepted"] == 7000 and counts["requests"] >= 3, (counts, said))
    expect(ids(collector.take(7000)) == list(range(1, 7001)), "not each span once")


def all_fields(collector):
    """Spans of all kinds, with hostile texts: the collector reads the same as Google's library."""
    lines = encoder.Encoder()
    for name in ("osd.7", "", b"bad\xff name", "s" * 1100):
        lines.endpoint(service=name, ipv4="" if name == "" else "10.0.0.1", ipv6="2001:db8::1" if name == "" else "")
    count = 0
    for kind in range(5):
        for endpoint in range(4):
            count += 1
            lines.span(encoder.annotation(encoder.T0 + 5, "queued", "warning"), encoder.annotation(encoder.T0 + 6, b"\xff\0"),
                       encoder.text("object", "rbd.1"), encoder.text("object", "again"), encoder.text(b"\xfe", b"\xfd"),
                       encoder.integer("length", -4096 * count), encoder.text("long", "v" * 20000),
                       ("link", 1 << 63, 7, 8), *([encoder.text("error", "EIO")] if count % 2 else []),
                       ident=count, parent=count // 2, kind=kind, flags=count % 4, endpoint=endpoint,
                       remote=(endpoint + 1) % 4 if count % 3 else -1, high=count << 40, start=encoder.T0 + count)
    body = bytes.fromhex(lines.run()[-1])
    urllib.request.urlopen(urllib.request.Request(collector.url + "/v1/traces", data=body, headers={
        "Content-Type": "application/x-protobuf"}), timeout=100).close()
    stored = [plain(*each) for each in collector.take(count)]
    wanted = [readable(resource, span) for resource, _, span in otlp.spans(body)]
    expect(len(stored) == count, len(stored))
    for have, want in zip(stored, wanted):
        expect(have == want, "stored:\n%s\nsent:\n%s" % (have, want))


def recorded_traces(collector):
    """babeltrace2 sends traces with both component classes. The collector stores the spans that Zipkin's JSON has."""
    folder = os.environ.get("TMPDIR", "/tmp")
    for name in ("packed", "original", "steps", "two-hosts", "any-bytes"):
        for sink, endpoint in (("zipkin", "file:" + folder + "/spans.json"), ("otlp", collector.url)):
            done = subprocess.run(["babeltrace2", "--plugin-path=" + BUILD + "/plugins", "convert",
                                   BUILD + "/tests/plugin/traces/" + name, "--component=sink.blkin." + sink,
                                   '--params=endpoint="%s",request-timeout-ms=90000' % endpoint],
                                  capture_output=True, text=True, timeout=100, check=False)
            expect(done.returncode == 0, done.stderr)
        with open(folder + "/spans.json", encoding="utf-8") as file:
            spans = json.load(file)
        os.remove(folder + "/spans.json")
        compare(name, spans, [plain(*each) for each in collector.take(len(spans))])


def compare(name, spans, stored):
    expect(len(spans) == len(stored) and spans, (name, len(spans), len(stored)))
    found = collections.defaultdict(list)
    for span in stored:
        found[span["id"]].append(span)
    for span in spans:
        same = [other for other in found[span["id"]] if is_same(span, other)]
        expect(same, "%s: %s is not among %s" % (name, span, found[span["id"]]))
        found[span["id"]].remove(same[0])


def is_same(span, other):
    """Compares a span of Zipkin's JSON with one that the collector has stored."""
    kinds = {None: 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
    tags = {key: value for key, value in span.get("tags", {}).items() if not key.startswith("otlp.link.")}
    theirs = {key: str(value) for key, value in other["attributes"].items()
              if not key.startswith(("network.peer.", "network.local.", "server.", "client.", "peer.service")) and
              value is not True}
    theirs.update({name: other["resource"][key] for key, name in
                   (("host.name", "lttng.host"), ("service.version", "service.version")) if key in other["resource"]})
    if other["status"][0] == 2:
        theirs["error"] = other["status"][1]
    endpoint = span["localEndpoint"]
    remote = span.get("remoteEndpoint", {})
    return (span["traceId"].rjust(32, "0") == other["trace"] and span.get("parentId", "") == other["parent"] and
            span.get("name", "") == other["name"] and kinds[span.get("kind")] == other["kind"] and
            span.get("timestamp", 0) == other["start"] // 1000 and
            endpoint.get("serviceName") == other["resource"].get("service.name") and
            (endpoint.get("ipv4") or endpoint.get("ipv6")) == other["attributes"].get("network.local.address") and
            endpoint.get("port") == other["attributes"].get("network.local.port") and
            remote.get("serviceName") == other["attributes"].get("peer.service") and
            remote.get("port") == other["attributes"].get("network.peer.port") and
            span.get("debug", False) == other["attributes"].get("blkin.debug", False) and
            {key.replace("blkin.host", "host"): without_bars(value) for key, value in tags.items()} ==
            {key: without_bars(value) for key, value in theirs.items()} and
            [event["timestamp"] for event in span.get("annotations", [])] ==
            [event[0] // 1000 for event in other["events"]] and
            len(tags) + len(other["links"]) == len(span.get("tags", {})))


def without_bars(value):
    """Replaces '|', as the sink does in texts for Zipkin."""
    return value.replace("|", "/")


def main():
    fetch = subprocess.run([SRC + "/scripts/fetch-otelcol", "--cached"], capture_output=True, text=True, check=False)
    if fetch.returncode:
        print(fetch.stderr.strip())
        return 77
    with tempfile.TemporaryDirectory() as folder:
        collector = Otelcol(fetch.stdout.strip(), folder)
        try:
            for test in (everything_is_stored, more_than_it_takes_at_once, all_fields, recorded_traces):
                begin = time.monotonic()
                test(collector)
                print("ok   %5.2f s  %s" % (time.monotonic() - begin, test.__name__), flush=True)
        finally:
            collector.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
