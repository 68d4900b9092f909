#!/usr/bin/env python3
"""Checks traces of fio through a proxy into a back end.

    three_tiers.py whole SPANS   prints how many requests are one trace of all tiers; describes the most frequent
    shapes of traces on standard error
    three_tiers.py ids SPANS     prints the ids of these traces, and of those without a call on the file

Such a trace has fio's CLIENT span, the proxy's SERVER and CLIENT, the back end's SERVER and its calls. Each is below
the one before. NBD's negotiation, which reaches no file, does not count.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import sys

from spans import Spans

WANTED = [("client", "CLIENT"), ("proxy", "SERVER"), ("proxy", "CLIENT"), ("back-end", "SERVER"),
          ("back-end", None)]


def is_whole(below, wanted=tuple(WANTED)):
    """Checks that each wanted span is there, below the one before, and only once (the last: at least once)."""
    fitting = [span for span in below if (span["localEndpoint"]["serviceName"], span.get("kind")) == wanted[0]]
    if len(wanted) == 1:
        return bool(fitting)
    return len(fitting) == 1 and is_whole(spans.children(fitting[0]), wanted[1:])


def shape(below, depth=0):
    each = collections.Counter(
        f"{span['localEndpoint']['serviceName']}.{span.get('kind', span.get('name'))}" +
        (f"({shape(spans.children(span), depth + 1)})" if spans.children(span) and depth < 50 else "") for span in below)
    return ", ".join(f"{count} * {text}" if count > 1 else text for text, count in sorted(each.items()))


with open(sys.argv[2], encoding="utf-8") as file:
    spans = Spans(json.load(file))
roots = collections.defaultdict(list)  # by trace
for one in spans.all:
    if spans.parent(one) is None:
        roots[one["traceId"]].append(one)
if sys.argv[1] == "ids":
    print(*(trace for trace, own in roots.items() if is_whole(own, tuple(WANTED[:-1]))), sep="\n")
else:
    for text, count in collections.Counter(shape(own)[:300] for own in roots.values()).most_common(8):
        print(count, text, file=sys.stderr)
    print(sum(map(is_whole, roots.values())))
