#!/usr/bin/env bash
# Alarms of steps. tests/libblkin-ring/test-spans.c has those of spans, the cap, the ends of processes, and rules by call;
# test-provider.c those of several threads and of signal handlers.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
slow=$programs/slow
export BLKIN_SLOW_FILE=$WORK/slow

start_sessiond || exit 1
session steps blkin:slow blkin:span
BLKIN_SLOW='in the log>10s, open at the end>10s, full log>10s, all fast>10s, *>2500ms' "$slow" steps \
    >"$WORK/steps.txt" || fail "slow steps: status $?"
recorded steps
"$PYTHON" - "$SRC/tests/libblkin" "$WORK/steps" <<'PY' || fail "the events are wrong"
import json, sys
sys.path.insert(0, sys.argv[1])
import packed
slow = [event for event in packed.events(sys.argv[2] + ".events") if event["event"] == "blkin:slow"]
ids = [[int(word, 0) for word in line.split(" ", 3)[:3]] for line in open(sys.argv[2] + ".txt")]
assert [event["name"] for event in slow] == ["fsync", "hung", "of its own event"], slow
assert [[event["trace_id_high"], event["trace_id"], event["span_id"]] for event in slow] == ids, (slow, ids)
zipkin = {span["id"]: span for span in json.load(open(sys.argv[2] + ".json"))}
for number, event in enumerate(slow, 1):
    assert event["mark"] == 0x31776F6C736B6C62 and event["sequence"] == number and event["dropped"] == 0, event
    assert event["pid"] == event["vpid"] and event["service"] == "slow" and event["why"] == "*>2500ms", event
    assert 3_000_000_000 <= event["duration"] < 10_000_000_000, event
    span = zipkin["%016x" % event["span_id"]]
    assert span["name"] == event["name"] and abs(span["duration"] * 1000 - event["duration"]) < 2000, (event, span)
PY

# a wrong rule; test-policy.c has the code that reads files and variables
said=$(BLKIN_DEBUG=1 BLKIN_SLOW='*>1ms, wirte>2' BLKIN_LTTNG=no "$programs/corners" init 2>&1)
[[ $said == *'BLKIN_SLOW: "wirte>2" is not a rule of slow requests'* ]] || fail "BLKIN_DEBUG says: $said"
exit 0
