#!/usr/bin/env python3
"""A collector that misbehaves: prints its port, then serves on loopback until it is killed.

  hang    takes connections and never answers
  leave   answers the first request with 202 and is gone then
  STATUS  answers every request with this status

SPDX-License-Identifier: BSD-2-Clause
"""
import http.server
import socket
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    status = 202

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *args):
        pass


def main():
    mode = sys.argv[1]
    if mode == "hang":
        server = socket.create_server(("127.0.0.1", 0))
        print("collector listening on 127.0.0.1:%d" % server.getsockname()[1], flush=True)
        while True:
            time.sleep(60)
    Handler.status = 202 if mode == "leave" else int(mode)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        print("collector listening on 127.0.0.1:%d" % server.server_address[1], flush=True)
        if mode == "leave":
            server.handle_request()
        else:
            server.serve_forever()


main()
