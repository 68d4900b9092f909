#!/usr/bin/env python3
# Many hosts at one hub, some of them slow: each gets each request, once; memory, descriptors and CPU are told. And
# how long a request takes over a network with round trips of 100 ms. HOSTS=1000 is what the manual's figures are of.
# timeout: 600
# SPDX-License-Identifier: BSD-2-Clause
import os
import resource
import socket
import time
import unittest

from parts import HubTest, SlowNetwork, wait_until

IS_LONG = "HOSTS" in os.environ  # for figures
HOSTS = int(os.environ.get("HOSTS", "200"))
REQUESTS = int(os.environ.get("REQUESTS", "100"))
TICKS = os.sysconf("SC_CLK_TCK")


def usage(pid):
    """MiB of memory, open descriptors, threads, seconds of CPU."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        times = stat.read().rsplit(")", 1)[1].split()
    return (int(fields["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"]),
            (int(times[11]) + int(times[12])) / TICKS)


class Crowd(HubTest):
    def test_many_hosts(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        hub = self.hub(hub_traces_per_s=100000)
        empty = usage(hub.process.pid)
        begin = time.monotonic()
        crowd = self.peers(hub, "store", count=HOSTS)
        asker = self.peers(hub, "asker").wait_state()
        wait_until(lambda: hub.metric("hosts") == HOSTS + 1, "all are there", 60)
        there_s = time.monotonic() - begin
        wait_until(lambda: len(asker.report()["hosts"]) == HOSTS + 1, "it knows them all")
        wait_until(lambda: usage(hub.process.pid)[1] <= empty[1] + HOSTS + 10, "a connection for each, which waits")
        waiting = usage(hub.process.pid)
        begin = time.monotonic()
        time.sleep(5 if IS_LONG else 0.5)
        calm_cpu = (usage(hub.process.pid)[3] - waiting[3]) / (time.monotonic() - begin)
        before = usage(hub.process.pid)
        begin = time.monotonic()
        for _ in range(REQUESTS):
            asker.say("post 1")
            time.sleep(0.01)
        wait_until(lambda: sum(len(got) for got in list(crowd.requests.values())) >= HOSTS * REQUESTS,
                   "all requests at all hosts", 120)
        seconds = time.monotonic() - begin
        after = usage(hub.process.pid)
        self.assertEqual(len(crowd.requests), HOSTS)
        for host in crowd.requests:
            self.assertEqual(crowd.got(host), asker.posted)
        took = [us / 1000 for got in crowd.requests.values() for _, us in got]
        print(f"{HOSTS} hosts, there in {there_s:.1f} s: {waiting[0]:.1f} MiB ({empty[0]:.1f} without them), "
              f"{waiting[1]} descriptors, {waiting[2]} thread, {100 * calm_cpu:.1f} % of a core while they wait; "
              f"{REQUESTS} requests to all in {seconds:.1f} s: {1e6 * (after[3] - before[3]) / len(took):.1f} us of CPU "
              f"a delivery, {after[0]:.1f} MiB; delivery p50 {self.percentile(took, 0.5):.0f} ms, "
              f"p99 {self.percentile(took, 0.99):.0f} ms")
        self.assertEqual(waiting[2], 1)
        self.assertLess(waiting[0] - empty[0], 0.05 * HOSTS)  # 50 KiB each would be too much
        crowd.kill()
        wait_until(lambda: usage(hub.process.pid)[1] < empty[1] + 10, "connections of the dead are closed")

    def test_slow_readers_delay_nobody(self):
        hub = self.hub(hub_traces_per_s=100000)
        peers = [self.peers(hub, name).wait_state() for name in ("a", "b")]
        peers[0].wait_state(hosts=["a", "b"])
        slow = []
        for i in range(50):  # they ask, and read nothing of long answers
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", hub.port))
            connection.sendall(f"GET /v1/messages?host=slow-{i}&agent=x&wait=20000 HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/json\r\n\r\n".encode())
            self.addCleanup(connection.close)
            slow.append(connection)
        for connection in slow[25:]:  # or send a byte now and then
            connection.sendall(b"POST /v1/messages?host=slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n[")
        for connection in slow[:25]:
            for _ in range(10):
                connection.sendall(b"GET /v1/messages?host=slow HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Content-Type: application/json\r\n\r\n")
        peers[0].say("post 100 100000")  # 10 MB
        wait_until(lambda: len(peers[1].got()) == 100, "all", 60)
        self.assertLess(usage(hub.process.pid)[0], 200)
        self.assertEqual(peers[1].got(), peers[0].posted)

    def test_how_long_it_takes(self):
        hub = self.hub(hub_traces_per_s=100000)
        network = SlowNetwork(hub.port, 0.05)
        self.addCleanup(network.close)
        names = ["store-1", "store-2", "store-3", "store-4"]
        peers = [self.peers(network.url, name, "--answer") for name in names]
        for peer in peers:
            peer.wait_state(hosts=names)
        for pause_s, rounds in [(0.4, 5 if IS_LONG else 1), (0.02, REQUESTS // 2)]:
            requests, answers = [], []
            for peer in peers:
                requests.append(len(peer.requests[peer.name]))
                answers.append(len(peer.answers[peer.name]))
            for _ in range(rounds):
                for peer in peers:
                    peer.say("post 1")
                    time.sleep(pause_s)
            for peer, before in zip(peers, answers):
                wait_until(lambda: len(peer.answers[peer.name]) == before + 3 * rounds, "answers")
            took = [us / 1000 for peer, before in zip(peers, requests) for _, us in peer.requests[peer.name][before:]]
            answered = [us / 1000 for peer, before in zip(peers, answers) for *_, us in peer.answers[peer.name][before:]]
            self.assertGreater(min(took), 100)  # the network was as slow as it should be
            self.assertLess(self.percentile(answered, 0.5), 10000)
            print(f"4 hosts, round trips of 100 ms, {1 / pause_s:.1f} requests/s: posted to received p50 "
                  f"{self.percentile(took, 0.5):.0f} ms, p99 {self.percentile(took, 0.99):.0f} ms; to the answer p50 "
                  f"{self.percentile(answered, 0.5):.0f} ms, p99 {self.percentile(answered, 0.99):.0f} ms")


if __name__ == "__main__":
    unittest.main(verbosity=2)
