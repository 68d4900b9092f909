#!/usr/bin/env python3
"""Prints the contents of a memory of rings. Written from doc/format.md alone.

usage: reader.py FILE    a copy of the memory

Prints a line "EVENT COUNT" for each possible event.

SPDX-License-Identifier: BSD-2-Clause
"""
import struct
import sys

RECORD_MAX = 4096
PAD = 255
EVENTS = {0: "blkin:span", 1: "blkin:begin", 2: "blkin:tag", 3: "blkin:end", 4: "blkin:process", 5: "blkin:slow",
          6: "blkin:annotation_emerg", 7: "blkin:annotation_alert", 8: "blkin:annotation_crit",
          9: "blkin:annotation_err", 10: "blkin:annotation_warning", 11: "blkin:annotation_notice",
          12: "blkin:annotation_info", 13: "blkin:annotation_debug", 14: "blkin:metric", 64: "zipkin:keyval_string",
          65: "zipkin:keyval_integer", 66: "zipkin:timestamp"}


def records(data, committed):
    """Yields (pid, event, payload) from the newest to the oldest, of a ring that nobody writes to."""
    size = len(data)
    oldest = max(committed + RECORD_MAX - size, 0)
    end = committed
    while end - oldest >= 8:
        trailer, = struct.unpack_from("=Q", data, (end - 8) % size)
        if trailer >> 24 != (end - 8) // 8 & (1 << 40) - 1:
            sys.exit(f"no trailer at {end - 8}")
        length = trailer & 0xffff
        begin = end - 8 - (length + 7) // 8 * 8
        if begin < oldest:
            return
        event = trailer >> 16 & 0xff
        if event != PAD:
            at = begin % size
            pid, _pid_ns = struct.unpack_from("=II", data, at)
            padding = data[at + length:at + (length + 7) // 8 * 8]
            if any(padding):
                sys.exit(f"the padding of the record at {begin} is not zeros")
            yield pid, event, data[at + 8:at + length]
        end = begin


def original(event, payload):
    """Returns the strings of an event of the original API."""
    strings = payload[42:].split(b"\0")
    if strings.pop() != b"" or len(strings) != {64: 5, 65: 4, 66: 4}[event]:
        sys.exit(f"an event {event} has the strings {strings}")
    return strings


def main():
    memory = open(sys.argv[1], "rb").read()
    mark, cpus, _user, event_bytes, alarm_bytes, heads_at, data_at, size = struct.unpack_from("=8sIIQQQQQ", memory)
    if mark != b"blkring1" or size != len(memory):
        sys.exit("this is no memory of rings")
    counts = dict.fromkeys(EVENTS, 0)
    for ring in range(2 * cpus):
        is_alarm = ring >= cpus
        begin = data_at + ring * event_bytes if not is_alarm else \
            data_at + cpus * event_bytes + (ring - cpus) * alarm_bytes
        committed, = struct.unpack_from("=Q", memory, heads_at + 128 * ring)
        for _pid, event, payload in records(memory[begin:begin + (alarm_bytes if is_alarm else event_bytes)], committed):
            if event >= 64:
                original(event, payload)
            if is_alarm != (event == 5):
                sys.exit(f"event {event} is in ring {ring}")
            counts[event] += 1
    for event, name in EVENTS.items():
        print(name, counts[event])


main()
