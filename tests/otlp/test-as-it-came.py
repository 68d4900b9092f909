#!/usr/bin/env python3
"""A foreign span is sent unchanged to an OTLP back end, except for the added tag blkin.kept. It is sent to Zipkin as
OpenTelemetry maps it. A span that a receiver might refuse is converted to the agent's own form for both back ends, and
harms no other span.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import random
import sys
import time
import unittest

sys.path[:0] = [os.environ["SRC"] + "/tests/otlp", os.environ["SRC"] + "/tests/plugin"]
from faulty_collector import Collector  # noqa: E402
from parts import Agent, attribute, otlp, post, request, span, wait_until  # noqa: E402

RULES = "*>50ms, error, max=100000/s"


def collected(collector):
    """Returns (resource, scope, span), as protobuf messages, of each span that has arrived, except spans named
    incomplete."""
    return [(group.resource, scope.scope, one) for got in collector.requests
            for group in otlp.CLASSES["ExportTraceServiceRequest"].FromString(got.body).resource_spans
            for scope in group.scope_spans for one in scope.spans if one.name != "incomplete"]


def without_kept_tag(one):
    """Returns the span without its last tag, which must be the agent's own. If not, returns that tag."""
    tag = one.attributes.pop()
    return one if tag.key == "blkin.kept" else tag


def rich_span(trace, number):
    """Makes a span with all fields, and with values of all kinds."""
    one = span(trace, number, parent=number + 1, name="wr\u00efte", ms=51, text="\u20ac", truth=False, double=-0.5,
               amount=-3, **{"peer.service": "disk", "blkin.debug": "yes", "otel.status_code": "OK"})
    one.attributes.append(attribute("error", False))
    one.attributes.add(key="list").value.array_value.values.extend(
        [attribute("", 1).value, attribute("", "two").value, attribute("", 3.0).value])
    one.attributes.add(key="bytes").value.bytes_value = b"\x00\xff"
    one.attributes.add(key="empty")
    one.attributes.add(key="map").value.kvlist_value.values.append(attribute("a", 1))
    one.events.add(time_unix_nano=time.time_ns(), name="event", attributes=[attribute("a", True)])
    one.links.add(trace_id=bytes(range(16)), span_id=bytes(range(8)), trace_state="k=v", flags=1,
                  attributes=[attribute("b", 1.5)])
    one.dropped_attributes_count, one.dropped_events_count, one.dropped_links_count, one.flags = 1, 2, 3, 0x301
    one.trace_state = "vendor=1"
    one.status.message, one.status.code = "disk is full", 2
    return one


class AsItCame(unittest.TestCase):

    def agent(self, collector, path="/v1/traces", **more):
        return Agent(collector.url + path, RULES, BLKIN_FETCH_TRACES="1000", **more)

    def test_all_that_a_span_can_have(self):
        chance = random.Random(4711)
        spans = [rich_span(number, 1000 + number) for number in range(1, 301)]
        with Collector() as collector, self.agent(collector) as agent:
            connection = agent.connect()
            resources = [{"host.name": "h%d" % i, "process.pid": i, "ratio": 0.25, "on": True} for i in range(150)]
            of = {}
            for one in spans:
                resource = chance.choice(resources)
                of[one.span_id] = resource
                self.assertEqual(post(connection, request([one], **resource))[0], 200)
            wait_until(lambda: len(collected(collector)) == len(spans), lambda: len(collected(collector)))
            got = {one.span_id: (resource, scope, one) for resource, scope, one in collected(collector)}
            for one in spans:
                resource, scope, arrived = got[one.span_id]
                self.assertEqual(without_kept_tag(arrived), one)
                sent = otlp.CLASSES["ExportTraceServiceRequest"].FromString(request([one], **of[one.span_id]))
                self.assertEqual(resource, sent.resource_spans[0].resource)
                self.assertEqual(scope.name, "tests")

    def test_schemas(self):
        """URLs of schemas belong to resource and scope: spans with different URLs are in different groups."""
        body, expected = otlp.CLASSES["ExportTraceServiceRequest"](), {}
        for number in range(1, 41):
            group = body.resource_spans.add(schema_url=("", "https://r/1", "https://r/2")[number % 3])
            group.resource.attributes.append(attribute("service.name", "store"))
            scope = group.scope_spans.add(schema_url=("", "https://s/1", "https://s/2")[number % 4 % 3])
            scope.scope.name = "tests"
            scope.spans.append(span(1, number, ms=51))
            expected[number] = (group.schema_url, scope.schema_url)
        with Collector() as collector, self.agent(collector) as agent:
            self.assertEqual(post(agent.connect(), body.SerializeToString())[0], 200)

            def got():
                return {int.from_bytes(one.span_id, "big"): (group.schema_url, scope.schema_url)
                        for request in collector.requests
                        for group in otlp.CLASSES["ExportTraceServiceRequest"].FromString(request.body).resource_spans
                        for scope in group.scope_spans for one in scope.spans if one.name == "write"}

            wait_until(lambda: len(got()) == len(expected), got)
            self.assertEqual(got(), expected)

    def test_unknown_fields(self):
        """Fields of a later version of OTLP, which the agent does not know, are sent, too."""
        later = span(1, 1, ms=51).SerializeToString() + b"\xa2\x1f\x03abc"
        body = otlp.CLASSES["ExportTraceServiceRequest"]()
        body.resource_spans.add().scope_spans.add().spans.add().MergeFromString(later)
        with Collector() as collector, self.agent(collector) as agent:
            self.assertEqual(post(agent.connect(), body.SerializeToString())[0], 200)
            wait_until(lambda: collected(collector), "it arrives")
            self.assertIn(b"\xa2\x1f\x03abc", collected(collector)[0][2].SerializeToString())

    def test_what_a_receiver_might_refuse(self):
        good, names = span(1, 1, ms=51, key="value"), {}

        def with_field(number, field):
            """Writes a field that Google's library refuses to make."""
            names[number.to_bytes(8, "big")] = field
            return span(number, number, ms=51, key="value").SerializeToString() + field

        bad = [with_field(11, b"\x4a\x0c\x0a\x01k\x12\x07\x0a\x05ab\xff\xfec"),  # a value that is not UTF-8
               with_field(12, b"\x4a\x05\x12\x03\x0a\x01v"),                    # an attribute without a key
               with_field(13, b"\x48\x01"),                                     # a number in place of an attribute
               with_field(14, b"\x6a\x04\x0a\x02ab"),                           # a link to a trace id of two bytes
               with_field(15, b"\x1a\x02\xc3\x28"),                             # a trace state that is not UTF-8
               with_field(17, b"\x32\x01a"),                                   # a text in place of the kind
               with_field(16, b"\x5a\x03\x12\x05a")]                            # an event that ends too early
        scope = b"".join(otlp.field(2, one) for one in [good.SerializeToString(), *bad])
        body = otlp.field(1, otlp.field(2, scope))
        with Collector() as collector, self.agent(collector) as agent:
            status, _, message = post(agent.connect(), body)
            self.assertEqual((status, message.ByteSize()), (200, 0))
            # Google's library reads the requests, and refuses texts that are not UTF-8
            wait_until(lambda: len(collected(collector)) == 8, lambda: len(collected(collector)))
            for resource, scope, one in collected(collector):
                self.assertEqual(one.name, "write")
                if one.span_id in names:
                    self.assertEqual(scope.name, "blkin")
                    self.assertTrue(all(pair.key for pair in one.attributes))
                else:
                    self.assertEqual(without_kept_tag(one), good)

    def test_zipkin(self):
        one = rich_span(5 << 64, 6)
        with Collector() as collector, self.agent(collector, "/api/v2/spans") as agent:
            self.assertEqual(post(agent.connect(), request([one], **{"host.name": "h"}))[0], 200)
            wait_until(lambda: collector.requests, "it arrives")
            got = collector.requests[0].spans[0]
            self.assertEqual((got["traceId"], got["id"], got["kind"], got["localEndpoint"]["serviceName"]),
                             ("%032x" % (5 << 64), "%016x" % 6, "SERVER", "store"))
            tags = got["tags"]
            self.assertEqual((tags["text"], tags["truth"], tags["double"], tags["amount"], tags["list"]),
                             ("\u20ac", "false", "-0.5", "-3", '[1,"two",3]'))
            self.assertEqual((tags["host.name"], tags["otel.scope.name"], tags["error"]),
                             ("h", "tests", "disk is full"))
            self.assertNotIn("", tags)
            self.assertEqual(tags["otlp.link.0"], '000102030405060708090a0b0c0d0e0f|0001020304050607|k=v|{"b":1.5}|0')

    def as_zipkin(self, cases):
        """Sends spans (kind, attributes, status), and returns each as the agent sends it to Zipkin."""
        body = otlp.CLASSES["ExportTraceServiceRequest"]()
        group = body.resource_spans.add()
        group.resource.attributes.extend([attribute("service.name", "shop"), attribute("host.name", "web-1")])
        scope = group.scope_spans.add()
        scope.scope.name, scope.scope.version = "lib", "1.2"
        for number, (kind, attributes, status) in enumerate(cases, 1):
            scope.spans.append(span(number, number, kind=kind, ms=51))
            scope.spans[-1].attributes.extend(attribute(key, value) for key, value in attributes.items())
            scope.spans[-1].status.CopyFrom(otlp.CLASSES["Status"](**status))
            counts = {"dropped_attributes_count": 2, "dropped_events_count": 3, "dropped_links_count": 4}
            scope.spans[-1].MergeFrom(otlp.CLASSES["Span"](**counts))
        with Collector() as collector, self.agent(collector, "/api/v2/spans") as agent:
            self.assertEqual(post(agent.connect(), body.SerializeToString())[0], 200)

            def got():
                return {int(one["id"], 16): one for request in collector.requests for one in request.spans
                        if one["name"] != "incomplete"}

            wait_until(lambda: len(got()) == len(cases), got)
            return [one for _, one in sorted(got().items())]

    def test_zipkin_tags(self):
        """OpenTelemetry's mapping: keys stay unchanged, and the status is two tags. The tag "error" is the status's: an
        attribute of that name gets another name."""
        ok, bare, lost = {"code": 1}, {"code": 2}, {"code": 2, "message": "lost"}
        failed = {"error": "true", "k8s.pod.name": "p"}
        cases = [(({}, {}), {}),
                 (({"error": False, "a": "b"}, ok), {"otel.status_code": "OK", "a": "b"}),
                 ((failed, lost), {**failed, "error": "lost", "otel.status_code": "ERROR"}),
                 (({"error": "own"}, lost), {"error": "lost", "otel.status_code": "ERROR", "error#2": "own"}),
                 (({"error": "own"}, bare), {"error": "own", "otel.status_code": "ERROR"}),
                 (({"error": "own"}, ok), {"otel.status_code": "OK", "error#2": "own"}),
                 ((failed, ok), {"otel.status_code": "OK", "error#2": "true", "k8s.pod.name": "p"}),
                 (({"error": "own"}, {}), {"error": "own"}),
                 (({}, bare), {"error": "", "otel.status_code": "ERROR"})]
        of_all = {"otel.dropped_attributes_count": "2", "otel.dropped_events_count": "3", "otel.dropped_links_count": "4",
                  "otel.scope.name": "lib", "otel.library.name": "lib", "otel.scope.version": "1.2",
                  "otel.library.version": "1.2", "host.name": "web-1"}
        for (sent, tags), one in zip(cases, self.as_zipkin([(1, *sent) for sent, _ in cases]), strict=True):
            del one["tags"]["blkin.kept"]
            self.assertEqual(one["tags"], {**tags, **of_all}, sent)

    def test_zipkin_remote_endpoint(self):
        """Of the attributes about a peer, those of the highest rank count, in any order of the attributes."""
        peers = [("peer.service", "p"), ("server.address", "s"), ("net.peer.name", "n"), ("network.peer.address", "10.0.0.4"),
                 ("server.socket.domain", "d"), ("server.socket.address", "10.0.0.6"), ("net.sock.peer.name", "k"),
                 ("net.sock.peer.addr", "10.0.0.8"), ("peer.hostname", "h"), ("peer.address", "10.0.0.10"), ("db.name", "b")]
        remotes = [("p", "10.0.0.4"), ("s", "10.0.0.4"), ("n", "10.0.0.4"), (None, "10.0.0.4"), ("d", "10.0.0.6"),
                   (None, "10.0.0.6"), ("k", "10.0.0.8"), (None, "10.0.0.8"), ("h", "10.0.0.10"), (None, "10.0.0.10"), ("b", None)]
        server, client = 2, 3
        us = {"server.address": "us", "server.port": 443, "network.peer.address": "10.0.0.4", "network.peer.port": 40000}
        cases = [*(((client, dict(peers[i:])), (*remote, None)) for i, remote in enumerate(remotes)),
                 ((client, {}), (None, None, None)),
                 ((server, us), (None, "10.0.0.4", 40000)),  # the server's own address
                 ((client, us), ("us", "10.0.0.4", 40000)),
                 ((client, {"server.address": "db", "server.port": 5432}), ("db", None, 5432)),
                 ((client, {"network.peer.address": "/run/db"}), ("/run/db", None, None))]
        cases += [((kind, dict(reversed(sent.items()))), remote) for (kind, sent), remote in cases]
        for (sent, remote), one in zip(cases, self.as_zipkin([(*sent, {}) for sent, _ in cases]), strict=True):
            found = one.get("remoteEndpoint", {})
            self.assertEqual((found.get("serviceName"), found.get("ipv4"), found.get("port")), remote, sent)

    def test_values_in_zipkin(self):
        """JSON up to 32 levels deep, shortest numbers, and bytes in OpenTelemetry's form."""
        one, value = span(5 << 64, 7, ms=51), otlp.CLASSES["AnyValue"]

        def array(*values):
            made = value()
            made.array_value.values.extend(values)
            return made

        def mapped(**values):
            made = value()
            made.kvlist_value.SetInParent()
            for key, inner in values.items():
                made.kvlist_value.values.add(key=key, value=inner)
            return made

        def nested(depth):
            made = value(int_value=1)
            for _ in range(depth):
                made = array(made)
            return made

        raw, nan = value(bytes_value=b"\0\xff\x10a"), value(double_value=float("nan"))
        infinite = value(double_value=float("-inf"))
        tags = {
            "price": (value(double_value=19.99), "19.99"), "third": (value(double_value=1 / 3), repr(1 / 3)),
            "whole": (value(double_value=3.0), "3"), "raw": (raw, "AP8QYQ=="), "nan": (nan, "NaN"),
            "infinite": (infinite, "-Infinity"), "empty": (value(), ""),
            "array": (array(value(int_value=1), value(), raw, nan, infinite, value(double_value=0.1)),
                      [1, None, "AP8QYQ==", "NaN", "-Infinity", 0.1]),
            "map": (mapped(none=value(), empty=mapped(), list=array(), text=value(string_value='a\x01b\n"\\')),
                    {"none": None, "empty": {}, "list": [], "text": 'a\x01b\n"\\'}),
            "empty map": (mapped(), {}), "ten": (nested(10), json.loads("[" * 10 + "1" + "]" * 10)),
            "limit": (nested(32), json.loads("[" * 32 + "1" + "]" * 32)),
            "deep": (nested(40), json.loads("[" * 33 + '"..."' + "]" * 33)),
        }
        for key, (sent, _) in tags.items():
            one.attributes.add(key=key).value.CopyFrom(sent)
        one.events.add(time_unix_nano=time.time_ns(), name="none")
        one.events.add(time_unix_nano=time.time_ns(), name="some").attributes.add(key="price").value.double_value = 19.99
        with Collector() as collector, self.agent(collector, "/api/v2/spans") as agent:
            self.assertEqual(post(agent.connect(), request([one]))[0], 200)
            wait_until(lambda: collector.requests, "it arrives")
            got = collector.requests[0].spans[0]
            for key, (_, expected) in tags.items():
                found = got["tags"][key]
                self.assertEqual(found if isinstance(expected, str) else json.loads(found), expected, key)
            self.assertEqual(sorted(event["value"] for event in got["annotations"]), ["none", 'some: {"price":19.99}'])

    def test_services_as_blkin_agent_delivers_them(self):
        """The exporter borrows endpoints, which must not be freed before it. MALLOC_PERTURB_ overwrites freed memory, so
        that a freed name would show."""
        with Collector() as collector, self.agent(collector, "/api/v2/spans", MALLOC_PERTURB_="165") as agent:
            bodies = [request([span(7, number, ms=51, **{"peer.service": "disk-%d" % number})],
                              service="service-%d" % number) for number in range(1, 201)]

            def delivered():
                return [one for got in collector.requests for one in got.spans if one["name"] != "incomplete"]

            self.assertEqual(post(agent.connect(), b"".join(bodies))[0], 200)
            wait_until(lambda: len(delivered()) >= len(bodies), lambda: len(delivered()))
            got = {int(one["id"], 16): (one["localEndpoint"]["serviceName"], one["remoteEndpoint"]["serviceName"])
                   for one in delivered()}
            self.assertEqual(got, {number: ("service-%d" % number, "disk-%d" % number) for number in range(1, 201)})


if __name__ == "__main__":
    unittest.main(warnings="ignore")
