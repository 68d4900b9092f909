"""Checks the interactions that the preload has recorded: check_interactions.py SPANS.json EXPECTATION...

Each EXPECTATION is SERVICE:SIDE:COUNT[:FEATURE...], SIDE server or client. Features:

  joined   every span has a key, and exactly one span of the other side has the same key and fits in time
  keyed    every span has a key
  keyless  no span has a key
  below    every span has a parent, a server span of the same service, that encloses its begin
  unique   below, and the parent's payload is the same
  root     no span has a parent
  guess    every span without a parent is tagged as a guess
  honest   no span has the key of another request of the other side that fits in time
  slow     every span lasts 0.3 s or longer
  alike    all spans have as many bytes of request and response as the first span
  true     the parent of every span that has one is the request with the same payload

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import sys

SKEW = 1000  # us

path, *expectations = sys.argv[1:]
spans = json.load(open(path))
by_id = {span["id"]: span for span in spans}
groups = collections.defaultdict(list)
keys = collections.defaultdict(list)
for span in spans:
    groups[span["localEndpoint"]["serviceName"], span.get("kind", "").lower()].append(span)
    key = span.get("tags", {}).get("blkin.join")
    if key:
        keys[key, span["kind"]].append(span)

problems = []


def tag(span, key):
    return span.get("tags", {}).get(key)


def end(span):
    return span["timestamp"] + span["duration"]


def covers(client, server):
    """Does the server's span begin during the client's? The server's end is not compared: the preload takes this time
    after the write, when other threads may have run first."""
    return client["timestamp"] <= server["timestamp"] + SKEW and end(client) >= server["timestamp"] - SKEW


def show(span):
    return {key: span.get(key) for key in ("name", "kind", "timestamp", "duration", "tags", "parentId")}


def check(span, feature, group):
    other = "CLIENT" if span.get("kind") == "SERVER" else "SERVER"
    parent = by_id.get(span.get("parentId"))
    if feature == "joined":
        matches = keys[tag(span, "blkin.join"), other]
        fits = [m for m in matches if covers(m, span) or covers(span, m)]
        if len(fits) != 1:
            return f"{len(matches)} spans have its key, {len(fits)} fit in time"
    elif feature == "honest":
        matches = keys[tag(span, "blkin.join"), other] if tag(span, "blkin.join") else []
        wrong = [m for m in matches if tag(m, "payload") != tag(span, "payload") and (covers(m, span) or covers(span, m))]
        if wrong:
            return f"its key is another request's: {show(wrong[0])}"
    elif feature == "alike":
        if any(tag(span, key) != tag(group[0], key) for key in ("request.bytes", "response.bytes")):
            return f"its bytes are not those of the first span: {show(group[0])}"
    elif feature == "slow":
        if span["duration"] < 300000:
            return "it is short"
    elif feature == "keyed":
        if not tag(span, "blkin.join"):
            return "it has no key"
    elif feature == "keyless":
        if tag(span, "blkin.join"):
            return "it has a key"
    elif feature == "root":
        if span.get("parentId"):
            return "it has a parent"
    elif feature in ("below", "unique"):
        if not parent or parent.get("kind") != "SERVER":
            return "its parent is no server's span"
        if parent["localEndpoint"]["serviceName"] != span["localEndpoint"]["serviceName"]:
            return "its parent is of another service"
        if not parent["timestamp"] <= span["timestamp"] <= end(parent):
            return f"its parent is at another time: {show(parent)}"
        if feature == "unique" and tag(parent, "payload") != tag(span, "payload"):
            return f"its parent is another request: {show(parent)}"
    elif feature == "guess":
        if tag(span, "blkin.cause") == "guess":
            if parent or len(tag(span, "blkin.guess") or "") != 49:
                return "a guess is linked, or has no tag blkin.guess with ids"
        elif not parent:
            return "it is no guess and has no parent"
    elif feature == "true":
        if parent and tag(parent, "payload") != tag(span, "payload"):
            return f"its parent is another request: {show(parent)}"
    else:
        sys.exit(f"no such feature: {feature}")
    return None


for expectation in expectations:
    service, side, count, *features = expectation.split(":")
    group = groups.pop((service, side), [])
    if len(group) != int(count):
        problems.append(f"{service}: {len(group)} {side} spans, expected {count}")
    if len(by_id) != len(spans):
        problems.append("two spans have one id")
    for feature in features:
        wrong = [(span, what) for span in group for what in [check(span, feature, group)] if what]
        for span, what in wrong[:3]:
            problems.append(f"{service}: {side}: {what}: {show(span)}")
        if len(wrong) > 3:
            problems.append(f"{service}: {side}: {feature}: {len(wrong)} in all")
for (service, side), group in groups.items():
    problems.append(f"{service}: {len(group)} {side} spans that nobody expected: {show(group[0])}")
for problem in problems:
    print(problem)
print(len(spans), "spans")
causes = collections.Counter(tag(span, "blkin.cause") for span in spans if span.get("kind") == "CLIENT")
print(dict(causes))
sys.exit(len(problems) > 0)
