"""A control socket of a service, whose answers a test gives.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import os
import socket
import threading


class Service:
    """Answers at the path, and stores the requests. answer(request) returns the JSON answer; None: hangs up."""

    def __init__(self, path, answer):
        self.path, self.answer, self.requests = path, answer, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        os.unlink(self.path)

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                request = client.makefile("r").readline().rstrip("\n")
                self.requests.append(request)
                answer = self.answer(request)
                if answer is not None:
                    client.sendall(json.dumps(answer).encode() + b"\n")


class Agent(Service):
    """polls: the answers to "kept" requests, the last one repeatedly; accepted: the answer to all other requests."""

    def __init__(self, folder, accepted, polls=()):
        polls = list(polls)
        super().__init__(os.path.join(folder, "agent.sock"), lambda request: accepted if not request.startswith("kept ")
                         else polls.pop(0) if len(polls) > 1 else polls[0])
