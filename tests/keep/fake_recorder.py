#!/usr/bin/python3
"""A recorder that answers what a test wants: for "blkin keep" alone.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import os
import socket
import threading


class Recorder:
    """Answers at FOLDER/record.sock; notes the requests. polls: answers to "kept", the last one again and again; an
    answer that is None hangs up."""

    def __init__(self, folder, accepted, polls=()):
        self.requests = []
        self.accepted = accepted
        self.polls = list(polls)
        self.path = os.path.join(folder, "record.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        os.unlink(self.path)

    def answer_to(self, request):
        if not request.startswith("kept "):
            return self.accepted
        return self.polls.pop(0) if len(self.polls) > 1 else self.polls[0]

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                request = client.makefile("r").readline().rstrip("\n")
                self.requests.append(request)
                answer = self.answer_to(request)
                if answer is not None:
                    client.sendall(json.dumps(answer).encode())
