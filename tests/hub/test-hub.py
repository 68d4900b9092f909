#!/usr/bin/env python3
# blkin hub and the exchange through it: what one posts all others get, once; what is wrong or too much is said to
# the one it comes from; who is there is known.
# SPDX-License-Identifier: BSD-2-Clause
import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from parts import BLKIN, PATIENCE, Hub as Server, HubTest, free_port, wait_until


def keep(number, host="x", **more):
    return {"type": "keep", "id": f"{host}:1:{number}", "host": host, "post": f"{host}:p:{number}", "at": 1,
            "traces": [{"id": f"{number:032x}", "why": "*>1ms"}], **more}


def found(number, to, host="x", **more):
    return {"type": "found", "id": f"{to}:1:{number}", "host": host, "to": to, "post": f"{host}:f:{number}",
            "held_from": 1, "traces": [{"id": f"{number:032x}", "spans": 2, "have": ["00000000000000aa"] * 2,
                                        "want": ["00000000000000bb"]}], **more}


class Stranger:
    """A connection that says nothing, or not all, and when the hub has closed it: read in a thread of its own."""

    def __init__(self, port, words):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(words)
        self.begun = time.monotonic()
        self.seconds = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while self.socket.recv(4096):
                pass
        except OSError:
            pass
        self.seconds = time.monotonic() - self.begun


class Hub(HubTest):
    @classmethod
    def setUpClass(cls):
        """For the last test, which waits for what takes the others' time."""
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.quiet = Server(folder).start()
        cls.addClassCleanup(cls.quiet.end)
        cls.quiet.wait_ready()
        cls.strangers = [Stranger(cls.quiet.port, words) for words in (b"", b"GET /v1/mess", b"GET / HTTP/1.1\r\nHost: localhost\r\n")]
        cls.known = Stranger(cls.quiet.port, b"GET /v1/messages?host=known&agent=x HTTP/1.1\r\nHost: localhost\r\n"
                             b"Content-Type: application/json\r\n\r\n")

    def test_who_says_nothing_is_hung_up_on(self):
        wait_until(lambda: all(stranger.seconds for stranger in self.strangers), "the hub closes silent connections")
        for stranger in self.strangers:
            self.assertTrue(8 < stranger.seconds < 25 * PATIENCE, stranger.seconds)
        self.assertIsNone(self.known.seconds)  # it has shown who it is

    def post(self, hub, messages, host="x"):
        return hub.ask("POST", f"/v1/messages?host={host}", json.dumps(messages))

    def test_all_others_get_it_and_who_asked_gets_the_answers(self):
        hub = self.hub()
        names = ["store-1", "store-2", "store-3"]
        peers = [self.peers(hub, name, "--answer") for name in names]
        for peer in peers:
            peer.wait_state(hosts=names)
        for peer in peers:
            peer.say("post 5")
        for peer in peers:
            wait_until(lambda: len(peer.answers[peer.name]) == 10, f"two answers for each of {peer.name}'s five")
        for peer in peers:
            others = [other for other in peers if other is not peer]
            self.assertCountEqual(peer.got(), sum((other.posted for other in others), []))
            self.assertCountEqual([answer[:2] for answer in peer.answers[peer.name]],
                                  [(one, other.name) for one in peer.posted for other in others])
            self.assertEqual([peer.report()[name] for name in ("posted", "received", "dropped", "refused")],
                             [15, 20, 0, 0])
        for host in hub.hosts().values():
            self.assertEqual((host["state"], host["posted"], host["delivered"]), ("there", 15, 20))
        self.assertEqual(hub.metric("messages_total"), 45)
        self.assertEqual(hub.metric("host_missed_total", "store-1"), 0)
        status = hub.status()
        self.assertEqual((status["mode"], status["hosts"]["store-2"]["accepted"]), ("hub", 15))
        self.assertEqual(hub.end(), 0)
        for peer in peers:
            peer.wait_state("away")
            self.assertEqual(len(peer.report()["hosts"]), 3)
            self.assertIn("127.0.0.1:%d" % hub.port, peer.report()["error"])

    def test_who_has_no_hub_is_alone(self):
        alone = self.peers("", "store-1")
        alone.say("post 3")
        report = alone.report()
        self.assertEqual((report["state"], report["hosts"], report["dropped"]), ("connected", ["store-1"], 0))

    def test_it_says_what_is_wrong_with_a_message(self):
        hub = self.hub()
        wrong = [
            (3, "expected a JSON object"),
            ({"post": "p"}, '"id": expected'),
            (keep(1, host="y"), '"host": expected the name of the host that posts it'),
            (keep(2, post="a b"), '"post": expected printable ASCII'),
            (keep(3, type="kept"), '"type": expected "keep" or "found"'),
            (keep(4, at="now"), '"at": expected a number'),
            (keep(5, traces=[{"id": "AB"}]), '"traces": expected each with "id", 32 hex digits'),
            (keep(6, traces=[{"id": "0" * 32, "why": "x" * 2000}]), '"why": expected a text'),
            (keep(7, traces={}), '"traces": expected an array'),
            (keep(8, last_ms=0), '"last_ms": expected a number'),
            (found(9, to="a/b"), '"to": expected a host\'s name'),
            (found(10, to="a", traces=[{"id": "0" * 32, "spans": -1, "have": [], "want": []}]), '"spans": expected'),
            (found(11, to="a", traces=[{"id": "0" * 32, "spans": 1, "have": ["0"], "want": []}]), '"have": expected'),
            (found(11, to="a", traces=[{"id": "0" * 32, "begin": "1", "spans": 1, "have": [], "want": []}]), '"begin": expected'),
            (found(12, to="a", held_from=None), '"held_from": expected'),
        ]
        status, answer = self.post(hub, [message for message, _ in wrong] + [keep(99)])
        self.assertEqual((status, answer["accepted"], len(answer["refused"])), (200, 1, len(wrong)))
        for (message, text), refused in zip(wrong, answer["refused"]):
            self.assertIn(text, refused["error"], message)
        self.assertEqual(hub.metric("host_refused_total", "x"), len(wrong))
        for body, text in [(b"[", "expected JSON"), (b"\xff\x00", "expected JSON"), (b"{}", "expected a JSON array"),
                           (b"", "expected JSON"), (b"[" * 100000, "expected JSON")]:
            status, answer = hub.ask("POST", "/v1/messages?host=x", body)
            self.assertEqual(status, 400)
            self.assertIn(text, answer["error"])
        for path in ["/v1/messages", "/v1/messages?host=", "/v1/messages?host=a%2Fb", "/v1/messages?host=" + "a" * 254]:
            self.assertEqual(hub.ask("GET", path)[0], 400, path)
        self.assertEqual(hub.ask("GET", "/v2")[0], 404)
        self.assertEqual(hub.ask("POST", "/metrics", "[]")[0], 404)
        self.assertEqual(hub.ask("DELETE", "/")[0], 405)
        self.assertEqual(hub.ask("GET", "/"), (200, "blkin hub 0.9.0: ok\n"))

    def test_a_long_body_is_refused_at_once(self):
        hub = self.hub()
        self.assertEqual(hub.ask("POST", "/v1/messages?host=x", None, {"Content-Length": "1048577"})[0], 413)
        # and one whose length is not said
        long = json.dumps([keep(1, pad="x" * (1 << 20))]).encode()
        pieces = (long[i:i + 65536] for i in range(0, len(long), 65536))
        self.assertEqual(hub.ask("POST", "/v1/messages?host=x", pieces, {"Transfer-Encoding": "chunked"})[0], 413)
        # just not too long: all of it comes through
        peer, other = self.peers(hub, "a").wait_state(), self.peers(hub, "b").wait_state(hosts=["a", "b"])
        peer.say("post 1 %d" % ((1 << 20) - 400))
        wait_until(lambda: len(other.got()) == 1, "a message of nearly 1 MiB")
        peer.say("post 1 %d" % (1 << 20))
        wait_until(lambda: peer.report()["dropped"] == 1, "one that is too long is dropped")
        self.assertIn("is not posted: it has", peer.said())

    def test_doubles_are_removed(self):
        hub = self.hub()
        peer = self.peers(hub, "a").wait_state()
        self.assertEqual(self.post(hub, [keep(1), keep(1)])[1]["doubles"], 1)
        self.assertEqual(self.post(hub, [keep(1), keep(2)])[1]["doubles"], 1)
        wait_until(lambda: len(peer.got()) == 2, "both")
        self.assertEqual(peer.got(), ["x:1:1", "x:1:2"])

    def test_the_cap_is_for_all_and_is_told(self):
        hub = self.hub(hub_traces_per_s=10)
        peers = [self.peers(hub, name).wait_state() for name in ("a", "b")]
        peers[0].wait_state(hosts=["a", "b"])
        many = keep(1)
        many["traces"] = [{"id": f"{i:032x}", "why": "x"} for i in range(1000, 1025)]
        status, answer = self.post(hub, [many])
        self.assertEqual((status, answer["accepted"]), (429, 1))
        self.assertEqual(answer["dropped"][0]["post"], many["post"])
        self.assertEqual(answer["dropped"][0]["traces"], [f"{i:032x}" for i in range(1006, 1025)])
        # the half that is for all, and one of the half that the three hosts share; asked for again it costs nothing
        again = keep(2)
        again["traces"] = many["traces"][:6]
        self.assertEqual(self.post(hub, [again])[0], 200)
        # the exchange is told, for the one who has asked
        peers[0].say("post 40")
        wait_until(lambda: peers[0].capped, "that the cap has dropped some")
        wait_until(lambda: len(peers[1].got()) + len(peers[0].capped) == 42, "each was given or dropped")
        dropped = sum(count for _, count in peers[0].capped)
        self.assertEqual(peers[0].report()["dropped_traces"], dropped)
        self.assertEqual(hub.metric("host_dropped_traces_total", "a"), dropped)
        self.assertEqual(hub.metric("host_capped_total", "a"), dropped)

    def test_one_who_was_away_gets_what_came_meanwhile(self):
        hub = self.hub()
        peers = [self.peers(hub, name).wait_state() for name in ("a", "b")]
        peers[1].wait_state(hosts=["a", "b"])
        peers[0].say("post 3")
        wait_until(lambda: len(peers[1].got()) == 3, "the first three")
        peers[1].process.send_signal(signal.SIGSTOP)
        peers[0].say("post 3")
        wait_until(lambda: peers[0].report()["posted"] == 6, "they are posted")
        peers[1].process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(peers[1].got()) == 6, "the next three")
        # one that is killed and started again goes on where it was
        peers[1].kill()
        peers[0].say("post 3")
        wait_until(lambda: peers[0].report()["posted"] == 9, "they are posted")
        anew = self.peers(hub, "b").wait_state()
        wait_until(lambda: len(anew.got()) >= 3, "the last three")
        self.assertEqual(anew.got(), peers[0].posted[6:])

    def test_who_has_not_come_back_to_a_new_hub_still_counts(self):
        hub = self.hub()
        peers = [self.peers(hub, name, "--answer").wait_state() for name in ("a", "b", "c")]
        peers[0].wait_state(hosts=["a", "b", "c"])
        peers[1].process.send_signal(signal.SIGSTOP)
        hub.kill()
        peers[0].wait_state("away")
        hub.start().wait_ready()
        wait_until(lambda: hub.metric("hosts") == 2, "two of three come")
        peers[0].wait_state(hosts=["a", "b", "c"])
        # and what it posts is not forgotten, though all who are there have it
        peers[0].say("post 3")
        wait_until(lambda: len(peers[0].answers["a"]) == 3, "answers of c")
        hub.kill()
        hub.start().wait_ready()
        peers[0].wait_state()
        peers[1].process.send_signal(signal.SIGCONT)
        wait_until(lambda: len(peers[0].answers["a"]) == 6, "answers of b")
        self.assertEqual(peers[1].got(), peers[0].posted)

    def test_two_of_one_name_are_told(self):
        hub = self.hub()
        first = self.peers(hub, "same").wait_state()
        second = self.peers(hub.url, "same", runtime_dir=f"{self.folder}/other")
        wait_until(lambda: "another recorder of this name" in first.said() + second.said(), "they are told")

    def test_garbage_harms_nobody(self):
        hub = self.hub()
        peers = [self.peers(hub, name).wait_state() for name in ("a", "b")]
        peers[0].wait_state(hosts=["a", "b"])
        for data in [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n" * 1000, b"GET " + b"/" * 20000,
                     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000, bytes(range(256)) * 100,
                     b"POST /v1/messages?host=x HTTP/1.1\r\nContent-Length: -5\r\n\r\n[]",
                     b"POST /v1/messages?host=x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n[]"]:
            with socket.create_connection(("127.0.0.1", hub.port), timeout=10) as connection:
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except OSError:
                    pass
        peers[0].say("post 1")
        wait_until(lambda: len(peers[1].got()) == 1, "a message")
        self.assertIsNone(hub.process.poll())

    def test_it_does_not_start_where_it_must_not(self):
        for where in ("0.0.0.0", "[::]", "127.0.0.1"):  # loopback is for all users of the host
            self.assertIn("anyone who reaches it could ask all hosts", self.refused(hub_listen=f"{where}:{free_port()}",
                                                                                 expose_hub="no"))
        self.assertIn("expected PORT", self.refused(hub_listen="localhost:1"))
        port = free_port()
        exposed = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", expose_hub="yes")
        self.assertIn("without hub-cert-file the hub uses plain HTTP", exposed.said())
        exposed.end()
        hub = self.hub()
        self.assertIn("another program has this port", self.refused(port=hub.port, runtime_dir=self.folder + "/other"))
        self.assertIn("another `blkin hub` runs", self.refused())
        done = subprocess.run([BLKIN, "hub", "now"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
