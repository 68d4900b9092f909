#!/usr/bin/env bash
# Recording a span does not allocate, call the kernel, change errno, or write data that threads share. Without a session
# daemon, a program that links libblkin starts without LTTng.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
cost=$programs/cost

# writes HOW: runs "cost writes" until it succeeds. On a busy machine the calls may last until periodic work is due,
# which writes.
writes() {
    for _ in {1..20}; do
        "$cost" writes && return
    done
    fail "writes $1: failed 20 times (a signal: it has written to memory that threads share)"
}

# Without a session daemon, a fork does not call getpeername() for descriptors, and a child makes few system calls.
if type -P strace >/dev/null && strace -o "$WORK/strace.log" true 2>/dev/null; then
    strace -ff -o "$WORK/forks" "$cost" forks || fail "cost forks: status $?"
    grep -l '^getpeername' "$WORK"/forks.* && fail "a fork without a session daemon calls getpeername()"
    # the smallest logs are the children's
    wc -l "$WORK"/forks.* | sort -n | head -3 | awk '{ print $1 " system calls of a child"; many += $1 > 100 }
        END { exit many > 0 }' || fail "a child makes too many system calls"
else
    echo "not tested: system calls of forks: there is no strace that may trace"
fi

said=$("$cost" start) || fail "cost start: status $?"
[ "$said" = "1 threads" ] || fail "a program that only links libblkin has: $said"
start_sessiond || exit 1

# Without a reader: new events replace the oldest, and no reader is woken up.
{
    lttng create cost --snapshot --output="$WORK/cost" &&
        lttng enable-channel -s cost -u --subbuf-size=1M --num-subbuf=4 flight &&
        lttng enable-event -s cost -u -c flight blkin:span &&
        lttng enable-event -s cost -u -c flight blkin:process &&
        lttng enable-event -s cost -u -c flight blkin:slow &&
        lttng start cost
} >"$WORK/lttng.log" 2>&1 || {
    show_log lttng
    fail "cannot start the session"
}
"$cost" allocate || fail "allocations: status $?"
"$cost" handler || fail "the first span of a thread, in a signal handler: status $?"
writes "without rules"

# Rules that raise no alarm: the same. Alarms write to shared memory, but do not allocate.
export BLKIN_SLOW='osd*:write>20ms, *>100s, error, max=50/s'
"$cost" allocate || fail "allocations with rules: status $?"
writes "with rules"
BLKIN_SLOW='*>0ns, max=1000000/s' "$cost" allocate || fail "allocations with alarms: status $?"
unset BLKIN_SLOW

# The meters of usage: the same, once a thread has opened its meters.
export BLKIN_SAMPLING=always,usage=3
for mode in allocate handler; do
    "$cost" $mode || fail "$mode with usage: status $?"
done
writes "with usage"
unset BLKIN_SAMPLING

# Counts the system calls of all threads. Both of the compared runs have the calls of LTTng's start.
calls() {
    strace -f -c -o "$WORK/strace.log" "$cost" spans "$1" || fail "strace cost spans $1: status $?"
    awk '$1 + 0 > 0 && $NF != "total" || $1 == "0.00" { calls += $4 } END { print calls }' "$WORK/strace.log"
}
if type -P strace >/dev/null && strace -o "$WORK/strace.log" true 2>/dev/null; then
    few=$(calls 10)
    many=$(calls 100000)
    echo "system calls: $few for 10 pairs of spans, $many for 100000"
    # LTTng makes four calls for each full sub-buffer, and the periodic work makes one stat each second
    ((many > few / 2 && many < few + 500)) || {
        cat "$WORK/strace.log"
        fail "$few system calls for 10 pairs of spans, $many for 100000"
    }
else
    echo "not tested: system calls: there is no strace that may trace"
fi

# Full sub-buffers without LTTng's consumer daemon: writing to its pipe fails.
session broken blkin:span zipkin:timestamp
# shellcheck disable=SC2154 # of private.sh
consumer=$(pgrep -P "${private_pid[sessiond]}" lttng-consumerd) || fail "no consumer daemon"
mkfifo "$WORK/go"
"$cost" errors <"$WORK/go" >"$WORK/errno.log" &
pid=$!
exec 3>"$WORK/go"
wait_for 20 - "the program's first span" grep -qs ready "$WORK/errno.log" || exit 1
kill -KILL "$consumer"
wait_for 10 - "the consumer daemon's end" is_gone "$consumer" || exit 1
echo >&3
wait "$pid" || fail "errno after a span: status $?"
