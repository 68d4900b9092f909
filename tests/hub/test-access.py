#!/usr/bin/env python3
# Who may speak to the hub, and to which hub a recorder speaks: tokens, certificates, and what is said to the wrong.
# SPDX-License-Identifier: BSD-2-Clause
import http.client
import os
import ssl
import subprocess
import unittest

from parts import HubTest, free_port, wait_until


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
                "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"))
        return self.path(f"{name}.pem")

    def certificate(self, authority, name, days=2):
        """Returns it and its key."""
        pem, key, request = (self.path(f"{name}.{end}") for end in ("pem", "key", "csr"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-addext", f"subjectAltName=IP:127.0.0.1,DNS:{name}", "-keyout", key, "-out", request)
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

    def tokens(self, *hosts):
        """The hub's file, and each host's own."""
        token = {host: f"open-sesame-{host}-0123456789" for host in hosts}
        lines = "# a comment\n\n" + "".join(f"{host} {text}\n" for host, text in token.items())
        return self.token("tokens", lines), [self.token(host, text + "\n") for host, text in token.items()]

    def test_token(self):
        tokens, (first, second) = self.tokens("a", "b")
        wrong = [self.token("wrong", "open-sesame-a-0123456788"), self.token("short", "open-sesame-a-012345678"),
                 self.token("long", "open-sesame-a-01234567890")]
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_tokens_file=tokens)
        self.assertIn("plain HTTP: everyone on the network path can read the messages and the tokens", hub.said())
        self.assertIn("must show their host's token", hub.said())
        self.talks(hub, self.peers(hub, "a", hub_token_file=first), self.peers(hub, "b", hub_token_file=second))
        for i, token in enumerate(wrong):
            self.is_denied(self.peers(hub, f"wrong-{i}", hub_token_file=token), "401: this hub does not know the token")
        self.is_denied(self.peers(hub, "none"), "401: this hub does not know the token: check hub-token-file")
        self.is_denied(self.peers(hub, "c", hub_token_file=first), "403: the token belongs to another host")
        for path in ("/metrics", "/v1/hosts", "/v1/messages?host=x", "/v2"):
            self.assertEqual(hub.ask("GET", path)[0], 401)
        for header in ("Basic b3BlbjpzZXNhbWU=", "Bearer", "Bearer ", "open-sesame-a-0123456789"):
            self.assertEqual(hub.ask("GET", "/metrics", None, {"Authorization": header})[0], 401)
        status, page = hub.ask("GET", "/metrics", None, {"Authorization": "bearer open-sesame-a-0123456789"})
        self.assertEqual(status, 200)
        self.assertNotIn('host="wrong', page)
        self.assertEqual(hub.ask("POST", "/v1/messages?host=x", "[]")[0], 401)
        self.assertEqual(hub.ask("GET", "/")[0], 200)

    def test_a_token_that_others_may_read_is_none(self):
        for text, given in [("other users may read", self.token("a", "a " + "x" * 20, 0o640)),
                            ("other users may read", self.token("b", "b " + "x" * 20, 0o604)),
                            ("at least 16 characters", self.token("c", "c secret\n")),
                            ('expected lines "HOST TOKEN"', self.token("d", "x" * 20 + "\n")),
                            ('expected lines "HOST TOKEN"', self.token("e", "a/b " + "x" * 20 + "\n")),
                            ('expected lines "HOST TOKEN", got none', self.token("f", "# nobody\n")),
                            ("have the same token", self.token("g", "a %s\nb %s\n" % ("x" * 20, "x" * 20))),
                            ("cannot read it: No such", self.path("h")), ("expected a file", self.folder)]:
            self.assertIn(text, self.refused(hub_tokens_file=given))
        peer = self.peers("http://127.0.0.1:1", "a", hub_token_file=self.token("i", "x" * 20, 0o644))
        self.assertEqual(peer.process.wait(10), 1)
        self.assertIn("other users may read", peer.said())

    def test_certificates(self):
        authority = self.authority("ca")
        other_authority = self.authority("other-ca")
        cert, key = self.certificate("ca", "hub")
        mine, my_key = self.certificate("ca", "a")
        foreign, foreign_key = self.certificate("other-ca", "foreigner")
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert, hub_key_file=key,
                       hub_ca_file=authority)
        self.assertNotIn("plain HTTP", hub.said())
        right = {"hub_ca_file": authority, "hub_cert_file": mine, "hub_key_file": my_key}
        other = self.certificate("ca", "b")
        self.talks(hub, self.peers(hub, "a", **right),
                   self.peers(hub, "b", hub_ca_file=authority, hub_cert_file=other[0], hub_key_file=other[1]))
        self.is_denied(self.peers(hub, "c", **right), "403: the certificate is not this host's")
        self.is_denied(self.peers(hub, "none", hub_ca_file=authority), "401: expected a certificate that this hub trusts")
        # the hub's answer, or that of its TLS
        self.is_denied(self.peers(hub, "foreign", **{**right, "hub_cert_file": foreign, "hub_key_file": foreign_key}),
                       "expected a certificate that this hub trusts", "alert")
        # and the hub is not trusted by everybody
        self.is_denied(self.peers(hub, "far", **{**right, "hub_ca_file": other_authority}), "hub-ca-file")
        self.is_denied(self.peers(hub, "no-ca"), "name the CA of its certificate with hub-ca-file")
        self.is_denied(self.peers(hub.url.replace("127.0.0.1", "localhost"), "name", **right),
                       "hub-ca-file")  # the certificate is for the address
        # one that speaks the wrong protocol
        self.is_denied(self.peers(hub.url.replace("https", "http"), "plain"), "if that lasts, try https://")
        plain = self.hub(port=free_port(), runtime_dir=self.path("plain"))
        self.is_denied(self.peers(plain.url.replace("http", "https"), "tls", **right), "if it speaks plain HTTP")

    def test_a_certificate_and_the_token(self):
        authority = self.authority("ca")
        cert, key = self.certificate("ca", "hub")
        tokens, own = self.tokens("a", "b", "no-certificate")
        hub = self.hub(hub_cert_file=cert, hub_key_file=key, hub_ca_file=authority, hub_tokens_file=tokens)
        self.assertIn("must show a certificate and their host's token", hub.said())
        right = []
        for name, token in zip(("a", "b", "no-token"), own):
            mine, my_key = self.certificate("ca", name)
            right.append({"hub_ca_file": authority, "hub_cert_file": mine, "hub_key_file": my_key,
                          "hub_token_file": token})
        self.talks(hub, *(self.peers(hub, name, **keys) for name, keys in zip(("a", "b"), right)))
        self.is_denied(self.peers(hub, "no-token", **{**right[2], "hub_token_file": ""}), "this hub does not know the token")
        self.is_denied(self.peers(hub, "no-certificate", hub_ca_file=authority, hub_token_file=own[2]),
                       "expected a certificate that this hub trusts")

    def test_one_with_a_token_over_tls(self):
        authority = self.authority("ca")
        cert, key = self.certificate("ca", "hub")
        tokens, own = self.tokens("a", "b")
        port = free_port()
        hub = self.hub(port=port, hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert, hub_key_file=key,
                       hub_tokens_file=tokens)
        self.talks(hub, *(self.peers(hub, name, hub_ca_file=authority, hub_token_file=token)
                          for name, token in zip(("a", "b"), own)))
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        connection.request("GET", "/metrics", headers={"Authorization": "Bearer open-sesame-a-0123456789"})
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
        fifo = self.path("fifo")  # nobody writes to it: the hub must not wait for that
        os.mkfifo(fifo)
        for keys in ({"hub_cert_file": fifo, "hub_key_file": key}, {"hub_cert_file": cert, "hub_key_file": fifo},
                     {"hub_cert_file": cert, "hub_key_file": key, "hub_ca_file": fifo},
                     {"hub_cert_file": self.folder, "hub_key_file": key}, {"hub_tokens_file": fifo}):
            self.assertIn("expected a file", self.refused(**keys))
        port = free_port()  # TLS alone does not say who may ask
        self.assertIn("in the name of any host", self.refused(hub_listen=f"0.0.0.0:{port}", hub_cert_file=cert,
                                                         hub_key_file=key, expose_hub="no"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
