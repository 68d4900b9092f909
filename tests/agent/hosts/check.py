#!/usr/bin/env python3
"""Compares the collector's spans with the planted requests. Prints one JSON object, and to standard error a line
about each trace that is not whole.

    check.py FOLDER HOSTS COLLECTED [--seed N] [--wait SECONDS] [--linger SECONDS]
             [--faults FILE] [--storm]

A planted request is complete if each span that its hosts have recorded arrived.
--wait: waits until all requests are complete or tagged.
--linger: the agents' time to linger. A trace is late if all its missing spans were recorded more than
this time after its first alarm. (On a busy machine the load falls behind.)
--faults: a file with lines "ns since 1970, fault". A line about a trace has the faults of the 30 s before the
request's end and of the 30 s after it.
--storm: caps hold back most requests, which is no failure. The result has those that arrived.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import collections
import json
import sys
import time

sys.dont_write_bytecode = True
import planted  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("hosts", type=int)
    parser.add_argument("collected")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wait", type=float, default=0)
    parser.add_argument("--linger", type=float, default=1.5)
    parser.add_argument("--faults")
    parser.add_argument("--storm", action="store_true")
    return parser.parse_args()


class Trace:
    def __init__(self):
        self.spans = collections.Counter()
        self.arrived = {}  # id -> ns since 1970
        self.tags = []  # of spans with "incomplete"
        self.kept = False  # True: a span has the tag with the reason


class Collected:
    """The collector's file. Each read() continues at the last position."""

    def __init__(self, path):
        self.file = open(path, encoding="utf-8")
        self.rest = ""
        self.traces = {}

    def read(self):
        *lines, self.rest = (self.rest + self.file.read()).split("\n")
        for line in lines:
            post = json.loads(line)
            for trace_id, span_id, _, service, name, tags in post["spans"]:
                trace = self.traces.setdefault(trace_id, Trace())
                trace.kept |= "blkin.kept" in tags
                if service == "blkin-agent":
                    trace.tags.append(tags)
                    continue
                trace.spans[span_id] += 1
                trace.arrived.setdefault(span_id, post["at"])


def is_late(request, trace, linger):
    """Returns True if all missing spans were recorded later than `linger` after the first alarm."""
    first = min(at for host, at in request.ended.items() if at and host <= request.where)
    return all(request.ended[host] > first + linger * 1e9 for host, ids in request.ids.items()
               if not set(ids) <= set(trace.spans))


class Result:
    def __init__(self, arguments, requests, collected):
        self.complete, self.tagged, self.late = [], [], []
        self.silent, self.partial = [], []
        self.false_tags = 0
        self.not_kept = 0
        self.latencies = []
        for request in requests.values():
            self.judge(arguments, request, collected.traces.get(request.trace_id))
        of_load = f"626c6b696e{arguments.seed:06x}"  # messages about an earlier load do not count
        self.fast = [trace_id for trace_id in collected.traces
                     if trace_id.startswith(of_load) and trace_id not in requests]
        self.doubles = sum(count - 1 for trace in collected.traces.values()
                           for count in trace.spans.values())

    def judge(self, arguments, request, trace):
        if request.where not in request.ended:
            return
        wanted = {span_id for host, ids in request.ids.items() if request.ended[host]
                  for span_id in ids}
        if trace and wanted <= set(trace.spans):
            self.complete.append(request)
            self.false_tags += bool(trace.tags) and request.is_made(arguments.hosts)
            self.not_kept += not trace.kept
            if request.ended[request.where]:
                last = max(trace.arrived[span_id] for span_id in wanted)
                self.latencies.append((last - request.ended[request.where]) / 1e9)
        elif trace and trace.tags:
            self.tagged.append(request)
        elif trace and is_late(request, trace, arguments.linger):
            self.late.append(request)
        elif trace:
            self.partial.append(request)
        else:
            self.silent.append(request)

    def is_settled(self):
        return not self.partial and not self.late and not self.silent

    def summary(self, requests):
        judged = len(self.complete) + len(self.tagged) + len(self.late) + len(self.partial) + len(self.silent)
        return {
            "planted": len(requests),
            "judged": judged,
            "complete": len(self.complete),
            "complete_share": round(len(self.complete) / judged, 6) if judged else None,
            "tagged": len(self.tagged),
            "late": len(self.late),
            "untagged": len(self.partial),
            "silent": len(self.silent),
            "false_tags": self.false_tags,
            "without_why": self.not_kept,
            "fast": len(self.fast),
            "doubles": self.doubles,
            # spans that fit a rule: in a slow or failed request, those of its host and of each calling host
            "fitting": sum(host <= request.where and ended != 0
                           for request in requests.values() for host, ended in request.ended.items()),
            "latency_p50": planted.share(self.latencies, 0.5),
            "latency_p99": planted.share(self.latencies, 0.99),
            "latency_max": planted.share(self.latencies, 1),
        }


def faults_near(faults, request):
    ended = [at for at in request.ended.values() if at]
    if not ended:
        return "it never ended"
    near = [f"{what} {(at - max(ended)) / 1e9:+.1f} s" for at, what in faults
            if -30e9 < at - max(ended) < 30e9]
    return "; ".join(near) or "nothing planted near"


def describe(what, request, trace, faults):
    ended = request.ended
    missing = {host + 1: sum(span_id not in trace.spans for span_id in ids) if trace else len(ids)
               for host, ids in sorted(request.ids.items())}
    first = min((at for at in ended.values() if at), default=0)
    at = time.strftime("%H:%M:%S", time.localtime(max(ended.values(), default=0) / 1e9))
    print(f"{what}: {request.trace_id} k={request.k} "
          f"{'slow' if request.why & planted.SLOW else 'failed'} on store-{request.where + 1}, ended {at},"
          f" spans missing by host {missing}, ended"
          f" { {host + 1: f'{(at - first) / 1e9:+.3f}' if at else 'never' for host, at in sorted(ended.items())} };"
          f" faults: {faults_near(faults, request)}"
          + "".join(f"\n    {tags}" for tags in (trace.tags if trace else [])), file=sys.stderr)


def read_faults(path):
    if not path:
        return []
    with open(path, encoding="utf-8") as file:
        return [(int(line.split(None, 1)[0]), line.split(None, 1)[1].strip()) for line in file]


def main():
    arguments = parse()
    plan = planted.Planted(arguments.folder, arguments.hosts, arguments.seed)
    collected = Collected(arguments.collected)
    deadline = time.monotonic() + arguments.wait
    while True:
        requests = plan.read()
        collected.read()
        result = Result(arguments, requests, collected)
        if result.is_settled() or time.monotonic() >= deadline:
            break
        time.sleep(0.2)  # between two looks
    faults = read_faults(arguments.faults)
    for what, some in (("silent", result.silent), ("untagged", result.partial), ("late", result.late),
                       ("tagged", result.tagged)):
        for request in some[:0 if arguments.storm and what == "silent" else 20]:
            describe(what, request, collected.traces.get(request.trace_id), faults)
    for trace_id in result.fast[:20]:
        trace = collected.traces[trace_id]
        print(f"fast: {trace_id}: {sum(trace.spans.values())} spans, {trace.tags}", file=sys.stderr)
    print(json.dumps(result.summary(requests)))


main()
