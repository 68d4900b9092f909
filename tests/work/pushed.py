# `blkin config push`: what is pushed holds on the hosts that it is for, and nothing else does. Cases of a test that
# has a broker.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import re
import signal
import socket
import subprocess
import tempfile

from broker import ENVIRONMENT, free_port, wait_until
from part import Part, page

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
NAME = socket.gethostname()


class Agent(Part):
    """`blkin host` with a page."""

    def __init__(self, folder, url, name="agent"):
        self.folder, self.port = f"{folder}/{name}", free_port()
        super().__init__(f"{self.folder}/log", [
            BLKIN, "host", f"--config={self.folder}/blkin.conf", "--log-level=info", f"--state-dir={self.folder}/state",
            f"--runtime-dir={self.folder}/run"])
        os.makedirs(self.folder)
        self.write(url)

    def write(self, url):
        with open(f"{self.folder}/blkin.conf", "w", encoding="utf-8") as file:
            file.write(f"[host]\nconfig-topic = {url}\nhost-listen = {self.port}\nprocess = of-the-file\n")

    def reload(self):
        subprocess.run([BLKIN, "reload", f"--runtime-dir={self.folder}/run", "host"], stdout=subprocess.DEVNULL, env=ENVIRONMENT,
                       timeout=30, check=True)

    def status(self):
        status = subprocess.run([BLKIN, "status", "--json", f"--runtime-dir={self.folder}/run", "host"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, env=ENVIRONMENT, timeout=30, check=False).stdout
        return json.loads(status or "{}").get("configuration", {})

    def held(self):
        status = self.status()
        return status.get("key"), status.get("offset")

    def measures(self, pid):
        """Is a process measured, as the page has it?"""
        return f"[{pid}]" in (page(f"http://127.0.0.1:{self.port}/metrics") or "")

    def wait_held(self, key, offset):
        wait_until(lambda: self.held() == (key, str(offset)), lambda: f"{key} {offset}: {self.status()}\n{self.said()}", 60)

    def wait_said(self, text):
        wait_until(lambda: text in self.said(), lambda: f"{text}, but {self.said()}", 60)

    def wait_status(self, **expected):
        wait_until(lambda: expected.items() <= self.status().items(), lambda: f"{expected}, but {self.status()}", 60)

    def wait_measures(self, pid, expected=True):
        wait_until(lambda: self.measures(pid) == expected, lambda: f"{pid} is measured: {not expected}\n{self.said()}", 60)


class Pushed:
    def begin_pushing(self, name):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.folder, self.topic = folder, f"config-{name}"
        self.broker.create(self.topic, cleanup_policy="compact")
        self.url = f"kafka://{self.broker.address}/{self.topic}"

    def agent(self, url, name="agent"):
        agent = Agent(self.folder, url, name)
        self.addCleanup(lambda: agent.process.poll() is None and agent.kill())
        return agent.start()

    def begin_config(self, *args, url=None):
        return subprocess.Popen([BLKIN, "config", "push", f"--config-topic={url or self.url}", *args], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=ENVIRONMENT)

    def end_config(self, process):
        """The command's status, and what it said at last: on a busy machine it says before what it waits for."""
        said = process.communicate(timeout=120)[0].decode(errors="replace")
        return process.returncode, re.sub("blkin config: trying for 30 s: .*\n", "", said)

    def blkin_config(self, *args, url=None):
        return self.end_config(self.begin_config(*args, url=url))

    def push(self, text, *args, url=None):
        with open(self.folder + "/file", "w", encoding="utf-8") as file:
            file.write(text)
        return self.blkin_config(*args, self.folder + "/file", url=url)

    def pushed(self, text, offset, *args):
        status, said = self.push(text, *args)
        self.assertEqual(status, 0, said)
        self.assertIn(f'{self.url}: "host {args[0].split("=")[1] if args else "*"}" at offset {offset}: ', said)

    def produce(self, key, data):
        """Another client."""
        self.broker.produce(self.topic, 0, data, key.encode())

    def test_pushed(self):
        self.begin_pushing("pushed")
        agent, me = self.agent(self.url), os.getpid()
        late = f"kafka://{self.broker.address}/config-late"  # a topic that is made when there are agents
        early = self.agent(late, "early")
        agent.wait_status(**{"from": "file", "state": "read"})
        self.assertFalse(agent.measures(me))

        self.pushed(f"process = pid:{me}\n", 0)
        agent.wait_held("host *", 0)
        agent.wait_measures(me)
        self.pushed("cpu = 200ms\n", 1)  # another one: what the file has of it holds again
        agent.wait_held("host *", 1)
        agent.wait_measures(me, False)

        # the better a message names the host, the rather it holds
        self.pushed(f"[host]\nprocess = pid:{me}\n", 2, f"--hosts={NAME[0]}*")
        agent.wait_held(f"host {NAME[0]}*", 2)
        self.pushed("memory = off\n", 3)
        self.pushed("cpu = off\n", 4, "--hosts=not-this-host")
        self.pushed(f"process = pid:{me}\ndisk = 100ms\n", 5, f"--hosts={NAME}")
        agent.wait_held(f"host {NAME}", 5)
        agent.wait_measures(me)

        # what others write is refused as a whole
        bad = [b"process = nobody\ncpu = 3\n", b"process = nobody\nhost-endpoint = kafka://elsewhere/x\n",
               b"process = nobody\nhost-root = /tmp\n", b"[record]\nlog-level = info\n", b"process = nobody\n\0\n", b"=",
               b"process = nobody\n" + b"# much\n" * 10000, b"\xff\xfe\x1b[2J = 1\n"]
        for data in bad:
            self.produce(f"host {NAME}", data)
        self.produce("host", b"process = nobody\n")  # keys that are for nobody
        self.produce(f"live {NAME}", b"process = nobody\n")
        self.produce(f"host [a-z]*{NAME}", b"process = nobody\n")
        agent.wait_status(refused=len(bad))
        agent.wait_said("refused")
        self.assertEqual(agent.held(), (f"host {NAME}", "5"))
        self.assertTrue(agent.measures(me))
        status, said = self.blkin_config("--show")
        self.assertEqual(status, 0)
        early.wait_status(**{"from": "file"})
        self.broker.create("config-late", cleanup_policy="compact")
        self.assertEqual(self.push("cpu = 1s\n", url=late)[0], 0)
        self.assertIn("# hosts refuse it: line:1: ", said)
        self.assertIn('# "host not-this-host" at offset 4, written ', said)
        self.assertNotIn("\x1b", said)

        self.without_brokers(agent, me)
        agent.wait_status(refused=len(bad), state="read")
        self.assertEqual(agent.held(), (f"host {NAME}", "5"))

        # the file decides whether there is a topic
        agent.write("")
        agent.reload()
        self.assertEqual(agent.status(), {})
        agent.wait_measures(me, False)
        agent.write(self.url)
        agent.reload()
        self.assertEqual(agent.held(), (f"host {NAME}", "5"))
        agent.wait_measures(me)

        early.wait_held("host *", 0)

        # what is removed holds no more
        for name, left in ((NAME, f"host {NAME[0]}*"), (f"{NAME[0]}*", "host *")):
            status, said = self.blkin_config("--remove", f"--hosts={name}")
            self.assertEqual((status, said), (0, f'{self.url}: "host {name}" is removed\n'))
            wait_until(lambda left=left: agent.held()[0] == left, lambda: str(agent.status()), 60)
        agent.wait_measures(me, False)
        self.assertEqual(self.blkin_config("--remove")[0], 0)
        agent.wait_status(**{"from": "file", "key": "", "offset": ""})
        self.assertEqual(os.listdir(f"{agent.folder}/state"), [])
        self.assertEqual(self.blkin_config("--remove"), (1, f'blkin config: {self.url}: there is no "host *"\n'))

    def without_brokers(self, agent, pid):
        """The brokers say nothing: what was read last holds, or else the file, and that is said."""
        agent.kill()
        kept = f"{agent.folder}/state/config-host.json"
        self.assertEqual(os.stat(kept).st_mode & 0o777, 0o600)
        self.broker.process.send_signal(signal.SIGSTOP)
        try:
            agent.start()
            new = self.agent(self.url, "new")
            nobody = self.agent(f"kafka://127.0.0.1:{free_port()}/nothing", "nobody")
            agent.wait_held(f"host {NAME}", 5)
            agent.wait_measures(pid)
            agent.wait_said(f'not read yet, {self.url}, "host {NAME}" at offset 5 holds: ')
            new.wait_said("not read yet, the file holds: ")
            nobody.wait_said("not read yet, the file holds: ")
            self.assertIn("refused", nobody.status()["state"].lower())
            for other in (nobody, new):
                other.process.terminate()
                self.assertEqual(other.process.wait(60), 0)
            new.start()
        finally:
            self.broker.process.send_signal(signal.SIGCONT)
        new.wait_held(f"host {NAME}", 5)  # the topic has it still
        new.kill()

    def test_push_of_what_is_wrong(self):
        self.begin_pushing("wrong")
        with open(self.folder + "/right", "w", encoding="utf-8") as file:
            file.write("cpu = 1s\n")
        missing = {"make the topic": f"{self.broker.address}/nothing", "refused": f"127.0.0.1:{free_port()}/{self.topic}"}
        missing = {why: self.begin_config(self.folder + "/right", url=f"kafka://{at}") for why, at in missing.items()}
        for text, why in (("cpu = 3\n", ':1: parameter "cpu": expected '),
                          ("\nhost-endpoint = kafka://k/t\n", ':2: "host-endpoint" cannot be set by a topic'),
                          ("[live]\n", ""), ("[live]\nlog-level = info\n", ':2: section "live": expected "host", or none'),
                          ("cpus = 1s\n", ':1: key "cpus" is not known'), ("cpu = 1s\ncpu = 2s\n", ":2: ")):
            status, said = self.push(text)
            self.assertEqual(status, 1 if why else 0, said)
            self.assertIn(self.folder + "/file" + why if why else self.url, said)
        for args in ((), ("--show", "--remove"), ("a", "b"), ("--show", "a"), ("--hosts=a b", "a"), ("--hosts=", "--show")):
            self.assertEqual(self.blkin_config(*args)[0], 2, args)
        self.assertEqual(self.blkin_config("--show", url="http://here")[0], 2)
        self.broker.create("config-kept", 2)
        status, said = self.push("cpu = 1s\n", url=f"kafka://{self.broker.address}/config-kept")
        self.assertEqual(status, 0)
        self.assertIn("is not compacted", said)
        self.assertIn("has 2 partitions", said)
        for why, process in missing.items():
            status, said = self.end_config(process)
            self.assertEqual(status, 1)
            self.assertIn(why, said)
