#!/usr/bin/env python3
"""Measures the time until Zipkin has a planted request's whole trace. Requests the incomplete traces from Zipkin's API
ten times a second, until SIGTERM or until SECONDS are over.

    retrieve.py URL FOLDER HOSTS SECONDS

Prints {"retrieved": n, "p50": s, "p99": s, "max": s, "missing": n}. The time begins with the end of the span that was
slow or failed.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import signal
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
import planted  # noqa: E402

AT_ONCE = 50  # ids in a URL
GIVE_UP = 60  # s


def fetch(url, trace_ids):
    with urllib.request.urlopen(f"{url}/api/v2/traceMany?traceIds={','.join(trace_ids)}",
                                timeout=10) as reply:
        return json.load(reply)


class Retrieval:
    def __init__(self, url, plan):
        self.url = url
        self.plan = plan
        self.done = {}  # trace id -> s

    def waiting(self):
        now = time.time_ns()
        return [request for trace_id, request in self.plan.read().items()
                if trace_id not in self.done and request.is_made(self.plan.hosts)
                and now - request.ended[request.where] < GIVE_UP * 1e9]

    def look(self):
        waiting = self.waiting()
        for i in range(0, len(waiting), AT_ONCE):
            some = waiting[i:i + AT_ONCE]
            # Zipkin requires two ids at least.
            ids = [request.trace_id for request in some] + ["1"]
            got = {}
            for trace in fetch(self.url, ids):
                got.setdefault(trace[0]["traceId"], set()).update(span["id"] for span in trace)
            now = time.time_ns()
            for request in some:
                if request.all_ids() <= got.get(request.trace_id, set()):
                    self.done[request.trace_id] = (now - request.ended[request.where]) / 1e9

    def report(self):
        values, share = self.done.values(), planted.share
        made = sum(request.is_made(self.plan.hosts) for request in self.plan.read().values())
        print(json.dumps({"retrieved": len(values), "p50": share(values, 0.5), "p99": share(values, 0.99),
                          "max": share(values, 1), "missing": made - len(values)}))


def main():
    url, folder, hosts, seconds = sys.argv[1:]
    retrieval = Retrieval(url, planted.Planted(folder, int(hosts)))
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
    deadline = time.monotonic() + float(seconds)
    while not ends and time.monotonic() < deadline:
        retrieval.look()
        time.sleep(0.1)  # between two looks
    retrieval.look()
    retrieval.report()


main()
