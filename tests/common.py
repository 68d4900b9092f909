# Shared by tests in Python.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import random
import socket
import time

PATIENCE = int(os.environ.get("PATIENCE", "1"))  # from tests/run: multiplies time limits, for busy machines
LIMIT_S = 30 * PATIENCE
# without variables that would change the tested programs
ENVIRONMENT = {key: value for key, value in os.environ.items()
               if "proxy" not in key.lower() and not key.startswith("BLKIN_")}
given_ports = set()


def wait_until(condition, what="it", limit_s=30, every_s=0.01, fails=AssertionError, ended=lambda: False):
    """Returns the result of condition() when it is true. Fails after limit_s (times PATIENCE), or if condition() is not
    true after ended() was."""
    deadline = time.monotonic() + limit_s * PATIENCE
    while True:
        has_ended = ended()
        result = condition()
        if result:
            return result
        if has_ended or time.monotonic() > deadline:
            when = "before the end" if has_ended else f"within {limit_s * PATIENCE} s"
            raise fails(f"not {when}: {what() if callable(what) else what}")
        pause(every_s)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def pause(seconds):
    """Sleeps: for the pace of a load, or until a random moment. wait_until() waits for conditions."""
    time.sleep(max(0, seconds))  # the caller gives the reason


def look_for(seconds, look, every_s=0.02):
    """Calls look() repeatedly for this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        look()
        pause(every_s)


def free_port():
    """Returns an unused port. The port is below those that the kernel gives to connections. A port of the kernel's range
    could be taken before the program listens, or a connection to the port could even be connected to itself."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as bound:
            try:
                bound.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in given_ports:
            given_ports.add(port)
            return port


def cpu_s(pid, with_children=False):
    """Returns the CPU time of a process so far; with_children: including that of its ended children."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


def ask(path, request="status"):
    """Returns the answer of a service's control socket."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(LIMIT_S)
        asked.connect(path)
        asked.sendall(request.encode() + b"\n")
        return json.loads(b"".join(iter(lambda: asked.recv(65536), b"")))


def otelcol_config(port, file, signal):
    """Returns the configuration of an OpenTelemetry collector that writes a signal, "traces" or "metrics", to a
    file."""
    return f"""
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  file:
    path: {file}
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    {signal}:
      receivers: [otlp]
      exporters: [file]
"""
