#!/usr/bin/env python3
"""
lttng_list.py sessions|programs: reads the XML of `lttng --mi xml list`, because LTTng's plain text differs between versions.

Prints a line for each session (NAME active|inactive LIVE-TIMER-US OUTPUT) or for each program (PID EVENT...).
SPDX-License-Identifier: BSD-2-Clause
"""
import sys
import xml.etree.ElementTree


def lines(what, elements):
    for element in elements:
        if what == "sessions" and element.tag == "session":
            state = "active" if element.findtext("enabled") == "true" else "inactive"
            yield f"{element.findtext('name')} {state} {element.findtext('live_timer_interval')} {element.findtext('path')}\n"
        elif what == "programs" and element.tag == "pid":
            yield " ".join([element.findtext("id"), *(event.findtext("name") for event in element.iter("event"))]) + "\n"


def main():
    text = sys.stdin.read()
    elements = list(xml.etree.ElementTree.fromstring(text).iter()) if text else []
    for element in elements:
        element.tag = element.tag.rpartition("}")[2]
    sys.stdout.write("".join(lines(sys.argv[1], elements)))  # in one write: "grep -q" may close the pipe after a line


if __name__ == "__main__":
    main()
