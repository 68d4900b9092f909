"""An HTTP server in a thread, for tests. A function returns its answers.

    with Server(lambda request: (200, b"text")) as server:
        ask(server.url + "/path")

SPDX-License-Identifier: BSD-2-Clause
"""
import gzip
import http.server
import threading


class Request:
    def __init__(self, handler):
        self.method, self.path, self.headers = handler.command, handler.path, handler.headers
        self.wire_body = handler.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_compressed = self.headers.get("Content-Encoding") == "gzip"
        self.body = gzip.decompress(self.wire_body) if is_compressed else self.wire_body


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        answer = self.server.answer(Request(self))
        status, body, kind = (*(answer if isinstance(answer, tuple) else (answer,)), b"", None)[:3]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if kind:
            self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """answer(request) returns STATUS, (STATUS, BODY) or (STATUS, BODY, CONTENT-TYPE)."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer, port=0, host="127.0.0.1"):
        super().__init__((host, port), Handler)
        self.answer = answer
        self.url = f"http://{host}:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
