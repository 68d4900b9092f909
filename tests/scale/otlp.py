"""Reads OTLP's protobuf, as far as the checks need it: a reader of its own, so that what is checked does not
check itself.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import struct

Span = collections.namedtuple("Span", "trace id parent name service start end is_error")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each: an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif tag & 7 == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is longer than its message")
            value, at = data[at:at + length], at + length
        elif tag & 7 == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, value


def first(data, number, default=b""):
    return next((value for found, value in fields(data) if found == number), default)


def zigzag(value):
    return value >> 1 ^ -(value & 1)


def fixed(value):
    return int.from_bytes(value, "little")


def double(value):
    return struct.unpack("<d", value)[0]


def packed(value):
    at, found = 0, []
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def attributes(data, number):
    """Those that are texts."""
    found = {}
    for which, pair in fields(data):
        if which == number:
            found[bytes(first(pair, 1)).decode()] = bytes(first(first(pair, 2), 1)).decode(errors="replace")
    return found


def write_varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def write_field(number, value):
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


# ---- spans -----------------------------------------------------------------------------------------

def span_of(data, service):
    found = {number: value for number, value in fields(data)}
    return Span(bytes(found[1]), fixed(found[2]), fixed(found.get(4, b"")), bytes(found[5]).decode(), service,
                fixed(found[7]), fixed(found[8]), first(found.get(15, b""), 3, 0) == 2)


def spans(message):
    """Of an ExportTraceServiceRequest."""
    for number, resource_spans in fields(message):
        if number != 1:
            continue
        service = attributes(first(resource_spans, 1), 1).get("service.name", "")
        for kind, scope_spans in fields(resource_spans):
            if kind == 2:
                yield from (span_of(value, service) for what, value in fields(scope_spans) if what == 2)


# ---- metrics ---------------------------------------------------------------------------------------

class Histogram:
    """An exponential one, at whatever scale it comes; merged by adding."""

    def __init__(self):
        self.count, self.zeros, self.total, self.scale = 0, 0, 0.0, None
        self.buckets = collections.Counter()
        self.min = self.max = None

    def add_point(self, point):
        scale = offset = 0
        low = high = None
        counts = []
        for number, value in fields(point):
            if number == 4:
                self.count += fixed(value)
            elif number == 5:
                self.total += double(value)
            elif number == 6:
                scale = zigzag(value)
            elif number == 7:
                self.zeros += fixed(value)
            elif number == 8:
                for what, part in fields(value):
                    if what == 1:
                        offset = zigzag(part)
                    elif what == 2:
                        counts += packed(part) if isinstance(part, bytes) else [part]
            elif number == 12:
                low = double(value)
            elif number == 13:
                high = double(value)
        if self.scale not in (None, scale):
            raise ValueError(f"histograms of scales {self.scale} and {scale}")
        self.scale = scale
        for index, count in enumerate(counts):
            if count:
                self.buckets[offset + index] += count
        if low is not None:
            self.min = low if self.min is None else min(self.min, low)
        if high is not None:
            self.max = high if self.max is None else max(self.max, high)

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


def metrics(message):
    """(name, attributes, "sum" or "histogram", the data point) of an ExportMetricsServiceRequest."""
    for number, resource_metrics in fields(message):
        if number != 1:
            continue
        for kind, scope_metrics in fields(resource_metrics):
            if kind != 2:
                continue
            for what, metric in fields(scope_metrics):
                if what == 2:
                    yield from points(metric)


def points(metric):
    name = bytes(first(metric, 1)).decode()
    for number, data in fields(metric):
        if number in (5, 7):
            for what, point in fields(data):
                if what == 1:
                    yield name, attributes(point, 7), "sum", point
        elif number == 10:
            for what, point in fields(data):
                if what == 1:
                    yield name, attributes(point, 1), "histogram", point


def number_of(point):
    for number, value in fields(point):
        if number == 6:
            return int.from_bytes(value, "little", signed=True)
        if number == 4:
            return double(value)
    return 0


class Deltas:
    """What the deltas of all workers add up to."""

    def __init__(self):
        self.messages = 0
        self.rows = collections.defaultdict(lambda: collections.defaultdict(Histogram))
        self.errors = collections.Counter()
        self.counters = collections.Counter()

    def add(self, message):
        self.messages += 1
        for name, labels, kind, point in metrics(message):
            key = (labels.get("service.name"), labels.get("span.name")) if name.startswith("blkin.span.") else \
                (labels.get("client"), labels.get("server"))
            if kind == "histogram":
                self.rows[name][key].add_point(point)
            elif name.endswith(".errors"):
                self.errors[name, key] += number_of(point)
            else:
                self.counters[name] += number_of(point)

    def spans(self):
        """Counted."""
        return sum(one.count for one in self.rows["blkin.span.duration"].values())
