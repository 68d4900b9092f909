#!/usr/bin/env python3
"""Spans in OTLP, as Google's protobuf library reads them: fields, limits, hostile texts. fuzz/fuzz-otlp.c checks
requests however a batch is divided.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../otel")
import otlp  # noqa: E402
from scenarios import SCENARIOS, expect, run_scenarios  # noqa: E402

PROGRAM = os.environ["BUILD"] + "/tests/plugin/otlp-encoder"
T0 = 1735732800123456789
MS = 1000000
LOCAL, CLIENT, SERVER, PRODUCER, CONSUMER = range(5)


def digits(text):
    text = text.encode() if isinstance(text, str) else text
    return text.hex() or "-"


class Encoder:
    """Collects lines for the program. run() runs the program, and returns its output."""

    def __init__(self):
        self.lines = []
        self.endpoints = 0

    def endpoint(self, service="osd.7", ipv4="10.0.0.1", ipv6="", port=6800):
        self.lines.append("endpoint %s %s %s %d" % (digits(service), digits(ipv4), digits(ipv6), port))
        self.endpoints += 1
        return self.endpoints - 1

    def span(self, *entries, high=0, trace=0xabc, ident=0xdef, parent=0, kind=LOCAL, flags=0, start=T0,
             end=T0 + MS, endpoint=0, remote=-1, name="write"):
        self.lines.append("span %d %d %d %d %d %d %d %d %d %d %s" % (
            high, trace, ident, parent, kind, flags, start, end, endpoint, remote, digits(name)))
        for entry in entries:
            self.lines.append(" ".join([entry[0]] + [
                digits(part) if isinstance(part, (str, bytes)) else str(part) for part in entry[1:]]))
        self.lines.append("add")

    def run(self):
        done = subprocess.run([PROGRAM], input="\n".join(self.lines) + "\n", capture_output=True, text=True,
                              check=False, timeout=60)
        expect(done.returncode == 0, done.stderr)
        return done.stdout.split("\n")[:-1]


def one(*entries, **fields):
    """Encodes a span alone; returns resource, scope, span and whether it was cut."""
    encoder = Encoder()
    encoder.endpoint(**fields.pop("at", {}))
    if "peer" in fields:
        fields["remote"] = encoder.endpoint(**fields.pop("peer"))
    encoder.span(*entries, **fields)
    cut, body = encoder.run()
    (resource, scope, span), = otlp.spans(bytes.fromhex(body))
    return resource, scope, span, cut == "cut"


def many(*of_each, **fields):
    """Encodes spans of these entries in one body; returns the spans."""
    encoder = Encoder()
    encoder.endpoint()
    for entries in of_each:
        encoder.span(*entries, **fields)
    return [span for _, _, span in otlp.spans(bytes.fromhex(encoder.run()[-1]))]


OWN_ADDRESS = {"network.local.address": "10.0.0.1", "network.local.port": 6800}


def tags(span):
    """Returns the attributes without the local address that each span of one() has."""
    attributes = otlp.attributes(span.attributes)
    expect({key: attributes.pop(key) for key in OWN_ADDRESS} == OWN_ADDRESS, span)
    return attributes


def annotation(time, value, severity=""):
    return "annotation", time, value, severity


def text(key, value):
    return "text", key, value


def integer(key, value):
    return "integer", key, value


INTEGERS = [0, 1, -1, 127, 128, 2**63 - 1, -2**63]
LONG_KEY = "k" * 256 + "...[256 of 300 bytes]"


def status_of(span):
    return span.status.code, span.status.message


def times_of(span):
    return span.start_time_unix_nano, span.end_time_unix_nano


# ---- fields ---------------------------------------------------------------------------------------------


def test_typical():
    resource, scope, span, cut = one(
        annotation(T0, "cs"), annotation(T0 + MS // 2, "queued"), annotation(T0 + MS, "cr"),
        text("object", "rbd.1"), integer("length", -4096), kind=CLIENT, parent=1 << 63)
    expect(resource == {"service.name": "osd.7", "host.ip": ["10.0.0.1"]}, resource)
    expect((scope.name, scope.version != "") == ("blkin", True), scope)
    expect(span.trace_id.hex() == "0" * 29 + "abc" and span.span_id.hex() == "0" * 13 + "def", span)
    expect(span.parent_span_id.hex() == "8" + "0" * 15 and span.name == "write" and span.kind == 3, span)
    expect((span.start_time_unix_nano, span.end_time_unix_nano) == (T0, T0 + MS), span)
    expect(tags(span) == {"object": "rbd.1", "length": -4096}, span)
    # annotations that repeat kind and times are left out, as for Zipkin
    expect([(event.time_unix_nano, event.name) for event in span.events] == [(T0 + MS // 2, "queued")], span)
    expect(span.flags == 0x101 and not span.HasField("status") and not cut, span)


PEER = {"service": "mon", "ipv4": "", "ipv6": "2001:db8::2", "port": 6789}
# a function of the encoded span, its wanted result, and the span to encode: entries and fields
FIELDS = [
    *[(lambda span: span.kind, number, [], {"kind": kind})
      for kind, number in ((LOCAL, 1), (SERVER, 2), (CLIENT, 3), (PRODUCER, 4), (CONSUMER, 5))],
    # a server's parent is in another process
    *[(lambda span: span.flags, wanted, [], {"kind": kind, "parent": parent, "flags": shared})
      for kind, parent, shared, wanted in ((SERVER, 5, 0, 0x301), (CONSUMER, 5, 0, 0x301), (SERVER, 0, 0, 0x101),
                                           (CLIENT, 5, 0, 0x101), (LOCAL, 5, 0, 0x101), (SERVER, 0, 2, 0x301))],
    (lambda span: span.parent_span_id, b"", [], {"ident": 7, "parent": 7}),
    (lambda span: span.trace_id.hex(), "fedcba98765432100000000000000001", [], {"high": 0xfedcba9876543210, "trace": 1}),
    (tags, {"blkin.debug": True, "blkin.shared": True, "peer.service": "mon", "network.peer.address": "2001:db8::2",
            "network.peer.port": 6789, "server.address": "2001:db8::2", "server.port": 6789},
     [], {"kind": CLIENT, "flags": 3, "peer": PEER}),
    (tags, {"network.peer.address": "10.0.0.2", "network.peer.port": 5432, "server.address": "db.example"},
     [text("server.address", "db.example")], {"kind": CLIENT, "peer": {"service": "", "ipv4": "10.0.0.2", "port": 5432}}),
    (lambda span: (status_of(span), tags(span)), ((2, "EIO"), {"a": "b"}), [text("error", "EIO"), text("a", "b")], {}),
    (status_of, (2, ""), [text("error", "")], {}),
    (status_of, (2, "-5"), [integer("error", -5)], {}),
    (lambda span: (status_of(span), tags(span)), ((2, "EIO"), {"error": "ENOSPC", "error#2": "x"}),
     [text("error", "EIO"), text("error", "ENOSPC"), text("error", "x")], {}),
    (lambda span: otlp.attributes(span.events[0].attributes), {"severity": "warning"},
     [annotation(T0, "queue full", "warning")], {}),
    (lambda span: [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
     [("0" * 31 + "5", "0" * 15 + "6"), ("8" + "0" * 30 + "7", "0" * 15 + "8")],
     [("link", 0, 5, 6), ("link", 1 << 63, 7, 8), text("a", "b")], {}),
    (tags, {"unnamed": "a", "unnamed#2": 7}, [text("", "a"), integer("", 7)], {}),
    (lambda span: list(tags(span).values()), INTEGERS, [integer("k%d" % i, value) for i, value in enumerate(INTEGERS)], {}),
    # times that OTLP does not have
    (lambda span: (times_of(span), [event.name for event in span.events], span.dropped_events_count, tags(span)),
     ((0, 0), ["first"], 2, {"blkin.left_out": "annotations: 2, tags: 0"}),
     [annotation(0, "never"), annotation(-5, "before"), annotation(1, "first")], {"start": 0, "end": 0}),
    (times_of, (0, 0), [], {"start": -2**63, "end": 2**63 - 1}),
    (times_of, (1, 2**63 - 1), [], {"start": 1, "end": 2**63 - 1}),
    # keys that become equal when invalid bytes are replaced, or when the keys are cut
    (tags, {"a\ufffd": "1", "a\ufffd#2": "2", LONG_KEY: "3", LONG_KEY + "#2": "4", "unnamed": "5", "unnamed#2": "6"},
     [text(b"a\xff", "1"), text(b"a\xfe", "2"), text("k" * 300, "3"), text("k" * 300, "4"), text("", "5"), text("", "6")], {}),
    # a tag with a key that the encoder uses itself gets another key, because receivers read the encoder's attribute
    (lambda span: [tags(span)[key] for key in ("peer.service", "peer.service#2", "blkin.left_out")], ["mon", "fake", "fake"],
     [text("peer.service", "fake"), text("blkin.left_out", "fake")], {"peer": {"service": "mon"}}),
]


def test_fields():
    for read, wanted, entries, fields in FIELDS:
        span = one(*entries, **fields)[2]
        expect(read(span) == wanted, (read(span), wanted, span))


def test_addresses_by_kind():
    """server.address is the peer's address, except for a server's span."""
    own, peer = ("10.0.0.1", 6800), ("10.0.0.2", 40000)
    for kind, server, client in ((LOCAL, None, None), (SERVER, own, peer), (CLIENT, peer, None),
                                 (PRODUCER, peer, None), (CONSUMER, peer, None)):
        attributes = otlp.attributes(one(kind=kind, peer={"service": "", "ipv4": peer[0], "port": peer[1]})[2].attributes)
        for name, address in (("network.local", own), ("network.peer", peer), ("server", server), ("client", client)):
            found = attributes.pop(name + ".address", None), attributes.pop(name + ".port", None)
            expect(found == (address or (None, None)), (kind, name, found))
        expect(not attributes, attributes)


# ---- resources ------------------------------------------------------------------------------------------


def resources(*spans):
    """Returns the resources of spans of these endpoints and entries, in one body."""
    encoder = Encoder()
    for endpoint, entries in spans:
        encoder.span(*entries, endpoint=encoder.endpoint(**endpoint))
    return [otlp.attributes(group.resource.attributes)
            for group in otlp.request(bytes.fromhex(encoder.run()[-1])).resource_spans]


def test_resource_has_no_port():
    """A process has one resource for all of its connections."""
    found = resources(*[({"service": "nginx", "port": 40000 + i}, [text("lttng.host", "web-1")]) for i in range(180)])
    expect(found == [{"service.name": "nginx", "host.name": "web-1", "host.ip": ["10.0.0.1"]}], found)


def test_resource_has_no_loopback():
    for address in ({"ipv4": "127.0.0.1"}, {"ipv4": "127.8.0.1"}, {"ipv4": "", "ipv6": "::1"}, {"ipv4": "0.0.0.0"}):
        found = resources((address, []))
        expect(found == [{"service.name": "osd.7"}], found)


def test_resource_of_tags():
    """Tags become the host and the version of the resource, and are not attributes, too. A second tag is an attribute."""
    host = text("lttng.host", "web-1")
    resource, _, span, _ = one(host, text("service.version", "1.2"), text("lttng.host", "other"))
    expect(resource == {"service.name": "osd.7", "service.version": "1.2", "host.name": "web-1",
                        "host.ip": ["10.0.0.1"]}, resource)
    expect(tags(span) == {"lttng.host": "other"}, span)
    found = resources(({}, [host]), ({}, [text("lttng.host", "web-2")]), ({}, []), ({}, []),
                      ({}, [host, text("service.version", "2")]), ({}, [host, text("service.version", "2")]))
    expect([(each.get("host.name"), each.get("service.version")) for each in found] ==
           [("web-1", None), ("web-2", None), (None, None), ("web-1", "2")], found)


def test_long_resource():
    """The length of the resource takes two bytes."""
    body = resources(*[({"service": "s" * 1100}, [text("lttng.host", "h" * 5000), text("service.version", b"\xff" * 900)])] * 2)
    expect(len(body) == 1 and body[0]["host.name"] == "h" * 1024 + "...[1024 of 5000 bytes]", body)


def test_bare_endpoint():
    resource, _, span, _ = one(at={"service": "", "ipv4": "", "port": 0}, name="")
    expect(resource == {} and span.name == "", resource)


# ---- texts ----------------------------------------------------------------------------------------------


def test_every_length():
    """Lengths of one byte, two and three; characters of several bytes at either end."""
    values = []
    for length in list(range(0, 70)) + [125, 126, 127, 128, 129, 255, 256, 300, 16000, 16383, 16384]:
        plain = "".join(chr(97 + i % 26) for i in range(length))
        values += [plain] + ([plain[:-1] + "\u00e9", "\u20ac" + plain[1:]] if 0 < length < 16000 else [])
    spans = many(*[[text("key", value), annotation(T0, value, "debug")] for value in values])
    for value, span in zip(values, spans, strict=True):
        expect(tags(span) == {"key": value}, value[:50])
        expect(span.events[0].name == value, value[:50])


def test_long_keys():
    keys = ["k" * length for length in (1, 31, 32, 60, 126, 127, 128, 129, 200, 256)]
    span = one(*[text(key, key * 2) for key in keys], *[text(key, "again") for key in keys])[2]
    attributes = tags(span)
    expect(len(attributes) == 2 * len(keys), attributes.keys())
    for key in keys:
        expect(attributes[key] == key * 2 and attributes[key + "#2"] == "again", key)


def test_hostile_texts():
    bad = {b"\xff": "\ufffd", b"a\0b": "a\ufffdb", b"\xc3": "\ufffd", b"\xed\xa0\x80": "\ufffd" * 3,
           b"\xf4\x90\x80\x80": "\ufffd" * 4, b"\xe2\x82": "\ufffd", b"\xc0\xaf": "\ufffd" * 2,
           b"\xf0\x9f\x98\x80": "\U0001f600", b"tab\t\x01\x7f": "tab\t\x01\x7f"}
    for raw, expected in bad.items():
        for pad in (b"", b"x" * 20, b"y" * 120):
            value, wanted = pad + raw + pad, pad.decode() + expected + pad.decode()
            resource, _, span, _ = one(text(value, value), annotation(T0, value), text("error", value),
                                       name=value, at={"service": value})
            expect(resource["service.name"] == wanted and span.name == wanted, (raw, resource))
            expect(tags(span) == {wanted: wanted}, (raw, span))
            expect(span.events[0].name == wanted and span.status.message == wanted, (raw, span))


# ---- limits ---------------------------------------------------------------------------------------------


def test_long_texts_are_cut():
    resource, _, span, cut = one(text("value", "v" * 20000), text("k" * 300, "x"), name="n" * 2000,
                                 at={"service": "s" * 1100})
    attributes = tags(span)
    expect(cut, span)
    expect(attributes["value"] == "v" * 16384 + "...[16384 of 20000 bytes]", attributes["value"][-30:])
    expect(attributes["k" * 256 + "...[256 of 300 bytes]"] == "x", attributes.keys())
    expect(span.name == "n" * 1024 + "...[1024 of 2000 bytes]", span.name[-30:])
    expect(resource["service.name"] == "s" * 1024 + "...[1024 of 1100 bytes]", resource)


def test_cut_not_within_a_character():
    span = one(text("value", "\u20ac" * 6000))[2]
    expect(tags(span)["value"] == "\u20ac" * 5461 + "...[16383 of 18000 bytes]", "cut")


def test_too_many():
    span, cut = one(*[text("k%d" % i, "v") for i in range(600)], *[("link", 0, 1, i + 1) for i in range(30)],
                    *[annotation(T0 + i, "a") for i in range(700)], text("error", "EIO"))[2:]
    attributes = tags(span)
    expect(cut and len(span.events) == 512 and len(attributes) == 513 and len(span.links) == 0, span.status)
    expect(attributes["blkin.left_out"] == "annotations: 188, tags: 118", attributes["blkin.left_out"])
    expect((span.dropped_events_count, span.dropped_attributes_count, span.dropped_links_count) == (188, 88, 30),
           span.status)
    expect(span.status.message == "EIO", "the error was left out")


def test_too_large():
    span, cut = one(*[text("k%d" % i, "v" * 16384) for i in range(60)], text("error", "e" * 16384))[2:]
    left_out = tags(span)["blkin.left_out"]
    expect(cut and 380000 < len(span.SerializeToString()) < 430000, len(span.SerializeToString()))
    expect(left_out.startswith("annotations: 0, tags: 3") and len(span.status.message) == 16384, left_out)


# ---- batches --------------------------------------------------------------------------------------------


def ids(body):
    return [(resource["service.name"], int(span.span_id.hex(), 16)) for resource, _, span in otlp.spans(body)]


def test_groups():
    encoder = Encoder()
    for name in "abc":
        encoder.endpoint(service=name)
    order = [0, 0, 0, 1, 2, 2, 0]
    for number, endpoint in enumerate(order):
        encoder.span(ident=number + 1, endpoint=endpoint)
    body = bytes.fromhex(encoder.run()[-1])
    expect(ids(body) == [("abc"[endpoint], number + 1) for number, endpoint in enumerate(order)], ids(body))
    expect(len(otlp.request(body).resource_spans) == 4, "not grouped")


SCENARIOS.update({name: test for name, test in list(globals().items()) if name.startswith("test_")})
if __name__ == "__main__":
    sys.exit(run_scenarios(1))
