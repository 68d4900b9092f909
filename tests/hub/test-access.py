#!/usr/bin/env python3
# Who may speak to the hub, and to which hub a recorder speaks: tokens, certificates, and what is said to the wrong.
# SPDX-License-Identifier: BSD-2-Clause
import http.client
import os
import ssl
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from parts import HubTest, free_port, wait_until  # noqa: E402


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Access(HubTest):
    def path(self, name):
        return os.path.join(self.folder, name)

    def token(self, name, text, mode=0o600):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def authority(self, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"))
        return self.path(f"{name}.pem")

    def certificate(self, authority, name, days=2):
        """Returns it and its key."""
        pem, key, request = (self.path(f"{name}.{end}") for end in ("pem", "key", "csr"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", request)
        dates = ["-days", str(days)]
        openssl("x509", "-req", "-in", request, "-CA", self.path(f"{authority}.pem"), "-CAkey",
                self.path(f"{authority}.key"), "-CAcreateserial", "-copy_extensions", "copy", *dates, "-out", pem)
        return pem, key

    def talks(self, hub, *peers):
        """Each gets what the others post."""
        for peer in peers:
            peer.wait_state(hosts=[peer.name for peer in peers])
        peers[0].say("post 1")
        for peer in peers[1:]:
            wait_until(lambda: peer.got() == peers[0].posted, f"{peer.name} gets it")

    def is_denied(self, peer, *texts):
        wait_until(lambda: peer.report()["state"] == "away" and any(text in peer.report()["error"] for text in texts),
                   lambda: f"{texts} in {peer.report()}")
        self.assertNotIn("open sesame", peer.said())

    def test_token(self):
        right = self.token("token", "open sesame 0123456789".replace(" ", "-") + "\n")
        wrong = [self.token("wrong", "open-sesame-0123456788"), self.token("short", "open-sesame-012345678"),
                 self.token("long", "open-sesame-01234567890")]
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_token_file=right)
        self.assertIn("plain HTTP: all on the way can read it, the token too", hub.said())
        self.talks(hub, *(self.peers(hub, name, hub_token_file=right) for name in ("a", "b")))
        for i, token in enumerate(wrong):
            self.is_denied(self.peers(hub, f"wrong-{i}", hub_token_file=token), "401: not the hub's token")
        self.is_denied(self.peers(hub, "none"), "401: not the hub's token: see hub-token-file")
        for path in ("/metrics", "/v1/hosts", "/v1/messages?host=x", "/v2"):
            self.assertEqual(hub.ask("GET", path)[0], 401)
        for header in ("Basic b3BlbjpzZXNhbWU=", "Bearer", "Bearer ", "open-sesame-0123456789"):
            self.assertEqual(hub.ask("GET", "/metrics", None, {"Authorization": header})[0], 401)
        status, page = hub.ask("GET", "/metrics", None, {"Authorization": "bearer open-sesame-0123456789"})
        self.assertEqual(status, 200)
        self.assertNotIn('host="wrong', page)
        self.assertEqual(hub.ask("POST", "/v1/messages?host=x", "[]")[0], 401)
        self.assertEqual(hub.ask("GET", "/")[0], 200)

    def test_a_token_that_others_may_read_is_none(self):
        self.assertIn("others than its owner may read", self.refused(hub_token_file=self.token("a", "x" * 20, 0o640)))
        self.assertIn("others than its owner may read", self.refused(hub_token_file=self.token("a", "x" * 20, 0o604)))
        self.assertIn("at least 16 characters", self.refused(hub_token_file=self.token("b", "secret\n")))
        self.assertIn("one line of printable", self.refused(hub_token_file=self.token("c", "x" * 20 + "\n" + "y" * 20)))
        self.assertIn("cannot read it: No such", self.refused(hub_token_file=self.path("d")))
        self.assertIn("expected a file", self.refused(hub_token_file=self.folder))
        peer = self.peers("http://127.0.0.1:1", "a", hub_token_file=self.token("e", "x" * 20, 0o644))
        self.assertEqual(peer.process.wait(10), 1)
        self.assertIn("others than its owner may read", peer.said())

    def test_certificates(self):
        authority = self.authority("ca")
        other_authority = self.authority("other-ca")
        cert, key = self.certificate("ca", "hub")
        mine, my_key = self.certificate("ca", "recorder")
        foreign, foreign_key = self.certificate("other-ca", "foreigner")
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert, hub_key_file=key,
                       hub_ca_file=authority)
        self.assertNotIn("plain HTTP", hub.said())
        right = {"hub_ca_file": authority, "hub_cert_file": mine, "hub_key_file": my_key}
        self.talks(hub, *(self.peers(hub, name, **right) for name in ("a", "b")))
        self.is_denied(self.peers(hub, "none", hub_ca_file=authority), "401: no certificate that this hub trusts")
        # the hub's answer, or that of its TLS
        self.is_denied(self.peers(hub, "foreign", **{**right, "hub_cert_file": foreign, "hub_key_file": foreign_key}),
                       "no certificate that this hub trusts", "alert")
        # and the hub is not trusted by everybody
        self.is_denied(self.peers(hub, "far", **{**right, "hub_ca_file": other_authority}), "hub-ca-file")
        self.is_denied(self.peers(hub, "no-ca"), "name the CA of its certificate with hub-ca-file")
        self.is_denied(self.peers(hub.url.replace("127.0.0.1", "localhost"), "name", **right),
                       "hub-ca-file")  # the certificate is for the address
        # one that speaks the wrong protocol
        self.is_denied(self.peers(hub.url.replace("https", "http"), "plain"), "does it speak HTTPS?")
        plain = self.hub(port=free_port(), runtime_dir=self.path("plain"))
        self.is_denied(self.peers(plain.url.replace("http", "https"), "tls", **right), "if it speaks plain HTTP")

    def test_a_certificate_and_the_token(self):
        authority = self.authority("ca")
        cert, key = self.certificate("ca", "hub")
        mine, my_key = self.certificate("ca", "recorder")
        token = self.token("token", "open-sesame-0123456789")
        hub = self.hub(hub_cert_file=cert, hub_key_file=key, hub_ca_file=authority, hub_token_file=token)
        self.assertIn("must show a certificate and the token", hub.said())
        right = {"hub_ca_file": authority, "hub_cert_file": mine, "hub_key_file": my_key, "hub_token_file": token}
        self.talks(hub, *(self.peers(hub, name, **right) for name in ("a", "b")))
        self.is_denied(self.peers(hub, "no-token", **{**right, "hub_token_file": ""}), "not the hub's token")
        self.is_denied(self.peers(hub, "no-certificate", **{**right, "hub_cert_file": "", "hub_key_file": ""}),
                       "no certificate that this hub trusts")

    def test_one_with_a_token_over_tls(self):
        authority = self.authority("ca")
        cert, key = self.certificate("ca", "hub")
        token = self.token("token", "open-sesame-0123456789")
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert, hub_key_file=key,
                       hub_token_file=token)
        right = {"hub_ca_file": authority, "hub_token_file": token}
        self.talks(hub, *(self.peers(hub, name, **right) for name in ("a", "b")))
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer open-sesame-0123456789"})
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        for version, status in [("-tls1_1", 1), ("-tls1_2", 0)]:
            done = subprocess.run(["openssl", "s_client", version, "-cipher", "ALL:@SECLEVEL=0", "-connect",
                                   f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=10)
            self.assertEqual(done.returncode, status, done.stdout)

    def test_wrong_files(self):
        authority = self.authority("ca")
        cert, key = self.certificate("ca", "hub")
        _, other_key = self.certificate("ca", "other")
        self.assertIn("expected both, or none", self.refused(hub_cert_file=cert))
        self.assertIn("over HTTPS only", self.refused(hub_ca_file=authority))
        self.assertIn("is hub-key-file the key of hub-cert-file", self.refused(hub_cert_file=cert, hub_key_file=other_key))
        self.assertIn("expected PEM", self.refused(hub_cert_file=self.token("x", "x" * 99), hub_key_file=key))
        self.assertIn("cannot read it", self.refused(hub_cert_file=self.path("nothing"), hub_key_file=key))
        port = free_port()  # TLS alone does not say who may ask
        self.assertIn("is not on loopback", self.refused(hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert,
                                                         hub_key_file=key))


if __name__ == "__main__":
    unittest.main(verbosity=2)
