"""Reads events of libblkin from the text that babeltrace2 prints, and decodes their packed texts: see doc/format.md.

As a program: packed.py EVENTS FIELD... prints these fields of each line, with tabs between them.

SPDX-License-Identifier: BSD-2-Clause
"""
import re
import sys

FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(\w+))')
DIGIT = "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmno"


def number(digits):
    """Reads digits, the lowest first."""
    value = 0
    for digit in reversed(digits):
        value = value * 64 + DIGIT.index(digit)
    return value


def origin(packed):
    return {"version": number(packed[0]), "thread": number(packed[1:11])}


def span_head(packed):
    words = [number(packed[at:at + 8]) for at in range(11, 51, 8)]
    return {**origin(packed), "trace_id_high": words[0] | (words[1] & 0xffff) << 48, "sequence": words[1] >> 16,
            "span_id": words[2] | (words[3] & 0xffff) << 48, "sampled": words[3] >> 16 & 0xfffff,
            "dropped": words[3] >> 36, "monotonic": words[4], "log": packed[51:]}


def detail_head(packed):
    words = [number(packed[at:at + 8]) for at in range(11, 35, 8)]
    return {**origin(packed), "span_id": words[0] | (words[1] & 0xffff) << 48, "sequence": words[1] >> 16, "monotonic": words[2],
            "log": packed[35:]}


def events(path):
    """Yields a dictionary for each event: its fields, and its name as "event"."""
    for line in open(path, encoding="utf-8"):
        name = re.search(r" (blkin:\w+): ", line)
        if not name:
            continue
        event = {key: int(word, 0) if word else re.sub(r"\\(.)", r"\1", text)
                 for key, text, word in FIELD.findall(line[name.end():])}
        event["event"] = name.group(1)
        if "packed" in event:
            head = span_head if event["event"] in ("blkin:span", "blkin:begin") else detail_head
            event.update(head(event["packed"]))
        yield event


if __name__ == "__main__":
    for one in events(sys.argv[1]):
        print(*(one.get(key, "") for key in sys.argv[2:]), sep="\t")
