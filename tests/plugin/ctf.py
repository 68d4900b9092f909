"""Writes small CTF 1.8 traces as LTTng-UST lays them out: metadata text and stream files.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import struct

MAGIC = 0xC1FC1FC1


class Integer:
    def __init__(self, size, signed=False, base=10):
        self.size, self.signed, self.base = size, signed, base

    def tsdl(self, name):
        return (f"integer {{ size = {self.size}; align = 8; signed = {int(self.signed)}; "
                f"encoding = none; base = {self.base}; }} {name};")

    def pack(self, order, value):
        letter = {8: "b", 16: "h", 32: "i", 64: "q"}[self.size]
        return struct.pack(order + (letter if self.signed else letter.upper()), value)


class Enum(Integer):
    """An integer whose values have names."""

    def __init__(self, size, signed, labels):
        super().__init__(size, signed)
        self.labels = labels

    def tsdl(self, name):
        labels = ", ".join(f'"{text}" = {value}' for text, value in self.labels.items())
        return (f"enum : integer {{ size = {self.size}; align = 8; signed = {int(self.signed)}; }} "
                f"{{ {labels} }} {name};")


class Float:
    def tsdl(self, name):
        return f"floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} {name};"

    def pack(self, order, value):
        return struct.pack(order + "d", value)


class String:
    def tsdl(self, name):
        return f"string {name};"

    def pack(self, order, value):
        return to_bytes(value) + b"\0"


class Characters:
    """A text in an array of fixed length, such as the procname context."""

    def __init__(self, length):
        self.length = length

    def tsdl(self, name):
        return ("integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } "
                f"{name}[{self.length}];")

    def pack(self, order, value):
        return to_bytes(value)[:self.length].ljust(self.length, b"\0")


class Sequence:
    """A text. Another member, before the text, has its length."""

    def tsdl(self, name):
        return (f"integer {{ size = 16; align = 8; signed = 0; base = 10; }} _{name}_length; "
                f"integer {{ size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }} "
                f"{name}[ _{name}_length ];")

    def pack(self, order, value):
        return struct.pack(order + "H", len(to_bytes(value))) + to_bytes(value)


class Structure:
    def __init__(self, members):
        self.members = members

    def tsdl(self, name):
        return f"struct {{ {members_tsdl(self.members)} }} align(8) {name};"

    def pack(self, order, value):
        return pack_members(order, self.members, value)


def to_bytes(value):
    return value if isinstance(value, bytes) else value.encode(errors="surrogateescape")


def members_tsdl(members):
    """Returns the members in TSDL. LTTng puts an underscore before every name, which readers remove."""
    return "\n\t\t".join(kind.tsdl("_" + name) for name, kind in members.items())


def pack_members(order, members, values):
    missing = set(members) ^ set(values)
    if missing:
        raise ValueError(f"members and values differ in: {sorted(missing)}")
    return b"".join(kind.pack(order, values[name]) for name, kind in members.items())


HEADER = """/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
trace {{
	major = 1;
	minor = 8;
	uuid = "{uuid}";
	byte_order = {byte_order};
	packet.header := struct {{
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	}};
}};
env {{
{env}
}};
"""

CLOCK = """clock {{
	name = "{clock}";
	freq = {freq};
	offset_s = {offset_s};
	offset = {offset};
}};
typealias integer {{ size = 32; align = 8; signed = false; map = clock.{clock}.value; }} := clock32_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.{clock}.value; }} := clock64_t;
"""

# the reader would map a clock to a member that is called timestamp
NO_CLOCK = """typealias integer { size = 32; align = 8; signed = false; } := clock32_t;
typealias integer { size = 64; align = 8; signed = false; } := clock64_t;
"""

STREAM = """struct event_header_large {{
	enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
	variant <id> {{
		struct {{
			clock32_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			clock64_t timestamp;
		}} extended;
	}} v;
}} align(8);
stream {{
	id = 0;
	event.header := struct event_header_large;
	packet.context := struct {{
		clock64_t timestamp_begin;
		clock64_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t packet_seq_num;
		uint64_t events_discarded;
		uint32_t cpu_id;
	}};
{context}}};
"""


class Trace:
    """One trace: event classes, one kind of stream, and streams of packets of events."""

    def __init__(self, number=1, hostname=None, context=None, big_endian=False, freq=1000000000,
                 offset_s=1700000000, offset=0, has_clock=True,
                 clock="monotonic"):
        self.uuid = struct.pack(">QQ", 0xB1B1B1B1B1B1B1B1, number)
        self.order = ">" if big_endian else "<"
        self.context = context or {}
        self.classes = {}
        self.streams = []
        text = self.uuid.hex()
        env = {"domain": "ust", "tracer_name": "lttng-ust"}
        if hostname is not None:
            env["hostname"] = hostname
        self.metadata = HEADER.format(
            uuid="-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])),
            byte_order="be" if big_endian else "le",
            env="\n".join(f'\t{key} = "{value}";' for key, value in env.items()))
        self.metadata += (CLOCK.format(clock=clock, freq=freq, offset_s=offset_s, offset=offset) if has_clock
                          else NO_CLOCK)
        members = f"\tevent.context := struct {{\n\t\t{members_tsdl(self.context)}\n\t}};\n"
        stream = STREAM.format(context=members if self.context else "")
        self.metadata += stream if has_clock else stream.replace("timestamp", "ticks")

    def event_class(self, name, fields, number=None):
        number = len(self.classes) if number is None else number
        self.classes[name] = (number, fields)
        payload = "" if fields is None else f"\tfields := struct {{\n\t\t{members_tsdl(fields)}\n\t}};\n"
        self.metadata += f'event {{\n\tname = "{name}";\n\tid = {number};\n\tstream_id = 0;\n{payload}}};\n'

    def stream(self):
        self.streams.append(Stream(self, len(self.streams)))
        return self.streams[-1]

    def write(self, folder):
        os.makedirs(folder)
        with open(os.path.join(folder, "metadata"), "w") as file:
            file.write(self.metadata)
        for stream in self.streams:
            with open(os.path.join(folder, f"channel0_{stream.number}"), "wb") as file:
                file.write(b"".join(stream.packets))


class Stream:
    def __init__(self, trace, number):
        self.trace, self.number = trace, number
        self.packets = []
        self.sequence = 0

    def unknown_event(self, time):
        """Ends the last packet with an event whose class is not described. The reader fails there."""
        event = struct.pack(self.trace.order + "HIQ", 65535, 1 << 20, time)
        packet = self.packets[-1]
        sizes = struct.pack(self.trace.order + "QQ", *[(len(packet) + len(event)) * 8] * 2)
        self.packets[-1] = packet[:48] + sizes + packet[64:] + event

    def packet(self, events, begin=None, end=None, discarded=0, skipped=0):
        """Adds a packet. events: (time, name, values, context). skipped: number of missing packets before this
        one."""
        times = [event[0] for event in events]
        begin = min(times, default=0) if begin is None else begin
        end = max(times, default=begin) if end is None else end
        self.sequence += skipped
        order = self.trace.order
        content = b""
        last = begin
        for event in events:
            content += self._header(event, last) + self._payload(*event[1:])
            last = event[0]
        head = struct.pack(order + "I", MAGIC) + self.trace.uuid + struct.pack(
            order + "IQ", 0, self.number)
        size = (len(head) + 52 + len(content)) * 8
        self.packets.append(head + struct.pack(order + "QQQQQQI", begin, end, size, size,
                                               self.sequence, discarded, self.number) + content)
        self.sequence += 1

    def _header(self, event, last):
        number = self.trace.classes[event[1]][0]
        if number < 65535 and event[0] - last < 1 << 32:
            return struct.pack(self.trace.order + "HI", number, event[0] & 0xFFFFFFFF)
        return struct.pack(self.trace.order + "HIQ", 65535, number, event[0])

    def _payload(self, name, values, context=None):
        if isinstance(values, bytes):  # laid out already
            return values
        fields = self.trace.classes[name][1]
        return (pack_members(self.trace.order, self.trace.context, context or {}) +
                pack_members(self.trace.order, fields or {}, values))
