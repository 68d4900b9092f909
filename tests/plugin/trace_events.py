"""Makes events of the providers as traces have them: times, contexts and payloads, for traces that tests write.

SPDX-License-Identifier: BSD-2-Clause
"""
from ctf import Characters, Enum, Float, Integer, Sequence, String, Structure, Trace

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


def digits(value, count=16):
    """Writes a number of a log record: of base 16, the lowest digit first."""
    return "".join(chr(48 + (value >> 4 * at & 15)) for at in range(count))


def number(value, count=8):
    """Writes a number of base 64, the lowest digit first."""
    return "".join(chr(48 + (value >> 6 * at & 63)) for at in range(count))


def two_words(low, *more):
    """Packs numbers into two words, from the lowest bit on: (value, bits)."""
    value, shift = low, 64
    for part, bits in more:
        value |= part << shift
        shift += bits
    return number(value & 2**48 - 1) + number(value >> 48)


def head(span, sequence, thread, monotonic, high=0, sampled=1000000, dropped=0, version=1):
    return (number(version, 1) + number(thread, 10) + two_words(high, (sequence, 32)) +
            two_words(span, (sampled, 20), (dropped, 12)) + number(monotonic % 2**48))


def detail_head(span, sequence, thread, monotonic, version=1):
    return (number(version, 1) + number(thread, 10) + two_words(span, (sequence, 32)) +
            number(monotonic % 2**48))


def tail(ip, port):
    if isinstance(ip, bytes):
        ip = ip.decode(errors="surrogateescape")
    return ip + number(port, 3) + number(len(ip), 2)


def annotation(at, text, severity=6):
    return f"{severity}{number(len(text), 2)}{number(at % 2**48)}{text}"


def step(at, name, *inside, end=None, kind=0):
    """Writes a step with its contents; without an end it is left open."""
    return "".join((f"({number(len(name) | kind << 7, 2)}{number(at % 2**48)}{name}", *inside,
                    "" if end is None else f"){number(end % 2**48)}"))


def step_number(value):
    return "#" + number(value, 4)


def counted_from(at):
    return "T" + number(at % 2**48)


def tag(key, value):
    return f"s{number(len(key), 2)}{number(len(value), 2)}{key}{value}"


def number_tag(type, key, bits):
    return f"{type}{number(len(key), 2)}{number(bits, 11)}{key}"


def step_id(span, steps):
    """Derives the id as tracepoints/format/step_id.h does."""
    factor, mask = 0xBF58476D1CE4E5B9, 2**64 - 1
    span ^= span >> 29 ^ span >> 58
    counter = span * pow(factor, -1, 2**64) & mask
    counter = (counter ^ counter >> 32) + (steps * 0x9E3779B97F4A7C15 << 44) & mask
    made = (counter ^ counter >> 32) * factor & mask
    return made ^ made >> 29 or 1


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
