#!/usr/bin/env python3
# The exchange through a topic of a real Kafka: what one posts all others get, once, also when the broker is killed and
# started again; who is there is known; what is wrong is said.
# timeout: 300
# SPDX-License-Identifier: BSD-2-Clause
import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/kafka"))
from broker import Broker, fetch_kafka  # noqa: E402
from parts import HubTest, free_port, wait_until  # noqa: E402

class Kafka(HubTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.broker = Broker(JARS, folder.name)
        cls.broker.start()
        cls.addClassCleanup(cls.broker.kill)
        cls.broker.wait_ready()

    def url(self, port=None, topic=None):
        return f"kafka://127.0.0.1:{port or self.broker.port}/{topic or self.id().rsplit('.', 1)[1]}"

    def talk(self, names, **keys):
        peers = [self.peers(self.url(), name, "--answer", **keys) for name in names]
        for peer in peers:
            peer.wait_state(hosts=names, limit_s=60)
        return peers

    def check(self, peers):
        for peer in peers:
            peer.report()  # what it was told to post before is in peer.posted then
        for peer in peers:
            wait_until(lambda: len(peer.answers[peer.name]) >= (len(peers) - 1) * len(peer.posted),
                       lambda: f"{peer.name} has {len(peer.answers[peer.name])} answers", 60)
        time.sleep(0.5)  # a double would come now
        for peer in peers:
            others = [other for other in peers if other is not peer]
            self.assertCountEqual(peer.got(), sum((other.posted for other in others), []))
            self.assertCountEqual([answer[:2] for answer in peer.answers[peer.name]],
                                  [(one, other.name) for one in peer.posted for other in others])
            report = peer.report()
            self.assertEqual([report[name] for name in ("dropped", "refused", "malformed")], [0, 0, 0], report)

    def test_all_others_get_it(self):
        peers = self.talk(["store-1", "store-2", "store-3"])
        for peer in peers:
            peer.say("post 20")
        self.check(peers)
        took = [us / 1000 for peer in peers for _, us in peer.requests[peer.name]]
        print(f"delivery p50 {self.percentile(took, 0.5):.1f} ms, p99 {self.percentile(took, 0.99):.1f} ms")
        self.assertEqual(peers[0].report()["url"], self.url())
        # garbage in the topic harms nobody
        producer = self.peers(self.url(), "garbage").wait_state(limit_s=60)
        producer.say('raw {"type":"keep","id":"x","host":"garbage","at":1,"traces":[]}')
        wait_until(lambda: "x" in peers[0].got(), "a request without traces")

    def test_the_cap_is_for_all_and_is_told(self):
        """Nobody holds it in a topic: each applies it to what it reads."""
        peers = self.talk(["store-1", "store-2", "store-3"], hub_traces_per_s=10)
        peers[0].say("post 40")
        wait_until(lambda: peers[0].capped, "that the cap has dropped some", 60)
        for peer in peers[1:]:
            # each by its own clock
            wait_until(lambda: abs(len(peer.got()) + len(peers[0].capped) - 40) <= 2, "each was given or dropped", 60)
        self.assertGreaterEqual(len(peers[1].got()), 10)
        self.assertEqual(peers[0].report()["dropped_traces"], sum(count for _, count in peers[0].capped))
        self.assertEqual([peer.report()["dropped_traces"] for peer in peers[1:]], [0, 0])

    def test_the_broker_is_killed(self):
        peers = self.talk(["store-1", "store-2", "store-3"], hub_traces_per_s=100000)
        for peer in peers:
            peer.say("every 200")
        for _ in range(int(os.environ.get("BROKER_KILLS", "1"))):
            time.sleep(1)
            self.broker.kill()
            for peer in peers:
                wait_until(lambda: peer.report()["state"] == "away", f"{peer.name} says that the broker is away", 60)
            self.broker.start()
            self.broker.wait_ready()
            for peer in peers:
                peer.wait_state(limit_s=60)
        for peer in peers:
            peer.say("every 0")
        self.check(peers)

    def test_users_and_what_is_wrong(self):
        def settings(name, password, mode=0o600):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"# a user\nsecurity.protocol=sasl_plaintext\nsasl.mechanisms=PLAIN\nsasl.username=blkin\n"
                           f"\nsasl.password={password}\n")
            os.chmod(path, mode)
            return path

        url = self.url(port=self.broker.sasl_port)
        right = settings("right", "open-sesame")
        peers = [self.peers(url, name, "--answer", hub_kafka_file=right) for name in ("a", "b")]
        for peer in peers:
            peer.wait_state(hosts=["a", "b"], limit_s=60)
        peers[0].say("post 1")
        self.check(peers)
        wrong = self.peers(url, "wrong", hub_kafka_file=settings("wrong", "open-says-me"))
        wait_until(lambda: "Authentication failed" in wrong.report()["error"], lambda: wrong.report(), 60)
        self.assertIn("see hub-kafka-file", wrong.report()["error"])
        self.assertNotIn("open-says-me", wrong.said())
        nobody = self.peers(self.url(port=free_port()), "nobody")
        wait_until(lambda: "Connection refused" in nobody.report()["error"], lambda: nobody.report(), 60)
        with open(os.path.join(self.folder, "bad"), "w", encoding="utf-8") as file:
            file.write("no.such.key=1\n")
        os.chmod(file.name, 0o600)
        for given, text in [({"hub": "kafka://"}, "expected kafka://BROKER"), ({"hub": "kafka://a"}, "expected kafka://"),
                            ({"hub": "kafka://user:secret@a/t"}, "are in hub-kafka-file"),
                            ({"hub": "kafka://a/t/x"}, "expected kafka://"),
                            ({"hub": url, "hub_kafka_file": file.name}, 'no.such.key'),
                            ({"hub": url, "hub_kafka_file": self.folder + "/none"}, "cannot read it"),
                            ({"hub": url, "hub_kafka_file": settings("open", "x", 0o644)}, "others than its owner")]:
            peer = self.peers(given.pop("hub"), "wrong-given", **given)
            self.assertEqual(peer.process.wait(10), 1)
            self.assertIn(text, peer.said())
            self.assertNotIn("secret@", peer.said())


if __name__ == "__main__":
    JARS = fetch_kafka()
    unittest.main(verbosity=2)
