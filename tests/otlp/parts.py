# The shared parts of the tests of SDKs' spans: the agent, and requests.
# SPDX-License-Identifier: BSD-2-Clause
import contextlib
import gzip
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
sys.path[:0] = [SRC + "/tests", SRC + "/tests/otel"]
import otlp  # noqa: E402
from common import ENVIRONMENT, LIMIT_S, ask, cpu_s, expect, free_port, wait_until  # noqa: E402

PROTOBUF = "application/x-protobuf"
# AddressSanitizer keeps freed memory for a while, and has a map of all memory
SANITIZER_MB = 150 if "ASAN_OPTIONS" in os.environ else 0


class Agent:
    """`blkin agent`, with a configuration from the environment and from the file `config`."""

    def __init__(self, endpoint="http://127.0.0.1:1", rules="", **more):
        """more: keys of its configuration, as in the environment."""
        self.folder = tempfile.TemporaryDirectory()
        folder = self.folder.name
        self.address = "127.0.0.1:%d" % free_port()
        self.url, self.config = "http://" + self.address, folder + "/config"
        self.environment = {
            **ENVIRONMENT, "BLKIN_CONFIG": self.config, "BLKIN_STATE_DIR": folder + "/state",
            "BLKIN_RUNTIME_DIR": folder + "/run", "BLKIN_RING_SOCKET": folder + "/rings", "BLKIN_RING_BYTES": "4M",
            "BLKIN_ENDPOINT": endpoint, "BLKIN_OTLP_LISTEN": self.address, "BLKIN_OTLP_BYTES": "128M",
            "BLKIN_REQUEST_TIMEOUT_MS": str(1000 * LIMIT_S), "BLKIN_LINGER_MS": "300", "BLKIN_HOST": "no",
            "BLKIN_SLOW_FILE": folder + "/slow", "BABELTRACE_PLUGIN_PATH": BUILD + "/plugins", **more}
        for path, text in ((self.config, ""), (folder + "/slow", rules)):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(path, 0o644)
        self.process = subprocess.Popen([BUILD + "/bin/blkin", "agent"], env=self.environment)
        wait_until(self.is_up, "the agent takes spans")

    def is_up(self):
        expect(self.process.poll() is None, "the agent does not start")
        with contextlib.suppress(OSError, ValueError):
            return self.ask()["otlp"] is not None
        return False

    def ask(self):
        return ask(self.folder.name + "/run/agent.sock")

    def reload(self, text):
        """Makes the text the agent's configuration."""
        with open(self.config, "w", encoding="ascii") as file:
            file.write(text)
        command = [BUILD + "/bin/blkin", "reload", "agent"]  # gives up after 5 s
        wait_until(lambda: subprocess.run(command, env=self.environment, check=False).returncode == 0, "a reload")

    def held(self):
        return self.ask()["otlp"]["held"]

    def counts(self):
        """Returns the counts, after a check of their sums."""
        one = self.ask()["otlp"]
        counts, held = one["counts"], one["held"]["spans"]
        refused = sum(counts["refused_" + why] for why in ("page", "type", "too_large", "broken", "rate", "memory"))
        expect(counts["requests"] - counts["requests_taken"] - refused - counts["requests_cut_off"] in (0, 1), counts)
        expect(counts["spans_in"] == held + counts["spans_overwritten"] + counts["spans_invalid"]
               + counts["spans_too_large"] + counts["spans_no_memory"], one)
        return counts

    def connect(self):
        return http.client.HTTPConnection(self.address, timeout=LIMIT_S)

    def cpu_s(self):
        """Returns the CPU time with that of ended children."""
        return cpu_s(self.process.pid, True)

    def peak_mb(self):
        """Returns the peak memory, without AddressSanitizer's share."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024 - SANITIZER_MB

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.process.terminate()
        try:
            status = self.process.wait(LIMIT_S)
        finally:
            self.process.kill()
            self.folder.cleanup()
        expect(failed or status == 0, "the agent ends with %d" % status)


class LocalConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def attribute(key, value):
    kind = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}[type(value)]
    return otlp.CLASSES["KeyValue"](key=key, value=otlp.CLASSES["AnyValue"](**{kind: value}))


def span(trace, number, parent=0, name="write", kind=2, start_ns=None, ms=1.0, error=False, **attributes):
    start_ns = time.time_ns() if start_ns is None else start_ns
    return otlp.CLASSES["Span"](
        trace_id=trace.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"", name=name, kind=kind,
        start_time_unix_nano=start_ns, end_time_unix_nano=start_ns + int(ms * 1e6),
        attributes=[attribute(key, value) for key, value in attributes.items()],
        status=otlp.CLASSES["Status"](code=2) if error else None)


def request(spans, service="store", **resource):
    made = otlp.CLASSES["ExportTraceServiceRequest"]()
    group = made.resource_spans.add()
    group.resource.attributes.extend(attribute(key, value)
                                     for key, value in {"service.name": service, **resource}.items())
    scope = group.scope_spans.add()
    scope.scope.name = "tests"
    scope.spans.extend(spans)
    return made.SerializeToString()


def post(connection, body, path="/v1/traces", method="POST", **headers):
    """Returns the status, the response, and the message in its body."""
    given = {"Content-Type": PROTOBUF, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if given.get("Content-Encoding") == "gzip":
        body = gzip.compress(body)
    connection.request(method, path, body, given)
    answer = connection.getresponse()
    data = answer.read()
    kind = "ExportTraceServiceResponse" if answer.status == 200 else "RpcStatus"
    expect(answer.getheader("Content-Type") == PROTOBUF, answer.getheaders())
    return answer.status, answer, otlp.CLASSES[kind].FromString(data)


__all__ = ["Agent", "BUILD", "ENVIRONMENT", "LIMIT_S", "LocalConnection", "PROTOBUF", "SRC",
           "attribute", "expect", "free_port", "otlp", "post", "request", "span", "wait_until"]
