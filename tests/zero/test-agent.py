#!/usr/bin/env python3
# Real servers under `blkin run`, with the agent and no LTTng daemon on the machine: nbdkit, PostgreSQL, redis and
# sshd. Each answers fast requests and a slow one. The agent sends only the slow request, as a whole trace.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
import getpass
import json
import os
import pathlib
import pwd
import shutil
import struct
import subprocess
import sys

from clients import Nbd, Postgres, Redis
from daemons import postgresql
from load import Failed
from parts import LIMIT_S, World, fetch, redis, run_main, wait_until

FAST = 50  # requests of each server
SLOW_S = 1.5
RULE_S = 1


class Agent:
    """The agent, and a collector that writes a line for each span."""

    def __init__(self, world):
        self.world, self.sent = world, world.folder / "sent.json"
        port = world.port()
        world.is_killed.add("taker")
        world.start("taker", sys.executable, f"{os.environ['SRC']}/tests/collector.py", port, self.sent, "whole",
                    port=port)
        world.start_agent(f"http://127.0.0.1:{port}", f"*>{RULE_S}s")
        self.status, self.written = world.agent_status, world.agent_written

    def warm_up(self, ask):
        """Repeats requests until the server has its rings: it gets them a moment after its start."""
        before = self.written()

        def writes():
            ask()
            return self.written() > before
        wait_until(writes, "that the server writes into its rings")

    def total(self, name):
        return self.status().get("totals", {}).get(name)

    def spans(self):
        return [json.loads(line) for line in self.sent.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
                ] if self.sent.exists() else []

    def slow_of(self, service):
        return [span for span in self.spans() if span["localEndpoint"]["serviceName"] == service and
                span.get("duration", 0) >= (SLOW_S - 0.1) * 1e6]

    def is_delivered(self):
        status = self.status()
        return not (status["is_scanning"] or status["pending_traces"] or status["open_traces"] or
                    status["counters"]["spans_waiting"] or status["counters"]["spool_waiting"])

    def check(self, service):
        """Checks that the slow request was sent whole, and no fast one."""
        try:
            wait_until(lambda: self.slow_of(service), f"the slow trace of {service}")
            wait_until(self.is_delivered, "the delivery")
        except Failed as failure:
            raise Failed(f"{failure}: {self.status()}: {self.world.log('agent')[-2000:]}") from None
        for other in ("traces_incomplete", "traces_not_found"):
            if self.total(other):
                raise Failed(f"{service}: {other}: {self.world.log('agent')[-2000:]}")
        spans = self.spans()
        ids = {(span["traceId"], span["id"]) for span in spans}
        cut = [span for span in spans if "parentId" in span and (span["traceId"], span["parentId"]) not in ids]
        slow = {span["traceId"] for span in spans if span.get("duration", 0) > RULE_S * 1e6}
        fast = [span for span in spans if span["traceId"] not in slow]
        if cut or fast:
            raise Failed(f"{service}: without a parent: {cut}; of a fast request: {fast}")
        print(f"{service}: {len(slow)} slow traces, all whole", flush=True)


def ask_fast(agent, client, numbers):
    def ask():
        for number in numbers:
            client.ask(number)
    agent.warm_up(ask)


def try_nbdkit(world, agent):
    port = world.port()
    disk = world.folder / "disk"
    with open(disk, "wb") as file:
        file.truncate(64 << 20)
    world.serve("nbdkit", port, "nbdkit", "-f", "-i", "127.0.0.1", "-p", port, "--filter=delay", "file", disk,
                f"rdelay={int(SLOW_S * 1000)}ms")
    client = Nbd(port)
    ask_fast(agent, client, range(0, 2 * FAST, 2))  # writes
    client.ask(1)  # a read
    client.close()


def try_postgresql(world, agent):
    client = Postgres(postgresql(world, "postgresql"))
    ask_fast(agent, client, range(FAST))
    text = f"SELECT pg_sleep({SLOW_S})".encode() + b"\0"
    client.socket.sendall(struct.pack(">cI", b"Q", len(text) + 4) + text)
    client.until_ready()
    client.close()


def try_redis(world, agent):
    client = Redis(redis(world, "redis", "--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"))
    ask_fast(agent, client, range(0, 2 * FAST, 2))  # SETs
    client.command(b"DEBUG", b"SLEEP", str(SLOW_S).encode())
    client.close()
    if set(client.answers) != {b"+OK\r\n"}:
        raise Failed(f"redis says {set(client.answers)}")


def has_sshd_user(world):
    """Returns whether the user "sshd" exists, as sshd needs it. May make the user, for this test's processes only."""
    try:
        return pwd.getpwnam("sshd") is not None
    except KeyError:
        if os.getuid() != 0 or os.environ.get("BLKIN_ISOLATED") != "namespaces":
            return False
    users = world.make("passwd", pathlib.Path("/etc/passwd").read_text(encoding="utf-8") +
                       "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
    return subprocess.run(["mount", "--bind", users, "/etc/passwd"], check=False).returncode == 0


def try_sshd(world, agent):
    """The command that finds the user's keys is slow, once."""
    port, folder = world.port(), world.folder
    for name in "host", "user":
        world.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    keys = world.make("keys", f"#!/bin/sh\n[ ! -e {folder}/is-slow ] || sleep {SLOW_S}\ncat {folder}/user.pub\n")
    config = world.make("sshd.conf", f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
                        f"AuthorizedKeysCommand /bin/sh {keys}\nAuthorizedKeysCommandUser {getpass.getuser()}\n"
                        "StrictModes no\nUsePAM no\nUseDNS no\n")
    pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    world.serve("sshd", port, "sshd", "-D", "-e", "-f", config)

    def login():
        world.run("ssh", "-p", port, "-i", folder / "user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
                  "UserKnownHostsFile=/dev/null", "127.0.0.1", "true", limit_s=2 * LIMIT_S)

    agent.warm_up(login)
    (folder / "is-slow").touch()
    wait_until(lambda: login() or agent.slow_of("sshd"), "a slow login", every_s=SLOW_S)  # its rings may be late


SERVERS = {  # name -> its test, its program
    "nbdkit": (try_nbdkit, "nbdkit"),
    "postgresql": (try_postgresql, "postgres"),
    "redis": (try_redis, "redis-server"),
    "sshd": (try_sshd, "sshd"),
}


def main():
    wanted = sys.argv[1:] or list(SERVERS)
    packages = []
    for package in "redis-server", "openssh-server":
        try:
            fetch("--cached", package)
            packages.append(package)
        except Failed:
            pass
    if "TMPDIR" in os.environ:
        os.chmod(os.environ["TMPDIR"], 0o755)  # PostgreSQL refuses to be root
    with World(packages) as world:
        for name in ("LTTNG_UST_ALLOW_BLOCKING", "LTTNG_UST_REGISTER_TIMEOUT"):
            del world.environment[name]
        agent = Agent(world)
        for name in wanted:
            try_it, program = SERVERS[name]
            if not shutil.which(program, path=world.environment["PATH"]) or (name == "sshd" and not has_sshd_user(world)):
                print(f"not tested: {program} is not here")
                continue
            try_it(world, agent)
            agent.check(name)
            world.end(name)
        world.end("agent")
    return 0


if __name__ == "__main__":
    run_main(main)
