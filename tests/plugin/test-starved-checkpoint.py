#!/usr/bin/env python3
"""The checkpoint where memory or the disk fails: each allocation of the plugin's in turn, once or from then
on, while the second trace of a recording is read. What a run that failed has not sent, the next one sends:
nothing is lost, and what comes twice is no more than that run has sent. See starvation/starve.h.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from make_traces import CONTEXT, S, STREAMED, Thread, add_blkin, add_zipkin, context, step, zipkin
from ctf import Trace

PLUGINS = os.path.join(os.environ["BUILD"], "tests/plugin/starved")
FOLDER = os.environ["TMPDIR"]
FILE = os.path.join(FOLDER, "checkpoint")
OUTPUT = os.path.join(FOLDER, "spans.json")


def write_traces():
    """Spans that cross the cut, of all kinds; those with a step, and a gap before the second trace."""
    daemon = context(1, 2, "osd")
    thread = Thread(0x70, context=daemon)
    first = [thread.begin(10 * S, 1, "read"),
             (10 * S + 1, "zipkin:timestamp", zipkin(2, "osd", event="sr"), daemon),
             thread.span(10 * S + 2, 3, log=step(1, "lock", end=2)),
             thread.begin(10 * S + 3, 4), thread.detail(10 * S + 4, "end", 4)]
    thread.streamed += 3
    second = [thread.detail(11 * S, "annotation_info", 1, text="queued"),
              thread.span(11 * S + 1, 4, flags=STREAMED), thread.detail(11 * S + 2, "end", 1),
              (11 * S + 3, "zipkin:timestamp", zipkin(2, "osd", event="ss"), daemon),
              thread.begin(11 * S + 4, 5), thread.span(11 * S + 5, 6, log=step(1, "lock", end=2))]
    for name, events in (("first", first), ("second", second)):
        trace = Trace(hostname="node1", context=CONTEXT)
        add_blkin(trace)
        add_zipkin(trace)
        trace.stream().packet(events)
        trace.write(os.path.join(FOLDER, name))


def run(name, flush, environment):
    """Returns the exit status, what was said, and the ids of the spans."""
    done = subprocess.run(
        ["babeltrace2", f"--plugin-path={PLUGINS}", "convert", os.path.join(FOLDER, name),
         "--component=sink.blkin.zipkin",
         f'--params=endpoint="file:{OUTPUT}",checkpoint="{FILE}",checkpoint-trace="{name}",'
         f'retry-timeout-ms=100,checkpoint-flush={"yes" if flush else "no"}'],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
        env=dict(os.environ, **environment))
    spans = []
    if os.path.exists(OUTPUT):
        with open(OUTPUT) as file:
            spans = json.loads(file.read() or "[]")
        os.remove(OUTPUT)
    return done.returncode, done.stderr, collections.Counter(span["id"] for span in spans)


def faults(flush, environment, whole):
    """What is wrong with a run that fails, and the one after it."""
    shutil.copy(FILE + ".first", FILE)
    status, said, spans = run("second", flush, environment)
    live = re.search(r"^starve: \d+ allocations, \d+ failed, (-?\d+) live", said, re.M)
    if status not in (0, 1) or not live:
        yield f"exit status {status}"
    elif live.group(1) != "0":
        yield f"{live.group(1)} blocks were not freed"
    again, said_again, more = run("second", flush, {"STARVE_AT": "0"})
    if again != 0:
        yield f"the next run ends with {again}: {said_again}"
    if whole - (spans + more):
        yield f"lost: {whole - (spans + more)}"
    if spans + more - whole - spans:
        yield f"sent twice, and not by the run that failed: {spans + more - whole}"
    if status == 0 and more:
        yield f"status 0, and the next run sends {more}"
    if status == 0 and spans != whole:
        yield f"status 0 with the spans {spans}"
    if status == 1 and not re.search(r"memory|cannot be (written|stored|opened)|not delivered|No space",
                                     said, re.I):
        yield f"it does not say why: {said}"


def check(flush):
    shutil.copy(FILE + ".first", FILE)
    status, said, whole = run("second", flush, {"STARVE_AT": "0"})
    count = int(re.search(r"^starve: (\d+) allocations", said, re.M).group(1))
    if status:
        yield f"without failures: {said}"
    for fail_at in range(1, count + 1):
        for after in ({}, {"STARVE_AFTER": "1"}):
            environment = {"STARVE_AT": str(fail_at), **after}
            for fault in faults(flush, environment, whole):
                yield f"flush {flush}, {environment}: {fault}"
    for environment in ({"STARVE_DISK": "1"}, {"STARVE_DISK": "2"}, {"STARVE_DISK": "100000"},
                        {"STARVE_SYNC": "1"}):
        for fault in faults(flush, {"STARVE_AT": "0", **environment}, whole):
            yield f"flush {flush}, {environment}: {fault}"
    print(f"flush {flush}: {sum(whole.values())} spans, {count} allocations")


def clean():
    for name in ("checkpoint", "checkpoint.first", "checkpoint.new"):
        if os.path.exists(os.path.join(FOLDER, name)):
            os.remove(os.path.join(FOLDER, name))
    for name in ("first", "second"):
        shutil.rmtree(os.path.join(FOLDER, name))


def main():
    write_traces()
    status, said, _ = run("first", False, {"STARVE_AT": "0"})
    found = [f"the first trace: {said}"] if status else []
    os.rename(FILE, FILE + ".first")
    found += [fault for flush in (False, True) for fault in check(flush)]
    clean()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
