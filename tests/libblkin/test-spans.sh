#!/usr/bin/env bash
# The span API of C and C++, from the calls to the finished spans: whole spans, streamed spans, and two sessions with
# different events.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"

make_spans() { "$programs/spans" || fail "spans ended with status $?"; }

# check SESSION MODE DUPLICATES: checks the spans of the session, and the account
check() {
    recorded "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_spans.py" "$2" "$WORK/$1.json" &&
        grep -q " + $3 duplicate + 0 late + [1-9][0-9]* of processes; missing: 0 events" "$WORK/$1-sink.log" || {
        show_log "$1-sink"
        fail "$1: the spans or the account differ"
    }
}

start_sessiond || exit 1
session whole blkin:span blkin:process
make_spans
check whole whole 0
# "blkin:*" records both forms: the sink delivers each span once, as the streamed span
session streamed 'blkin:*'
make_spans
check streamed streamed 19

# LTTng's log levels select the severities of streamed annotations, not the policy
session severities 'blkin:*'
BLKIN_SAMPLING=always,severity=notice make_spans
check severities streamed 19

# a session that streams does not affect the permanent session
session always blkin:span blkin:process
session debugging blkin:begin 'blkin:annotation_*' blkin:tag blkin:end blkin:process
make_spans
check always whole 0
check debugging streamed 0

# LTTng selects severities by log level
lttng create some --output="$WORK/some" >/dev/null &&
    lttng enable-event -s some -u 'blkin:*' --loglevel=INFO --filter 'trace_id != 0' >/dev/null &&
    lttng start some >/dev/null || fail "cannot start the session some"
make_spans
recorded some
grep -q 'annotation_info.*"first"' "$WORK/some.events" && ! grep -q annotation_debug "$WORK/some.events" || {
    cat "$WORK/some.events"
    fail "--loglevel=INFO: expected annotation_info and no annotation_debug"
}
grep -q '"value":"first"' "$WORK/some.json" && ! grep -q '"value":"second"' "$WORK/some.json" ||
    fail "--loglevel=INFO: expected the annotation first, and not second, which is of BLKIN_DEBUG"

# alarms of a span and of a step; tests/libblkin-ring has all other alarms
session slow blkin:slow blkin:span
BLKIN_SLOW='ask>0ns, times>2s' make_spans
recorded slow
"$PYTHON" - "$SRC/tests/libblkin" "$WORK/slow" <<'PY' || fail "slow: the alarms are wrong"
import json, sys
sys.path.insert(0, sys.argv[1])
import packed
slow = [event for event in packed.events(sys.argv[2] + ".events") if event["event"] == "blkin:slow"]
assert [event["why"] for event in slow] == ["times>2s", "ask>0ns"], slow
spans = {span.get("name"): span for span in json.load(open(sys.argv[2] + ".json"))}
for number, event in enumerate(slow, 1):
    span, known = spans[event["name"]], [0x31776F6C736B6C62, number, 0, event["vpid"], ("osd", "own")[number - 1]]
    assert [event[key] for key in ("mark", "sequence", "dropped", "pid", "service")] == known, event
    assert (span["traceId"], span["id"]) == ("%016x%016x" % (event["trace_id_high"], event["trace_id"]), "%016x" % event["span_id"]), event
    assert abs(span["duration"] * 1000 - event["duration"]) < 2000, (event, span)
PY

# each call of the C++ API has the effect of its name: headers.cpp
"${CXX:-g++}" -std=c++11 -I"$BUILD/include" -I"$BUILD/include/blkin" -o "$WORK/cpp-program" "$SRC/tests/libblkin/headers.cpp" \
    -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib" || fail "headers.cpp does not compile"
session cpp blkin:span blkin:process
"$WORK/cpp-program" || fail "headers.cpp: status $?"
recorded cpp
"$PYTHON" - "$WORK/cpp.json" >"$WORK/cpp.log" <<'PY' || { show_log cpp && fail "the C++ API: not all of these hold"; }
import json, sys
spans = {span["name"]: span for span in json.load(open(sys.argv[1]))}

def tags(name):
    return {key: value for key, value in spans[name]["tags"].items() if not key.startswith(("lttng.", "otlp.link."))}

made, at = spans["dec"], {"serviceName": "mon", "ipv4": "10.0.0.1", "port": 6789}
far, largest = [value for key, value in made["tags"].items() if key.startswith("otlp.link.")], str(2**64 - 1)
good = [
    tags("child") == {
        "literal": "text", "string": "text", "temporary": "textx", "array": "array", "char *": "array", "bool": "true",
        "char": "99", "signed char": "-1", "unsigned char": "255", "short": "-1", "unsigned short": "65535", "int": "-1",
        "unsigned": "4294967295", "long": "-1", "unsigned long": largest, "long long": "-1", "unsigned long long": largest,
        "int64_t": str(-2**63), "uint64_t": largest, "size_t": "2048", "ptrdiff_t": "-1", "enum": "3", "float": "0.5",
        "double": "0.25", "long double": "0.125", "null": ""},
    tags("dec") == {"with length": "te", "blkin.keep": "odd", "error": "EI", "error#2": "EIO", "error#3": "EIO",
                    "macro": "text"},
    [note["value"] for note in made["annotations"]] == ["text"] * 2 + ["text [warning]"] * 3 + ["te", "1 of text", "te [warning]"],
    made["localEndpoint"] == made["remoteEndpoint"] == at,
    [link.split("|")[1] for link in far] == [spans["child"]["id"]] * 2,
    tags("client") == {"of": "the step", "error": "EIO"},
    [spans[name].get("kind") for name in ("dec", "child", "far", "heap", "no parent", "client", "stringx")] ==
    ["SERVER", None, "CLIENT", "PRODUCER", "CONSUMER", "CLIENT", "PRODUCER"],
    [spans[name]["parentId"] for name in ("late", "small", "below")] == [made["id"], made["id"], spans["client"]["id"]],
    "dropped" not in spans]
print(good, spans)
sys.exit(not all(good))
PY

# LTTng selects spans by filters on each field
declare -A names=(
    ['duration > 2499999999 && duration < 2500000001']="times" # others may be longer, on a busy machine
    ['flags & 4']="root stepped" # spans that failed, or have a step that failed
    ['(flags >> 8) == 3']="late too much"
    ['(flags & 1) != 0 && (flags >> 8) == 2']="debug"
    ['name == "re*d"']=""
    ['name == "de*d"']="decoded"
    ['service == "journal"']="scope"
    ['trace_id == 2 && parent_id == 3']="debug"
)
# between two sessions without a filter
session before blkin:span
number=0
for filter in "${!names[@]}"; do
    number=$((number + 1))
    lttng create filter-$number --output="$WORK/filter-$number" >/dev/null &&
        lttng enable-event -s filter-$number -u blkin:span --filter "$filter" >/dev/null &&
        lttng start filter-$number >/dev/null || fail "cannot start the session of the filter $filter"
done
session after blkin:span
make_spans
number=0
for filter in "${!names[@]}"; do
    number=$((number + 1))
    lttng destroy filter-$number >/dev/null
    got=$(babeltrace2 "$WORK/filter-$number" | sed -n 's/.* name = "\([^"]*\)".*/\1/p' | sort | xargs)
    [ "$got" = "${names[$filter]}" ] || fail "--filter '$filter': $got, expected ${names[$filter]}"
done
for name in before after; do
    recorded $name
    "$PYTHON" "$SRC/tests/libblkin/check_spans.py" whole "$WORK/$name.json" || fail "$name, beside filters: the spans differ"
done
