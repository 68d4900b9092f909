#!/usr/bin/env bash
# The span API, from the calls to the finished spans: in one event per span, streamed, and in two sessions
# of which each has what it asks for.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin

make_spans() {
    "$programs/spans" || fail "spans ended with status $?"
}

# check SESSION MODE DUPLICATES: its spans, and the account
check() {
    recorded "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_spans.py" "$2" "$WORK/$1.json" &&
        grep -q " + $3 duplicate + 0 late + 1 of processes; missing: 0 events" "$WORK/$1-sink.log" || {
        show_log "$1-sink"
        fail "$1: the spans or the account differ"
    }
}

start_sessiond || exit 1
session whole blkin:span blkin:process
make_spans
check whole whole 0
# "blkin:*" records both forms: each span comes out once, as it was streamed
session streamed 'blkin:*'
make_spans
check streamed streamed 20

# a session that streams takes nothing from the one that is always on
session always blkin:span blkin:process
session debugging blkin:begin 'blkin:annotation_*' blkin:tag blkin:end blkin:process
make_spans
check always whole 0
check debugging streamed 0

# what LTTng selects: severities by log level,
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

# and spans by filter, each by those of its fields that people ask for
declare -A names=(
    ['duration > 2000000000']="times"
    ['flags & 4']="root stepped" # what failed, or a step of it
    ['(flags >> 8) == 3']="late too much"
    ['(flags & 1) != 0 && (flags >> 8) == 2']="debug"
    ['name == "re*d"']=""
    ['name == "de*d"']="decoded"
    ['service == "journal"']="scope"
    ['trace_id == 2 && parent_id == 3']="debug"
)
# between two sessions that have no filter
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
