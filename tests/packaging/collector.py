"""Takes posts to port 9411, and appends each span as a line to the file in its argument.

SPDX-License-Identifier: BSD-2-Clause
"""
import gzip
import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with open(sys.argv[1], "a") as file:
            for span in json.loads(body) if body else []:
                file.write(json.dumps(span) + "\n")
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", 9411), Handler).serve_forever()
