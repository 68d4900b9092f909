#!/usr/bin/env python3
# The exchange through a topic of a real Kafka: what one posts all others get, once, also when the broker is killed and
# started again; who is there is known; what is wrong is said.
# timeout: 300
# SPDX-License-Identifier: BSD-2-Clause
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from parts import ENVIRONMENT, HubTest, Peers, free_port, wait_until  # noqa: E402

START_S = 100  # of a broker, on a busy machine


class Broker:
    def __init__(self, jars, folder):
        self.folder = folder
        self.port, self.sasl_port, controller = free_port(), free_port(), free_port()
        self.java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}",
                     "-cp", f"{jars}/*"]
        self.properties = os.path.join(folder, "server.properties")
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        with open(self.properties, "w", encoding="utf-8") as file:
            file.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} user_blkin="open-sesame";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""")
        subprocess.run(self.java + ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c",
                                    self.properties], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process = None

    def start(self):
        with open(os.path.join(self.folder, "kafka.log"), "ab") as log:
            self.process = subprocess.Popen(self.java + ["kafka.Kafka", self.properties], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=ENVIRONMENT)

    def wait_ready(self):
        def listens():
            self_ended = self.process.poll()
            if self_ended is not None:
                raise AssertionError(f"Kafka has ended with status {self_ended}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        wait_until(listens, "Kafka listens", START_S)

    def kill(self):
        self.process.kill()
        self.process.wait()


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


def reason_to_skip():
    """And sets JARS."""
    global JARS
    fetched = subprocess.run([os.environ["SRC"] + "/scripts/fetch-kafka"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, check=False)
    JARS = fetched.stdout.strip()
    if fetched.returncode:
        return "no Kafka: " + fetched.stderr.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory() as folder:
        peer = Peers(folder, "kafka://127.0.0.1:1/x", "probe")
        peer.process.stdin.close()
        peer.process.wait(10)
        peer.reader.join()
        peer.process.stdout.close()
        return "this build is without librdkafka" if "not in this build" in peer.said() else None


if __name__ == "__main__":
    reason = reason_to_skip()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
