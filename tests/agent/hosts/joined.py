#!/usr/bin/env python3
"""Checks how slow requests through servers that send each other no ids were collected.

    joined.py COLLECTED WHY SERVICE...     the services in the order of their calls; standard input has the requests

A request is a text as in n0000019slow, which is in the payload of its spans. It is whole if one trace has the halves of
all servers, each below its caller. It is marked if each trace with one of its halves is marked as incomplete, and silent
if one of these traces is not. It is named if each mark contains WHY. A link is wrong if the parent is a span of another
request, or of another server than the caller; it is apart if the parent is in another trace. Prints the counts as JSON.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import re
import sys

collected, why, *chain = sys.argv[1:]
callers = dict(zip(chain, [None, *chain]))
spans, incomplete = {}, {}
counts = collections.Counter()
with open(collected, encoding="utf-8") as file:
    for line in file:
        for trace, number, parent, service, _, tags in json.loads(line)["spans"]:
            if "blkin.incomplete" in tags:
                incomplete.setdefault(trace, tags["blkin.incomplete"])
            else:
                counts["doubles"] += number in spans
                found = re.search(r"n[0-9]{7}(?:slow|fast)", tags.get("payload", ""))
                spans[number] = {"trace": trace, "parent": parent, "service": service, "tags": tags,
                                 "request": found and found.group()}
of_request = collections.defaultdict(list)
for span in spans.values():
    own, parent = span["request"], spans.get(span["parent"])
    if own:
        of_request[own].append(span)
    if not parent:
        continue
    above = parent["request"]
    counts["links"] += bool(own or above)  # not of requests that warmed the servers up
    counts["apart"] += parent["trace"] != span["trace"]
    if (own and above and own != above) or parent["service"] not in (span["service"], callers.get(span["service"])):
        counts["wrong"] += 1
        print("wrong", span, parent, file=sys.stderr)
reasons = collections.Counter()
slow = sys.stdin.read().split()
counts["slow"] = len(slow)
counts["fast"] = len(set(of_request) - set(slow))
for request in slow:
    parts = of_request[request]
    below = {(span["service"], spans.get(span["parent"], {}).get("service")) for span in parts}
    traces = {span["trace"] for span in parts}
    marks = [incomplete[trace] for trace in traces if trace in incomplete]
    is_whole = len(traces) == 1 and below.issuperset(callers.items())
    kind = "whole" if is_whole else "marked" if marks and len(marks) == len(traces) else "silent"
    counts[kind] += 1
    counts["named"] += kind == "marked" and all(why in mark for mark in marks)
    counts["whole_and_marked"] += is_whole and bool(marks)
    reasons.update(marks)
    if kind == "silent":
        print(kind, request, [(span["trace"][-6:], span["trace"] in incomplete, span["service"],
                               span["tags"].get("request.bytes"), span["tags"].get("response.bytes")) for span in parts],
              file=sys.stderr)
for reason, count in reasons.most_common(8):
    print(count, "marks:", reason, file=sys.stderr)
print(json.dumps({key: counts[key] for key in ("slow", "whole", "marked", "silent", "named", "links", "wrong", "apart", "fast",
                                               "doubles", "whole_and_marked")}))
