#!/bin/bash
# Alarms and packets in snapshots that LTTng has written: what programs say that they have recorded is what is found.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
slow=$BUILD/tests/libblkin/slow
export BLKIN_SLOW_FILE=$WORK/none LTTNG_UST_REGISTER_TIMEOUT=-1

session() {
    timeout 30 "$BUILD/tests/lttng/session" "$@" >"$WORK/answer" || fail "session $*: $(<"$WORK/answer")"
}

# snapshot MODE ARGUMENT...: its answer is in $WORK/said
snapshot() {
    timeout 60 "$BUILD/tests/record/snapshot" "$@" >"$WORK/said" || fail "snapshot $*: $(<"$WORK/said")"
}

# poll: one more snapshot of the alarms, in $WORK/polls
polls=0
mkdir "$WORK/polls"
poll() {
    polls=$((polls + 1))
    session snapshot alarm "$WORK/polls/$(printf %04d $polls)"
}

# read_polls: reads them all, one after the other, then removes them but the last
read_polls() {
    snapshot alarms "$WORK"/polls/*
    find "$WORK/polls" -mindepth 1 -maxdepth 1 ! -name "$(printf %04d $polls)" -exec rm -r {} +
}

# ids_said FILE, ids_found: "TRACE-ID SPAN-ID" as programs print them; as alarms have them
ids_said() {
    "$PYTHON" -c 'import sys
for line in sys.stdin:
    high, low, span = (int(word, 0) for word in line.split()[:3])
    print(f"{high:016x}{low:016x} {span:016x}")' <"$1" | sort
}
ids_found() {
    grep -v ': lost ' "$WORK/said" | cut -d' ' -f1,2 | sort
}
lost() {
    sed -n 's/.*: lost //p' "$WORK/said" | awk '{sum += $1} END {print sum + 0}'
}

start_sessiond || exit 1
EVENTS=blkin:slow SUBBUF_BYTES=65536 SUBBUF_COUNT=2 session ring alarm
SUBBUF_BYTES=1048576 SUBBUF_COUNT=8 session ring ring

# Before anything: nothing. Then one alarm, with all that it says.
poll
BLKIN_SLOW='osd*:write>20ms' "$slow" span osd.3 write 30 tags=1 >"$WORK/one" || fail "slow span: $?"
poll
poll
read_polls
[ "$(ids_found)" = "$(ids_said "$WORK/one")" ] || fail "expected once $(ids_said "$WORK/one"): $(<"$WORK/said")"
grep -q ' 3[0-9]\{7\} [0-9]*:1 0 "osd\*:write>20ms" "write" "osd.3"$' "$WORK/said" || fail "$(<"$WORK/said")"

# A program alarms all the time while it is polled, and another beside it; one is killed.
touch "$WORK/goes-on"
BLKIN_SLOW='*>20ms, max=100000/s' "$slow" steady "$WORK/goes-on" >"$WORK/steady" &
steady=$!
BLKIN_SLOW='*>20ms, max=100000/s' "$slow" steady "$WORK/goes-on" >"$WORK/other" &
other=$!
for _ in {1..15}; do
    poll
    sleep 0.05
done
kill -s KILL $other
wait $other 2>/dev/null
rm "$WORK/goes-on"
wait $steady || fail "slow steady: $?"
poll
poll
read_polls
ids_found >"$WORK/found"
ids_said "$WORK/steady" >"$WORK/expected"
[ "$(wc -l <"$WORK/expected")" -ge 100 ] || fail "it made $(wc -l <"$WORK/expected") alarms"
[ -z "$(comm -13 "$WORK/found" "$WORK/expected")" ] || fail "alarms were not found"
[ -z "$(uniq -d "$WORK/found")" ] || fail "alarms were given twice"
of_killed=$(comm -23 "$WORK/found" "$WORK/expected" | wc -l)
((of_killed > 50)) || fail "$of_killed alarms of the program that was killed"
[ "$(lost)" = 0 ] || fail "$(lost) alarms lost"

# More than the buffers hold: what was not found is counted.
BLKIN_SLOW='*>0ns, max=1000000/s' "$BUILD/bench/bench-load" span 20000 >/dev/null || fail "bench-load"
poll
poll
poll
snapshot alarms "$WORK"/polls/*
found=$(grep -c '"pwrite"' "$WORK/said")
dropped=$(awk '/"pwrite"/ {sum += $5} END {print sum + 0}' "$WORK/said")
((found > 100 && found < 20000)) || fail "$found of 20000 alarms found"
[ $((found + $(lost) + dropped)) = 20000 ] || fail "$found found + $(lost) lost + $dropped held back, not 20000"

# ---- packets: those that have a trace, and all that there is of it

touch "$WORK/goes-on"
BLKIN_SLOW='*>20ms' "$slow" steady "$WORK/goes-on" >"$WORK/wanted" &
"$BUILD/bench/bench-load" span 30000 100000 >/dev/null || fail "bench-load"
rm "$WORK/goes-on"
wait $!
session snapshot ring "$WORK/all"
ids=$(awk '{print substr($2, 3)}' "$WORK/wanted")
# shellcheck disable=SC2086 # ids are words
snapshot pick "$WORK/all" "$WORK/kept" $ids
# events_of FOLDER: those of the wanted traces
events_of() {
    local id
    babeltrace2 "$1" 2>/dev/null >"$WORK/events"
    for id in $ids; do printf 'trace_id = 0x%s,\n' "${id^^}"; done >"$WORK/patterns"
    grep -Ff "$WORK/patterns" "$WORK/events"
}
# A packet before it is not there: the difference in time to the event before is another one.
events_of "$WORK/all" | sed 's/(+[?0-9.]*) //' >"$WORK/all.events"
events_of "$WORK/kept" | sed 's/(+[?0-9.]*) //' >"$WORK/kept.events"
[ "$(wc -l <"$WORK/all.events")" = "$(wc -l <"$WORK/wanted")" ] ||
    fail "$(wc -l <"$WORK/all.events") of $(wc -l <"$WORK/wanted") spans are in the snapshot"
cmp "$WORK/all.events" "$WORK/kept.events" || fail "they are not all in what was picked"
snapshot pick "$WORK/all" "$WORK/first" "${ids%%$'\n'*}"
grep -q '^packets [0-9]* kept 1 .* damaged 0 ' "$WORK/said" || fail "of one trace: $(<"$WORK/said")"
snapshot pick "$WORK/all" "$WORK/nothing" 123456789abcdef
grep -q '^packets [0-9]* kept 0 .* damaged 0 ' "$WORK/said" || fail "of none: $(<"$WORK/said")"

# Times: the clock that babeltrace2 has, and the packets of some ms in the middle.
snapshot clock "$WORK/all"
offset=$(<"$WORK/said")
first=$(babeltrace2 --clock-seconds "$WORK/all" 2>/dev/null | sed -n '1s/^\[\([0-9]*\)\.\([0-9]*\)\].*/\1\2/p')
raw=$(babeltrace2 --clock-cycles "$WORK/all" 2>/dev/null | sed -n '1s/^\[0*\([0-9]*\)\].*/\1/p')
[ $((first - raw)) = "$offset" ] || fail "the clock's offset is $offset, but $first - $raw"
middle=$(babeltrace2 --clock-cycles "$WORK/all" 2>/dev/null | sed -n '15000s/^\[0*\([0-9]*\)\].*/\1/p')
snapshot between "$WORK/all" "$WORK/some" $((middle - 1000000)) $((middle + 1000000))
babeltrace2 --clock-cycles "$WORK/all" 2>/dev/null | grep -F "[$(printf %020d "$middle")]" | sed 's/(+[?0-9.]*) //' >"$WORK/events"
babeltrace2 --clock-cycles "$WORK/some" 2>/dev/null | sed 's/(+[?0-9.]*) //' | grep -cFf "$WORK/events" >/dev/null ||
    fail "the event in the middle is not in what was picked: $(<"$WORK/said")"

# The streams are well; of a snapshot that is said to be of later, they all stand still.
now=$("$PYTHON" -c 'import time; print(time.monotonic_ns())')
session snapshot ring "$WORK/later"
snapshot look "$WORK/later" "$now" 1000000
grep -q "^streams $(nproc) stalled 0 rate [1-9].* gaps 0 damaged 0$" "$WORK/said" || fail "look: $(<"$WORK/said")"
snapshot look "$WORK/later" $((now + 2000000000)) 1000000
grep -q "^streams \([0-9]*\) stalled \1 " "$WORK/said" || fail "look at a later time: $(<"$WORK/said")"
