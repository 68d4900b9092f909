#!/usr/bin/env python3
"""The receiver of the spans of SDKs: accepted and refused requests, its limits, and its counts.

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import gzip
import http.client
import os
import random
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.environ["SRC"] + "/tests/otlp")
from parts import Agent, LocalConnection, attribute, otlp, post, request, span, wait_until  # noqa: E402

field = otlp.field


class Receive(unittest.TestCase):

    def test_spans_are_taken(self):
        with Agent() as agent:
            connection = agent.connect()
            for number in range(1, 11):
                status, answer, message = post(connection, request([span(number, i) for i in range(1, 101)]),
                                               Content_Encoding="gzip" if number % 2 else "identity")
                self.assertEqual(status, 200)
                self.assertEqual(message.ByteSize(), 0)
                self.assertNotEqual(answer.getheader("Connection"), "close")
            counts = agent.counts()
            self.assertEqual((counts["requests_taken"], counts["spans_in"], counts["connections"]), (10, 1000, 1))

    def test_other_forms_are_taken(self):
        """Forms of requests that the RFCs allow to SDKs and proxies, and endpoints with a slash at the end."""
        body = request([span(1, 1)])
        forms = [("/v1/traces/", body, {}), ("//v1/traces", body, {}),
                 ("/v1/traces", gzip.compress(body), {"Content_Encoding": "x-gzip"}),
                 ("/v1/traces", gzip.compress(body), {"Content_Encoding": "X-GZip"}),
                 ("/v1/traces/", gzip.compress(body[:20]) + gzip.compress(body[20:]), {"Content_Encoding": "GZIP"})]
        with Agent() as agent:
            connection = agent.connect()
            for path, sent, headers in forms:
                self.assertEqual(post(connection, sent, path, **headers)[0], 200, (path, headers))
            self.assertEqual(agent.counts()["spans_in"], len(forms))
            for path, words in (("/v1/logs/", "OTEL_LOGS_EXPORTER"), ("/", "OTEL_EXPORTER_OTLP_ENDPOINT"),
                                ("/x/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT")):
                status, _, message = post(connection, body, path)
                self.assertEqual(status, 404)
                self.assertIn(words, message.message)

    def test_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/otlp"
            with Agent(BLKIN_OTLP_SOCKET=path, BLKIN_OTLP_LISTEN="") as agent:
                connection = LocalConnection(path)
                for _ in range(3):
                    self.assertEqual(post(connection, request([span(1, 1)]))[0], 200)
                self.assertEqual(agent.counts()["spans_in"], 3)
            self.assertEqual(os.listdir(folder), [])

    def test_what_is_refused(self):
        good = request([span(1, 1)])
        cases = [  # status, counter, words of the answer, arguments of post()
            (404, "page", "OTEL_METRICS_EXPORTER=none", {"path": "/v1/metrics"}),
            (405, "page", "POST", {"method": "PUT"}),
            (403, "page", "web page", {"Origin": "http://example.org"}),
            (415, "type", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", {"Content_Type": "application/json"}),
            (415, "type", "x-protobuf", {"Content_Type": "application/x-protobuffer"}),
            (415, "type", "OTEL_EXPORTER_OTLP_COMPRESSION", {"Content_Encoding": "zstd"}),
            (400, "broken", "gzip", {"body": b"\x1f\x8bno gzip", "Content_Encoding": "GZIP"}),
            (400, "broken", "ExportTraceServiceRequest", {"body": b"\x0a\x05{}"}),
            (400, "broken", "ExportTraceServiceRequest", {"body": good[:-3]}),
            (413, "too_large", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", {"body": good, "Content_Length": "9000000"}),
            (413, "too_large", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
             {"body": bytes((8 << 20) + 1), "Content_Encoding": "gzip"}),
        ]
        with Agent() as agent:
            for status, counter, words, posted in cases:
                with self.subTest(posted=str(posted)[:80]):
                    before = agent.counts()
                    connection = agent.connect()
                    got = post(connection, **{"body": good, **posted})
                    self.assertEqual(got[0], status)
                    self.assertIn(words, got[2].message)
                    self.assertGreater(got[2].code, 0)
                    counts = agent.counts()
                    self.assertEqual(counts["refused_" + counter], before["refused_" + counter] + 1)
                    self.assertEqual(counts["requests_taken"], before["requests_taken"])
                    connection.close()
            self.assertEqual(post(agent.connect(), good, Content_Type="application/x-protobuf; charset=x")[0], 200)

    def test_single_spans_are_refused(self):
        no_trace, no_id, short = span(1, 1), span(1, 1), span(1, 1)
        no_trace.trace_id = bytes(16)
        no_id.span_id = b""
        short.trace_id = b"1234"
        large = span(9, 9, name="n" * 200000)
        with Agent(BLKIN_OTLP_BYTES="1M") as agent:
            status, _, message = post(agent.connect(), request([span(1, 1), no_trace, no_id, short, large,
                                                                   span(1, 2)]))
            self.assertEqual((status, message.partial_success.rejected_spans), (200, 4))
            self.assertIn("too large", message.partial_success.error_message)
            counts = agent.counts()
            self.assertEqual((counts["spans_in"], counts["spans_invalid"], counts["spans_too_large"]), (6, 3, 1))

    def test_fields_in_any_order(self):
        """Protobuf allows fields in any order, and unknown fields: the spans are the same."""
        seed = random.randrange(1 << 32)
        print("seed", seed)
        chance = random.Random(seed)

        def fields(message):
            """Yields each field of a message, as bytes."""
            for descriptor, value in message.ListFields():
                for element in (value if descriptor.label == descriptor.LABEL_REPEATED else [value]):
                    one = type(message)()
                    if descriptor.label == descriptor.LABEL_REPEATED:
                        getattr(one, descriptor.name).append(element)
                    elif descriptor.message_type:
                        getattr(one, descriptor.name).CopyFrom(element)
                    else:
                        setattr(one, descriptor.name, element)
                    yield one.SerializeToString()

        def shuffled(message):
            parts = list(fields(message)) + [b"\xa2\x06\x03abc", b"\xb0\x06\x07", b"\xb9\x06" + bytes(8)]
            chance.shuffle(parts)
            return b"".join(parts)

        with Agent(rules="slow-*:x*>50ms, error, max=100000/s") as agent:
            connection = agent.connect()
            for number in range(1, 301):
                is_slow, is_error = chance.random() < 0.3, chance.random() < 0.3
                one = span(number, number, name="xyz", ms=51 if is_slow else 49, error=is_error, a="b", c=1)
                resource = otlp.CLASSES["Resource"].FromString(
                    otlp.CLASSES["ExportTraceServiceRequest"].FromString(request([], service="slow-one", z="y"))
                    .resource_spans[0].resource.SerializeToString())
                scope = [field(1, b"\x0a\x01s"), field(2, shuffled(one))]
                chance.shuffle(scope)
                group = [field(1, shuffled(resource)), field(2, b"".join(scope))]
                chance.shuffle(group)
                before = agent.counts()["alarms"]
                self.assertEqual(post(connection, field(1, b"".join(group)))[0], 200)
                self.assertEqual(agent.counts()["alarms"] - before, int(is_slow or is_error), number)
            self.assertEqual(agent.counts()["spans_in"], 300)

    def test_the_limit_of_spans_per_second(self):
        body = request([span(1, i) for i in range(1, 501)])
        with Agent(BLKIN_OTLP_SPANS_PER_S="1000") as agent:
            connection = agent.connect()
            statuses, begin = [], time.monotonic()
            while 429 not in statuses and len(statuses) < 100:
                status, answer, message = post(connection, body)
                statuses.append(status)
            # a busy machine takes its time, in which more spans are allowed
            self.assertGreaterEqual(statuses.count(200), 2)
            self.assertLessEqual(statuses.count(200), 3 + (time.monotonic() - begin) * 1000 / 500)
            self.assertEqual(answer.getheader("Retry-After"), "1")
            self.assertIn("too many spans", message.message)
            wait_until(lambda: post(connection, body)[0] == 200, "it takes spans again")
            counts = agent.counts()
            self.assertEqual(counts["requests"], counts["requests_taken"] + counts["refused_rate"])
            self.assertEqual(counts["connections"], 1)

    def test_the_limit_of_connections(self):
        with Agent() as agent:
            connections = [agent.connect() for _ in range(276)]
            for number, connection in enumerate(connections):
                self.assertEqual(post(connection, request([span(1, number + 1)]))[0], 200)
            counts = agent.counts()
            self.assertEqual((counts["connections"], counts["hung_up"]), (276, 20))
            # a connection with an open request stays for up to 30 s; another connection is refused
            for connection in connections[-256:]:
                self.assertEqual(post(connection, request([span(2, 1)]))[0], 200)
            held = []
            for connection in connections[-256:]:
                connection.putrequest("POST", "/v1/traces")
                connection.putheader("Content-Type", "application/x-protobuf")
                connection.putheader("Content-Length", "1000")
                connection.endheaders(b"1")
                held.append(connection)
            wait_until(lambda: agent.ask()["otlp"]["counts"]["requests"] == 788, "all requests have begun")
            with socket.create_connection(agent.address.split(":")) as other:
                self.assertEqual(other.recv(1), b"")
            for connection in held:
                connection.close()
            wait_until(lambda: agent.ask()["otlp"]["counts"]["requests_cut_off"] == 256, "they are cut off")
            self.assertEqual(post(agent.connect(), request([span(3, 1)]))[0], 200)
            agent.counts()

    def test_memory_for_bodies(self):
        """Bodies without an end take no more memory than the limit: further ones are refused, and may be sent again."""
        with Agent() as agent:
            held = []
            for _ in range(14):
                sock = socket.create_connection(agent.address.split(":"))
                sock.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-protobuf\r\n"
                             b"Content-Length: 8000000\r\n\r\n" + bytes(7900000))
                held.append(sock)
            wait_until(lambda: agent.ask()["otlp"]["counts"]["bytes"] >= 14 * 7900000, "all is read")
            self.assertLess(agent.peak_mb(), 64 + 64)
            self.assertEqual(post(agent.connect(), request([span(1, 1)]))[0], 200)
            answers = []
            for sock in held:
                sock.sendall(bytes(100000))
                answer = http.client.HTTPResponse(sock)
                answer.begin()
                answers.append((answer.status, answer.getheader("Retry-After")))
                sock.close()
            self.assertEqual(set(answers), {(400, None), (503, "1")})
            counts = agent.counts()
            self.assertEqual((answers.count((503, "1")), answers.count((400, None))),
                             (counts["refused_memory"], counts["refused_broken"]))
            self.assertGreaterEqual(counts["refused_memory"], 6)

    def test_a_reload(self):
        """A reload changes the rate for the next request."""
        body = request([span(1, i) for i in range(1, 101)])
        with Agent() as agent:
            connection = agent.connect()
            self.assertEqual(post(connection, body)[0], 200)
            agent.reload("[agent]\notlp-spans-per-s = 1\n")
            self.assertEqual([post(connection, body)[0] for _ in range(2)], [200, 429])
            agent.reload("")
            self.assertEqual([post(connection, body)[0] for _ in range(2)], [200, 200])

    def test_resources_and_scopes_are_stored_once(self):
        """The cost of a request depends on its bytes, and not on how many spans share a resource or scope."""
        spans = b"".join(b"\x12\x1c" + span(1, i).SerializeToString()[:28] for i in range(1, 100001))
        self.assertEqual(spans[:2], b"\x12\x1c")
        scopes = b"".join(b"\x12\x27\x0a\x07\x0a\x05%05d" % i + spans[30 * i:30 * i + 30] for i in range(100000))

        def resource(size):
            return otlp.CLASSES["Resource"](attributes=[attribute("k", "x" * size)]).SerializeToString()

        cases = [  # refused spans, the resource's size, the rest of the request
            (100000, 3900000, field(2, spans)),
            (0, 65000, field(2, spans)),
            (0, 65000, scopes),
            (100000, 10, field(2, field(1, field(1, b"s" * 65536)) + spans)),
        ]
        with Agent() as agent:
            connection, cpu_s = agent.connect(), agent.cpu_s()
            for refused, size, rest in cases:
                before = agent.held()["bytes"]
                status, _, message = post(connection, field(1, field(1, resource(size)) + rest),
                                          Content_Encoding="gzip")
                self.assertEqual((status, message.partial_success.rejected_spans), (200, refused))
                held = agent.held()
                self.assertLess(held["bytes"] - before, 40e6)
            self.assertEqual(agent.counts()["spans_in"], 400000)
            self.assertEqual(held["spans"], 200000)
            self.assertLess(agent.cpu_s() - cpu_s, 5)

    def test_others_are_served_meanwhile(self):
        """A request is read in steps. Between them the receiver answers the status and other requests."""
        large = request([span(1, 1)]) + request([span(2, i) for i in range(1, 1001)]) * 110  # several steps
        with Agent() as agent:
            seen, rounds = False, 0
            while not seen and rounds < 40:  # on a busy machine both requests may be read before the status is asked
                rounds += 1
                connections = [agent.connect() for _ in range(2)]
                for connection in connections:
                    connection.putrequest("POST", "/v1/traces")
                    connection.putheader("Content-Type", "application/x-protobuf")
                    connection.putheader("Content-Length", str(len(large)))
                    connection.endheaders(large[:-1])
                wait_until(lambda: agent.ask()["otlp"]["counts"]["bytes"] >= rounds * 2 * (len(large) - 1),
                           "the bodies come")
                for connection in connections:
                    connection.send(large[-1:])
                seen = agent.ask()["otlp"]["counts"]["spans_in"] % 110001 > 0
                self.assertEqual([connection.getresponse().status for connection in connections], [200, 200])
            self.assertTrue(seen)
            self.assertEqual(agent.counts()["spans_in"], rounds * 220002)

    def test_an_end_meanwhile(self):
        """SIGTERM while the receiver reads spans: the agent ends with status 0."""
        large = request([span(2, i) for i in range(1, 1001)]) * 60
        with Agent() as agent:
            connection = agent.connect()
            connection.request("POST", "/v1/traces", large, {"Content-Type": "application/x-protobuf"})
            wait_until(lambda: agent.counts()["spans_in"], "spans are taken")

    def test_a_million_spans(self):
        """Memory is as configured, and the store reports the time from which it has all spans."""
        with Agent(BLKIN_OTLP_BYTES="16M") as agent:
            connection = agent.connect()
            begin_ns = time.time_ns()
            for number in range(1, 101):
                body = request([span(number * 100 + i // 10, i + 1, start_ns=begin_ns, k="v" * 40)
                                for i in range(1000)]) * 10
                self.assertEqual(post(connection, body)[0], 200)
            counts = agent.counts()
            self.assertEqual(counts["spans_in"], 1000000)
            self.assertGreater(counts["spans_overwritten"], 800000)
            held = agent.held()
            self.assertIsNotNone(held["came_after"])
            self.assertLessEqual(held["bytes"], 16777216)
            self.assertLess(agent.peak_mb(), 16 + 30)


class Shares(unittest.TestCase):
    """One sender on TCP uses all of its shares; another one, a user at the socket, is served as if alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = folder.name + "/otlp"

    def counts(self, agent):
        return agent.ask()["otlp"]["counts"]

    def post(self, body):
        return post(LocalConnection(self.socket), body)[0]

    def begin(self, agent, size=1):
        """Begins a request that does not end, if its connection is accepted."""
        sock = socket.create_connection(agent.address.split(":"))
        self.addCleanup(sock.close)
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-protobuf\r\n"
                         b"Content-Length: 8000000\r\n\r\n" + bytes(size))

    def senders(self, agent):
        """Returns the sender on TCP, and the user."""
        found = {one["sender"]: one for one in agent.ask()["otlp"]["senders"]}
        return found["loopback"], found["user %d" % os.getuid()]

    def test_requests_that_do_not_go_on(self):
        body = request([span(1, 1)])
        with Agent(BLKIN_OTLP_SOCKET=self.socket) as agent:
            for _ in range(300):
                self.begin(agent)
            wait_until(lambda: self.counts(agent)["requests"] >= 256, agent.ask)
            idle = [LocalConnection(self.socket) for _ in range(100)]
            for connection in idle + idle:
                self.assertEqual(post(connection, body)[0], 200)
            def of_flood():
                flood = self.senders(agent)[0]
                return flood["connections"], flood["counts"]["hung_up"]

            wait_until(lambda: of_flood() == (156, 144), of_flood)
            user = self.senders(agent)[1]
            self.assertEqual((user["connections"], user["counts"]["hung_up"]), (100, 0))

    def test_large_requests_that_do_not_go_on(self):
        with Agent(BLKIN_OTLP_SOCKET=self.socket) as agent:
            for _ in range(25):
                self.begin(agent, 2200000)
            wait_until(lambda: self.counts(agent)["bytes"] >= 25 * 2200000, agent.ask)
            for _ in range(3):
                self.assertEqual(self.post(request([span(1, 1, k="v" * 4000000)])), 200)
            flood, user = self.senders(agent)
            self.assertLessEqual(flood["body_bytes"], 36 << 20)
            self.assertEqual((user["body_bytes"], user["counts"]["requests_taken"]), (0, 3))

    def flood(self, url, body):
        """Sends until the test ends it."""
        ends, connection = threading.Event(), http.client.HTTPConnection(url, timeout=60)

        def run():
            while not ends.is_set():
                post(connection, body)
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ends.set)

    def send_slow(self, overwritten):
        """Sends 20 traces, whose slow span comes after the flood has overwritten more."""
        for trace in range(1, 21):
            self.assertEqual(self.post(request([span(trace, 2, 1), span(trace, 3, 1)], service="user")), 200)
            before = overwritten()
            wait_until(lambda: overwritten() > before, "the flood goes on")
            self.assertEqual(self.post(request([span(trace, 1, ms=60)], service="user")), 200)

    def test_a_flood_of_failed_spans(self):
        """Memory and alarms: the flood overwrites its own spans, and its own alarms are suppressed."""
        failed = request([span(1000 + i, 1, error=True, k="v" * 100) for i in range(5000)])
        with Agent(BLKIN_OTLP_SOCKET=self.socket, BLKIN_OTLP_BYTES="1M", rules="error, *>50ms") as agent:
            self.flood(agent.address, failed)
            self.send_slow(lambda: self.counts(agent)["spans_overwritten"])
            flood, user = self.senders(agent)
            self.assertGreater(flood["counts"]["alarms_held_back"], 1000)
            self.assertEqual([user["counts"][name] for name in ("alarms", "alarms_held_back", "spans_overwritten")],
                             [20, 0, 0])
            self.doCleanups()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
