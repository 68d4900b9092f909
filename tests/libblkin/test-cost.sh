#!/usr/bin/env bash
# What recording does not do: allocate, call the kernel, write shared memory; and a program that only
# links libblkin starts without LTTng.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin
cost=$programs/cost

start_sessiond || exit 1
said=$("$cost" start) || fail "cost start: status $?"
[ "$said" = "1 threads" ] || fail "a program that only links libblkin has: $said"

# Not read while it is written: what does not fit replaces the oldest, and nobody is woken up.
{
    lttng create cost --snapshot --output="$WORK/cost" &&
        lttng enable-channel -s cost -u --subbuf-size=1M --num-subbuf=4 flight &&
        lttng enable-event -s cost -u -c flight blkin:span &&
        lttng enable-event -s cost -u -c flight blkin:process &&
        lttng start cost
} >"$WORK/lttng.log" 2>&1 || {
    show_log lttng
    fail "cannot start the session"
}
"$cost" allocations || fail "allocations: status $?"
"$cost" writes || fail "writes (139: it has written to what threads share): status $?"

# Of all threads: LTTng's have their part in the start of both.
calls() {
    strace -f -c -o "$WORK/strace.log" "$cost" spans "$1" || fail "strace cost spans $1: status $?"
    awk '$1 + 0 > 0 && $NF != "total" || $1 == "0.00" { calls += $4 } END { print calls }' "$WORK/strace.log"
}
if type -P strace >/dev/null && strace -o "$WORK/strace.log" true 2>/dev/null; then
    few=$(calls 10)
    many=$(calls 100000)
    echo "system calls: $few for 10 pairs of spans, $many for 100000"
    # LTTng has four for each full sub-buffer, the chores of once a second have a stat
    ((many > few / 2 && many < few + 500)) || {
        cat "$WORK/strace.log"
        fail "$few system calls for 10 pairs of spans, $many for 100000"
    }
else
    echo "no strace: system calls were not counted"
fi
