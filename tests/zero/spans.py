"""Compares the spans of servers that nobody instrumented with the records of their clients and logs.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections

from load import Failed


class Spans:
    def __init__(self, spans):
        self.all = spans
        self.by_id = {}
        self.below = collections.defaultdict(list)
        self.of = collections.defaultdict(list)  # (service, kind)
        for span in spans:
            self.by_id[span["traceId"], span["id"]] = span
            if "parentId" in span:
                self.below[span["traceId"], span["parentId"]].append(span)
            self.of[span["localEndpoint"]["serviceName"], span.get("kind")].append(span)
        if len(self.by_id) != len(spans):
            raise Failed(f"{len(spans) - len(self.by_id)} spans of {len(spans)} have the ids of another one")

    def servers(self, service):
        return self.of[service, "SERVER"]

    def clients(self, service):
        return self.of[service, "CLIENT"]

    def services(self):
        return sorted({service for service, _ in self.of})

    def parent(self, span):
        return self.by_id.get((span["traceId"], span.get("parentId")))

    def children(self, span):
        return self.below[span["traceId"], span["id"]]

    def first_above(self, span, service):
        """Returns the nearest SERVER span of the service above this one."""
        while span is not None:
            span = self.parent(span)
            if span and span.get("kind") == "SERVER" and span["localEndpoint"]["serviceName"] == service:
                return span
        return None


def tag(span, name, default=None):
    return span.get("tags", {}).get(name, default)


def numbered(spans, numbers, what):
    """Returns the ids of each SERVER span -> the number of its request. numbers: a client's port -> the numbers that it
    has sent, or that the server has logged, in order. The spans of a port are in the same order."""
    by_port = collections.defaultdict(list)
    for span in spans:
        by_port[span["remoteEndpoint"]["port"]].append(span)
    found = {}
    for port, sent in numbers.items():
        got = sorted(by_port.pop(port, []), key=lambda span: span["timestamp"])
        if len(got) != len(sent):
            raise Failed(f"{what}: {len(got)} SERVER spans for the {len(sent)} requests from port {port}")
        found.update(((span["traceId"], span["id"]), number) for span, number in zip(got, sent))
    if by_port:
        raise Failed(f"{what}: SERVER spans from ports that have sent nothing: {sorted(by_port)[:10]}")
    return found


Parents = collections.namedtuple("Parents", "whole wrong guesses wrong_guesses alone")


def parents(spans, front, of_front, back, of_back):
    """Counts the back's spans. whole: below a front's span with the same request number. wrong: with another number.
    guesses: the parent is marked as a guess, linked or not; wrong_guesses: of these, not below a front's
    span with the same number. alone: no parent."""
    whole = wrong = guesses = wrong_guesses = alone = 0
    for span in spans.servers(back):
        number = of_back[span["traceId"], span["id"]]
        client = spans.parent(span)
        guess = client is not None and tag(client, "blkin.cause") == "guess"
        above = spans.first_above(span, front)
        if above is None and guess:
            trace, _, one = tag(client, "blkin.guess", "").replace("-", "/").partition("/")
            above = spans.by_id.get((trace, one))
        right = above is not None and of_front[above["traceId"], above["id"]] == number
        if guess:
            guesses += 1
            wrong_guesses += not right
        elif above is None:
            alone += 1
        else:
            whole += right
            wrong += not right
    return Parents(whole, wrong, guesses, wrong_guesses, alone)


def outside(spans, span, slack_us=1):
    """Returns whether a span is not within its parent's time."""
    above = spans.parent(span)
    return above is not None and (
        span["timestamp"] + slack_us < above["timestamp"] or
        span["timestamp"] + span.get("duration", 0) > above["timestamp"] + above.get("duration", 0) + 1 + slack_us)
