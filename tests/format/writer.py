"""Makes events as libblkin records them. Like reader.py, this file was written from doc/format.md alone.

SPDX-License-Identifier: BSD-2-Clause
"""
import struct

VERSION = 1


# ---- Numbers in packed texts ----

def number(value, count, bits=6):
    return bytes(48 + (value >> bits * at & (1 << bits) - 1) for at in range(count))


def length(value):
    return number(value, 2)


def word(value):
    return number(value, 8)


def long(value):
    return number(value, 11)


def hexadecimal(value):
    return number(value, 16, 4)


# ---- The log ----

def annotation(severity, time, text):
    return b"%d" % severity + length(len(text)) + word(time) + text


def tag(key, value):
    return b"s" + length(len(key)) + length(len(value)) + key + value


def number_tag(kind, key, bits):
    return kind + length(len(key)) + long(bits % (1 << 64)) + key


def real_tag(key, value):
    return number_tag(b"D", key, *struct.unpack("<Q", struct.pack("<d", value)))


def link(trace_id_high, trace_id, span_id):
    return b"l" + hexadecimal(trace_id_high) + hexadecimal(trace_id) + hexadecimal(span_id)


def endpoint(kind, ip, port, name):
    return kind + hexadecimal(port) + length(len(ip)) + length(len(name)) + ip + name


def new_name(name):
    return b"n" + length(len(name)) + name


def begin_step(name, kind, time):
    return b"(" + length(len(name) | kind << 7) + word(time) + name


def end_step(time):
    return b")" + word(time)


def step_number(value):
    return b"#" + number(value, 4)


def base(time):
    return b"T" + word(time)


def moved_start(back):
    return b"t" + hexadecimal(back % (1 << 64))


LEFT_OPEN = b"o"


def unknown(letter, body):
    return letter + length(len(body)) + body


# ---- The head and the tail ----

def head(thread, trace_id_high, sequence, span_id, monotonic, sampled=0, dropped=0):
    return (number(VERSION, 1) + number(thread, 10) + word(trace_id_high) + word(trace_id_high >> 48 | sequence << 16) +
            word(span_id) + word(span_id >> 48 | sampled << 16 | dropped << 36) + word(monotonic))


def detail_head(thread, sequence, span_id, monotonic):
    return (number(VERSION, 1) + number(thread, 10) + word(span_id) + word(span_id >> 48 | sequence << 16) +
            word(monotonic))


def tail(ip, port):
    return ip + number(port, 3) + length(len(ip))


# ---- The events ----

def strings(*texts):
    return b"".join(text + b"\0" for text in texts)


def span(trace_id, parent_id, duration, flags, name, packed, service):
    return struct.pack("<QQQH", trace_id, parent_id, duration, flags) + strings(name, packed, service)


def begin(trace_id, parent_id, flags, name, packed, service):
    return struct.pack("<QQH", trace_id, parent_id, flags) + strings(name, packed, service)


def detail(trace_id, *texts):
    """Makes blkin:tag and blkin:end (packed), and blkin:annotation_* (packed, text)."""
    return struct.pack("<Q", trace_id) + strings(*texts)
