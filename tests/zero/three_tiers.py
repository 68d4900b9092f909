#!/usr/bin/env python3
"""Checks traces of fio through a proxy into a back end.

    three_tiers.py whole SPANS   prints how many requests are one trace of all tiers; describes the others on standard
    error
    three_tiers.py ids SPANS     prints the ids of these traces, and of those without a call on the file

Such a trace has fio's CLIENT span, the proxy's SERVER and CLIENT, the back end's SERVER and its calls. Each is below
the one before. NBD's negotiation, which reaches no file, does not count.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import sys

WANTED = [("client", "CLIENT"), ("proxy", "SERVER"), ("proxy", "CLIENT"), ("back-end", "SERVER"),
          ("back-end", None)]


def service(span):
    return span.get("localEndpoint", {}).get("serviceName")


class Trace:
    def __init__(self, spans):
        self.spans = spans
        ids = {span["id"] for span in spans}
        self.children = collections.defaultdict(list)
        self.roots = [span for span in spans if span.get("parentId") not in ids]
        for span in spans:
            self.children[span.get("parentId")].append(span)


def read(path):
    traces = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for span in json.load(file):
            traces[span["traceId"]].append(span)
    return [Trace(spans) for spans in traces.values()]


def is_whole(trace, wanted=tuple(WANTED), spans=None):
    """Checks that there is one span of each, below the one before, and only one of each."""
    spans = trace.roots if spans is None else spans
    fitting = [span for span in spans if (service(span), span.get("kind")) == wanted[0]]
    if len(wanted) == 1:
        return bool(fitting)
    return len(fitting) == 1 and is_whole(trace, wanted[1:], trace.children[fitting[0]["id"]])


def shape(trace, spans=None, depth=0):
    spans = trace.roots if spans is None else spans
    each = collections.Counter(
        f"{service(span)}.{span.get('kind', span.get('name'))}" +
        (f"({shape(trace, trace.children[span['id']], depth + 1)})"
         if trace.children[span["id"]] and depth < 50 else "") for span in spans)
    return ", ".join(f"{count} * {text}" if count > 1 else text for text, count in sorted(each.items()))


traces = read(sys.argv[2])
if sys.argv[1] == "ids":
    print(*(trace.spans[0]["traceId"] for trace in traces if is_whole(trace, tuple(WANTED[:-1]))), sep="\n")
else:
    whole = [trace for trace in traces if is_whole(trace)]
    shapes = collections.Counter(shape(trace)[:300] for trace in traces)
    for text, count in shapes.most_common(8):
        print(count, text, file=sys.stderr)
    print(len(whole))
