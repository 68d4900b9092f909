#!/bin/bash
# A program dies in the middle of a record: the ring has a gap, and stands still when it comes round to it. That is
# seen, nothing else is taken for it, and the session made anew records again. Programs that are killed at any
# moment, beside, stop nothing unnoticed. KILLS=200 is the long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 3000
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
kills=${KILLS:-3}
export SUBBUF_BYTES=65536 SUBBUF_COUNT=16 LTTNG_UST_REGISTER_TIMEOUT=-1
start_sessiond || exit 1

session() {
    timeout 30 "$BUILD/tests/lttng/session" "$@" >"$WORK/answer" || fail "session $*: $(<"$WORK/answer")"
}

# look: a snapshot, and how its streams are: $stalled and $gaps. A snapshot that is made while a thread writes lacks
# its packet: who is stalled has had none for half a second.
look() {
    local now
    now=$("$PYTHON" -c 'import time; print(time.monotonic_ns())')
    rm -rf "$WORK/snapshot"
    session snapshot ring "$WORK/snapshot"
    timeout 30 "$BUILD/tests/record/snapshot" look "$WORK/snapshot" "$now" 500000000 >"$WORK/look" ||
        fail "look: $(<"$WORK/look")"
    stalled=$(sed 's/.* stalled \([0-9]*\) .*/\1/' "$WORK/look") gaps=$(sed 's/.* gaps \([0-9]*\) .*/\1/' "$WORK/look")
}
is_stalled() {
    look
    ((gaps > 0)) && seen_gaps=1
    ((stalled > 0))
}
is_well() {
    look
    ((stalled == 0))
}

# has_newest: the newest span that the steady program had made is there.
has_newest() {
    local made
    made=$(od -An -N8 -td8 "$WORK/made" 2>/dev/null | tr -d ' ')
    look
    babeltrace2 "$WORK/snapshot" 2>/dev/null >"$WORK/events"
    [ "$("$PYTHON" "$WORK/newest.py" "$SRC" <"$WORK/events")" -ge "${made:-1}" ]
}
cat >"$WORK/newest.py" <<'E2'
import re, sys
# tag "i" of type int64: "I KK BBBBBBBBBBB key", digits of base 64, the least one first
newest = -1
for line in sys.stdin:
    found = re.search(r'name = "n", packed = ".*I10(.{11})i', line)
    if found:
        newest = max(newest, sum((ord(d) - 48) << 6 * n for n, d in enumerate(found[1])))
print(newest)
E2

session ring ring
start_part writer taskset -c 0 "$BUILD/tests/rotate/writer" 0 1000000000 2000 "$WORK/made"
wait_for 20 writer "its spans" has_newest || exit 1
look
((stalled == 0 && gaps == 0)) || fail "before all: $(<"$WORK/look")"

for ((n = 1; n <= kills; n++)); do
    seen_gaps=0
    if ((n % 2)); then
        taskset -c 0 "$BUILD/tests/libblkin/killed" 10 mid-record 2>/dev/null
        [ $? = 139 ] || fail "it does not die in the middle of a record"
    else # many deaths at any moment, of which some are in the middle of a record; at last one that is so for sure
        for _ in {1..20}; do
            taskset -c 0 "$BUILD/bench/bench-load" span 100000000 >/dev/null 2>&1 &
            sleep "0.0$((RANDOM % 90 + 10))"
            kill -s KILL $!
            wait $! 2>/dev/null
        done
        taskset -c 0 "$BUILD/tests/libblkin/killed" 10 mid-record 2>/dev/null
    fi
    wait_for 60 writer "a stalled stream" is_stalled || fail "$(<"$WORK/look")"
    ((n % 2 == 0 || seen_gaps)) || fail "the gap was not seen before"
    for _ in 1 2; do # for ever
        is_stalled || fail "it is not stalled any more: $(<"$WORK/look")"
    done
    has_newest && fail "the ring is said to be stalled, and records"
    session destroy ring now
    session ring ring
    wait_for 20 writer "spans in the session that was made anew" has_newest || exit 1
    is_well || fail "made anew, and stalled: $(<"$WORK/look")"
done
echo "$kills times"
