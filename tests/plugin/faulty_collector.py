"""A collector, of Zipkin JSON or of OTLP, that misbehaves on purpose, and stores received spans.

A Collector serves on a loopback port of its own. Its script is a list of faults, one for each request that has spans,
in order. After the last fault the collector has no faults, or the default one. A fault is called with the connection,
before the request is read. It returns whether the connection may be used again. A sender's probe is an empty batch. The
collector accepts probes, unless `probe` has another answer.

SPDX-License-Identifier: BSD-2-Clause
"""
import functools
import gzip
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../otel")]
from common import pause  # noqa: E402


class Hangup(Exception):
    """The peer has closed the connection."""


def otlp_spans(body):
    """Returns spans in the form of Zipkin, with the fields that the scenarios use."""
    import otlp  # pylint: disable=import-outside-toplevel; only where there is Google's library

    return [{"id": span.span_id.hex(), "name": span.name,
             "localEndpoint": {"serviceName": resource.get("service.name")}}
            for resource, _, span in otlp.spans(body)]


class Request:
    """One POST: its line, headers (lower case) and spans."""

    def __init__(self, line, headers, body):
        self.line = line
        self.headers = headers
        self.wire_bytes = len(body)
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        elif headers.get("content-encoding") == "zstd":
            body = subprocess.run(["zstd", "-dcq"], input=body, capture_output=True, check=True).stdout
        self.bytes = len(body)
        self.body = body
        if headers.get("content-type") == "application/x-protobuf":
            self.spans = otlp_spans(body)
        else:
            self.spans = json.loads(body) if body else []
        self.time = time.monotonic()

    @property
    def services(self):
        return {span["localEndpoint"].get("serviceName") for span in self.spans}

    def ids(self):
        return [int(span["id"], 16) for span in self.spans]


class Connection:
    """A connection, for a fault."""

    def __init__(self, collector, sock):
        self.collector = collector
        self.sock = sock
        self.buffer = b""

    def receive(self, chunk=65536):
        data = self.sock.recv(chunk)
        if not data:
            raise Hangup
        self.buffer += data

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            self.receive()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        return lines[0], headers

    def read(self, chunk=65536):
        """Reads the next request."""
        line, headers = self.read_head()
        length = int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            self.receive(chunk)
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Request(line, headers, body)

    def send(self, data):
        self.sock.sendall(data)

    def reset(self):
        """Closes with RST in place of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        return False

    def answer(self, status, headers=(), body=b"", request=None):
        """Sends a whole answer. If the status is good, the collector takes the spans of the request."""
        if request and 200 <= status < 300:
            self.collector.take(request)
        text = "HTTP/1.1 %d x\r\n" % status
        for header in headers:
            text += header + "\r\n"
        if not any(header.lower().startswith(("content-length", "transfer-")) for header in headers):
            text += "Content-Length: %d\r\n" % len(body)
        self.send(text.encode() + b"\r\n" + body)
        return True


class Collector:
    """A server; use it in a with statement."""

    def __init__(self, script=(), probe=None, default=None, tls=None, host="127.0.0.1", port=0,
                 listening=True, connect=None):
        self.script = list(script)
        self.probe = probe
        self.default = default
        self.tls = tls
        self.connect = connect or {}  # {number of a connection, from 1: the fault at its begin}
        self.lock = threading.Lock()
        self.accepted = []  # ids, in order, with repetitions
        self.requests = []  # requests that had spans and were read
        self.connections = 0
        self.stopping = threading.Event()
        self.open = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.port = self.listener.getsockname()[1]
        self.host = "[%s]" % host if ":" in host else host
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.started = False
        if listening:
            self.start()

    @property
    def url(self):
        return "%s://%s:%d" % ("https" if self.tls else "http", self.host, self.port)

    def start(self):
        self.listener.listen(64)
        self.started = True
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for sock in list(self.open):
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def take(self, request):
        with self.lock:
            self.accepted += request.ids()

    def serve(self):
        while not self.stopping.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open.add(sock)
                number = self.connections
            threading.Thread(target=self.serve_connection, args=(sock, number),
                             daemon=True).start()

    def next_fault(self):
        with self.lock:
            return self.script.pop(0) if self.script else self.default

    def serve_connection(self, sock, number):
        raw = sock
        try:
            if number in self.connect:
                self.connect[number](Connection(self, sock))
                return
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, sock)
            while self.serve_request(connection):
                pass
        except (Hangup, OSError, ssl.SSLError):
            pass
        finally:
            with self.lock:
                self.open.discard(raw)
            sock.close()

    def serve_request(self, connection):
        """Returns whether another request may follow."""
        # The head shows whether the batch is empty. It stays in the buffer, for the fault.
        while b"\r\n\r\n" not in connection.buffer:
            connection.receive()
        if self.is_probe(connection.buffer.lower()):
            request = connection.read()
            if self.probe:
                return self.probe(connection, request)
            return connection.answer(202, request=request)
        return (self.next_fault() or ok())(connection)

    @staticmethod
    def is_probe(head):
        """Returns whether the batch is empty: 2 bytes of JSON, or 0 of OTLP. Compressed by zlib these are 22 and 20
        bytes, by libdeflate 25 and 23, by zstd 9. No other batch is that short."""
        return any(b"content-length: %d\r\n" % length in head for length in (0, 2, 9, 20, 22, 23, 25))


# ---- faults: a call with the arguments after `connection` returns a function of the connection -------


def fault(function):
    @functools.wraps(function)
    def fault_of(*args, **named):
        return lambda connection: function(connection, *args, **named)

    return fault_of


def read(connection, chunk=65536):
    request = connection.read(chunk)
    request.connection = connection
    with connection.collector.lock:
        connection.collector.requests.append(request)
    return request


def take(connection):
    connection.collector.take(read(connection))


@fault
def ok(connection, status=202, headers=(), body=b"", keep=True):
    """Takes the spans."""
    return connection.answer(status, headers, body, read(connection)) and keep


@fault
def status(connection, code, headers=(), body=b"the collector says no"):
    """Answers without taking spans."""
    read(connection)
    return connection.answer(code, headers, body)


@fault
def raw(connection, data, takes=False, keep=False, delay=0.0, piece=0):
    """Reads the request and sends these bytes, piece by piece with a delay after each."""
    (take if takes else read)(connection)
    step = piece or max(len(data), 1)
    for start in range(0, len(data), step):
        connection.send(data[start:start + step])
        if delay:
            pause(delay)
    return keep


@fault
def forever(connection, head, chunk, takes=False):
    """Reads the request, then sends without end."""
    (take if takes else read)(connection)
    connection.send(head)
    while not connection.collector.stopping.is_set():
        connection.send(chunk)
    return False


@fault
def drip(connection, head, seconds):
    """Takes the spans, sends the head and then a byte of the body from time to time."""
    take(connection)
    connection.send(head)
    while not connection.collector.stopping.wait(seconds):
        connection.send(b".")
    return False


@fault
def reset_at_once(connection):
    return connection.reset()


@fault
def close_at_once(_):
    return False


@fault
def reset_in_body(connection):
    """Resets after the head, before the body."""
    connection.read_head()
    return connection.reset()


@fault
def reset_after_request(connection):
    read(connection)
    return connection.reset()


@fault
def take_and_reset(connection):
    """Takes the spans and resets, so that the sender does not know whether they arrived."""
    take(connection)
    return connection.reset()


@fault
def hang(connection):
    """Reads the request and never answers, until the peer closes."""
    read(connection)
    while True:
        connection.receive()


@fault
def hang_without_reading(connection):
    connection.collector.stopping.wait()
    return False


@fault
def slow(connection, seconds):
    """Sends a good answer late."""
    request = read(connection)
    pause(seconds)
    return connection.answer(202, request=request)


@fault
def read_slowly(connection, chunk):
    return connection.answer(202, request=read(connection, chunk))


@fault
def judge(connection, refuses, code=400):
    """Refuses a whole batch if refuses(request); if not, takes it."""
    request = read(connection)
    if refuses(request):
        return connection.answer(code, body=b"cannot read the batch")
    return connection.answer(202, request=request)


def has_bad_span(request):
    return any(span.get("name") == "bad" for span in request.spans)
