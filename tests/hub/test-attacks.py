#!/usr/bin/env python3
# Attacks on a hub: names of others, web pages, many connections, posts that are large, many, or whose answers nobody
# reads, and names that nobody has. Each is refused or bounded, and two real hosts are served meanwhile.
# Each attack prints how long the real messages took while it grew ("ramp") and at its height ("steady").
# FULL=1: as many as an attacker would try, and p99 of the real messages must be 100 ms in both. OPEN=1: at a hub that
# asks for no token, to compare with earlier versions. DECOY=1: the attack goes to a second hub, and the real hosts are
# served by the first: what they lose then they lose to the attacker's use of the CPU, not to the hub.
# timeout: 900
# SPDX-License-Identifier: BSD-2-Clause
import collections
import http.client
import itertools
import json
import mmap
import os
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import unittest

from parts import HubTest, free_port, wait_until

FULL = os.environ.get("FULL") == "1"
DECOY = os.environ.get("DECOY") == "1"
HOSTS = ["store-1", "store-2", "mallory", "late"]


def some(full, few):
    return full if FULL else few


def memory(hub):
    with open(f"/proc/{hub.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


class Flood:
    """A process that opens so many connections, of several addresses, and sends the bytes over all of them at once, again
    and again. It is nice: an attacker has a processor of its own, and must not take ours."""

    def __init__(self, port, connections, sent, addresses=8, at_once=True):
        self.port, self.connections, self.sent = port, connections, sent
        self.addresses, self.least_silent = addresses, connections if at_once else 1
        self.counts = mmap.mmap(-1, 16)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.nice(19)
                self.run()
            finally:
                os._exit(1)

    def open(self, poll, opened, i):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # or the ports run out
        connection.bind((f"127.{i % self.addresses // 200 + 1}.{i % self.addresses % 200 + 1}.1", 0))
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self.port))
        opened[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLOUT)

    def run(self):
        poll, opened, silent = select.epoll(), {}, []
        counts = [0, 0]
        numbers = itertools.count()
        while True:
            for _ in range(min(self.connections - len(opened), 20)):
                self.open(poll, opened, next(numbers))
            for fd, events in poll.poll(0 if len(opened) < self.connections else None):
                if events == select.EPOLLOUT:
                    poll.modify(fd, select.EPOLLIN)
                    silent.append(fd)
                else:
                    try:
                        counts[not opened[fd].recv(65536)] += 1
                    except OSError:
                        counts[1] += 1
                    self.counts[:] = struct.pack("qq", *counts)
                    poll.unregister(fd)
                    opened.pop(fd).close()
                    if fd in silent:
                        silent.remove(fd)
            if len(silent) >= self.least_silent:
                for fd in silent:
                    opened[fd].send(self.sent)
                silent.clear()

    @property
    def answered(self):
        return struct.unpack("qq", self.counts[:])[0]

    @property
    def refused(self):
        return struct.unpack("qq", self.counts[:])[1]

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Attacks(HubTest):
    def setUp(self):
        super().setUp()
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    def token(self, host):
        return f"token-of-{host}-0123456789"

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o600)
        return path

    def guarded(self, **keys):
        """A hub, and two real hosts that post 50 messages a second each, or 100 where there are few."""
        tokens = self.file("tokens", "".join(f"{host} {self.token(host)}\n" for host in HOSTS))
        hub = self.hub(**({} if os.environ.get("OPEN") else {"hub_tokens_file": tokens}), **{"hub_traces_per_s": 100000, **keys})
        ca = {"hub_ca_file": keys["hub_cert_file"]} if "hub_cert_file" in keys else {}
        self.real = [self.peers(hub, host, hub_token_file=self.file(host, self.token(host)), **ca) for host in HOSTS[:2]]
        for peer in self.real:
            peer.wait_state(hosts=HOSTS[:2])
            peer.say(f"every {some(20, 10)}")
        self.before = memory(hub)
        self.phases = []
        self.phase("ramp")
        if not DECOY:
            return hub
        decoy = self.hub(**{**keys, "hub_tokens_file": tokens}, runtime_dir=os.path.join(self.folder, "decoy"))
        self.before = memory(decoy)
        return decoy

    def phase(self, name):
        """What the real hosts post from now on belongs to it."""
        self.phases.append((name, [len(peer.posted) for peer in self.real]))

    def steady(self, go_on=lambda: None):
        """The attack is at its height: it stays there while the real hosts post some messages more."""
        if self.phases[-1][0] != "steady":
            self.phase("steady")
        most = [len(peer.posted) + some(500, 20) for peer in self.real]

        def enough():
            go_on()
            return all(len(peer.posted) >= count for peer, count in zip(self.real, most))
        wait_until(enough, "messages while the attack stays")

    def of_real(self, peer):
        return [one for one in peer.got() if one.startswith("store-")]

    def stop_posting(self):
        """Returns when each real host has got all messages of the other."""
        for peer in self.real:
            peer.say("every 0")
            peer.report()  # after this it posts no more
        first, second = self.real
        for peer, other in ((first, second), (second, first)):
            wait_until(lambda: sorted(self.of_real(peer)) == sorted(other.posted), "all messages of the real hosts")

    def are_served(self, hub, attack, most_mib):
        """Both got all that the other posted; how much memory the hub takes; how long the real messages of each phase took."""
        after = memory(hub)
        wait_until(lambda: all(len(peer.posted) > 20 for peer in self.real), "some messages")
        self.stop_posting()
        took = {one: us / 1000 for peer in self.real for one, us in peer.requests[peer.name] if one.startswith("store-")}
        print(f"{attack}{' at a decoy' if DECOY else ''}: {self.before:.1f} MiB before, {after:.1f} after", flush=True)
        ends = [counts for _, counts in self.phases[1:]] + [[len(peer.posted) for peer in self.real]]
        for (name, begin), end in zip(self.phases, ends):
            of_phase = [took[one] for i, peer in enumerate(self.real) for one in peer.posted[begin[i]:end[i]]]
            if not of_phase:
                continue
            p99 = self.percentile(of_phase, 0.99)
            print(f"    {name}: {len(of_phase)} real messages, p50 {self.percentile(of_phase, 0.5):.1f} ms, "
                  f"p99 {p99:.1f} ms, longest {max(of_phase):.1f} ms", flush=True)
            if FULL:
                self.assertLess(p99, 100)
        self.assertLess(after - self.before, most_mib)
        self.assertIsNone(hub.process.poll())

    def ask(self, hub, method, path, body=None, host="mallory", **headers):
        headers = {"Authorization": "Bearer " + self.token(host), **{k.replace("_", "-"): v for k, v in headers.items()}}
        return hub.ask(method, path, json.dumps(body) if body is not None else None, headers)

    def test_a_host_speaks_for_itself_only(self):
        hub = self.guarded()
        found = {"type": "found", "id": "store-1:1:1", "host": "store-2", "to": "store-1", "post": "x", "held_from": 1,
                 "traces": []}
        keep = {"type": "keep", "id": "store-2:1:1", "host": "store-2", "post": "y", "at": 1, "last_ms": 86400000}
        for message in (found, keep):
            self.assertEqual(self.ask(hub, "POST", "/v1/messages?host=store-2", [message])[0], 403)
            status, answer = self.ask(hub, "POST", "/v1/messages?host=mallory", [message])
            self.assertEqual((status, len(answer["refused"])), (200, 1), answer)
        boot = hub.status()["boot"]
        for host in HOSTS[:2]:  # neither read nor acknowledged
            status, answer = self.ask(hub, "GET", f"/v1/messages?host={host}&agent=x&boot={boot}&after=1000000")
            self.assertEqual(status, 403, answer)
            self.assertIn("belongs to another host", answer["error"])
        # its own token from another process does not end the poll of the one that waits
        waiting = socket.create_connection(("127.0.0.1", hub.port))
        self.addCleanup(waiting.close)
        self.stop_posting()
        version = self.ask(hub, "GET", "/v1/messages?host=mallory&agent=first")[1]
        poll = f"boot={boot}&after={version['next']}&hosts={version['hosts_version']}"
        waiting.sendall((f"GET /v1/messages?host=mallory&agent=first&{poll}&wait=20000 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                         "Content-Type: application/json\r\n"
                         f"Authorization: Bearer {self.token('mallory')}\r\n\r\n").encode())
        wait_until(lambda: self.ask(hub, "GET", f"/v1/messages?host=mallory&agent=second&{poll}")[0] == 409,
                   "the second is told of the first")
        waiting.setblocking(False)
        self.assertRaises(BlockingIOError, waiting.recv, 1)
        for peer in self.real:
            self.assertNotIn("409", peer.said())
        for peer in self.real:
            peer.say(f"every {some(20, 10)}")
        self.are_served(hub, "names of others", 8)

    def test_the_number_of_a_message_is_its_hosts(self):
        """Every host is shown the others' "post", and they count up: who posts the next one first silences nobody."""
        tokens = self.file("tokens", "".join(f"{host} {self.token(host)}\n" for host in HOSTS))
        hub = self.hub(hub_tokens_file=tokens)
        peer = self.peers(hub, HOSTS[0], hub_token_file=self.file(HOSTS[0], self.token(HOSTS[0]))).wait_state()
        for number, host in enumerate(("mallory", HOSTS[1])):
            message = {"type": "keep", "id": f"{host}:1:1", "host": host, "post": f"{HOSTS[1]}:1:7", "at": 1,
                       "traces": [{"id": "%032x" % (1 + number), "why": "*>1ms"}]}
            status, answer = self.ask(hub, "POST", f"/v1/messages?host={host}", [message], host=host)
            self.assertEqual((status, answer["accepted"], answer["doubles"]), (200, 1, 0), answer)
        wait_until(lambda: len(peer.got()) == 2, "both messages")

    def test_a_web_page_posts_nothing(self):
        hub = self.hub()  # knows nobody: whoever reaches it may post
        keep = [{"type": "keep", "id": "x:1:1", "host": "x", "post": "p", "at": 1, "last_ms": 1000}]
        path = "/v1/messages?host=x"
        self.assertEqual(self.ask(hub, "POST", path, keep, Content_Type="text/plain")[0], 415)
        self.assertEqual(self.ask(hub, "POST", path, keep, Content_Type="application/x-www-form-urlencoded")[0], 415)
        self.assertEqual(self.ask(hub, "POST", path, keep, Origin="http://example.org")[0], 403)
        self.assertEqual(self.ask(hub, "GET", path, Origin="null")[0], 403)
        self.assertEqual(self.ask(hub, "GET", path, Host="rebound.example.org")[0], 421)
        self.assertEqual(self.ask(hub, "GET", path, Host="127.0.0.1.example.org:7412")[0], 421)
        self.assertEqual(self.ask(hub, "OPTIONS", path, Origin="http://example.org")[0], 405)
        # <img src="http://127.0.0.1:7412/v1/messages?..."> has no Origin, and the right Host; it would end the poll of a
        # host, or say that this host has got its messages
        self.assertEqual(self.ask(hub, "GET", path, Content_Type="")[0], 415)
        self.assertEqual(self.ask(hub, "GET", path, Content_Type="text/plain")[0], 415)
        for page in ("/v1/messages?host=x", "/v1/hosts", "/metrics"):
            for site in ("cross-site", "same-site"):
                self.assertEqual(self.ask(hub, "GET", page, Sec_Fetch_Site=site)[0], 403)
            self.assertEqual(self.ask(hub, "GET", page, Host="rebound.example.org")[0], 421)
        self.assertEqual(hub.hosts(), {})
        for page in ("/v1/hosts", "/metrics"):  # Prometheus, curl, and who types the URL
            self.assertEqual(self.ask(hub, "GET", page, Content_Type="", Sec_Fetch_Site="none")[0], 200)
        for name in ("127.0.0.1", "[::1]:7412", "localhost:7412", socket.gethostname()):
            self.assertEqual(self.ask(hub, "GET", path, Host=name)[0], 200, name)
        self.assertEqual(self.ask(hub, "POST", path, keep)[0], 200)

    def test_other_users_of_the_host(self):
        """All of them reach a hub on loopback: without tokens it does not start, and with tokens they may do nothing."""
        for address in ("127.0.0.1", "127.3.2.1", "[::1]"):
            self.assertIn("in the name of any host", self.refused(hub_listen=f"{address}:{free_port()}", expose_hub="no"))
        self.assertIn("recorders must show nothing", self.hub(runtime_dir=os.path.join(self.folder, "open")).said())
        hub = self.guarded()
        tokens = os.path.join(self.folder, "tokens")
        keep = json.dumps([{"type": "keep", "id": "store-1:1:1", "host": "store-1", "post": "x", "at": 1, "last_ms": 1000}])
        script = f"""if True:
            import http.client
            def ask(method, path, body=None):
                connection = http.client.HTTPConnection("127.0.0.1", {hub.port}, timeout=30)
                connection.request(method, path, body, {{"Content-Type": "application/json"}})
                return connection.getresponse().status
            try:
                open({tokens!r}).close()
            except PermissionError:
                print("no tokens")
            print(ask("POST", "/v1/messages?host=store-1", {keep!r}), ask("GET", "/v1/messages?host=store-1&agent=x"),
                  ask("GET", "/v1/hosts"), ask("GET", "/metrics"), ask("GET", "/"))"""
        is_root = os.geteuid() == 0
        said = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, timeout=60,
                              cwd="/", **({"user": 65534, "group": 65534, "extra_groups": []} if is_root else {})).stdout
        self.assertEqual(said, ("no tokens\n" if is_root else "") + "401 401 401 401 200\n")
        self.assertEqual(hub.status()["unauthorized"], 4)
        self.are_served(hub, "another user of the host", 8)

    def test_small_posts(self):
        hub = self.guarded()
        headers = {"Authorization": "Bearer " + self.token("mallory"), "Content-Type": "application/json"}
        statuses = collections.Counter()
        connections = []

        def post(first):
            batch = ",".join(f'{{"type":"keep","id":"m:{first + i}","host":"mallory","post":"m{first + i}","at":1,'
                             f'"traces":[]}}' for i in range(1000))
            connection = connections.pop() if connections else http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)
            try:
                connection.request("POST", "/v1/messages?host=mallory", f"[{batch}]", headers)
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1
                connections.append(connection)
            except OSError:
                connection.close()
                statuses["hung up"] += 1

        numbers = itertools.count(0, 1000)
        while not statuses[429]:
            post(next(numbers))
        self.phase("steady")
        while sum(statuses.values()) < some(2500, 100):
            post(next(numbers))
        self.steady(lambda: post(next(numbers)))
        print("answers:", dict(statuses))
        self.are_served(hub, f"{sum(statuses.values()) * 1000} small messages", 100)
        for connection in connections:
            connection.close()

    def test_answers_that_nobody_reads(self):
        hub = self.guarded()
        body = b"[" + b"0," * 524286 + b"0]"
        connections = []
        for _ in range(some(48, 12)):
            connection = socket.create_connection(("127.0.0.1", hub.port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(10)
            try:
                connection.sendall(b"POST /v1/messages?host=mallory HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                                   b"application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                                   % (self.token("mallory").encode(), len(body), body))
            except OSError:
                pass
            connections.append(connection)
        self.steady()
        self.are_served(hub, f"{len(connections)} posts of 1 MiB, unread answers", 60)
        for connection in connections:
            connection.close()

    def test_names_that_nobody_has(self):
        hub = self.guarded()
        made = 0
        numbers = itertools.count(0, 400)

        def name_some():
            first = next(numbers)
            messages = [{"type": "found", "id": "x:1:1", "host": "mallory", "to": f"nobody-{first + i}",
                         "post": f"n{first + i}", "held_from": 1, "traces": []} for i in range(400)]
            return self.ask(hub, "POST", "/v1/messages?host=mallory", messages)[1].get("accepted", 0)

        for _ in range(some(1 + 16081 // 400, 10)):
            made += name_some()
        for i in range(some(200, 20)):  # nor can it come by such a name
            self.ask(hub, "GET", f"/v1/messages?host=nobody-{i}&agent=x")
        self.steady(name_some)
        named = next(numbers)
        print(f"{made} of {named} names were taken")
        self.are_served(hub, f"{named} made-up names", 30)
        # one that comes for the first time
        self.assertEqual(self.ask(hub, "GET", "/v1/messages?host=late&agent=x", host="late")[0], 200)
        self.assertLess(made, 1024)

    def strangers(self, hub, count, wrap):
        """Connections from several addresses that say nothing more. Returns how many were made, and those that we have
        not closed: the last 4000, far more than the hub keeps."""
        opened, made = collections.deque(), 0
        for i in range(count):
            connection = socket.socket()
            connection.settimeout(5)
            try:
                connection.bind((f"127.0.{1 + i % 8}.1", 0))
                connection.connect(("127.0.0.1", hub.port))
                opened.append(wrap(connection))
                made += 1
            except OSError:
                connection.close()
            if len(opened) > 4000:
                opened.popleft().close()
        return made, opened

    def test_idle_connections(self):
        hub = self.guarded()
        made, opened = self.strangers(hub, some(65000, 600), lambda connection: connection)
        self.steady()
        self.are_served(hub, f"{made} idle connections", 36)
        for connection in opened:
            connection.close()

    def with_tls(self):
        """A hub, and what its certificate is verified with."""
        key, cert = os.path.join(self.folder, "key"), os.path.join(self.folder, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                        "-out", cert], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.guarded(hub_cert_file=cert, hub_key_file=key), ssl.create_default_context(cafile=cert)

    def test_idle_connections_with_tls(self):
        hub, context = self.with_tls()
        most = [0]

        def wrap(connection):
            wrapped = context.wrap_socket(connection, server_hostname="127.0.0.1")
            most[0] = max(most[0], memory(hub))
            return wrapped

        made, opened = self.strangers(hub, some(65000, 150), wrap)
        print(f"{made} handshakes, {most[0]:.1f} MiB at most")
        self.assertGreater(made, some(60000, 120))
        self.assertLess(most[0] - self.before, 100 if FULL else 36)
        self.steady()
        self.are_served(hub, f"{made} idle TLS connections", 36)
        for connection in opened:
            connection.close()

    def send_slowly(self, connections):
        for connection in connections:
            try:
                connection.send(b"x", socket.MSG_NOSIGNAL)
            except OSError:
                pass  # hung up on

    def open_with(self, hub, count, first_bytes):
        """So many connections of several addresses that have sent this."""
        def send(connection):
            connection.sendall(first_bytes)
            return connection
        connections = list(self.strangers(hub, count, send)[1])
        for connection in connections:
            self.addCleanup(connection.close)
        return connections

    def count_closed(self, connections):
        count = 0
        for connection in connections:
            connection.setblocking(False)
            try:
                count += connection.recv(65536) == b""
            except BlockingIOError:
                pass
            except OSError:
                count += 1
        return count

    def test_one_host_asks_for_everything(self):
        """The traces of the others are asked for all the same, and alone one host gets the most of the cap."""
        hub = self.guarded(hub_traces_per_s=400)
        numbers = itertools.count()

        def ask_for(host, count):
            number = next(numbers)
            message = {"type": "keep", "id": f"{host}:1:{number}", "host": host, "post": f"{host}:1:{number}", "at": 1,
                       "traces": [{"id": "%016x%016x" % (number + 1, i), "why": "*>1ms"} for i in range(count)]}
            answer = self.ask(hub, "POST", f"/v1/messages?host={host}", [message], host=host)[1]
            if "dropped" not in answer:  # it has posted too much
                return 0
            return count - sum(len(one["traces"]) for one in answer["dropped"])
        self.assertGreater(ask_for("mallory", 1000), 100)
        self.phase("steady")
        most = len(self.real[0].posted) + some(200, 40)
        while len(self.real[0].posted) < most:
            self.assertLess(ask_for("mallory", 100), 100)
            self.assertEqual(self.real[0].capped + self.real[1].capped, [])
        self.are_served(hub, "a host that asks for everything", 30)
        hosts = hub.ask("GET", "/v1/hosts", None, {"Authorization": "Bearer " + self.token("late")})[1]["hosts"]
        self.assertEqual({one["host"] for one in hosts if one["dropped_traces"]}, {"mallory"})

    def test_slow_requests(self):
        """A byte now and then: of heads, by anybody; of bodies, by one that has a token."""
        hub = self.guarded()
        head = b"POST /v1/messages?host=mallory HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        heads = self.open_with(hub, some(3500, 200), head + b"X-Slow: ")
        bodies = self.open_with(hub, some(400, 16), head + f"Authorization: Bearer {self.token('mallory')}\r\n"
                                f"Content-Length: 1000000\r\n\r\n[{' ' * 200000}".encode())
        self.steady(lambda: self.send_slowly(heads + bodies))
        self.assertEqual(self.ask(hub, "GET", "/v1/messages?host=late&agent=x", host="late")[0], 200)
        wait_until(lambda: self.count_closed(bodies) >= len(bodies) - 4, "a host has 4 connections")
        if FULL:  # a byte each second does not help them
            def all_are_closed():
                self.send_slowly(heads)
                return self.count_closed(heads) == len(heads)
            wait_until(all_are_closed, lambda: f"{self.count_closed(heads)} of {len(heads)} closed", 13, every_s=1)
        self.are_served(hub, f"{len(heads)} slow heads, {len(bodies)} slow bodies", 30)

    def test_handshakes_that_do_not_end(self):
        hub, context = self.with_tls()
        hello = self.hello(context)
        # a ClientHello of two records: it waits for its second half, and all could get it at once
        split = b"\x16\x03\x01" + struct.pack(">H", 100) + hello[5:105]
        open_ones = [self.open_with(hub, some(300, 40), begin) for begin in (b"", hello[:-1], split, hello)]
        wait_until(lambda: self.count_closed(open_ones[2]) == len(open_ones[2]), "none is let in that is split")
        started = time.monotonic()
        with socket.create_connection(("127.0.0.1", hub.port)) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as late:
                late.sendall(f"GET /v1/messages?host=late&agent=x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                             f"application/json\r\nAuthorization: Bearer {self.token('late')}\r\n\r\n".encode())
                self.assertIn(b" 200 OK", late.recv(1000))
        took_ms = (time.monotonic() - started) * 1000
        print(f"one that comes for the first time is served after {took_ms:.1f} ms")
        if FULL:
            self.assertLess(took_ms, 1000)
        self.steady()
        self.are_served(hub, f"{sum(map(len, open_ones))} handshakes that do not end", 36)

    def hello(self, context):
        """The first bytes of a handshake."""
        hello = ssl.MemoryBIO()
        begun = context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="127.0.0.1")
        self.assertRaises(ssl.SSLWantReadError, begun.do_handshake)
        return hello.read()

    def test_all_hosts_come_back_at_once(self):
        """No attack: a hub was started again, and 1000 recorders have two connections each. None is hung up on."""
        hub, context = self.with_tls()
        herd = Flood(hub.port, 2000, self.hello(context), addresses=1000, at_once=False)
        self.addCleanup(herd.end)
        wait_until(lambda: herd.answered > some(10000, 1200), lambda: f"{herd.answered} handshakes")
        print(f"{herd.answered} handshakes begun, {herd.refused} connections hung up on")
        self.assertEqual(herd.refused, 0)
        self.steady()
        self.are_served(hub, "handshakes of 1000 hosts", 60)

    def test_handshakes_at_once(self):
        """They cost the attacker nothing: each connection sends the same bytes, and the hub has to sign its answer."""
        hub, context = self.with_tls()
        flood = Flood(hub.port, some(1024, 128), self.hello(context))
        self.addCleanup(flood.end)
        wait_until(lambda: flood.answered > some(5000, 200), "the flood")
        peak = [0]

        def look():
            peak[0] = max(peak[0], memory(hub))
        self.steady(look)
        print(f"{flood.answered} handshakes begun, {flood.refused} connections hung up on; {peak[0]:.1f} MiB at most")
        self.are_served(hub, f"{flood.connections} handshakes at once", 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
