"""Spans that an enemy writes: whoever may write to the topic may write anything.

SPDX-License-Identifier: BSD-2-Clause
"""
import itertools
import struct
import time

import kafka
from otlp import write_field as field

MESSAGE_SPANS = 500


def span(trace_high, trace_low, span_id, parent_id=0):
    now = time.time_ns()
    body = field(1, struct.pack(">QQ", trace_high, trace_low)) + field(2, struct.pack(">Q", span_id))
    if parent_id:
        body += field(4, struct.pack(">Q", parent_id))
    return field(2, body + field(5, b"read") + b"\x39" + struct.pack("<Q", now - 1000000) + b"\x41" +
                 struct.pack("<Q", now))


def resource_spans(service, spans):
    attribute = field(1, b"service.name") + field(2, field(1, service))
    return field(1, field(1, field(1, attribute)) + field(2, spans))


def endless(count):
    """One trace, whose root never comes and that never ends."""
    return ((0, resource_spans(b"client", span(1, 1, 1000 + n, 1))) for n in range(count))


def services(count):
    """Each trace of a service that nobody has heard of."""
    return ((n % 12, resource_spans(b"service-%d" % n, span(2, n + 1, 1))) for n in range(count))


def alike(count):
    """Trace ids that differ in their upper half only, in steps: what a bad hash puts into one place."""
    return ((n % 12, resource_spans(b"client", span((n + 1) << 32, 1, 1))) for n in range(count))


def alone(count):
    """As many traces, of ids as they should be: what `alike` is compared with."""
    return ((n % 12, resource_spans(b"client", span(3, n * 0x9e3779b97f4a7c15 + 1 & (1 << 64) - 1, 1)))
            for n in range(count))


def garbage(count):
    """Bytes that are no spans at all, and spans cut off."""
    whole = resource_spans(b"client", span(4, 4, 4))
    return ((n % 12, whole[:n % len(whole)] if n % 2 else struct.pack(">QQ", n, n * 0x9e3779b97f4a7c15 & (1 << 64) - 1))
            for n in range(count))


def write(broker, topic, messages, rate):
    """Packs them, some hundred to a message of the topic. Returns how many spans that were."""
    writer = kafka.Writer(broker, topic)
    began, sent = time.monotonic(), 0
    while chunk := list(itertools.islice(messages, MESSAGE_SPANS)):
        parts = {}
        for partition, value in chunk:
            parts.setdefault(partition, []).append(value)
        for partition, values in parts.items():
            writer.write(partition, b"".join(values))
        sent += len(chunk)
        time.sleep(max(0, sent / rate - (time.monotonic() - began)))
    writer.close()
    return sent
