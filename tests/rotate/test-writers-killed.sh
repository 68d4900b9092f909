#!/bin/bash
# Programs die in the middle of a record, again and again, beside one that works: of that one nothing
# is lost, rotation goes on, and each of the dead loses no more than the sub-buffer it has not filled.
# KILLS=200 is the long run.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 1800
set -u
. "$SRC/tests/rotate/rotating.sh"
rotating_begin
export BLKIN_SUBBUF_BYTES=32K BLKIN_SUBBUF_COUNT=64
kills=${KILLS:-8} ended=2000
start_sessiond && start_taker || exit 1
start_rotate
wait_recording || exit 1
start_part writer "$BUILD/tests/rotate/writer" 0 1000000000 2000 "$WORK/progress"
export LTTNG_UST_REGISTER_TIMEOUT=-1
for ((n = 0, all = 0; n < kills; all++)); do
    "$BUILD/tests/libblkin/killed" $ended mid-record 2>/dev/null
    died=$?
    case $died in
    139) n=$((n + 1)) ;;
    137) ((all - n < 3 + kills / 4)) || fail "it does not die in the middle of a record" ;; # no room
    *) fail "it died of something else: status $died" ;;
    esac
done
stop_part writer TERM 5 2>/dev/null
made=$(made)
# Many deaths a second make LTTng's consumer daemon hang for a while: a new session takes over, and
# what finds no room in the buffers meanwhile LTTng counts.
has_all() {
    [ -s "$WORK/taken" ] &&
        [ $(($(taken distinct) + $(status counters lttng_events_discarded))) -ge "$made" ]
}
wait_for 60 rotate "all $made spans of the program that worked" has_all || {
    echo "taken: $(taken distinct); $(status chunks); $(status counters)"
    exit 1
}
discarded=$(status counters lttng_events_discarded)
stuck=$(status totals rotations_stuck)
((kills > 20 || discarded + stuck == 0)) || fail "$discarded events discarded, $stuck rotations stuck"
stop_part rotate TERM || fail "exit status $? after SIGTERM"
timeout 60 "$BUILD/bin/blkin" rotate --end || fail "--end: $?"
of_the_dead=$("$PYTHON" -c 'import json, sys
print(sum(s[1] == "ended" for line in open(sys.argv[1]) for s in json.loads(line)))' "$WORK/taken")
# a span is more than 96 bytes here
least=$((kills * (ended - 32768 / 96)))
echo "$kills programs died in mid-record, $((all - kills)) otherwise: $of_the_dead of their $((all * ended)) ended spans came;" \
    "of the other program $(taken distinct) of $made; LTTng has discarded $discarded, rotations stuck: $stuck"
[ $(($(taken distinct) + discarded)) -ge "$made" ] && [ "$of_the_dead" -ge "$least" ] || fail "expected $least of the dead"
