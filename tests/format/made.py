"""Makes random events as writer.py writes them: spans in all forms, with all possible records, and damaged spans.

SPDX-License-Identifier: BSD-2-Clause
"""
import struct

import reader
import writer

SERVICES = [b"", b"osd", b"osd.12", "zürich".encode(), b"a|b\n\"c\"", b"s" * 72]
IPS = [b"", b"10.0.0.1", b"2001:db8::1", b"2001:0db8:0:0::0:2", b"::ffff:10.0.0.7", b"fe80::1%eth0", b"NaN", b"10.0.0",
       b"1.2.3.4%x", b"::", b"host.example", b"1:2:3:4:5:6:7:8:9", b"0000:0000:0000:0000:0000:ffff:255.255.255.255"]
SEVERITIES = [severity.decode() for severity in reader.SEVERITIES]
MS = 1000000
DAY = 24 * 3600 * 1000 * MS


class Made:
    """Events of one trace: (stamp, name, payload)."""

    def __init__(self, chance, stamp):
        self.chance, self.stamp = chance, stamp
        self.events = []
        self.sequence = 0

    # ---- chance ----

    def is_one_in(self, many):
        return self.chance.randrange(many) == 0

    def bits(self, count):
        """Returns a random number, often of few bits, so that all lengths occur."""
        return self.chance.getrandbits(self.chance.choice((count, count, self.chance.randrange(count) + 1)))

    def text(self, longest=40):
        size = self.chance.randrange(longest * 8 if self.is_one_in(30) else longest)
        if self.is_one_in(3):
            return bytes(self.chance.randrange(1, 256) for _ in range(size))
        return bytes(self.chance.choice(b"abcdefghijklmnopqrstuvwxyz_.()0#T ") for _ in range(size))

    def time(self):
        if self.is_one_in(20):
            return self.chance.getrandbits(48)
        return self.chance.randrange(-MS, 100 * MS)

    # ---- logs ----

    def tag(self):
        made = self.chance.randrange(12)
        if made < 5:
            return writer.tag(self.text(), self.text())
        if made < 7:
            return writer.number_tag(b"I", self.text(), self.bits(64))
        if made < 9:
            return writer.number_tag(b"U", self.text(), self.bits(64))
        if made == 9:
            return writer.number_tag(b"B", self.text(), self.chance.randrange(3))
        if made == 10:
            return writer.number_tag(b"D", self.text(), self.chance.getrandbits(64))
        return writer.real_tag(self.text(), self.chance.choice((0.5, -0.0, 1e300, 0.1, 3.0, self.chance.random(),
                                                                float("inf"), float("nan"))))

    def remark(self):
        """Makes a record of a span or a step."""
        made = self.chance.randrange(20)
        if made < 8:
            return self.tag()
        if made == 8:
            return writer.link(self.bits(64), self.bits(64), self.bits(64) * self.chance.randrange(8))
        if made == 9:
            return writer.endpoint(b"r", self.chance.choice(IPS), self.chance.getrandbits(16),
                                   self.chance.choice(SERVICES))
        if made == 10 and self.is_one_in(4):
            return self.chance.choice((writer.LEFT_OPEN, writer.new_name(self.text()),
                                       writer.unknown(self.chance.choice((b"x", b"A", b"z", b"L")), self.text()),
                                       writer.moved_start(self.time()),
                                       writer.endpoint(b"e", self.chance.choice(IPS), 1, b"other")))
        return writer.annotation(self.chance.randrange(8), self.time(), self.text())

    def log(self, is_step):
        parts, number, depth = [], 0, 0
        if is_step and not self.is_one_in(20):
            number = self.chance.randrange(1, self.chance.choice((10, 1 << 20)))
            parts.append(writer.step_number(number))
        if self.is_one_in(4):
            parts.append(writer.base(self.time()))
        dive = self.chance.choice((2, 2, 2, 12))
        for _ in range(self.chance.choice((0, 3, 10, 30, 60 if self.is_one_in(8) else 5))):
            made = self.chance.randrange(6)
            if made == 0 or dive == 12 and made < 4:
                number += 1
                if self.is_one_in(10):  # seldom an id that was used already
                    number += self.chance.randrange(-1, 1000 if self.is_one_in(2) else 20)
                    parts.append(writer.step_number(number))
                parts.append(writer.begin_step(self.text()[:127], self.chance.randrange(32 if self.is_one_in(9) else 5),
                                               self.time()))
                depth += 1
            elif made == 1 and (depth or self.is_one_in(20)):
                parts.append(writer.end_step(self.time()))
                depth -= depth > 0
            else:
                parts.append(self.remark())
        return b"".join(parts)

    # ---- events ----

    def add(self, name, payload):
        self.stamp += self.chance.randrange(1, 2 * MS)
        self.events.append((self.stamp, f"blkin:{name}", payload))

    def moment(self):
        age = self.chance.randrange(-MS // 8, 10 * MS)
        if self.is_one_in(20):
            age = self.chance.choice((-MS, -MS - 1, DAY - 2 * MS, DAY + 2 * MS, self.chance.getrandbits(48)))
        return self.stamp + MS - age & (1 << 48) - 1

    def numbers(self):
        self.sequence += 1
        return self.chance.getrandbits(60), self.sequence

    def span(self, ids, parent_id, flags, name, log, service, ip, port, duration):
        thread, sequence = self.numbers()
        packed = writer.head(thread, ids[0], sequence, ids[2], self.moment(), self.bits(20),
                             self.bits(12) if self.is_one_in(8) else 0) + log + writer.tail(ip, port)
        self.add("span", writer.span(ids[1], parent_id, duration, flags, name, packed, service))

    def begin(self, ids, parent_id, flags, name, service, ip, port):
        thread, sequence = self.numbers()
        packed = writer.head(thread, ids[0], sequence, ids[2], self.moment(), self.bits(20)) + writer.tail(ip, port)
        self.add("begin", writer.begin(ids[1], parent_id, flags, name, packed, service))

    def detail(self, ids, event, log=b"", *texts):
        thread, sequence = self.numbers()
        packed = writer.detail_head(thread, sequence, ids[2], self.moment()) + log
        self.add(event, writer.detail(ids[1], packed, *texts))

    def ids(self):
        high = 0 if self.is_one_in(4) else self.chance.getrandbits(64)
        # no id is 0 or a copy of another one, except by damage
        return high, self.chance.getrandbits(64) or 1, self.chance.getrandbits(64) or 1

    def endpoint(self):
        return self.chance.choice(SERVICES), self.chance.choice(IPS), self.chance.randrange(65536)

    def flags(self):
        kind = self.chance.randrange(5) if not self.is_one_in(20) else self.chance.getrandbits(8)
        return kind << 8 | (self.chance.getrandbits(8) & ~reader.STREAMED if self.is_one_in(3) else 0)

    def whole(self):
        flags = self.flags()
        self.span(self.ids(), self.bits(64), flags, self.text(), self.log(flags & reader.STEP), *self.endpoint(),
                  self.bits(64) if self.is_one_in(10) else self.chance.randrange(100 * MS))

    def one_streamed(self, ids, parent_id, flags, inside=lambda: None):
        """Writes begin, records, and perhaps end."""
        self.begin(ids, parent_id, flags, self.text(), *self.endpoint())
        for _ in range(self.chance.randrange(6)):
            if self.is_one_in(2):
                self.detail(ids, "annotation_" + self.chance.choice(SEVERITIES), b"", self.text())
            else:
                log = self.remark()
                if self.is_one_in(8):
                    log = self.chance.choice((
                        writer.number_tag(b"U", b"blkin.dropped", self.chance.randrange(5000)),
                        writer.moved_start(self.chance.randrange(-20 * MS, 20 * MS))))
                if self.is_one_in(16):
                    log += self.remark()
                self.detail(ids, "tag", log)
        inside()
        if not self.is_one_in(6):
            self.detail(ids, "end")
            if self.is_one_in(20):
                self.detail(ids, "tag", self.tag())

    def streamed(self):
        ids, parent_id, flags, endpoint = self.ids(), self.bits(64), self.flags(), self.endpoint()
        step = ids[0], ids[1], reader.step_id(ids[2], 1)
        step_name = self.text()[:127]

        def steps():
            self.one_streamed(step, ids[2], flags & 1 | 0x100)

        def steps_and_whole():
            log = b""
            if self.is_one_in(2):
                if self.is_one_in(2):
                    steps()
                log = (self.tag() + writer.begin_step(step_name, 1, self.time()) + self.remark() +
                       (writer.end_step(self.time()) if self.is_one_in(2) else b"") + self.remark())
            if self.is_one_in(4):
                log += self.log(False)
            self.span(ids, parent_id, (flags ^ (0x300 if self.is_one_in(8) else 0)) | reader.STREAMED, self.text(), log,
                      *endpoint, self.chance.randrange(100 * MS))

        self.one_streamed(ids, parent_id, flags, self.chance.choice((lambda: None, steps, steps_and_whole)))

    def damage(self, since):
        """Damages packed texts of these events. No zero byte is made, which would end the text."""
        for at in range(since, len(self.events)):
            if self.is_one_in(2):
                stamp, name, payload = self.events[at]
                fields = reader.fields_of(name, payload)
                begin = payload.index(fields["packed"] + b"\0", 8)
                packed = bytearray(fields["packed"])
                for _ in range(self.chance.randrange(1, 4)):
                    self.damage_once(packed)
                self.events[at] = stamp, name, payload[:begin] + packed + payload[begin + len(fields["packed"]):]

    def damage_once(self, packed):
        where = self.chance.randrange(len(packed) + 1)
        byte = self.chance.choice((self.chance.randrange(1, 256), self.chance.randrange(48, 112)))
        what = self.chance.randrange(12)
        if what < 7 and where < len(packed):
            packed[where] = byte
        elif what == 7:
            packed.insert(where, byte)
        elif what == 8:
            del packed[where:where + self.chance.randrange(1, 9)]
        elif what == 9:
            del packed[where:]
        elif what == 10 and packed:
            packed[0] = byte
        elif packed:
            packed[where:where] = packed[self.chance.randrange(len(packed)):][:self.chance.randrange(60)]

    def make(self, count):
        while len(self.events) < count:
            since = len(self.events)
            if self.is_one_in(8):
                self.streamed()
            else:
                self.whole()
            if self.is_one_in(4):
                self.damage(since)


def checked(events):
    """Checks that writer and reader agree on the length of an event's fields."""
    for _, name, payload in events:
        fields = reader.fields_of(name, payload)
        if sum(len(value) + 1 if isinstance(value, bytes) else {"H": 2, "Q": 8}[kind]
               for (_, kind), value in zip(reader.LAYOUTS[name], fields.values())) != len(payload):
            raise AssertionError(name, struct.pack("<I", len(payload)))
    return events
