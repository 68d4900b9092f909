"""Reads the events of libblkin. It was written from doc/format.md alone, as a test of the page.

A Reader gets events, in the order of their stamps, and makes spans. Comments name sections of the page.

SPDX-License-Identifier: BSD-2-Clause
"""
import socket
import struct

VERSION = 1
DEPTH_MAX = 32
STEPS_MAX = 0xfffff
LONG = 1 << 64
DEBUG, STEP, STREAMED = 1, 8, 16
SEVERITIES = (b"emerg", b"alert", b"crit", b"err", b"warning", b"notice", b"info", b"debug")
AHEAD_NS, OLDEST_NS = 1000000, 24 * 3600 * 1000000000


class Damaged(Exception):
    """The event is not as on the page."""


class Newer(Exception):
    """The event has a version that this reader does not know."""


# ---- The events ----

SPAN = (("trace_id", "Q"), ("parent_id", "Q"), ("duration", "Q"), ("flags", "H"), ("name", "s"), ("packed", "s"),
        ("service", "s"))
DETAIL = (("trace_id", "Q"), ("packed", "s"))
LAYOUTS = {
    "blkin:span": SPAN,
    "blkin:begin": tuple(field for field in SPAN if field[0] != "duration"),
    "blkin:tag": DETAIL,
    "blkin:end": DETAIL,
    **{f"blkin:annotation_{severity.decode()}": (*DETAIL, ("text", "s")) for severity in SEVERITIES},
}


def fields_of(name, payload):
    """Returns the fields of an event by their names."""
    fields, at = {}, 0
    for field, kind in LAYOUTS[name]:
        if kind == "s":
            end = payload.index(0, at)
            fields[field], at = payload[at:end], end + 1
        else:
            fields[field], = struct.unpack_from("<" + kind, payload, at)
            at += struct.calcsize(kind)
    return fields


# ---- Numbers in packed texts ----

class Text:
    """A packed text, or a part of it, whose items are read one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        if count > self.left():
            raise Damaged
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, count, bits=6):
        value = 0
        for digit in reversed(self.take(count)):
            if not 0 <= digit - 48 < 1 << bits:
                raise Damaged
            value = value << bits | digit - 48
        return value

    def length(self):
        return self.number(2)

    def word(self):
        return self.number(8)

    def time(self):
        return signed(self.word(), 48)

    def long(self):
        value = self.number(11)
        if value >= LONG:
            raise Damaged
        return value

    def hex(self):
        return self.number(16, 4)


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


# ---- The head ----

class Head:
    def __init__(self, packed, is_whole):
        text = Text(packed)
        version = text.number(1)
        if version > VERSION:
            raise Newer
        if version < VERSION or len(packed) < (56 if is_whole else 35):
            raise Damaged
        self.thread = text.number(10)
        if is_whole:
            low, high = text.word(), text.word()
            self.trace_id_high, self.sequence = low | (high & 0xffff) << 48, high >> 16
        low, high = text.word(), text.word()
        self.span_id = low | (high & 0xffff) << 48
        if is_whole:
            self.sampled, self.dropped = high >> 16 & 0xfffff, high >> 36
        else:
            self.sequence = high >> 16
        self.monotonic = text.word()
        self.rest = packed[text.at:]
        if is_whole:
            self.take_tail()

    def take_tail(self):
        end = Text(self.rest[-5:])
        self.port, length = end.number(3), end.length()
        if self.port > 0xffff or length > len(self.rest) - 5:
            raise Damaged
        at = len(self.rest) - 5 - length
        self.ip, self.rest = self.rest[at:-5], self.rest[:at]


def address(ip):
    """Returns the address in the usual form; empty: no address."""
    ip = ip.split(b"%")[0].decode("latin-1")
    try:
        return socket.inet_ntop(socket.AF_INET, socket.inet_pton(socket.AF_INET, ip))
    except (OSError, ValueError):
        pass
    try:
        packed = socket.inet_pton(socket.AF_INET6, ip)
    except (OSError, ValueError):
        return ""
    if packed[:12] == bytes(10) + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)


# ---- Spans ----

class Span:
    def __init__(self, ids, parent_id, name, kind, debug, endpoint, begin):
        (self.trace_id_high, self.trace_id, self.id), self.parent_id = ids, parent_id
        self.name, self.kind, self.debug = name, kind if kind <= 4 else 0, debug
        self.endpoint, self.remote = endpoint, None  # (service, address, port)
        self.begin = self.end = begin
        self.said = []  # ("note", severity, text, time), ("tag", type, key, value), ("link", high, low, id)
        self.dropped = 0
        self.left_open = self.has_no_end = self.has_ended = False

    def set_end(self, end):
        self.end = max(self.begin, end)


# ---- The log ----

def endpoint_of(text):
    port, ip_length, name_length = text.hex(), text.length(), text.length()
    if port > 0xffff:
        raise Damaged
    ip, name = text.take(ip_length), text.take(name_length)
    return name, address(ip), port


def record_of(text):
    """Returns (type, values...) of the next record: "?" is an unknown record, "note" an annotation."""
    kind = text.take(1)
    if kind in b"01234567":
        length, time = text.length(), text.time()
        return "note", SEVERITIES[kind[0] - 48], text.take(length), time
    kind = kind.decode("latin-1")
    if kind == "s":
        key_length, value_length = text.length(), text.length()
        return kind, text.take(key_length), text.take(value_length)
    if kind in "IUDB":
        length, value = text.length(), text.long()
        return kind, text.take(length), value
    if kind == "l":
        return kind, text.hex(), text.hex(), text.hex()
    if kind in "re":
        return kind, endpoint_of(text)
    if kind == "n":
        return kind, text.take(text.length())
    if kind == "(":
        length, time = text.length(), text.time()
        return kind, text.take(length & 127), length >> 7, time
    if kind in ")T":
        return kind, text.time()
    if kind == "#":
        return kind, text.number(4)
    if kind == "o":
        return (kind,)
    if kind == "t":
        return kind, signed(text.hex(), 64)
    if kind.isascii() and kind.isalpha():
        text.take(text.length())
        return ("?",)
    raise Damaged


def say(span, record, base):
    """Adds a record to a span or a step. Returns False if the record is lost."""
    kind, *values = record
    if kind == "note":
        severity, said, time = values
        span.said.append(("note", severity, said, signed(base + time, 64)))
    elif kind == "s":
        span.said.append(("tag", kind, *values))
    elif kind == "I":
        span.said.append(("tag", kind, values[0], signed(values[1], 64)))
    elif kind == "U":
        span.said.append(("tag", kind, *values))
    elif kind == "D":
        span.said.append(("tag", kind, values[0], struct.unpack("<d", struct.pack("<Q", values[1]))[0]))
    elif kind == "B":
        span.said.append(("tag", kind, values[0], values[1] != 0))
    elif kind == "l":
        if not (values[0] or values[1]) or not values[2]:
            return False
        span.said.append(("link", *values))
    elif kind == "r":
        span.remote = values[0]
    elif kind == "e":
        span.endpoint = values[0]
    elif kind == "n":
        span.name = values[0]
    elif kind == "o":
        span.left_open = True
    else:
        return False
    return True


# ---- Steps ----

STEP_FACTOR, ID_FACTOR, ID_INVERSE = 0x9e3779b97f4a7c15 << 44, 0xbf58476d1ce4e5b9, 0x96de1b173f119089


def step_id(of, number):
    of ^= of >> 29 ^ of >> 58
    counter = of * ID_INVERSE % LONG
    counter = ((counter ^ counter >> 32) + number * STEP_FACTOR) % LONG
    made = (counter ^ counter >> 32) * ID_FACTOR % LONG
    return made ^ made >> 29 or 1


class Log:
    """Reads the log of a span. `spans` are its steps, as they end."""

    def __init__(self, span, log, is_step, is_known):
        self.span, self.is_step, self.is_known = span, is_step, is_known
        self.base = span.begin
        self.open, self.spans = [span], []
        self.number = self.own_number = 0
        self.lost_depth = self.lost = 0
        text = Text(log)
        try:
            while text.left():
                self.use(record_of(text))
        except Damaged:
            self.lost += 1
        while len(self.open) > 1:
            self.open[-1].left_open = True
            self.end_step(span.end)

    def use(self, record):
        kind, *values = record
        if kind == "(":
            self.begin_step(*values)
        elif kind == ")":
            if self.lost_depth:
                self.lost_depth -= 1
            elif len(self.open) > 1:
                self.end_step(signed(self.base + values[0], 64))
            else:
                self.lost += 1
        elif kind == "#":
            self.set_number(values[0])
        elif kind == "T":
            self.base = signed(self.span.begin + values[0], 64)
        elif self.is_known and len(self.open) == 1:
            pass  # an event of its own has the record
        elif self.lost_depth or not say(self.open[-1], record, self.base):
            self.lost += 1

    def begin_step(self, name, kind, time):
        self.number += 1
        if self.lost_depth or len(self.open) > DEPTH_MAX or self.number > STEPS_MAX:
            self.lost_depth += 1
            self.lost += 1
            return
        span = self.span
        ids = span.trace_id_high, span.trace_id, step_id(span.id, self.number - self.own_number)
        self.open.append(Span(ids, self.open[-1].id, name, kind, span.debug, span.endpoint,
                              signed(self.base + time, 64)))

    def end_step(self, end):
        step = self.open.pop()
        step.set_end(end)
        self.spans.append(step)

    def set_number(self, number):
        if not self.number < number <= STEPS_MAX:
            raise Damaged
        if self.is_step and not self.number:
            self.number = self.own_number = number
        else:
            self.number = number - 1


# ---- All of them ----

class Reader:
    def __init__(self, offset):
        """offset: of the trace's clock, in ns since 1970."""
        self.offset = offset
        self.spans = []
        self.streamed = {}  # by (trace id, span id): the span, and whether the span is open
        self.events = self.unreadable = self.newer = self.invalid = self.late = self.lost = 0

    def read(self, name, fields, stamp):
        self.events += 1
        is_whole = name in ("blkin:span", "blkin:begin")
        try:
            head = Head(fields["packed"], is_whole)
            if head.rest and name not in ("blkin:span", "blkin:tag"):
                raise Damaged
        except Newer:
            self.newer += 1
            return
        except Damaged:
            self.unreadable += 1
            return
        if not head.span_id or is_whole and not fields["trace_id"] | head.trace_id_high:
            self.invalid += 1
            return
        moment = self.offset + self.moment(head, stamp)
        if name == "blkin:span":
            self.read_span(head, fields, moment)
        elif name == "blkin:begin":
            self.streamed[fields["trace_id"], head.span_id] = [self.new_span(head, fields, moment), True]
        else:
            self.read_detail(name, head, fields, moment)

    def moment(self, head, stamp):
        age = signed(stamp - head.monotonic, 48)
        return stamp - age if -AHEAD_NS <= age <= OLDEST_NS else stamp

    @staticmethod
    def new_span(head, fields, begin):
        flags = fields["flags"]
        return Span((head.trace_id_high, fields["trace_id"], head.span_id), fields["parent_id"], fields["name"],
                    flags >> 8, bool(flags & DEBUG), (fields["service"], address(head.ip), head.port), begin)

    def read_span(self, head, fields, moment):
        span = self.new_span(head, fields, max(moment - fields["duration"], -1 << 63))
        span.set_end(moment)
        is_streamed = fields["flags"] & STREAMED
        is_known = is_streamed and self.is_repeated(span)
        log = Log(span, head.rest, fields["flags"] & STEP, is_known)
        self.lost += log.lost
        for step in log.spans:
            if not (is_streamed and self.is_repeated(step)):
                self.spans.append(step)
        if not is_known:
            span.dropped = head.dropped
            self.lost += head.dropped
            self.spans.append(span)

    def is_repeated(self, span):
        streamed, is_open = self.streamed.get((span.trace_id, span.id), (None, False))
        if not streamed or streamed.kind != span.kind:
            return False
        if is_open:
            streamed.set_end(span.end)
            streamed.left_open |= span.left_open
            streamed.has_ended = True
        return True

    def read_detail(self, name, head, fields, moment):
        found = self.streamed.get((fields["trace_id"], head.span_id))
        if not found or not found[1]:
            self.late += 1
            return
        span = found[0]
        if name == "blkin:end":
            span.set_end(moment)
            found[1] = False
            self.spans.append(span)
            return
        span.end = max(span.end, moment)
        if name == "blkin:tag":
            self.read_tag(span, head.rest)
        else:
            span.said.append(("note", name.split("_")[1].encode(), fields["text"], moment))

    def read_tag(self, span, log):
        text = Text(log)
        try:
            record = record_of(text)
        except Damaged:
            self.lost += 1
            return
        if record[0] in ("note", "(", ")", "#", "T", "?"):
            self.lost += 1
            return
        self.lost += text.left() > 0
        if record[:2] == ("U", b"blkin.dropped") and record[2] <= 4095:
            self.lost += record[2]
        if record[0] == "t":
            begin = span.begin - record[1]
            if 0 <= begin <= span.end:
                span.begin = begin
            else:
                self.lost += 1
        elif not say(span, record, span.begin):
            self.lost += 1

    def finish(self):
        """Ends the trace: spans that are still open have no end."""
        for found in self.streamed.values():
            span, is_open = found
            if is_open:
                span.has_no_end = not span.has_ended
                found[1] = False
                self.spans.append(span)
