# What tests in Python share.
# SPDX-License-Identifier: BSD-2-Clause
import os
import random
import socket
import time

PATIENCE = int(os.environ.get("PATIENCE", "1"))  # of tests/run: a busy machine has so many times as long
LIMIT_S = 30 * PATIENCE
# without what would change the programs that are tested
ENVIRONMENT = {key: value for key, value in os.environ.items()
               if "proxy" not in key.lower() and not key.startswith("BLKIN_")}
given_ports = set()


def wait_until(condition, what="it", limit_s=30, every_s=0.01, fails=AssertionError, ended=lambda: False):
    """What condition returns once that is true. Gives up after limit_s, or when ended() and it is still not true."""
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


def pause(seconds):
    """The pace of a load, or a moment that chance chooses. What can be waited for has wait_until()."""
    time.sleep(max(0, seconds))  # see above


def look_for(seconds, look, every_s=0.02):
    """Looks again and again for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        look()
        pause(every_s)


def free_port():
    """One that nobody uses, below those that the kernel gives to connections: such a one may be taken before anybody
    listens, even by a connection to the very port that nobody listens at, which then is connected to itself."""
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


def otelcol_config(port, file, signal):
    """Of an OpenTelemetry collector that puts what it gets of a signal, "traces" or "metrics", into a file."""
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
