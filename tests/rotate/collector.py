#!/usr/bin/env python3
"""A collector that may be killed: what it has taken is in a file before it says so.

    collector.py PORT FILE [whole]

Each POST is a line of FILE: a JSON array with, for each span, [its tag i or null, name, id,
number of annotations]; with "whole" each span is a line, as it came. With a file FILE.away beside
it, it answers 503; and with a file FILE.refuse, 400 to whatever has the text of it.

SPDX-License-Identifier: BSD-2-Clause
"""
import gzip
import http.server
import json
import os
import socketserver
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        spans = json.loads(body or b"[]")
        status = 503 if os.path.exists(self.server.away) else 202
        if os.path.exists(self.server.refuse):
            with open(self.server.refuse, "rb") as file:
                status = 400 if file.read().strip() in body else status
        if spans and status == 202:
            lines = spans if self.server.takes_whole else [
                [[span.get("tags", {}).get("i"), span.get("name"), span["id"],
                  len(span.get("annotations", []))] for span in spans]]
            os.write(self.server.taken, "".join(json.dumps(line) + "\n" for line in lines).encode())
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.taken = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        server.away = sys.argv[2] + ".away"
        server.refuse = sys.argv[2] + ".refuse"
        server.takes_whole = sys.argv[3:] == ["whole"]
        print("listening", flush=True)
        server.serve_forever()


main()
