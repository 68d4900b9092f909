# What the tests of the hub start: hubs, recorders' exchanges (peer.c), and a network that is slow.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import ENVIRONMENT, LIMIT_S, PATIENCE, free_port, wait_until  # noqa: E402,F401
from part import Part, options  # noqa: E402
from slow_network import SlowNetwork  # noqa: E402,F401

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
PEER = os.path.join(os.environ["BUILD"], "tests/hub/peer")


class Hub(Part):
    """blkin hub, with what it says."""

    def __init__(self, folder, port=None, **keys):
        self.folder = folder
        self.port = port or free_port()
        self.url = f"http{'s' if 'hub_cert_file' in keys else ''}://127.0.0.1:{self.port}"
        keys = {"hub_listen": f"127.0.0.1:{self.port}", **keys}
        if not {"hub_tokens_file", "hub_ca_file", "expose_hub"} & set(keys):
            keys["expose_hub"] = "yes"
        super().__init__(os.path.join(folder, f"hub-{self.port}.log"), [
            BLKIN, "hub", f"--runtime-dir={folder}/run", f"--state-dir={folder}", "--log-level=info", *options(keys)])
        self.starts = 0

    def start(self):
        self.starts += 1
        return super().start()

    def wait_ready(self):
        def listens():
            if self.process.poll() is not None:
                raise AssertionError("the hub has ended: " + self.said())
            return self.said().count("serves at") == self.starts
        wait_until(listens, "the hub serves")
        return self

    def ask(self, method, path, body=None, headers=None):
        """Returns status and body; JSON is decoded."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})},
                               encode_chunked=True)
            answer = connection.getresponse()
            text = answer.read()
            if answer.getheader("Content-Type") == "application/json":
                return answer.status, json.loads(text)
            return answer.status, text.decode()
        finally:
            connection.close()

    def hosts(self):
        return {host["host"]: host for host in self.ask("GET", "/v1/hosts")[1]["hosts"]}

    def metric(self, name, host=None):
        label = f'{{host="{host}"}}' if host else ""
        for line in self.ask("GET", "/metrics")[1].splitlines():
            if line.startswith(f"blkin_hub_{name}{label} "):
                return int(line.split()[1])
        raise AssertionError(f"no {name}{label} in /metrics")

    def status(self):
        return json.loads(subprocess.run([BLKIN, "status", "--json", f"--runtime-dir={self.folder}/run", "hub"],
                                         stdout=subprocess.PIPE, check=True, timeout=LIMIT_S).stdout)


class Peers(Part):
    """A process with one exchange or more. What it says is in posted, requests, answers, capped."""

    def __init__(self, folder, hub, name, *flags, **keys):
        keys = {"name": name, "hub": hub, "runtime_dir": f"{folder}/run-{name}", "state_dir": folder, **keys}
        super().__init__(os.path.join(folder, f"{name}.log"), [PEER, *flags, *options(keys)])
        self.name = name
        self.posted = []
        self.requests = collections.defaultdict(list)  # by host: (id, us)
        self.answers = collections.defaultdict(list)  # by host: (id, from, us)
        self.capped = []
        self.reports = {}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            text=True, bufsize=1, env=ENVIRONMENT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            what, host, *rest = line.split(" ", 2)
            rest = rest[0].split() if rest else []
            if what == "P":
                self.posted.append(rest[0])
            elif what == "R":
                self.requests[host].append((rest[0], int(rest[1])))
            elif what == "A":
                self.answers[host].append((rest[0], rest[1], int(rest[2])))
            elif what == "D":
                self.capped.append((rest[0], int(rest[1])))
            elif what == "J":
                self.reports[host] = json.loads(" ".join(rest))

    def say(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def report(self, host=None):
        """exchange_json(), as it is now."""
        host = host or self.name
        self.reports.pop(host, None)
        self.say("json")
        wait_until(lambda: host in self.reports, f"{self.name} reports")
        return self.reports[host]

    def wait_state(self, state="connected", hosts=None, limit_s=LIMIT_S):
        def is_so():
            report = self.report()
            return report["state"] == state and (hosts is None or sorted(report["hosts"]) == sorted(hosts))
        wait_until(is_so, lambda: f"{self.name} is {state} and knows {hosts}, but {self.report()}", limit_s)
        return self

    def got(self, host=None):
        return [request[0] for request in self.requests[host or self.name]]

    def kill(self):
        super().kill()
        self.reader.join(LIMIT_S)

    def end(self):
        status = super().end()
        self.reader.join(LIMIT_S)
        self.process.stdin.close()
        self.process.stdout.close()
        return status


class HubTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def hub(self, **keys):
        hub = Hub(self.folder, **keys).start()
        self.addCleanup(lambda: self.assertIn(hub.end(), (0, -signal.SIGKILL), hub.said()))
        return hub.wait_ready()

    def peers(self, hub, name, *flags, **keys):
        peers = Peers(self.folder, hub if isinstance(hub, str) else hub.url, name, *flags, **keys)
        self.addCleanup(lambda: self.assertIn(peers.end(), (0, 1, -signal.SIGKILL), peers.said()))
        return peers

    def refused(self, *args, **keys):
        """What a hub says that does not start with these keys."""
        hub = Hub(self.folder, **keys).start()
        self.assertEqual(hub.process.wait(LIMIT_S), 1, hub.said())
        return hub.said()

    def percentile(self, values, share):
        return sorted(values)[min(len(values) - 1, int(len(values) * share))]
