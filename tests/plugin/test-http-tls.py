#!/usr/bin/env python3
# timeout: 150
"""Delivery by HTTP over TLS, with credentials, and through proxies: the right peer gets the spans, and no message has a
secret.

test-http-tls.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.environ["SRC"] + "/tests")
from common import free_port  # noqa: E402
from delivery import counts, delivers, drive, refuses_to_start  # noqa: E402
from faulty_collector import *  # noqa: E402,F403 (the scenarios use its faults)
from scenarios import expect, run_scenarios, scenario, scenarios_of  # noqa: E402


# ---- TLS ------------------------------------------------------------------------------------------------


class Certificates:
    """A CA of our own, and certificates of all kinds."""

    def __init__(self, folder):
        self.folder = folder
        self.make("ca", "-x509", "-out", self.path("ca.pem"), "-days", "2")
        self.make("self", "-x509", "-out", self.path("self.pem"), "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1")
        for name, extension, days in (("good", "subjectAltName=IP:127.0.0.1", 2),
                                      ("wrong_host", "subjectAltName=DNS:elsewhere.example", 2),
                                      ("expired", "subjectAltName=IP:127.0.0.1", 0),  # OpenSSL 3.5 refuses -1
                                      ("client", "extendedKeyUsage=clientAuth", 2)):
            self.make(name, "-out", self.path("request"), "-addext", extension)
            self.openssl("x509", "-req", "-in", self.path("request"), "-CA", self.path("ca.pem"), "-CAkey",
                         self.path("ca.key"), "-CAcreateserial", "-days", str(days), "-copy_extensions", "copy",
                         "-out", self.path(name + ".pem"))
        self.openssl("rsa", "-aes256", "-passout", "pass:secret", "-in", self.path("client.key"),
                     "-out", self.path("encrypted.key"))

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    def make(self, name, *args):
        """Makes a key, and a self-signed certificate or a request for a certificate."""
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path(name + ".key"), "-subj", "/CN=" + name,
                     *args)

    def server(self, name, wants_client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path("ca.pem"))
        return context


CERTIFICATES = None
SECRETS = tempfile.TemporaryDirectory()  # its end does not depend on threads that still have a secret


@scenario
def tls():
    with Collector([status(503)], tls=CERTIFICATES.server("good")) as collector:
        delivers(collector, spans=1000, batch_spans=100, tls_ca=CERTIFICATES.path("ca.pem"))
        expect(len({request.connection for request in collector.requests}) == 1, "several connections")


def tls_refused(server, *said, **files):
    """Checks that no connection is made with a server. server: the name of its certificate; (name, True): the server asks
    for the client's certificate, too. files: parameters of the sink that name files."""
    name, wants_client = server if isinstance(server, tuple) else (server, False)
    with Collector(tls=CERTIFICATES.server(name, wants_client)) as collector:
        refuses_to_start(collector, *said, **{option: CERTIFICATES.path(file) for option, file in files.items()})


scenarios_of(tls_refused, {
    "tls_unknown_ca": (("good", "SSL certificate", "to the CA of its certificate"), {}),
    "tls_self_signed": (("self", "SSL certificate"), {"tls_ca": "ca.pem"}),
    "tls_wrong_host": (("wrong_host", "no alternative certificate subject name"), {"tls_ca": "ca.pem"}),
    "tls_expired": (("expired", "certificate has expired"), {"tls_ca": "ca.pem"}),
    "tls_client_certificate_missing": ((("good", True), "client certificate", "tls-cert"), {"tls_ca": "ca.pem"}),
    # OpenSSL must not ask for the password on the terminal
    "tls_encrypted_key": ((("good", True), "tls-key"),
                          {"tls_ca": "ca.pem", "tls_cert": "client.pem", "tls_key": "encrypted.key"}),
})


@scenario
def tls_self_signed_but_trusted():
    with Collector(tls=CERTIFICATES.server("self")) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("self.pem"))


@scenario
def tls_client_certificate():
    with Collector(tls=CERTIFICATES.server("good", True)) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("ca.pem"),
                 tls_cert=CERTIFICATES.path("client.pem"), tls_key=CERTIFICATES.path("client.key"))


@scenario
def tls_reset_after_handshake():
    """A server of TLS 1.3 refuses a client without a certificate like this, if the RST overtakes the alert."""
    def fault(connection):
        context = CERTIFICATES.server("good")
        connection.sock = context.wrap_socket(connection.sock, server_side=True)
        return connection.reset()

    with Collector(tls=CERTIFICATES.server("good"), connect={1: fault}) as collector:
        refuses_to_start(collector, "if the server asks for a client certificate", "tls-cert",
                         tls_ca=CERTIFICATES.path("ca.pem"))


@scenario
def tls_to_plain_port():
    with Collector() as collector:
        refuses_to_start(collector.url.replace("http:", "https:"), "no collector is there",
                         request_timeout_ms=500)

    def answer(connection):
        connection.receive()
        return connection.answer(400)

    with Collector(connect={1: answer}) as collector:
        refuses_to_start(collector.url.replace("http:", "https:"), "write http:// in")


@scenario
def plain_to_tls_port():
    with Collector(tls=CERTIFICATES.server("good")) as collector:
        refuses_to_start(collector.url.replace("https:", "http:"), "no collector is there")


# ---- credentials ----------------------------------------------------------------------------------------


@fault
def wants(connection, authorization):
    request = read(connection)
    if request.headers.get("authorization") != authorization:
        return connection.answer(401)
    return connection.answer(202, request=request)


class Secret:
    """A file with a secret."""

    def __init__(self, text):
        self.file = tempfile.NamedTemporaryFile("w+", dir=SECRETS.name, delete=False)
        self.write(text)
        self.path = self.file.name

    def write(self, text):
        self.file.seek(self.file.truncate(0))
        self.file.write(text)
        self.file.flush()

    def __str__(self):
        return self.path


def credentials(authorization, text, in_file, in_environment):
    secret = Secret(text)
    for options in {in_file: secret.path}, {in_environment: "MY_SECRET", "env": {"MY_SECRET": text.strip()}}:
        with Collector(default=wants(authorization), probe=lambda connection, request: connection.answer(
                202 if request.headers.get("authorization") == authorization else 401)) as collector:
            delivers(collector, **options)


scenarios_of(credentials, {
    "bearer_token": (("Bearer t0p-s3cret", "t0p-s3cret\n", "bearer_token_file", "bearer_token_env"), {}),
    "basic_credentials": (("Basic dXNlcjpwYXNzOndvcmQ=", "user:pass:word", "basic_auth_file", "basic_auth_env"), {}),
})


@scenario
def token_is_renewed():
    secret = Secret("old")

    def expire(connection):
        secret.write("new")
        return wants("Bearer new")(connection)

    with Collector([expire], default=wants("Bearer new")) as collector:
        delivers(collector, bearer_token_file=secret.path, batch_spans=50)


@scenario
def messages_have_no_secrets():
    secret = Secret("t0p-s3cret")
    with Collector(default=status(401)) as collector:
        run = drive(collector, "add:10", "flush", "close", bearer_token_file=secret.path)
        counts(run, refused=10)
        expect("s3cret" not in run.messages, run.messages)
    with Collector(probe=lambda connection, _: connection.answer(401)) as collector:
        run = refuses_to_start(collector, "valid credentials", bearer_token_file=secret.path)
        expect("s3cret" not in run.messages, run.messages)


@scenario
def secret_in_url():
    for url, said in (("http://user:s3cret@127.0.0.1:9411/", "basic-auth-file"),
                      ("http://user:s3cret@127.0.0.1:94111111/", "endpoint"),
                      ("http://127.0.0.1:1/spans?key=s3cret", "endpoint"),
                      ("http://127.0.0.1:94111111/?key=s3cret", "endpoint")):
        run = refuses_to_start(url, said)
        expect("s3cret" not in run.messages, run.messages)
    with Collector(probe=lambda connection, _: connection.answer(403)) as collector:
        run = refuses_to_start(collector.url + "/api/v2/spans?key=s3cret", "403")
        expect("s3cret" not in run.messages, run.messages)


@scenario
def secret_in_something_else():
    """A text that is no URL may have a secret, too."""
    for url in ("htp://user:s3cret@host/", "postgres:user:s3cret@host", "htp:/user:s3cret@host",
                "//user:s3cret@host", "ftp://host/?key=s3cret", "user:s3/cret@host"):
        run = refuses_to_start(url, "expected http://")
        expect("cret" not in run.messages and "user" not in run.messages, run.messages)
    refuses_to_start("ftp://x/y", 'endpoint "ftp://x/y": expected http://')


@scenario
def secret_in_the_open():
    """A secret over http:// to another host: one warning."""
    proxy = Proxy()
    secret = Secret("t0p-s3cret")
    with proxy.collector:
        for options in ({"bearer_token_file": secret.path}, {}):
            for url in ("http://zipkin.example:9411", "http://127.example:9411",
                        "http://localhost:9411"):
                run = drive(url, "add:10", "flush", "close", env={"http_proxy": proxy.url}, **options)
                counts(run, accepted=10)
                warned = run.messages.count("the credential goes over http://")
                expect(warned == (1 if options and "example" in url else 0), run.explain())
                expect("s3cret" not in run.messages, run.messages)


def start_is_refused(url, *said, **options):
    refuses_to_start(url, *said, **options)


NOBODY = "http://127.0.0.1:1"
scenarios_of(start_is_refused, {
    **{"tls_no_such_file_" + option: (("https://127.0.0.1:1", option.replace("_", "-"), "cannot read the file"),
                                      {option: "/nowhere/file.pem"}) for option in ("tls_ca", "tls_cert")},
    **{"bad_secret_" + name: ((NOBODY, said), options) for name, said, options in (
        ("of_two_lines", "expected one line", {"bearer_token_file": Secret("a\nX-Evil: b")}),
        ("that_is_empty", "is empty", {"bearer_token_file": Secret("\n")}),
        ("without_password", "expected USER:PASSWORD", {"basic_auth_file": Secret("user")}),
        ("too_long", "at most", {"bearer_token_file": Secret("x" * 9000)}),
        ("that_is_not_there", "cannot read", {"bearer_token_file": "/nowhere/token"}),
        ("not_set", "is not set", {"bearer_token_env": "NO_SUCH_VARIABLE"}),
        ("of_several", "got several", {"bearer_token_env": "A", "basic_auth_env": "B"}))},
    **{"bad_url_%d" % number: ((url, "endpoint"), {}) for number, url in enumerate(
        ("http://", "http://[::1", "https://:80", "http://host:99999"))},
})


# ---- proxies --------------------------------------------------------------------------------------------


class Proxy:
    """An HTTP proxy: for plain requests and for CONNECT."""

    def __init__(self, refuses=None):
        self.refuses = refuses
        self.asked = []
        self.collector = Collector(connect=self)
        self.url = self.collector.url

    def __contains__(self, _):
        return True

    def __getitem__(self, _):
        return self.serve

    def serve(self, connection):
        while True:
            while b"\r\n\r\n" not in connection.buffer:
                connection.receive()
            line = connection.buffer.split(b"\r\n")[0].decode()
            self.asked.append(line)
            if self.refuses:
                connection.read()
                connection.answer(self.refuses)
                continue
            method, target, _ = line.split()
            if method == "CONNECT":
                connection.read_head()
                host, port = target.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as peer:
                    connection.send(b"HTTP/1.1 200 Connected\r\n\r\n")
                    self.pump(connection.sock, peer)
                return
            request = connection.read()
            connection.answer(202, request=request)

    @staticmethod
    def pump(left, right):
        def one_way(source, sink):
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        thread = threading.Thread(target=one_way, args=(right, left), daemon=True)
        thread.start()
        one_way(left, right)
        thread.join()


@scenario
def proxy_for_http():
    proxy = Proxy()
    with proxy.collector:
        run = drive("http://zipkin.example:9411", "add:10", "flush", "close", compression="none",
                    env={"http_proxy": proxy.url})
        counts(run, accepted=10)
        expect(proxy.asked[0].startswith("POST http://zipkin.example:9411/api/v2/spans "), proxy.asked)


@scenario
def proxy_for_https():
    proxy = Proxy()
    with proxy.collector, Collector(tls=CERTIFICATES.server("good")) as collector:
        delivers(collector, tls_ca=CERTIFICATES.path("ca.pem"), env={"https_proxy": proxy.url})
        expect(set(proxy.asked) == {"CONNECT 127.0.0.1:%d HTTP/1.1" % collector.port}, proxy.asked)


@scenario
def proxy_refuses():
    proxy = Proxy(refuses=407)
    with proxy.collector, Collector(tls=CERTIFICATES.server("good")) as collector:
        refuses_to_start(collector, "the proxy answered 407", env={"https_proxy": proxy.url})


@scenario
def proxy_is_down():
    with Collector() as collector:
        refuses_to_start(collector, "no collector is there",
                         env={"http_proxy": "http://127.0.0.1:%d" % free_port()})


@scenario
def no_proxy():
    with Collector() as collector:
        delivers(collector, env={"http_proxy": "http://127.0.0.1:%d" % free_port(),
                                 "no_proxy": "127.0.0.1"})


def main():
    global CERTIFICATES  # pylint: disable=global-statement
    with tempfile.TemporaryDirectory() as folder:
        CERTIFICATES = Certificates(folder)
        return run_scenarios(8)


if __name__ == "__main__":
    sys.exit(main())
