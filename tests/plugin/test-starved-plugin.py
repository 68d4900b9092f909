#!/usr/bin/env python3
"""The plugin in babeltrace2: for each of the plugin's allocations, a run in which it fails, and a run in which all later
ones fail, too (starvation/starve.h). Further runs have a disk that is full, for a while or for ever, or whose fsync fails.
The plugin does not crash, frees all blocks, reports lost spans, and its counters add up.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import re
import shutil
import subprocess
import sys

from ctf import Integer, String, Trace
from scenarios import PATIENCE

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
        with open(OUTPUT) as file:
            text = file.read()
        os.remove(OUTPUT)
        spans = json.loads(text or "[]")  # if the start failed, the file may be empty
    return done.returncode, done.stderr, spans


def sums(said):
    """Returns the account's sums: (total, parts) of the events and of the spans; [] without an account."""
    account = re.search(r"^blkin: (events: .*)", said, re.M)
    if not account:
        return []
    return [(int(total), [int(number) for number in re.findall(r"\d+", parts)]) for total, parts in
            re.findall(r"(?:events|spans): (\d+) = ([^;]*)", account.group(1))]


def faults(status, said, spans, whole=None):
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
    if whole and account == sums(whole[1]) and spans != whole[2] and "missing: " not in said:
        yield "other spans than without failures, and nothing counted"


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


def check(trace):
    whole = run(trace, 0, False)
    found = [f"{trace}: without failures: {fault}" for fault in faults(*whole, whole)]
    if whole[0] != 0:
        return found + [f"{trace}: without failures: {whole[1]}"]
    for fails_after in (False, True):
        fail_at = 0
        while True:
            fail_at += 1
            status, said, spans = run(trace, fail_at, fails_after)
            if ", 0 failed," in said:
                break
            after = " and all after it" if fails_after else ""
            found += [f"{trace}: allocation {fail_at}{after}: {fault}\n{said}"
                      for fault in faults(status, said, spans, whole)]
    print(f"{trace}: {fail_at - 1} allocations")
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
    found += [fault for trace in ("two-hosts", "packed", "event-ids") for fault in check(trace)]
    found += check_tail("two-hosts") + check_rules()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
