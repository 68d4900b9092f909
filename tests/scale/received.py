"""What workers have written, read by Google's protobuf library: what is checked does not check itself.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../otel"))
import otlp  # noqa: E402

Span = collections.namedtuple("Span", "trace id parent name service start end is_error")


def spans(message):
    """Of an ExportTraceServiceRequest."""
    for resource, _, span in otlp.spans(message):
        yield Span(span.trace_id, *(int.from_bytes(one, "little") for one in (span.span_id, span.parent_span_id)), span.name,
                   resource.get("service.name", ""), span.start_time_unix_nano, span.end_time_unix_nano, span.status.code == 2)


class Histogram:
    """An exponential one, at whatever scale it comes; merged by adding."""

    def __init__(self):
        self.count, self.zeros, self.total, self.scale = 0, 0, 0.0, None
        self.buckets = collections.Counter()

    def add_point(self, point):
        if self.scale not in (None, point.scale):
            raise ValueError(f"histograms of scales {self.scale} and {point.scale}")
        self.scale = point.scale
        self.count += point.count
        self.zeros += point.zero_count
        self.total += point.sum
        for index, count in enumerate(point.positive.bucket_counts):
            if count:
                self.buckets[point.positive.offset + index] += count

    def quantile(self, q):
        """The upper border of the bucket that it is in."""
        passed, rank = self.zeros, q * self.count
        if passed >= rank:
            return 0
        for index in sorted(self.buckets):
            passed += self.buckets[index]
            if passed >= rank:
                return 2 ** ((index + 1) / 2 ** self.scale)
        return None


class Deltas:
    """What the deltas of all workers add up to."""

    def __init__(self):
        self.messages = 0
        self.rows = collections.defaultdict(lambda: collections.defaultdict(Histogram))
        self.errors = collections.Counter()
        self.counters = collections.Counter()

    def add(self, message):
        self.messages += 1
        request = otlp.CLASSES["ExportMetricsServiceRequest"].FromString(bytes(message))
        for metric in (metric for group in request.resource_metrics for scope in group.scope_metrics for metric in scope.metrics):
            for point in (*metric.gauge.data_points, *metric.sum.data_points, *metric.exponential_histogram.data_points):
                self.add_point(metric, point, otlp.attributes(point.attributes))

    def add_point(self, metric, point, labels):
        key = (labels.get("service.name"), labels.get("span.name")) if metric.name.startswith("blkin.span.") else \
            (labels.get("client"), labels.get("server"))
        if hasattr(point, "positive"):
            self.rows[metric.name][key].add_point(point)
        elif metric.name.endswith(".errors"):
            self.errors[metric.name, key] += point.as_int
        else:
            self.counters[metric.name] += point.as_int + point.as_double

    def spans(self):
        """Counted."""
        return sum(one.count for one in self.rows["blkin.span.duration"].values())
