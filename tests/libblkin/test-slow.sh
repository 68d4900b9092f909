#!/usr/bin/env bash
# Alarms: the spans that record blkin:slow, the event's fields, the cap, the count of suppressed alarms, and rules by call.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
slow=$programs/slow
export BLKIN_SLOW_FILE=$WORK/slow

# check NAME <<CODE: runs Python code with the events of the session NAME. slow: the alarms; spans: the spans by id; said:
# the lines of $WORK/NAME.txt as words; ids: the ids in these lines.
check() {
    cat - <<'PY' >"$WORK/check.py"
import collections, sys
sys.path.insert(0, sys.argv[1])
import packed
events = list(packed.events(sys.argv[2] + ".events"))
slow = [event for event in events if event["event"] == "blkin:slow"]
spans = {event["span_id"]: event for event in events if event["event"] == "blkin:span"}
said = [line.split(" ", 3) for line in open(sys.argv[2] + ".txt").read().splitlines()]
ids = [[int(word, 0) for word in words[:3]] for words in said if words[0].startswith("0x")]
def ids_of(event):
    return [event["trace_id_high"], event["trace_id"], event["span_id"]]
for event in slow:
    assert event["mark"] == 0x31776F6C736B6C62, event
PY
    cat >>"$WORK/check.py"
    "$PYTHON" "$WORK/check.py" "$SRC/tests/libblkin" "$WORK/$1" || fail "$1: the events are wrong"
}

start_sessiond || exit 1

# ---- which spans ----

export BLKIN_SLOW='osd*:write>20ms, scrub>10s, *>100ms, mon:error'
# one EXPECTED-WHY ARGUMENT...: records one span; EXPECTED-WHY '': no alarm
one() {
    local ids
    ids=$("$slow" span "${@:2}") || fail "slow span ${*:2}: status $?"
    printf '%s %s\n' "${ids% "$3"}" "$1" >>"$WORK/$form.txt"
}
long=$(printf '%0200d' 0)
for form in whole streamed; do
    case $form in
    whole) session whole blkin:slow blkin:span ;;
    streamed) session streamed 'blkin:*' ;;
    esac
    one 'osd*:write>20ms' osd.1 write 30
    one '' osd.1 write 10
    one '' mds.a write 30
    one '*>100ms' mds.a write 130
    one '' osd.1 scrub 2000
    one '' osd.1 write 1 error
    one 'mon:error' mon write 1 error
    one '*>100ms' osd.1 'ended at' 200
    one '' osd.1 dropped 200
    one 'odd size' osd.1 read 1 'keep=odd size'
    one 'odd size' osd.1 read 1 error 'keep=odd size' 'keep=and odd place' tags=10
    one 'keep' osd.1 read 1 tags=100 'keep=no room for this'
    one "${long::120}" osd.1 "${long::120}" 1 "keep=$long"
    recorded $form
    check $form <<'PY'
alarms = {tuple(ids_of(event)): event for event in slow}
assert sum(span["flags"] & 4 for span in spans.values()) == 3 * 4, "errors are flagged"
assert len(alarms) == len(slow) == sum(words[3] != "" for words in said), slow
for of_span, (*_, why) in zip(ids, said):
    event = alarms.pop(tuple(of_span), None)
    assert (event["why"] if event else "") == why, (event, why)
    if not event:
        continue
    assert event["sequence"] == 1 and event["dropped"] == 0 and event["pid"] == event["vpid"], event
    span = spans[event["span_id"]]
    assert event["monotonic"] % 2**48 == span["monotonic"], (event, span)
    for key in ("trace_id", "trace_id_high", "duration", "name", "service"):
        assert event[key] == span[key], (key, event, span)
    assert events.index(event) > events.index(span), "the alarm precedes its span"
PY
done
unset BLKIN_SLOW

# no rules, and not sampled
session none blkin:slow blkin:span
"$slow" span osd.1 write 3000 error >/dev/null || fail "status $?"
BLKIN_SLOW='*>0ns' BLKIN_SAMPLING=never "$slow" span osd.1 write 3000 >/dev/null || fail "status $?"
recorded none
! grep -q blkin:slow: "$WORK/none.events" || fail "no rule, but an alarm"
grep -q blkin:span: "$WORK/none.events" || fail "no span without a rule"

# ---- steps ----

session steps blkin:slow blkin:span
BLKIN_SLOW='in the log>10s, open at the end>10s, full log>10s, all fast>10s, *>2500ms' "$slow" steps \
    >"$WORK/steps.txt" || fail "slow steps: status $?"
recorded steps
check steps <<'PY'
assert [event["name"] for event in slow] == ["fsync", "hung", "of its own event"], slow
assert [ids_of(event) for event in slow] == ids, (slow, ids)
for event in slow:
    assert 3_000_000_000 <= event["duration"] < 10_000_000_000 and event["why"] == "*>2500ms", event
import json
zipkin = {span["id"]: span for span in json.load(open(sys.argv[2] + ".json"))}
for event in slow:
    span = zipkin["%016x" % event["span_id"]]
    assert span["name"] == event["name"] and abs(span["duration"] * 1000 - event["duration"]) < 2000, (event, span)
PY

# ---- the cap ----

session cap blkin:slow blkin:span
"$slow" cap >"$WORK/cap.txt" || fail "slow cap: status $?"
recorded cap
check cap <<'PY'
alarms = collections.Counter(event["why"] for event in slow if event["trace_id"])
dropped = collections.Counter()
for event in slow:
    dropped[{"because": "keep"}.get(event["why"], event["why"])] += event["dropped"]
alarms["keep"] = alarms.pop("because", 0)
for why in ("slow>1ms", "error", "keep"):
    assert alarms[why] + dropped[why] == 1000, (why, alarms, dropped)
assert set(dropped) == {"slow>1ms", "error", "keep"}, dropped
assert 10 <= sum(alarms.values()) < 500, alarms
told = [event for event in slow if not event["trace_id"]]
assert told and all(event["dropped"] and event["service"] == "slow" for event in told), told
assert sorted(event["sequence"] for event in slow) == list(range(1, len(slow) + 1)), slow
PY

# ---- at once ----

session threads blkin:slow blkin:span
BLKIN_SLOW='*>1ms, max=1000000/s' LTTNG_UST_ALLOW_BLOCKING=1 "$slow" threads >"$WORK/threads.txt" ||
    fail "slow threads: status $?"
recorded threads
check threads <<'PY'
assert len(slow) == 20000 and sum(event["dropped"] for event in slow) == 0, len(slow)
assert sorted(event["sequence"] for event in slow) == list(range(1, 20001))
PY

# ---- the end of a process ----

session end blkin:slow blkin:span
BLKIN_SLOW='*>1ms, max=10/s' "$slow" threads >"$WORK/end.txt" || fail "slow threads: status $?"
recorded end
check end <<'PY'
told = sum(bool(event["trace_id"]) + event["dropped"] for event in slow)
assert told == 20000 and len(slow) < 1000, (told, len(slow))
PY

session fork blkin:slow blkin:span
BLKIN_SLOW='*>1ms' "$slow" forks >"$WORK/fork.txt" || fail "slow fork: status $?"
recorded fork
check fork <<'PY'
got = collections.defaultdict(list)
for event in slow:
    got[event["name"], event["pid"]].append(event["sequence"])
    assert event["pid"] == event["vpid"], event
assert sorted((name, sequences) for (name, pid), sequences in got.items()) == [
    ("child", [1]), ("parent", [1, 2, 3])], got
PY

session signals blkin:slow blkin:span
BLKIN_SLOW='*>1ms, max=1000000/s' LTTNG_UST_ALLOW_BLOCKING=1 timeout 60 "$slow" signals >"$WORK/signals.txt" ||
    fail "slow signals: status $?"
recorded signals
check signals <<'PY'
under, handler = map(int, said[0])
names = collections.Counter(event["name"] for event in slow)
first = names.pop("first", 0)  # on a busy machine it may take 1 ms
assert names == {"under": under, "handler": handler} and first <= 1, (names, said)
assert sorted(event["sequence"] for event in slow) == list(range(1, under + handler + first + 1))
PY

# ---- rules by call, and a wrong rule; the code that reads files and variables is that of test-sampling.sh ----

session set blkin:slow blkin:span
"$slow" set >"$WORK/set.txt" || fail "slow set: status $?"
recorded set
check set <<'PY'
assert [event["name"] for event in slow] == ["in force", "still in force"], slow
PY

said=$(BLKIN_DEBUG=1 BLKIN_SLOW='*>1ms, wirte>2' "$slow" span a b 1 2>&1)
[[ $said == *'BLKIN_SLOW: "wirte>2" is not a rule of slow requests'* ]] || fail "BLKIN_DEBUG says: $said"
exit 0
