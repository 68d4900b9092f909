"""Makes malicious spans: a program that may write to the topic may write anything.

SPDX-License-Identifier: BSD-2-Clause
"""
import itertools
import struct
import time

import common
import kafka
from received import otlp

MESSAGE_SPANS = 500


def resource_spans(service, trace_high, trace_low, span_id, parent_id=0):
    """Returns a request of one span."""
    request, now = otlp.CLASSES["ExportTraceServiceRequest"](), time.time_ns()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = service
    group.scope_spans.add().spans.add(
        trace_id=struct.pack(">QQ", trace_high, trace_low), span_id=struct.pack(">Q", span_id),
        parent_span_id=struct.pack(">Q", parent_id) if parent_id else b"", name="read",
        start_time_unix_nano=now - 1000000, end_time_unix_nano=now)
    return request.SerializeToString()


def endless(count):
    """One trace without a root, which never ends."""
    return ((0, resource_spans("client", 1, 1, 1000 + n, 1)) for n in range(count))


def services(count):
    """Each trace has a new service."""
    return ((n % 12, resource_spans(f"service-{n}", 2, n + 1, 1)) for n in range(count))


def alike(count):
    """Trace ids that differ in their upper half only, in steps: a bad hash would put them into one slot."""
    return ((n % 12, resource_spans("client", (n + 1) << 32, 1, 1)) for n in range(count))


def alone(count):
    """As many traces with normal ids, for comparison with `alike`."""
    return ((n % 12, resource_spans("client", 3, n * 0x9e3779b97f4a7c15 + 1 & (1 << 64) - 1, 1))
            for n in range(count))


def write(broker, topic, messages, rate):
    """Writes pairs of partition and value at this rate. Returns the number of pairs."""
    writer = kafka.Writer(broker, topic)
    began, sent = time.monotonic(), 0
    while chunk := list(itertools.islice(messages, MESSAGE_SPANS)):
        parts = {}
        for partition, value in chunk:
            parts.setdefault(partition, []).append(value)
        for partition, values in parts.items():
            writer.write(partition, b"".join(values))
        sent += len(chunk)
        common.pause(sent / rate - (time.monotonic() - began))
    writer.close()
    return sent
