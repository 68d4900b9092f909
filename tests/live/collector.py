#!/usr/bin/python3
# A Zipkin collector that keeps which numbered spans it got (tag "i", as tests/rotate/writer makes them) in a folder, so
# that it can be killed at any time: collector.py PORT FOLDER. FOLDER/latest has the highest number, 8 bytes;
# FOLDER/got all numbers, 8 bytes each, as they came.
# SPDX-License-Identifier: BSD-2-Clause
import gzip
import json
import os
import struct
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

folder = sys.argv[2]
os.makedirs(folder, exist_ok=True)
got = os.open(os.path.join(folder, "got"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
latest = os.open(os.path.join(folder, "latest"), os.O_RDWR | os.O_CREAT, 0o600)
highest = struct.unpack("q", os.pread(latest, 8, 0) or struct.pack("q", -1))[0]
lock = Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global highest
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        numbers = [int(span["tags"]["i"]) for span in json.loads(body) if "i" in span.get("tags", {})]
        if numbers:
            with lock:
                os.write(got, struct.pack(f"{len(numbers)}q", *numbers))
                highest = max(highest, max(numbers))
                os.pwrite(latest, struct.pack("q", highest), 0)
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("collector listening on 127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
