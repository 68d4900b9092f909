#!/usr/bin/env python3
"""The plugin in babeltrace2: for each of the plugin's allocations, a run in which it fails, and a run in which all later
ones fail, too (starvation/starve.h). Further runs have a disk that is full, for a while or for ever, or whose fsync fails.
The plugin does not crash, frees all blocks, reports lost spans, and its counters add up. One failure loses one span or
event at most.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests/otel"))
import otlp  # noqa: E402
from scenarios import PATIENCE  # noqa: E402
from trace_events import *  # noqa: E402,F401,F403 (the traces use most of its names)

PLUGINS = os.path.join(os.environ["BUILD"], "tests/plugin/starved")
TRACES = os.path.join(os.environ["BUILD"], "tests/plugin/traces")
OUTPUT = os.path.join(os.environ["TMPDIR"], "spans.json")


def run(trace, fail_at, fails_after, disk=None, parameters=""):
    """Returns the exit status, the messages, and the spans."""
    environment = dict(os.environ, STARVE_AT=str(fail_at), **(disk or {}))
    if fails_after:
        environment["STARVE_AFTER"] = "1"
    done = subprocess.run(
        ["babeltrace2", f"--plugin-path={PLUGINS}", "--log-level=WARNING", "convert",
         os.path.join(TRACES, trace), "--component=sink.blkin.zipkin",
         f'--params=endpoint="file:{OUTPUT}",stats-file="{OUTPUT}.stats",prometheus-listen="0"{parameters}'],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * PATIENCE, env=environment)
    if os.path.exists(OUTPUT + ".stats"):
        os.remove(OUTPUT + ".stats")
    spans = []
    if os.path.exists(OUTPUT):
        with open(OUTPUT, "rb") as file:
            data = file.read()
        os.remove(OUTPUT)
        if "otlp" in parameters:
            spans = sorted((str(resource), span.SerializeToString()) for resource, _, span in otlp.spans(data))
        else:
            spans = json.loads(data or "[]")  # if the start failed, the file may be empty
    return done.returncode, done.stderr, spans


def sums(said):
    """Returns the account's sums: (total, parts) of the events and of the spans; [] without an account."""
    account = re.search(r"^blkin: (events: .*)", said, re.M)
    if not account:
        return []
    return [(int(total), [int(number) for number in re.findall(r"\d+", parts)]) for total, parts in
            re.findall(r"(?:events|spans): (\d+) = ([^;]*)", account.group(1))]


STEPS = 5  # in one event of everything(), at most: they are lost with the event


def records_lost(said):
    """Returns how many annotations, tags and steps are missing: with a step its inner steps are lost."""
    return int((re.search(r"(\d+) annotations and tags", said) or [0, 0])[1])


def faults(status, said, spans, whole=None, fails_after=True):
    """Yields the faults of a run. whole: the results of a run without failures, which delivers all spans; None: a stage
    leaves out spans, and only sums are checked."""
    live = re.search(r"^starve: \d+ allocations, \d+ failed, (-?\d+) live", said, re.M)
    if status not in (0, 1):
        yield f"exit status {status}"
    if not live:
        yield "no account of the allocations: babeltrace2 has crashed"
    elif live.group(1) != "0":
        yield f"{live.group(1)} blocks were not freed"
    account = sums(said)
    if not account and whole:
        if status == 0:
            yield "no account"
        if not re.search(r"memory", said, re.I):
            yield "no message says that there was no memory"
    if not account:
        return
    if re.search(r" [1-9]\d* (?:held|waiting)\b", said):
        yield "spans are still held"
    for total, parts in account:
        if total != sum(parts):
            yield f"{total} is not the sum of {parts}"
    if len(spans) != account[1][1][0]:
        yield f"{len(spans)} spans in the file, accepted {account[1][1][0]}"
    if whole and (status == 0) != (account[1][0] == account[1][1][0]):
        yield f"status {status} with the account {account}"
    lines = [re.findall("^blkin: events: .*", text, re.M) for text in (said, whole[1])] if whole else [1, 2]
    if lines[0] == lines[1] and spans != whole[2]:
        yield "other spans than without failures, and nothing counted"
    lost = len(whole[2]) - len(spans) if whole else 0
    steps = STEPS * bool(re.search(" 1 (no room|unreadable)", said))
    if whole and not fails_after and lost > 1 + steps + records_lost(said) - records_lost(whole[1]):
        yield f"one failure has lost {lost} spans"


def check_sums(trace, what, parameters):
    """Checks runs in which a stage leaves out spans: the sums hold. Returns the faults."""
    found = []
    for fails_after in (False, True):
        fail_at, said = 0, ""
        while ", 0 failed," not in said:
            fail_at += 1
            status, said, spans = run(trace, fail_at, fails_after, parameters=parameters)
            found += [f"{trace}: {what}: allocation {fail_at}: {fault}\n{said}" for fault in faults(status, said, spans)]
    print(f"{trace}: {what}: {fail_at - 1} allocations")
    if what == "rules" and "3 joined" not in said:
        found.append(f"nothing is joined\n{said}")
    return found


def check_tail(trace):
    with open(OUTPUT + ".rules", "w") as file:
        file.write("error\n* > p99\nrare 1\ntag key=value\n1/2\n")
    found = check_sums(trace, "tail-sampling", f',tail-sampling="{OUTPUT}.rules",tail-max-bytes=1048576')
    os.remove(OUTPUT + ".rules")
    return found


def check_rules():
    """Spans of other programs' events, with lookups, stages and all tags, and halves that are joined."""
    fields = {"k": Integer(64), "s": String()}
    trace = Trace(hostname="h", context={"vpid": Integer(32, True), "vtid": Integer(32, True)})
    for name in ("t:name", "t:begin", "t:end"):
        trace.event_class(name, fields)
    trace.stream().packet([
        (1000 + 100 * k + 10 * i, name, {"k": k, "s": name * 20}, {"vpid": 1, "vtid": 2})
        for k in range(6) for i, name in enumerate(("t:name", "t:begin", "t:end")[:2 + k % 2])])
    trace.write(OUTPUT + ".trace")
    with open(OUTPUT + ".rules", "w") as file:
        file.write("[lookup n]\nevent = t:name\nkey = k\nvalue = s\n"
                   "[span {n(k)} {s}]\nbegin = t:begin\nat = t:end as stage\nend = t:end\nkey = k\ntags = all\n"
                   "parent = thread\n[span stack]\nbegin = t:begin\nend = t:end\nparent = thread\n"
                   "[span call]\nbegin = t:begin\nend = t:end\nkey = k\nkind = client\njoin = k\n"
                   "[span serve]\nbegin = t:begin\nend = t:end\nkey = k\nkind = server\njoin = k\n")
    found = check_sums(OUTPUT + ".trace", "rules", f',rules="{OUTPUT}.rules",rules-report="/dev/null"')
    os.remove(OUTPUT + ".rules")
    shutil.rmtree(OUTPUT + ".trace")
    return found


def everything():
    """Events that reach each allocation between events and the file."""
    trace = Trace(hostname="node1", context=CONTEXT)
    add_zipkin(trace)
    add_blkin(trace)
    thread = Thread(2, context=context(100, 101, "osd"))
    deep = "".join((step(3, "one", step(3, "two", tag("pool", "rbd"), step(15, "three of a longer name", end=1), end=2), end=3),
                    step(4, "four", step(4, "five"))))
    events = [thread.span(10 * S, 500 + i, log=deep) for i in (1, 2)]  # before any memory was freed for reuse
    for i in (1, 2, 3):
        at = (10 + i) * S
        original = [("timestamp", {"event": "sr"}), ("keyval_string", {"key": "text", "val": "x" * 100 * i * i}),
                    ("timestamp", {"event": "ss"})]
        events += [(at, "zipkin:" + name, zipkin(i, "osd", **values), thread.context) for name, values in original]
        events += [thread.begin(at, 100 + i), thread.annotation(at, 100 + i, "queued"),
                   thread.detail(at, "tag", 100 + i, tag("pool", "rbd")),
                   thread.span(at, 200 + i, log="r" + digits(6789) + number(8, 2) + number(3, 2) + "10.0.0.2mon")]
    events += [thread.end(14 * S, 100 + i) for i in (1, 2)]
    # texts larger than all buffers so far, and services that the encoder does not know yet
    events += [(14 * S, "zipkin:keyval_string", zipkin(50, "osd", key="text", val="x" * length), thread.context)
               for length in (20000, 10)]
    events += [Thread(4 + i, service=f"service {i}", context=thread.context).span(14 * S, 300 + i, log=number_tag("D", "half", 0))
               for i in range(5)]
    trace.stream().packet(events + [thread.span(20 * S, 400, log="broken")])
    return trace


def many():
    """More open spans than the table has buckets at first, and more than the limit of check_made()."""
    trace = Trace()
    add_blkin(trace)
    thread = Thread(2)
    trace.stream().packet([thread.begin(10 * S + i, i) for i in range(1, 1301)])
    return trace


def check(trace, parameters="", least=0, sizes=0):
    """sizes: smaller allocations do not fail. There must be more than `least` allocations."""
    env = {"STARVE_MIN": str(sizes)}
    whole = run(trace, 0, False, env, parameters)
    found = [f"{trace}: without failures: {fault}" for fault in faults(*whole, whole)]
    if whole[0] != 0:
        return found + [f"{trace}: without failures: {whole[1]}"]
    for fails_after in (False, True):
        fail_at = 0
        while True:
            fail_at += 1
            status, said, spans = run(trace, fail_at, fails_after, env, parameters)
            if ", 0 failed," in said:
                break
            after = " and all after it" if fails_after else ""
            found += [f"{trace}{parameters}: allocation {fail_at}{after}: {fault}\n{said}"
                      for fault in faults(status, said, spans, whole, fails_after)]
    print(f"{trace}{parameters}: {fail_at - 1} allocations")
    return found + ([f"{trace}: only {fail_at - 1} allocations"] if fail_at - 1 <= least else [])


def check_made(trace, *args):
    trace.write(OUTPUT + ".trace")
    found = check(OUTPUT + ".trace", ",max-open-spans=1250", *args) + check(OUTPUT + ".trace", ",max-open-spans=1250,format=otlp", *args)
    shutil.rmtree(OUTPUT + ".trace")
    return found


def run_on(trace, disk, parameters=""):
    return run(trace, 0, False, disk, parameters)


def check_disk(trace):
    whole = run(trace, 0, False)
    events, spans = sums(whole[1])
    for writes in (1, 3):
        status, said, found = run_on(trace, {"STARVE_DISK": str(writes)})
        if status != 0 or sums(said) != [events, spans] or found != whole[2]:
            yield f"full for {writes} writes: status {status}, {len(found)} spans\n{said}"
        if "trying again" not in said or "No space left on device" not in said:
            yield f"full for {writes} writes: no message says so\n{said}"
    status, said, found = run_on(trace, {"STARVE_DISK": "1000000"}, ",retry-timeout-ms=200")
    if status != 1 or found or f"{spans[0]} undelivered" not in said or f"{spans[0]} of {spans[0]} spans were not delivered" not in said:
        yield f"full for ever: status {status}, {len(found)} spans\n{said}"
    status, said, found = run_on(trace, {"STARVE_SYNC": "1"})
    if status != 1 or "cannot be stored: Disk quota exceeded" not in said:
        yield f"not stored in the end: status {status}\n{said}"
    if f"{spans[0]} spans maybe not in the file" not in said:
        yield f"not stored in the end: not counted\n{said}"


def main():
    found = [f"disk: {fault}" for fault in check_disk("two-hosts")]
    found += check("packed") + check_made(everything(), 60) + check_made(many(), 2, 16384)
    found += check_tail("two-hosts") + check_rules()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
