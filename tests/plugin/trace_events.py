"""Makes events of the providers as traces have them: times, contexts and payloads, for traces that tests write.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

from ctf import Characters, Enum, Float, Integer, Sequence, String, Structure, Trace, to_bytes

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../format"))
import writer  # noqa: E402
from reader import step_id  # noqa: E402,F401

S = 1000000000
MS = 1000000
I16, I32, I64 = Integer(16, True), Integer(32, True), Integer(64, True)
U8, U16, U32, U64, HEX = Integer(8), Integer(16), Integer(32), Integer(64), Integer(64, base=16)
TEXT = String()

CONTEXT = {"vpid": I32, "vtid": I32, "procname": Characters(17)}


# ---- provider zipkin: the original's ----

def zipkin_common(number=I64, port=I32):
    return {"trace_name": TEXT, "service_name": TEXT, "port_no": port, "ip": TEXT,
            "trace_id": number, "span_id": number, "parent_span_id": number}


def add_zipkin(trace, **types):
    common = zipkin_common(**types)
    trace.event_class("zipkin:timestamp", {**common, "event": TEXT})
    trace.event_class("zipkin:keyval_string", {**common, "key": TEXT, "val": TEXT})
    trace.event_class("zipkin:keyval_integer", {**common, "key": TEXT, "val": I64})


def zipkin(span, service, name="write", ip="10.0.0.1", port=6800, trace_id=1, parent=0, **more):
    return {"trace_name": name, "service_name": service, "port_no": port, "ip": ip,
            "trace_id": trace_id, "span_id": span, "parent_span_id": parent, **more}


# ---- provider blkin: the span API's (doc/format.md) ----

SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
BLKIN = {
    "blkin:span": {"trace_id": HEX, "parent_id": HEX, "duration": U64, "flags": U16, "name": TEXT,
                   "packed": TEXT, "service": TEXT},
    "blkin:begin": {"trace_id": HEX, "parent_id": HEX, "flags": U16, "name": TEXT, "packed": TEXT,
                    "service": TEXT},
    "blkin:tag": {"trace_id": HEX, "packed": TEXT},
    "blkin:end": {"trace_id": HEX, "packed": TEXT},
    "blkin:process": {"realtime": U64, "monotonic": U64, "thread": HEX, "sequence": U32,
                      "pid": U32, "service": TEXT, "version": TEXT, "sampling": TEXT},
    **{f"blkin:annotation_{severity}": {"trace_id": HEX, "packed": TEXT, "text": TEXT}
       for severity in SEVERITIES},
}

ERROR, STEP, STREAMED = 4, 8, 16  # flags


def add_blkin(trace):
    for name, fields in BLKIN.items():
        trace.event_class(name, fields)


def packed(made):
    """Returns a part of a packed text, as writer.py makes it, as a text."""
    return made.decode(errors="surrogateescape")


def digits(value):
    return packed(writer.hexadecimal(value))


def number(value, count=8):
    return packed(writer.number(value, count))


def head(span, sequence, thread, monotonic, high=0, sampled=1000000, dropped=0):
    return packed(writer.head(thread, high, sequence, span, monotonic, sampled, dropped))


def detail_head(span, sequence, thread, monotonic):
    return packed(writer.detail_head(thread, sequence, span, monotonic))


def tail(ip, port):
    return packed(writer.tail(to_bytes(ip), port))


def annotation(at, text, severity=6):
    return packed(writer.annotation(severity, at, text.encode()))


def step(at, name, *inside, end=None, kind=0):
    """Returns a step with its contents, as a part of a packed text; without an end it is left open."""
    return "".join((packed(writer.begin_step(name.encode(), kind, at)), *inside,
                    "" if end is None else packed(writer.end_step(end))))


def step_number(value):
    return packed(writer.step_number(value))


def counted_from(at):
    return packed(writer.base(at))


def tag(key, value):
    return packed(writer.tag(key.encode(), value.encode()))


def number_tag(type, key, bits):
    return packed(writer.number_tag(type.encode(), key.encode(), bits))


class Thread:
    """The numbered events of one recording thread. Events of streamed spans are numbered separately."""

    def __init__(self, thread, service="osd", ip="10.0.0.1", port=6800, context=None):
        self.thread, self.context, self.service = thread, context, service
        self.tail = tail(ip, port)
        self.sequence = self.streamed = 0

    def span(self, time, span_id, name="write", parent=0, duration=2 * MS, trace_id=1, high=0,
             kind=2, log="", age=0, dropped=0, flags=0):
        self.sequence += 1
        packed = (head(span_id, self.sequence, self.thread, time - age, high, dropped=dropped) +
                  log + self.tail)
        return (time, "blkin:span", {
            "trace_id": trace_id, "parent_id": parent, "duration": duration,
            "flags": flags | kind << 8, "name": name, "packed": packed, "service": self.service},
            self.context)

    def _streamed(self, time, event, values, packed):
        return (time, event, {"trace_id": 1, **values, "packed": packed}, self.context)

    def begin(self, time, span_id, name="write", parent=0, kind=2, age=0):
        self.streamed += 1
        packed = head(span_id, self.streamed, self.thread, time - age) + self.tail
        return self._streamed(time, "blkin:begin", {
            "parent_id": parent, "flags": kind << 8, "name": name, "service": self.service},
            packed)

    def detail(self, time, event, span_id, log="", age=0, **values):
        self.streamed += 1
        packed = detail_head(span_id, self.streamed, self.thread, time - age) + log
        return self._streamed(time, f"blkin:{event}", values, packed)

    def annotation(self, time, span_id, text, severity="info", age=0):
        return self.detail(time, f"annotation_{severity}", span_id, age=age, text=text)

    def end(self, time, span_id, age=0):
        return self.detail(time, "end", span_id, age=age)

    def process(self, time):
        self.sequence += 1
        return (time, "blkin:process", {
            "realtime": 1700000000 * S + time, "monotonic": time, "thread": self.thread,
            "sequence": self.sequence, "pid": 100, "service": "osd", "version": "1", "sampling": "1"},
            self.context)


def context(pid, tid, process):
    return {"vpid": pid, "vtid": tid, "procname": process}
