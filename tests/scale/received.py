"""Reads the workers' output: kept traces by Google's protobuf library, and deltas, which are JSON.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../otel"))
import otlp  # noqa: E402

Span = collections.namedtuple("Span", "trace id parent name service start end is_error")


def spans(message):
    """Yields the spans of an ExportTraceServiceRequest."""
    for resource, _, span in otlp.spans(message):
        yield Span(span.trace_id, *(int.from_bytes(one, "little") for one in (span.span_id, span.parent_span_id)), span.name,
                   resource.get("service.name", ""), span.start_time_unix_nano, span.end_time_unix_nano, span.status.code == 2)


class Histogram:
    """An exponential histogram of any scale; merged by adding."""

    def __init__(self):
        self.count, self.zeros, self.total, self.scale = 0, 0, 0.0, None
        self.buckets = collections.Counter()

    def add(self, scale, point):
        if self.scale not in (None, scale):
            raise ValueError(f"histograms of scales {self.scale} and {scale}")
        self.scale = scale
        self.count += point["count"]
        self.zeros += point["zeros"]
        self.total += point["sum"]
        for index, count in zip(point["buckets"][::2], point["buckets"][1::2]):
            self.buckets[index] += count

    def quantile(self, q):
        """Returns the upper bound of the quantile's bucket."""
        passed, rank = self.zeros, q * self.count
        if passed >= rank:
            return 0
        for index in sorted(self.buckets):
            passed += self.buckets[index]
            if passed >= rank:
                return 2 ** ((index + 1) / 2 ** self.scale)
        return None


class Deltas:
    """The sum of all workers' deltas."""

    def __init__(self):
        self.messages = 0
        self.rows = collections.defaultdict(lambda: collections.defaultdict(Histogram))
        self.errors = collections.Counter()
        self.counters = collections.Counter()

    def add(self, message):
        self.messages += 1
        document = json.loads(bytes(message))
        for array, kind, labels in (("rows", "span", ("service", "name")), ("edges", "edge", ("client", "server"))):
            for row in document.get(array, ()):
                key = tuple(row[label] for label in labels)
                self.errors[kind, key] += row["errors"]
                for what in {"duration", "self"} & row.keys():
                    self.rows[kind, what][key].add(document["scale"], row[what])
        for worker in document.get("workers", ()):
            self.counters.update({name: value for name, value in worker.items() if name != "instance"})

    def spans(self):
        """Returns the number of counted spans."""
        return sum(one.count for one in self.rows["span", "duration"].values())
