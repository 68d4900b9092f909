#!/usr/bin/env python3
"""A Zipkin collector that writes down what it got, and when.

    collect.py PORT FILE [URL]

Each POST is a line of FILE: {"at": ns since 1970, "spans": [[trace id, id, parent id, service, name,
tags whose keys begin with "blkin."]...]}. With URL it is handed on to the collector there first.

SPDX-License-Identifier: BSD-2-Clause
"""
import gzip
import http.server
import json
import os
import socketserver
import sys
import time
import urllib.request


def brief(span):
    tags = {key: value for key, value in span.get("tags", {}).items() if key.startswith("blkin.")}
    return [span["traceId"], span["id"], span.get("parentId"),
            span.get("localEndpoint", {}).get("serviceName"), span.get("name"), tags]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        spans = json.loads(body or b"[]")
        if spans:
            if self.server.url:
                self.hand_on(body)
            line = json.dumps({"at": time.time_ns(), "spans": [brief(span) for span in spans]})
            os.write(self.server.taken, line.encode() + b"\n")
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def hand_on(self, body):
        request = urllib.request.Request(self.server.url + "/api/v2/spans", body,
                                         {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).read()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


with Server(("0.0.0.0", int(sys.argv[1])), Handler) as collector:
    collector.taken = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    collector.url = sys.argv[3] if len(sys.argv) > 3 else None
    print("collector listening", flush=True)
    collector.serve_forever()
