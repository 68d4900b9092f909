"""Makes traces of a storage stack that never ran: a gateway, a mapper, three stores that replicate, a journal.

SPDX-License-Identifier: BSD-2-Clause
"""
import random

BASE = 1700000000000000  # us
ADDRESSES = {"client": "10.0.0.9", "gateway": "10.0.0.1", "mapper": "10.0.0.2", "osd.0": "10.0.1.1",
             "osd.1": "10.0.1.2", "osd.2": "10.0.1.3"}


class Trace:
    """Spans of one request, in us from its start on."""

    def __init__(self, number, start, chance):
        self.number, self.start, self.chance, self.spans = number, start, chance, []

    def span(self, parent, service, name, start, duration, kind=None, remote=None, error=None, **tags):
        span = {"traceId": f"{self.number + 0x1000:032x}", "id": f"{self.number << 20 | len(self.spans) + 1:016x}",
                "name": name, "timestamp": self.start + start, "duration": max(duration, 1),
                "localEndpoint": {"serviceName": service, "ipv4": ADDRESSES.get(service, "10.0.9.9"), "port": 6800}}
        if parent:
            span["parentId"] = parent["id"]
        if kind:
            span["kind"] = kind
        if remote:
            span["remoteEndpoint"] = {"serviceName": remote, "ipv4": "10.0.7.7"}
        if error:
            tags["error"] = error
        if tags:
            span["tags"] = {key: str(value) for key, value in tags.items()}
        self.spans.append(span)
        return span

    def call(self, parent, service, other, name, start, duration, wire=40, error=None, **tags):
        """Adds a client's span and the server's below it; returns the latter and its begin."""
        client = self.span(parent, service, name, start, duration, "CLIENT", error=error)
        wire = min(wire, duration // 4)
        server = self.span(client, other, name, start + wire, duration - 2 * wire, "SERVER", error=error, **tags)
        server["annotations"] = [{"timestamp": server["timestamp"] + 5, "value": "queued"},
                                 {"timestamp": server["timestamp"] + 5 + (duration // 8), "value": "dequeued"}]
        return server, start + wire


def write(trace):
    chance = trace.chance
    flush = int(chance.lognormvariate(6.6, 0.5))
    slow = chance.random() < 0.02
    failed = "No space left on device" if chance.random() < 0.01 else None
    replica = [int(flush * chance.uniform(0.8, 1.3)) + (25000 if slow and i == 1 else 0) for i in range(2)]
    store = max(flush, *replica) + 420
    root = trace.span(None, "client", "write", 0, store + 900, **{"offset": trace.number * 4096, "length": 4096})
    gateway, at = trace.call(root, "client", "gateway", "write", 30, store + 820, object=f"rbd.{trace.number}")
    trace.call(gateway, "gateway", "mapper", "lookup", at + 60, 150 + chance.randrange(80))
    osd, at = trace.call(gateway, "gateway", "osd.0", "write", at + 330, store + 160, error=failed, pool="rbd")
    trace.span(osd, "osd.0", "journal", at + 90, flush)
    for i in range(2):
        peer, begin = trace.call(osd, "osd.0", f"osd.{i + 1}", "replicate", at + 70 + 10 * i, replica[i] + 160)
        trace.span(peer, f"osd.{i + 1}", "journal", begin + 30, replica[i] - 10)
    trace.span(gateway, "gateway", "audit", at + store + 20, 12, "CLIENT", remote="audit-log")


def read(trace):
    took = int(trace.chance.lognormvariate(5.6, 0.4))
    store = f"osd.{trace.chance.randrange(3)}"
    root = trace.span(None, "client", "read", 0, took + 700)
    gateway, at = trace.call(root, "client", "gateway", "read", 20, took + 650)
    trace.call(gateway, "gateway", "mapper", "lookup", at + 50, 140 + trace.chance.randrange(90))
    osd, at = trace.call(gateway, "gateway", store, "read", at + 310, took + 120)
    trace.span(osd, store, "disk", at + 30, took - 20)


def stack(count, seed=1):
    """Returns a list of traces, in the form of Zipkin's API."""
    chance = random.Random(seed)
    traces = []
    for number in range(1, count + 1):
        trace = Trace(number, BASE + number * 10500 + chance.randrange(3000), chance)
        (write if chance.random() < 0.4 else read)(trace)
        traces.append(trace.spans)
    return traces


if __name__ == "__main__":
    import json
    import sys
    json.dump(stack(int(sys.argv[1])), sys.stdout)


def document():
    """Returns statistics as `blkin work --root` has them."""
    def histogram(count):  # of 1 ms, which is in bucket 2551 of scale 7
        return {"count": count, "zeros": 0, "sum": 1e6 * count, "min": 1000000, "max": 1000000,
                "buckets": [2551, count] if count else []}
    return {"blkin": "statistics", "version": "1.0.0", "from": "2026-11-21T11:00:00.000Z", "scale": 7,
            "to": "2026-11-21T11:00:10.000Z", "seconds": 10.0, "spans": 300, "errors": 3,
            "rows": [{"service": "gate", "name": "w", "spans": 100, "errors": 0, "duration": histogram(100),
                      "self": histogram(100)},
                     {"service": "store", "name": None, "spans": 200, "errors": 3, "duration": histogram(200),
                      "self": histogram(0)}],
            "edges": [{"client": "gate", "server": "store", "calls": 200, "errors": 3, "duration": histogram(200)}],
            "workers": [], "forgotten": {}, "messages": 1, "refused": 0, "gaps": 0}
