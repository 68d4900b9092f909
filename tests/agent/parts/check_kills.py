#!/usr/bin/env python3
"""usage: check_kills.py WORK SEND KILLS-OF-AGENT KILLS-OF-TAKER PART...: checks what kills.sh has left in its folder.

With send = slow: a request to keep is whole, or marked as incomplete. No other request is sent. Without kills of
`program`, a request is incomplete only if its ring was overwritten before an agent lived long enough to read it.

With send = all: each span of the writers was sent, or is counted as missing, or was in bytes that are counted as
skipped. A busy agent may give a writer its rings after the first spans, which are recorded nowhere.

In both modes: spans arrive twice only as the agent's logs say. Beyond that, a kill may repeat one batch for each sender:
the collector has taken the batch, but was killed before its answer, or the agent was killed before it read the answer.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import datetime
import glob
import json
import os
import re
import struct
import sys

BATCH, SENDERS = 100, 2  # see kills.sh
WHOLE_SHARE = 0.5  # of the requests to keep; kills of `program` cost most
OVERWRITTEN = "its ring does not reach back to this trace"
RECORD = 64  # bytes that a span takes at least


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def taken(work):
    with open(work + "/taken", encoding="utf-8") as file:
        yield from map(json.loads, file)


def slow(work, parts, logs):
    planted = [line.split()[1] for line in read(work + "/planted").splitlines()]
    planted = {trace for trace in planted if int(trace, 16)}  # 0: the program had no rings
    spans, told = collections.defaultdict(list), {}
    for span in taken(work):
        trace = span["traceId"].rjust(32, "0")
        if span["name"] == "incomplete":
            told[trace] = span["tags"]["blkin.incomplete"]
        else:
            spans[trace].append(span["id"])
    whole = {trace for trace in planted if len(set(spans[trace])) == 3}
    rest = planted - whole
    missing = rest - set(told)
    overwritten = {trace for trace in rest & set(told) if OVERWRITTEN in told[trace]}
    fast = set(spans) - planted
    print("%d requests to be kept: %d whole, %d reported as incomplete, %d silent; %d others sent" %
          (len(planted), len(whole), len(rest & set(told)), len(missing), len(fast)))
    for trace in sorted(rest):
        verdicts = [line for log in logs for line in log.splitlines() if trace in line]
        print("not whole:", trace, spans[trace], *verdicts, sep="\n    ", file=sys.stderr)
    if len(whole) < WHOLE_SHARE * len(planted):
        sys.exit("too few requests are whole: the run shows nothing")
    is_right = not (missing or fast or (rest - overwritten and "program" not in parts))
    said = sum(int(count) for log in logs for count in re.findall(r"BK4041 .*: (\d+) traces", log))
    return is_right, sum(len(ids) - len(set(ids)) for ids in spans.values()), 3 * said


def everything(work, logs, killed_at):
    counts, ends = collections.Counter(), {}
    for span in taken(work):
        if "i" in span.get("tags", {}):
            number = int(span["tags"]["i"])
            counts[number] += 1
            ends[number] = (span["timestamp"] + span.get("duration", 0)) / 1e6
    made, missing = 0, []
    for path in glob.glob(work + "/made.*"):
        first = int(path.rsplit(".", 1)[1]) * 100000000
        with open(path, "rb") as file:
            count, recorded = struct.unpack("qq", file.read(16))
        made += count
        lost = [number for number in range(first + max(0, count - recorded), first + count) if not counts[number]]
        if lost:
            print("writer %d made %d spans, %d of them while it had rings; %d are missing, %d to %d" %
                  (first, count, recorded, len(lost), lost[0], lost[-1]), file=sys.stderr)
        missing += lost
    status = json.loads(read(work + "/status"))
    counted, skipped = status["counters"]["events_missing"], status["totals"]["skipped_bytes"]
    print("%d spans made: %d sent, %d missing, %d counted as missing, %d bytes skipped" %
          (made, len(counts), len(missing), counted, skipped))
    # a log says since when spans may come twice; the period ends with the kill of the previous agent
    said = []
    for log, killed in zip(logs[1:], killed_at):
        for at in re.findall(r"BK4076 .* from (.*?): spans", log):
            said.append((datetime.datetime.fromisoformat(at).timestamp() - 0.001, killed))
    twice = [number for number, count in counts.items() if count > 1]
    early = [number for number in twice if not any(begin <= ends[number] <= end for begin, end in said)]
    print("%d of %d spans that came twice are outside the %d periods that the logs name, together %.1f s" %
          (len(early), len(twice), len(said), sum(end - begin for begin, end in said)))
    return made and len(missing) <= counted + skipped // RECORD, len(early), 0


def main():
    work, send, agents, takers, *parts = sys.argv[1:]
    paths = sorted(glob.glob(work + "/logs/*"), key=os.path.getmtime)
    logs, killed_at = list(map(read, paths)), list(map(os.path.getmtime, paths))
    is_right, twice, said = everything(work, logs, killed_at) if send == "all" else slow(work, parts, logs)
    limit = said + BATCH * SENDERS * (int(agents) + int(takers))
    print("%d spans came twice beyond those that the logs announce; the limit is %d" % (twice, limit))
    if any("does not add up" in log for log in logs):
        sys.exit("an account does not add up")
    sys.exit(not is_right or twice > limit)


main()
