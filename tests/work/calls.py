"""3,033 made-up spans of services that OpenTelemetry's libraries trace, as an SDK would send them. They have 88
edges: 47 between two traced services, and 41 to peers that are not traced, which only the attribute peer.service
names.

The set is always the same, and its contents follow from its code.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections

SERVICES = [f"service-{number}" for number in range(24)]
CALLS = [(SERVICES[i], SERVICES[(i + 1 + k) % 24]) for k in range(2) for i in range(24)][:47]
PEERS = [(SERVICES[i], f"{kind}-{i % 7}") for kind in ("postgresql", "redis") for i in range(24)][:41]
TRACES_OF_CALLS, TRACES_OF_PEERS = 399, 479  # of 4 and of 3 spans
SPANS = 3033
INTERNAL, SERVER, CLIENT = 1, 2, 3
BEGIN_NS = 1790000000 * 10 ** 9


def attributes(pairs):
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [{"key": key, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
            for key, value in pairs.items()]


class Set:
    def __init__(self):
        self.by_service = collections.defaultdict(list)
        self.edges = collections.defaultdict(lambda: [0, 0])  # (client, server) -> [calls, errors]
        self.count = 0
        for number in range(TRACES_OF_CALLS):
            self.add_call(number)
        for number in range(TRACES_OF_PEERS):
            self.add_peer(TRACES_OF_CALLS + number, number)
        assert self.count == SPANS and len(self.edges) == 88

    def span(self, trace, service, kind, name, parent="", error=False, **tags):
        self.count += 1
        start = BEGIN_NS + self.count * 1000
        span = {"traceId": f"{trace + 1:032x}", "spanId": f"{self.count:016x}", "parentSpanId": parent, "name": name, "kind": kind,
                "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 900 + self.count % 100),
                "attributes": attributes({"thread.id": trace % 9, **{key.replace("__", "."): value for key, value in tags.items()},
                                          "sampled.ratio": 0.5, "is.cached": trace % 2 == 0}),
                "status": {"code": 2, "message": "failed"} if error else {}}
        self.by_service[service].append(span)
        return span["spanId"]

    def add_edge(self, edge, error):
        self.edges[edge][0] += 1
        self.edges[edge][1] += error

    def add_call(self, number):
        client, server = CALLS[number % len(CALLS)]
        error = number % 10 == 0
        root = self.span(number, client, SERVER, "GET /")
        call = self.span(number, client, CLIENT, "call", root, peer__service=server, server__address=f"{server}.example")
        there = self.span(number, server, SERVER, "serve", call, error, http__response__status_code=500 if error else 200)
        self.span(number, server, INTERNAL, "work", there)
        self.add_edge((client, server), error)

    def add_peer(self, trace, number):
        client, peer = PEERS[number % len(PEERS)]
        error = number % 7 == 0
        root = self.span(trace, client, SERVER, "GET /")
        inside = self.span(trace, client, INTERNAL, "load", root)
        self.span(trace, client, CLIENT, "query", inside, error, db__system__name="db", peer__service=peer, server__port=5432)
        self.add_edge((client, peer), error)

    def requests(self, size=50):
        """Yields ExportTraceServiceRequests as JSON: each of one service, as its exporter would write it."""
        for service, spans in sorted(self.by_service.items()):
            resource = {"attributes": attributes({"service.name": service, "host.name": "web-1", "telemetry.sdk.language": "java"})}
            for begin in range(0, len(spans), size):
                yield {"resourceSpans": [{"resource": resource, "scopeSpans": [
                    {"scope": {"name": "io.opentelemetry", "version": "2"}, "spans": spans[begin:begin + size]}]}]}
