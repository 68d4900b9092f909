"""A service's control socket that answers what a test wants.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import os
import socket
import threading


class Service:
    """Answers at the path, and stores the requests. answer: from a request to the JSON answer, or None to hang up."""

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
    """polls: answers to "kept", the last one again and again; accepted: to all else."""

    def __init__(self, folder, accepted, polls=()):
        polls = list(polls)
        super().__init__(os.path.join(folder, "agent.sock"), lambda request: accepted if not request.startswith("kept ")
                         else polls.pop(0) if len(polls) > 1 else polls[0])
