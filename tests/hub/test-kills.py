#!/usr/bin/env python3
# The hub is killed at random moments while messages flow, and started again after a random time: every request
# arrives at every other host, and every answer at the one who has asked, exactly once. KILLS=1000 is a long run.
# timeout: 7200
# SPDX-License-Identifier: BSD-2-Clause
import collections
import os
import random
import time
import unittest

from parts import HubTest, SlowNetwork, wait_until

KILLS = int(os.environ.get("KILLS", "12"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))


class Kills(HubTest):
    def is_same(self, peer, what, got, expected):
        got, expected = collections.Counter(got), collections.Counter(expected)
        lost, more = sorted((expected - got).elements()), sorted((got - expected).elements())
        self.assertFalse(lost or more, f"{peer.name}: of {sum(expected.values())} {what} {len(lost)} lost ({lost[:5]}), "
                                       f"{len(more)} too many ({more[:5]})")

    def check(self, names, peers):
        def missing():
            return sum((len(names) - 1) * len(peer.posted) - len(peer.answers[peer.name]) for peer in peers)

        # all that was posted is younger than the exchange keeps it
        wait_until(lambda: missing() <= 0, lambda: f"all answers: {missing()} are missing", 60)
        # a double would come before what is posted now
        posted = len(peers[0].posted)
        peers[0].say("post 1")
        wait_until(lambda: len(peers[0].posted) > posted and missing() <= 0, "all answers to one more")
        for peer in peers:
            others = [other for other in peers if other is not peer]
            self.is_same(peer, "requests", peer.got(), sum((other.posted for other in others), []))
            self.is_same(peer, "answers", [answer[:2] for answer in peer.answers[peer.name]],
                         [(one, other.name) for one in peer.posted for other in others])
            report = peer.report()
            self.assertEqual([report[name] for name in ("dropped", "refused", "malformed", "dropped_traces")],
                             [0, 0, 0, 0], report)

    def test_kills(self):
        chance = random.Random(SEED)
        print(f"KILLS={KILLS} SEED={SEED}")
        hub = self.hub(hub_traces_per_s=100000)
        network = SlowNetwork(hub.port, 0.01)
        self.addCleanup(network.close)
        names = ["store-1", "store-2", "store-3", "store-4"]
        # two of them are far away
        peers = [self.peers(hub.url if i < 2 else network.url, name, "--answer") for i, name in enumerate(names)]
        for peer in peers:
            peer.wait_state(hosts=names)
        begin = time.monotonic()
        for kill in range(KILLS):
            if kill % 50 == 0:
                for peer in peers:
                    peer.say("every 100")
            time.sleep(chance.uniform(0, 2))
            hub.kill()
            # mostly as quick as systemd would, now and then long
            time.sleep(chance.uniform(0, 5) if kill % 20 == 7 else chance.uniform(0, 0.3))
            hub.start().wait_ready()
            if kill % 50 == 49 or kill == KILLS - 1:
                for peer in peers:
                    peer.say("every 0")
                self.check(names, peers)
                print(f"{kill + 1} kills", flush=True)
        seconds = time.monotonic() - begin
        self.assertGreater(min(len(peer.posted) for peer in peers), KILLS)
        took = [us / 1000 for peer in peers for _, us in peer.requests[peer.name]]
        print(f"{KILLS} kills in {seconds:.0f} s: {sum(len(peer.posted) for peer in peers)} requests, {len(took)} "
              f"deliveries, {sum(len(peer.answers[peer.name]) for peer in peers)} answers; delivery p50 "
              f"{self.percentile(took, 0.5):.0f} ms, p99 {self.percentile(took, 0.99):.0f} ms, "
              f"longest {max(took):.0f} ms")


if __name__ == "__main__":
    unittest.main(verbosity=2)
