"""Compares the calls of nestings.c with its spans: each step, annotation and tag is once in its span, or counted as
dropped.

usage: check_nestings.py MODEL SPANS.json

MODEL is the output of nestings. Each of its spans is a separate trace. Prints the numbers of spans, of steps, and of their losses.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import re
import sys

NAME_MAX, STEP_MAX, KEY_MAX, TEXT_MAX, DEPTH_MAX = 120, 100, 100, 240, 12
KINDS = [None, "CLIENT", "SERVER", "PRODUCER", "CONSUMER"]
EDGE = 2.1  # us: begin and end of a span may be rounded, and times of two clocks are compared

totals = collections.Counter()


class Node:
    """A step, or the span itself."""

    def __init__(self, name, above, depth):
        self.name, self.above, self.depth = name, above, depth
        self.said, self.remotes = [], []  # (record, (time before, time after)); names
        self.begin = self.end = self.id = self.parent_id = self.kind = None
        self.incomplete = False


class Trace:
    def __init__(self, root_id, name):
        self.root = self.open = Node(name, None, 0)
        self.root.id, self.root.kind = root_id, "SERVER"
        self.names, self.starts, self.steps, self.children = [name], [], {}, {}

    def step(self, before, after, span_id, parent_id, kind, name):
        node = Node(name[:STEP_MAX], self.open, self.open.depth + 1)
        node.begin, node.kind = (int(before), int(after)), KINDS[int(kind)]
        node.id, node.parent_id = span_id, parent_id
        self.steps[node.name] = self.open = node

    def end(self, before, after):
        if self.open is not self.root:
            self.open.end = (int(before), int(after))
            self.open = self.open.above

    def annotation(self, before, after, text):
        self.open.said.append((("annotation", text[:TEXT_MAX]), (int(before), int(after))))

    def tag(self, key, value):
        self.open.said.append((("tag", key[:KEY_MAX], value[:TEXT_MAX]), None))

    def link(self, span_id):
        self.open.said.append((("link", span_id), None))

    def remote(self, name):
        self.open.remotes.append(name)

    def child(self, span_id, name):
        self.children[name] = (span_id, self.open)

    def name(self, name):
        self.names.append(name)

    def start(self, time):
        self.starts.append(int(time))

    def done(self, before, after):
        while self.open is not self.root:
            self.open.incomplete = True
            self.end(before, after)
        self.root.end = (int(before), int(after))


def read_model(path):
    traces = {}
    for line in open(path):
        call, *words = line.split()
        if call == "span":
            trace = traces[words[0]] = Trace(*words[1:])
        else:
            getattr(trace, call)(*words)
    return traces


def things_of(span):
    """Returns the span's annotations (with their times), tags and links in the form of the model."""
    things = [(("annotation", note["value"]), note["timestamp"]) for note in span.get("annotations", [])]
    for key, value in span.get("tags", {}).items():
        if key.startswith("otlp.link."):
            things.append((("link", value.split("|")[1]), None))
        elif not key.startswith(("lttng.", "blkin.")):
            things.append((("tag", re.sub(r"#\d+$", "", key), value), None))
    return things


class Wrong(Exception):
    pass


def check(condition, what, span=None):
    if not condition:
        raise Wrong(what, span)


def end_of(span):
    return span["timestamp"] + span["duration"]


def check_times(span, node, root_span, root):
    """Checks that times are within the times that the program measured, both relative to the root's end."""
    def is_between(time, before, after):
        least, most = ((end_of(root_span) - time) * 1000 - (root.end[1] - before),
                       (end_of(root_span) - time) * 1000 - (root.end[0] - after))
        return least <= EDGE * 1000 and most >= -EDGE * 1000

    if node is not root:
        check(is_between(span["timestamp"], *node.begin), "begin", span)
    check(is_between(end_of(span), *node.end), "end", span)
    times = dict(said for said in node.said if said[1])
    for what, time in things_of(span):
        if time is not None:
            check(is_between(time, *times[what]), f"the time of {what}", span)


def count_missing(span, node):
    """Returns the minimum and the maximum number of missing records of a step or a span."""
    found = collections.Counter(what for what, _ in things_of(span)) if span else collections.Counter()
    said = collections.Counter(what for what, _ in node.said)
    check(not found - said, f"records that the program did not make, or duplicates: {list(found - said)}", span)
    least = most = (said - found).total()
    if node.remotes:
        remote = span.get("remoteEndpoint", {}).get("serviceName") if span else None
        check(remote is None or remote in node.remotes, "the remote side", span)
        last = node.remotes.index(remote) if remote else -1
        least += len(node.remotes) - 1 - last
        most += len(node.remotes) - (last >= 0)
    else:
        check(span is None or "remoteEndpoint" not in span, "a remote side", span)
    return least, most


def count_missing_starts(trace, root_span):
    """Returns the minimum and the maximum number of changed starts that had no room. After the first such start, all are
    missing. The span's duration shows which start has arrived."""
    if not trace.starts:
        return 0, 0
    before, after = ((end - root_span["duration"] * 1000) for end in trace.root.end)
    fit = [before - EDGE * 1000 <= start <= after + EDGE * 1000 for start in trace.starts]
    return int(any(fit) and not fit[-1]), len(trace.starts)


def check_trace(trace, spans):
    by_name, root = {}, trace.root
    for span in spans:
        check(span["name"] not in by_name, "two spans of one name", span)
        by_name[span["name"]] = span
    roots = [span for span in spans if "parentId" not in span]
    check(len(roots) == 1 and roots[0]["id"] == root.id, "not exactly the program's root", roots)
    root_span = roots[0]
    del by_name[root_span["name"]]
    check(trace.names[-1].startswith(root_span["name"]) and
          len(root_span["name"]) >= min(len(trace.names[-1]), NAME_MAX, min(map(len, trace.names))), "name", root_span)
    check(root_span.get("kind") == "SERVER", "kind", root_span)
    check(len({span["id"] for span in spans}) == len(spans), "two spans of one id", spans)

    for name, (span_id, above) in trace.children.items():
        while above is not root and above.name not in by_name:
            above = above.above
        child = by_name.pop(name, None)
        check(child and (child["id"], child["parentId"]) == (span_id, above.id), f"child {name}", child)

    least, most = count_missing(root_span, root)
    check_times(root_span, root, root_span, root)
    lost = 0
    for name, node in trace.steps.items():
        span = by_name.pop(name, None)
        missing = count_missing(span, node)
        least, most = least + missing[0], most + missing[1]
        if not span:
            lost += 1
            continue
        check(node.depth <= DEPTH_MAX, "too deep", span)
        check((span["id"], span["parentId"]) == (node.id, node.parent_id) == (span["id"], node.above.id), "ids", span)
        check(node.above is root or node.above.name in trace.found, "its parent is lost", span)
        check(span.get("kind") == node.kind, "kind", span)
        check(("blkin.incomplete" in span.get("tags", {})) == node.incomplete, "blkin.incomplete", span)
        check_times(span, node, root_span, root)
    check(not by_name, f"spans that the program did not make: {list(by_name)}")
    starts = count_missing_starts(trace, root_span)
    dropped = int(root_span.get("tags", {}).get("blkin.dropped", 0))
    check(least + lost + starts[0] <= dropped <= most + lost + starts[1],
          f"blkin.dropped is {dropped}, but {lost} steps and {least} to {most} other records are missing, "
          f"and {starts[0]} to {starts[1]} moved starts", root_span)
    totals.update(nestings=1, steps=len(trace.steps), lost=lost, dropped=dropped,
                  incomplete=sum(node.incomplete for node in trace.steps.values()),
                  overflown=dropped > 0, deep=sum(node.depth > DEPTH_MAX for node in trace.steps.values()))


def main():
    traces, found = read_model(sys.argv[1]), collections.defaultdict(list)
    for span in json.load(open(sys.argv[2])):
        found[span["traceId"]].append(span)
    if set(found) - set(traces):
        sys.exit("traces that the program did not make")
    for trace_id, trace in traces.items():
        trace.found = {span["name"] for span in found[trace_id]}
        try:
            check_trace(trace, found[trace_id])
        except Wrong as wrong:
            sys.exit(f"trace {trace_id}: {wrong.args[0]}\n{json.dumps(wrong.args[1], indent=1)}")
    print(*(f"{count} {what}" for what, count in totals.items()), sep=", ")
    if min(totals.values()) < totals["nestings"] / 20:
        sys.exit("the test had too few spans of one sort")


main()
