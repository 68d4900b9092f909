#!/usr/bin/env python3
# Agents find each other at a real mosquitto, with the configuration that is shipped. Cases: presence; wants and
# answers once each; a broker that is killed at random moments; hosts that go and are forgotten; names of other hosts;
# passwords and certificates; one configuration for all agents.
#
# KILLS=1000 is a long run. HOSTS, PROCESSES, WANTS_PER_S, BATCH (traces of a want) and LOAD_S are for test_crowd.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
import collections
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import ENVIRONMENT, LIMIT_S, cpu_s, free_port, pause, wait_until  # noqa: E402
from part import Part, options  # noqa: E402

BUILD, SRC = os.environ["BUILD"], os.environ["SRC"]
BLKIN = os.environ.get("BLKIN", os.path.join(BUILD, "bin/blkin"))
PEER = os.path.join(BUILD, "tests/cluster/peer")
MOSQUITTO = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
KILLS = int(os.environ.get("KILLS", "10"))
HOSTS, PROCESSES, WANTS_PER_S, BATCH, LOAD_S = (int(os.environ.get(name, usual)) for name, usual in (
    ("HOSTS", 30), ("PROCESSES", 1), ("WANTS_PER_S", 50), ("BATCH", 1), ("LOAD_S", 4)))
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))


def run(*args):
    subprocess.run(args, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(text)
    return path


class Broker(Part):
    """mosquitto with the lines of a configuration."""

    def __init__(self, folder, lines, scheme="mqtt"):
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        # as root, mosquitto would change to a user who may not read the test's folder
        super().__init__(os.path.join(folder, "broker.log"), [MOSQUITTO, "-c", write(
            os.path.join(folder, f"broker-{self.port}.conf"), f"listener {self.port} 127.0.0.1\nuser root\n{lines}")])

    def listens(self):
        return f":{self.port} " in subprocess.run(["ss", "-ltn"], stdout=subprocess.PIPE, text=True, check=True).stdout

    def start(self):
        super().start()
        wait_until(lambda: self.listens() or not self.runs(), "the broker listens")
        return self


class Agent(Part):
    """blkin agent on this host, with the lines of a configuration."""

    def __init__(self, folder, lines):
        self.file, self.lines = f"{folder}/blkin.conf", f"""runtime-dir = {folder}/run
state-dir = {folder}/state
ring-socket = {folder}/rings
log-level = info
{lines}
"""
        self.write("")
        super().__init__(f"{folder}/agent.log", [BLKIN, "agent", f"--config={self.file}"],
                         BABELTRACE_PLUGIN_PATH=f"{BUILD}/plugins")

    def write(self, more):
        write(self.file, self.lines + more)

    def ask(self, *args):
        return subprocess.run([BLKIN, *args, f"--config={self.file}"], env=self.environment, timeout=LIMIT_S, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def status(self):
        for _ in range(3):  # a busy agent may miss the time limit of an answer
            answer = self.ask("status", "--json", "agent")
            if answer.returncode == 0:
                return json.loads(answer.stdout)
        return {}

    def wait(self, what, of):
        return wait_until(lambda: of(self.status()), lambda: f"{what}; {self.status()}, {self.said()}", every_s=0.1)

    def check_fails(self, check, why):
        """Waits until the doctor's check fails for this reason, a regular expression."""
        wait_until(lambda: any(one["id"] == check and one["level"] == "bad" and re.search(why, one["saw"])
                               for one in json.loads(self.ask("doctor", "--json").stdout)["checks"]), f"{check}: {why}")


class Peers(Part):
    """A process with one host or more. Its output is in sent, wants, answers, over."""

    def __init__(self, folder, broker, name, *flags, **keys):
        keys = {"name": name, "cluster": broker.url, "runtime_dir": f"{folder}/run-{name}", "state_dir": folder,
                "cluster_wants_per_s": 100000, **keys}
        super().__init__(os.path.join(folder, f"{name}.log"), [PEER, *flags, *options(keys)])
        self.name, self.sent, self.over, self.reports = name, [], [], {}
        self.wants = collections.defaultdict(list)  # by host: (id, us)
        self.answers = collections.defaultdict(list)  # by host: (id, from, us)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            text=True, bufsize=1, env=ENVIRONMENT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            what, host, *rest = line.split(" ", 2)
            values = rest[0].split() if rest else []
            if what == "P":
                self.sent.append(values[0])
            elif what == "R":
                self.wants[host].append((values[0], int(values[1])))
            elif what == "O":
                self.over.append(values[0])
            elif what == "A":
                self.answers[host].append((values[0], values[1], int(values[2])))
            elif what in "JF":
                self.reports[host] = json.loads(" ".join(rest))

    def say(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def report(self, host=None, order="json"):
        """Returns the current cluster_json() of a host, or with order="figures" the figures of the load."""
        host = host or self.name
        self.reports.pop(host, None)
        self.say(order)
        return wait_until(lambda: self.reports.get(host), f"{self.name} reports")

    def wait_state(self, state="connected", hosts=None, away=None, host=None):
        def is_so():
            report = self.report(host)
            return (report["state"] == state and (hosts is None or sorted(report["hosts"]) == sorted(hosts)) and
                    (away is None or sorted(report["away"]) == sorted(away)))
        wait_until(is_so, lambda: f"{self.name}: {state}, hosts {hosts}, away {away}; it is {self.report(host)}")
        return self

    def wait_problem(self, text):
        wait_until(lambda: text in self.report()["error"], lambda: f"{text}; it says {self.report()['error']}")

    def got(self, host=None):
        return [want[0] for want in self.wants[host or self.name]]

    def kill(self):
        super().kill()
        self.reader.join(LIMIT_S)

    def end(self):
        status = super().end()
        self.reader.join(LIMIT_S)
        self.process.stdin.close()
        self.process.stdout.close()
        return status


class ClusterTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def broker(self, lines="allow_anonymous true", scheme="mqtt"):
        broker = Broker(self.folder, lines, scheme)
        self.addCleanup(lambda: self.assertIn(broker.end(), (0, -signal.SIGKILL), broker.said()))
        return broker

    def peers(self, broker, name, *flags, **keys):
        peers = Peers(self.folder, broker, name, *flags, **keys)
        self.addCleanup(lambda: self.assertIn(peers.end(), (0, 1, -signal.SIGKILL), peers.said()))
        return peers

    def shipped(self, *more):
        """Returns the lines of packaging/mosquitto, with the test's files in place of those in /etc/mosquitto."""
        with open(f"{SRC}/packaging/mosquitto/blkin.conf", encoding="utf-8") as file:
            lines = re.sub(r"/etc/mosquitto(/certs)?", self.folder, file.read())
        shutil.copy(f"{SRC}/packaging/mosquitto/blkin.acl", self.folder)
        lines = re.sub(r"(?m)^listener .*\n", "", lines)
        for pattern, text in more:
            lines = re.sub(f"(?m){pattern}", text, lines)
        return lines

    def make_passwords(self, *names):
        for i, name in enumerate(names):
            run("mosquitto_passwd", "-b", *(["-c"] if i == 0 else []), f"{self.folder}/blkin.passwd", name, f"of-{name}")
            write(f"{self.folder}/{name}.password", f"of-{name}\n")

    def make_certificates(self, *names):
        folder = self.folder
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/ca.key", "-out",
            f"{folder}/ca.crt", "-subj", "/CN=test CA", "-days", "2")
        for name in ("broker", *names):
            run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/{name}.key", "-out",
                f"{folder}/{name}.csr", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1")
            run("openssl", "x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/ca.crt", "-CAkey",
                f"{folder}/ca.key", "-CAcreateserial", "-out", f"{folder}/{name}.crt", "-days", "2", "-copy_extensions",
                "copy")

    # ---- presence

    def test_presence(self):
        broker = self.broker("allow_anonymous true\npersistence false")
        first = self.peers(broker, "store-1", "--answer")
        wait_until(lambda: "not connected yet" not in first.report()["error"], "the host has tried to connect")
        # the agent does not know yet which hosts a trace may have passed
        self.assertEqual(first.report()["hosts"], ["store-1", broker.url])
        broker.start()
        first.wait_state(hosts=["store-1"])
        second = self.peers(broker, "store-2", "--answer").wait_state(hosts=["store-1", "store-2"])
        first.wait_state(hosts=["store-1", "store-2"], away=[])
        first.say("want 1 100000")
        wait_until(lambda: first.answers["store-1"], "the answer to a long message")

        # a trace may have passed a host that is away; the host gets the missed messages later
        second.kill()
        first.wait_state(hosts=["store-1", "store-2"], away=["store-2"])
        first.say("want 8")
        wait_until(lambda: first.report()["sent"] == 9, "the broker has the wants")
        # the wants are within the share of a second; the host knows store-1 from its file
        again = self.peers(broker, "store-2", "--answer", cluster_wants_per_s=10).wait_state()
        wait_until(lambda: set(first.sent[1:]) <= {answer[0] for answer in first.answers["store-1"]},
                   lambda: f"all answers of the host that is back; over its share: {again.over}")

        # a host that starts while the broker is away knows the hosts, too
        for peer in (again, first):
            peer.end()
        broker.kill()
        first = self.peers(broker, "store-1")
        self.assertEqual(sorted(first.report()["hosts"]), ["store-1", "store-2"])
        broker.start()
        first.wait_state(hosts=["store-1", "store-2"], away=["store-2"])

        # an administrator removes the host
        run("mosquitto_pub", "-p", str(broker.port), "-r", "-n", "-t", "blkin/store-2/state")
        first.wait_state(hosts=["store-1"])

    def test_same_name(self):
        broker = self.broker().start()
        first = self.peers(broker, "store-1").wait_state()
        self.peers(broker, "store-1", runtime_dir=f"{self.folder}/other").wait_state()
        first.wait_problem("another agent connects with this host's name")

    def test_shares(self):
        broker = self.broker().start()
        asked = self.peers(broker, "store-1", cluster_wants_per_s=5).wait_state()
        loud = self.peers(broker, "store-2").wait_state(hosts=["store-1", "store-2"])
        quiet = self.peers(broker, "store-3").wait_state(hosts=["store-1", "store-2", "store-3"])
        begun = time.monotonic()
        loud.say("want 200")
        wait_until(lambda: len(asked.got()) + len(asked.over) == 200, "200 wants")
        self.assertGreater(len(asked.over), 140 - 5 * (time.monotonic() - begun))  # a host saves up the share of 10 s
        quiet.say("want 2")
        wait_until(lambda: len(quiet.sent) == 2 and set(quiet.sent) <= set(asked.got()), "the other host's wants")

    def test_strange_messages(self):
        broker = self.broker().start()
        peer = self.peers(broker, "store-1").wait_state()
        named = {"id": "x", "number": "x", "at": 1, "held_from": 0, "traces": []}
        for topic, text in (("blkin/store-2/want", "[]"), ("blkin/store-2/want", "{"), ("blkin/store-2/want", "{}"),
                            ("blkin/store-2/found/store-1", json.dumps({**named, "settled": ["abc"]})),
                            ("blkin/store-2/want", json.dumps({**named, "last_ms": 1})),
                            ("blkin/store-2/found/store-1", '{"id": 7}'), ("blkin/store-2/want", "[" * 5000)):
            run("mosquitto_pub", "-p", str(broker.port), "-q", "1", "-t", topic, "-m", text)
        for topic in ("blkin/a b/want", "blkin/-/state", "blkin//want", "blkin/store-2/wants"):
            run("mosquitto_pub", "-p", str(broker.port), "-q", "1", "-t", topic, "-m", "{}")
        run("mosquitto_pub", "-p", str(broker.port), "-q", "1", "-t", "blkin/store-3/state", "-m", "nonsense")
        # a want without presence counts for the host's share, but does not make the host a known one
        want = {"id": "1", "number": "1", "at": 1, "traces": [{"id": "0" * 32, "why": "slow"}]}
        run("mosquitto_pub", "-p", str(broker.port), "-q", "1", "-t", "blkin/store-4/want", "-m", json.dumps(want))
        wait_until(lambda: peer.report()["received"] == 1, "the want of store-4")
        peer.wait_state(hosts=["store-1", "store-3"], away=["store-3"])
        self.assertEqual(peer.report()["malformed"], 7)
        self.assertIn("a message of host store-2 has a wrong form", peer.said())

    def missing(self, peers):
        return sum((len(peers) - 1) * len(peer.sent) - len(peer.answers[peer.name]) for peer in peers)

    def test_kills(self):
        chance = random.Random(SEED)
        print(f"KILLS={KILLS} SEED={SEED}")
        broker = self.broker().start()
        names = ["store-1", "store-2", "store-3", "store-4"]
        peers = [self.peers(broker, name, "--answer") for name in names]
        for peer in peers:
            peer.wait_state(hosts=names)
            peer.say("load 10")
        for _ in range(KILLS):
            pause(chance.uniform(0, 1.5))
            broker.kill()
            pause(chance.uniform(0, 0.5))
            broker.start()
        for peer in peers:
            peer.say("load 0")
            peer.report()  # then it sends no more wants
        wait_until(lambda: self.missing(peers) <= 0, lambda: f"all answers: {self.missing(peers)} are missing", 60)
        for peer in peers:
            others, report = [other for other in peers if other is not peer], peer.report()  # behind its other lines
            self.assertEqual(sorted(peer.got()), sorted(sum((other.sent for other in others), [])))
            self.assertEqual(sorted(answer[:2] for answer in peer.answers[peer.name]),
                             sorted((one, other.name) for one in peer.sent for other in others))
            self.assertEqual([report[name] for name in ("dropped", "refused", "malformed")], [0, 0, 0])
        print(f"{KILLS} kills: {sum(len(peer.sent) for peer in peers)} wants, none lost, none twice")

    def test_crowd(self):
        broker = self.broker(self.shipped(("^(cafile|certfile|keyfile|password_file|acl_file).*", ""),
                                          ("^allow_anonymous.*", "allow_anonymous true"))).start()
        count = HOSTS // PROCESSES
        crowd = [self.peers(broker, f"store{i}", "--answer", "--quiet", f"--count={count}") for i in range(PROCESSES)]
        names = {f"{peers.name}-{i + 1}": peers for peers in crowd for i in range(count)}
        for name, peers in names.items():
            peers.wait_state(hosts=names, host=name)
        before = [cpu_s(part.process.pid) for part in (broker, *crowd)]
        for peers in crowd:
            peers.say(f"load {WANTS_PER_S // BATCH // PROCESSES} {BATCH}")
        pause(LOAD_S)
        for peers in crowd:
            wait_until(lambda: peers.report(order="figures")["wants"], "wants")  # pylint: disable=cell-var-from-loop
            peers.say("load 0")

        def has_all():
            figures[:] = [peers.report(order="figures") for peers in crowd]
            return sum(one["answers"] for one in figures) == sum(one["wants"] for one in figures) * (len(names) - 1)
        figures = []
        wait_until(has_all, lambda: f"all answers: {[(one['wants'], one['answers']) for one in figures]}", 60)
        cpu = [(cpu_s(part.process.pid) - start) / LOAD_S for part, start in zip((broker, *crowd), before)]
        after = sorted(ms for one in figures for ms, times in enumerate(one["ms"]) for _ in range(times))
        print(f"{len(names)} hosts, {sum(one['wants'] for one in figures) / LOAD_S:.0f} wants of {BATCH} traces a second: "
              f"{len(after)} answers; want to found p50 {after[len(after) // 2]} ms, p99 {after[len(after) * 99 // 100]} ms, "
              f"longest {after[-1]} ms; CPUs: broker {cpu[0]:.2f}, hosts {sum(cpu[1:]):.2f}; load {os.getloadavg()[0]:.1f}")

    # ---- the configuration that is shipped

    def test_passwords(self):
        self.make_passwords("store-1", "store-2", "blkin-admin")
        self.make_certificates()
        broker = self.broker(self.shipped(), "mqtts").start()

        def join(name, **keys):
            return self.peers(broker, name, "--answer", cluster_ca_file=f"{self.folder}/ca.crt",
                              **{"cluster_password_file": f"{self.folder}/{name}.password", **keys})
        first, second = join("store-1"), join("store-2")
        for peer in (first, second):
            peer.wait_state(hosts=["store-1", "store-2"])
        first.say("want 1 100000")
        wait_until(lambda: first.answers["store-1"], "the answer to a long message")

        # a host with another host's password connects, but the broker refuses its messages
        join("store-3", cluster_user="store-2", cluster_password_file=f"{self.folder}/store-2.password").wait_state()
        liar = join("store-4", cluster_user="store-2", cluster_password_file=f"{self.folder}/store-2.password")
        liar.wait_state()
        liar.say("want 1")
        wait_until(lambda: liar.report()["refused"], "the broker refuses the want")
        self.assertIn('its rules must let user "store-2" write to blkin/store-4/#', liar.said())
        self.assertNotIn(liar.sent[0], first.got())
        first.wait_state(hosts=["store-1", "store-2"])

        # hosts that are refused
        join("store-1", cluster_password_file=f"{self.folder}/store-2.password",
             runtime_dir=f"{self.folder}/x").wait_problem('the broker refuses user "store-1"')
        self.peers(broker, "store-5").wait_problem("TLS")

    def test_certificates(self):
        self.make_certificates("store-1", "store-2")
        broker = self.broker(self.shipped(("^(allow_anonymous|password_file).*", ""), ("^#(require|use_id)", r"\1")),
                             "mqtts").start()

        def join(name, certificate):
            return self.peers(broker, name, "--answer", cluster_ca_file=f"{self.folder}/ca.crt",
                              cluster_cert_file=f"{self.folder}/{certificate}.crt",
                              cluster_key_file=f"{self.folder}/{certificate}.key")
        first, second = join("store-1", "store-1"), join("store-2", "store-2")
        for peer in (first, second):
            peer.wait_state(hosts=["store-1", "store-2"])
        liar = join("store-3", "store-2").wait_state()
        liar.say("want 1")
        wait_until(lambda: liar.report()["refused"], "the broker refuses the want")
        self.assertEqual(sorted(first.report()["hosts"]), ["store-1", "store-2"])

    # ---- one configuration for all agents

    def publish(self, broker, user, *args):
        """Returns True if the broker accepts the message."""
        end = subprocess.run(
            ["mosquitto_pub", "-V", "5", "-h", "127.0.0.1", "-p", str(broker.port), "--cafile", f"{self.folder}/ca.crt", "-u",
             user, "-P", f"of-{user}", "-q", "1", "-r", "-t", "blkin/config", *args], timeout=LIMIT_S,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertTrue(end.returncode == 0 or "authorized" in end.stdout, end.stdout)
        return "authorized" not in end.stdout

    def test_config(self):
        host = socket.gethostname()
        self.make_passwords(host, "config", "blkin-admin")
        self.make_certificates()
        broker = self.broker(self.shipped(), "mqtts")
        agent = Agent(self.folder, f"""[agent]
linger-ms = 700
cluster = {broker.url}
cluster-ca-file = {self.folder}/ca.crt
cluster-password-file = {self.folder}/{host}.password
cluster-config = yes""").start()
        self.addCleanup(agent.end)

        def is_connected(status):
            return status.get("cluster", {}).get("state") == "connected"

        def publish(text):
            self.assertTrue(self.publish(broker, "blkin-admin", "-m", text))

        def of_topic(status, member):
            return status.get("cluster_config", {}).get(member, "")

        def refuses(text, why):
            publish(text)
            agent.wait(why, lambda status: why in of_topic(status, "refused"))

        def publish_version(number, interval):
            publish(f"# version {number}\nalarm-poll-ms = {interval}")
            agent.wait("the version", lambda status: of_topic(status, "version") == f"version {number}")
        agent.wait("no broker at the start",
                   lambda status: "not connected yet" not in status.get("cluster", {}).get("error", "not connected yet"))
        agent.check_fails("cluster.answers", "is not reached: (Connection refused|no connection)")
        broker.start()
        agent.wait("the broker", is_connected)
        self.assertNotIn("cluster_config", agent.status())

        # only an administrator writes the topic, not even a host of this name
        for user in (host, "config"):
            self.assertFalse(self.publish(broker, user, "-m", f"# of {user}\nalarm-poll-ms = 11"))
        publish("# version 1\nlinger-ms = 5\nalarm-poll-ms = 123\n[agent]\nkeep-from = none\ndisk = 2s")
        status = agent.wait("version 1", lambda status: "cluster_config" in status and status)
        self.assertEqual(status["cluster_config"]["version"], "version 1")
        keys = {"linger-ms": "700", "alarm-poll-ms": "123", "keep-from": "none", "disk": "2s"}
        self.assertEqual({key: status["keys_in_force"].get(key) for key in keys}, keys)
        self.assertIn("BK1023 blkin agent: blkin/config is in force: version 1", agent.said())

        # with one mistake, no line of the text takes effect
        refuses("alarm-poll-ms = 7\nsend = al", 'blkin/config:1: parameter "alarm-poll-ms": expected 10 to 60000, got 7')
        agent.check_fails("cluster.config", "blkin/config:1")
        for line in ("endpoint = http://other", "rules = /etc/passwd", "otlp-listen = 1", "cluster-user = me", "host-root = /",
                     "bearer-token-env = HOME", "retry-us = 2000", "stats-file = /x"):
            refuses(f"# 2\n{line}", f'blkin/config:2: "{line.split()[0]}": expected a key of [agent] that a reload changes')
        refuses("[live]\nlog-level = none", 'blkin/config:2: "log-level": expected')
        refuses("lingr-ms = 3", 'did you mean "linger-ms"')
        self.assertEqual(agent.status()["keys_in_force"]["alarm-poll-ms"], "123")

        # the host's file changes, the broker goes and comes back, then both
        agent.write("batch-spans = 77")
        wait_until(lambda: agent.ask("reload", "agent").returncode == 0, "a reload")
        keys = agent.status()["keys_in_force"]
        self.assertEqual((keys["batch-spans"], keys["alarm-poll-ms"]), ("77", "123"))
        publish_version(3, 124)
        self.assertEqual(of_topic(agent.status(), "refused"), "")
        broker.kill()
        agent.wait("no broker", lambda status: not is_connected(status))
        broker.start()
        agent.wait("the broker again", is_connected)
        self.assertEqual(agent.status()["keys_in_force"]["alarm-poll-ms"], "124")

        publish_version(4, 125)
        agent.end()
        agent.start()
        agent.wait("version 4 from the start", lambda status: of_topic(status, "version") == "version 4")
        self.assertTrue(self.publish(broker, "blkin-admin", "-n"))
        agent.wait("no text", lambda status: status and "cluster_config" not in status)
        self.assertNotIn("alarm-poll-ms", agent.status()["keys_in_force"])

        # a wrong password
        agent.end()
        write(f"{self.folder}/{host}.password", "wrong\n")
        agent.start()
        why = f'the broker refuses user "{host}"'
        agent.wait(why, lambda status: why in status.get("cluster", {}).get("error", ""))
        agent.check_fails("cluster.answers", why)

    def refused(self, text, **keys):
        end = subprocess.run([PEER, *options({"name": "store-1", "runtime_dir": f"{self.folder}/run",
                                              "state_dir": self.folder, **keys})], stdin=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S, env=ENVIRONMENT)
        self.assertNotEqual(end.returncode, 0)
        self.assertIn(text, end.stderr)

    def test_keys(self):
        there = "mqtt://127.0.0.1:1883"
        for url in ("broker", "http://broker", "mqtt://", "mqtt://user@broker", "mqtt://broker/topic", "mqtt://a:x"):
            self.refused("cluster: expected mqtt://BROKER[:PORT] or mqtts://BROKER[:PORT]", cluster=url)
        self.refused("expected a name of letters, digits", cluster=there, name="a+b")
        self.refused("cannot read: No such file", cluster=there, cluster_password_file=f"{self.folder}/none")
        self.refused("other users may read or write it (mode 644): chmod 600", cluster=there,
                     cluster_password_file=write(f"{self.folder}/open", "secret-word\n", 0o644))
        self.refused("is empty", cluster=there,
                     cluster_password_file=write(f"{self.folder}/empty", "\n"))
        self.refused("it needs cluster = mqtts://BROKER", cluster=there, cluster_ca_file="/dev/null")
        self.refused("expected both, or none", cluster="mqtts://127.0.0.1", cluster_cert_file="/dev/null")
        self.refused('cluster-ca-file "/none": cannot read the file', cluster="mqtts://127.0.0.1", cluster_ca_file="/none")


if __name__ == "__main__":
    if not MOSQUITTO:
        print("no mosquitto (Debian: mosquitto, mosquitto-clients)")
        sys.exit(77)
    unittest.main(verbosity=2)
