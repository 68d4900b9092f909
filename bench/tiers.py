"""Splits the time of requests in each tier of servers, from spans as Zipkin's JSON.

A tier is a service; its requests are its SERVER spans. The parts of the time of a request:

  cpu      on CPU                                           usage.cpu_us, of the request and its calls
  queue    ready to run, and waiting for a CPU              usage.run_delay_us, likewise
  next     in the next tier                                 its SERVER spans below our CLIENT spans
  network  between the two tiers, and back to the thread    the rest of our CLIENT spans
  fsync    waiting for fsync(2), fdatasync(2)               the spans of these calls, or file.sync_us
  file     waiting for other calls on files                 likewise, or file.read_us, file.write_us
  blocked  waiting for anything else                        the rest

The time of a call is without its time on a CPU or waiting for a CPU. The parts add up to the duration. Where meters
and clocks differ, the earlier part of this list gets the time.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json

PARTS = ("cpu", "queue", "next", "network", "fsync", "file", "blocked")
SYNCS = {"fsync", "fdatasync", "sync_file_range", "syncfs"}


def read(path):
    """Returns the traces: lists of spans."""
    with open(path, encoding="utf-8") as file:
        spans = json.load(file)
    traces = collections.defaultdict(list)
    for span in spans:
        traces[span["traceId"]].append(span)
    return list(traces.values())


def service(span):
    return span.get("localEndpoint", {}).get("serviceName")


def tag(span, name):
    """Returns the tag's number in us; None if the span has no such tag."""
    value = span.get("tags", {}).get(name)
    return None if value is None else float(value)


class Trace:
    def __init__(self, spans):
        self.spans = spans
        ids = {span["id"] for span in spans}
        self.children = collections.defaultdict(list)
        self.roots = []
        for span in spans:
            if span.get("parentId") in ids:
                self.children[span["parentId"]].append(span)
            else:
                self.roots.append(span)

    def below(self, span, depth=0):
        """Returns all spans below this span, without those of other services."""
        for child in self.children[span["id"]]:
            if service(child) == service(span) and depth < 50:
                yield child
                yield from self.below(child, depth + 1)

    def tiers(self):
        """Returns the services of the SERVER spans from the root on, each below the one before."""
        found, spans, depth = [], self.roots, 0
        while spans and depth < 50:
            servers = [span for span in spans if span.get("kind") == "SERVER"]
            if servers and (not found or found[-1] != service(servers[0])):
                found.append(service(servers[0]))
            spans = [child for span in spans for child in self.children[span["id"]]]
            depth += 1
        return found


def covered(spans, within):
    """Returns for how many us of the span `within` one of the spans was open."""
    begin, end = within["timestamp"], within["timestamp"] + within.get("duration", 0)
    total, until = 0, begin
    for start, stop in sorted((span["timestamp"], span["timestamp"] + span.get("duration", 0))
                              for span in spans):
        start, stop = max(start, until), min(stop, end)
        if stop > start:
            total += stop - start
            until = stop
    return total


def totals(spans, *names):
    return sum(tag(span, name) or 0 for span in spans for name in names)


def waited(spans, within):
    """Returns for how many us of the span `within` one of the spans was open, and neither ran nor was ready to
    run."""
    return max(0, covered(spans, within) - totals(spans, "usage.cpu_us", "usage.run_delay_us"))


def parts_of(trace, span):
    """Returns the parts of a SERVER span's duration, in us; None if the span has no meters."""
    if tag(span, "usage.cpu_us") is None:
        return None
    below = list(trace.below(span))
    clients = [child for child in below if child.get("kind") == "CLIENT"]
    servers = [child for client in clients for child in trace.children[client["id"]]
               if child.get("kind") == "SERVER"]
    files = [child for child in below if "kind" not in child]
    syncs = [child for child in files if child.get("name") in SYNCS]
    others = [child for child in files if child.get("name") not in SYNCS]
    calls = waited(clients, span)
    beyond = min(covered(servers, span), calls)
    wanted = (("cpu", totals([span, *below], "usage.cpu_us")),
              ("queue", totals([span, *below], "usage.run_delay_us")),
              ("next", beyond), ("network", calls - beyond),
              ("fsync", waited(syncs, span) + totals([span], "file.sync_us")),
              ("file", waited(others, span) + totals([span], "file.read_us", "file.write_us")))
    left = span.get("duration", 0)
    parts = {}
    for name, value in wanted:
        parts[name] = min(value, left)
        left -= parts[name]
    parts["blocked"] = left
    return parts


class Tier:
    """Sums over the requests of a service."""

    def __init__(self):
        self.requests = self.unmetered = 0
        self.sums = collections.Counter()

    def add(self, parts):
        self.requests += 1
        if parts is None:
            self.unmetered += 1
        else:
            self.sums.update(parts)

    def mean(self, per):
        """Returns the parts in us of one of `per`, which are pairs of write and flush, say."""
        return {name: self.sums[name] / per for name in PARTS}


def tiers_of(traces):
    """Returns the tiers by service."""
    found = collections.defaultdict(Tier)
    for spans in traces:
        trace = Trace(spans)
        for span in spans:
            if span.get("kind") == "SERVER":
                found[service(span)].add(parts_of(trace, span))
    return found
