"""Checks that the workers have counted all sent spans, and have kept the traces of the rules.

The generator (produce.c) writes the number of traces of each template. From these follow the exact number, errors and
durations of every operation and edge, and the traces to keep.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import math

import received

SLOW_NS = 50_000_000
RULES = "error\n* > 50ms\n"  # the expected traces are kept by these rules
MASK = (1 << 64) - 1


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


class Row:
    def __init__(self):
        self.count = self.errors = 0
        self.durations, self.selves = collections.Counter(), collections.Counter()

    def add(self, times, duration, self_ns, is_error):
        self.count += times
        self.errors += times * is_error
        self.durations[duration] += times
        self.selves[self_ns] += times


class Expected:
    """The spans sent by a run of the generator."""

    def __init__(self, account):
        self.account = account
        self.spans, self.acknowledged = account["spans"], account["acknowledged"]
        self.failed, self.seed = account["failed"], account["seed"]
        self.templates = [template["spans"] for template in account["templates"]]
        self.is_kept = [any(span[4] for span in spans) or spans[0][2] > SLOW_NS for spans in self.templates]
        self.kept = sum(template["made"] for template, kept in zip(account["templates"], self.is_kept) if kept)
        self.rows, self.edges = collections.defaultdict(Row), collections.defaultdict(Row)
        for template in account["templates"]:
            for service, name, duration, self_ns, is_error, parent in template["spans"]:
                self.rows[service, name].add(template["made"], duration, self_ns, is_error)
                caller = template["spans"][parent][0] if parent >= 0 else service
                if caller != service:
                    self.edges[caller, service].add(template["made"], duration, 0, is_error)


def read_expected(path):
    """Reads the generator's account."""
    with open(path, encoding="ascii") as file:
        return Expected(json.load(file))


def buckets(values, scale):
    """Returns the index of each bucket of an exponential histogram -> the number of its values."""
    found = collections.Counter()
    for value, times in values.items():
        found[math.ceil(math.log2(value) * 2 ** scale) - 1] += times
    return +found


class Faults(list):
    """Faults as texts, for a person to read."""

    def differ(self, what, found, wanted):
        if found != wanted:
            self.append(f"{what}: {found}, expected {wanted}")


def check_histogram(faults, what, histogram, values):
    count = sum(values.values())
    if not count:
        return
    if histogram is None:
        faults.append(f"{what}: not there")
        return
    faults.differ(f"{what}: number", histogram.count, count)
    if histogram.count == count and histogram.buckets != buckets(values, histogram.scale):
        faults.append(f"{what}: the histogram is another one: p50 {histogram.quantile(.5):.0f} ns,"
                      f" p99 {histogram.quantile(.99):.0f} ns")
    exact = sum(value * times for value, times in values.items())
    if histogram.count == count and abs(histogram.total - exact) > exact * 1e-9:
        faults.append(f"{what}: sum {histogram.total:.0f}, expected {exact}")


def check_table(expected, deltas):
    """Checks counts, errors, durations, self times and edges: every one of them."""
    faults = Faults()
    rows = deltas.rows
    faults.differ("spans counted", deltas.spans(), expected.acknowledged)
    for key, row in expected.rows.items():
        what = " ".join(key)
        check_histogram(faults, f"{what}: duration", rows["span", "duration"].get(key), row.durations)
        check_histogram(faults, f"{what}: self time", rows["span", "self"].get(key), row.selves)
        faults.differ(f"{what}: errors", deltas.errors["span", key], row.errors)
    for key, edge in expected.edges.items():
        what = " -> ".join(key)
        check_histogram(faults, f"{what}: duration", rows["edge", "duration"].get(key), edge.durations)
        faults.differ(f"{what}: errors", deltas.errors["edge", key], edge.errors)
    for kind, wanted in (("span", expected.rows), ("edge", expected.edges)):
        strange = [key for key in rows[kind, "duration"] if key not in wanted]
        if strange:
            faults.append(f"{kind} has {strange[:3]}, of which nothing was sent")
    return faults


class Kept:
    """The kept traces that were read."""

    def __init__(self):
        self.traces = collections.defaultdict(list)

    def add(self, message):
        for span in received.spans(message):
            self.traces[span.trace].append(span)


def check_trace(expected, trace_id, spans):
    """Returns the fault of a trace, or None."""
    high, low = int.from_bytes(trace_id[:8], "big"), int.from_bytes(trace_id[8:], "big")
    template = high & 0xffffffff
    if high >> 32 != 0xb1c1 << 16 | expected.seed or template >= len(expected.templates):
        return "nobody has sent it"
    wanted = expected.templates[template]
    if not expected.is_kept[template]:
        return "was not to be kept"
    ids = [int.from_bytes(mix(low + k + 1).to_bytes(8, "big"), "little") for k in range(len(wanted))]
    found = collections.Counter(span.id for span in spans)
    if found != collections.Counter(ids):
        return f"has {len(spans)} spans, {len(found)} different ones, of {len(ids)}"
    for span in spans:
        service, name, duration, _, is_error, _ = wanted[ids.index(span.id)]
        if (span.service, span.name, span.end - span.start, span.is_error) != (service, name, duration, bool(is_error)):
            return f"has a span that is not as it was sent: {span}"
    return None


def check_kept(expected, kept):
    """Checks that every trace that fits the rules is there, whole, once, and no other."""
    faults = Faults()
    faults.differ("kept traces", len(kept.traces), expected.kept)
    wrong = [(trace_id, what) for trace_id, spans in kept.traces.items()
             if (what := check_trace(expected, trace_id, spans))]
    if wrong:
        faults.append(f"{len(wrong)} of {len(kept.traces)} kept traces are wrong; {wrong[0][0].hex()} {wrong[0][1]}")
    return faults
