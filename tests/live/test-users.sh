#!/usr/bin/env bash
# Programs of other users begin while `blkin live` reads, with its sampler of the host: RUNS times (default 3) each span is
# delivered or counted, none is lost, and no reader dies. SPANS: of each program.
#
# timeout: 100
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
. "$SRC/tests/live/live.sh"
[ "$(id -u)" = 0 ] || skip "only root can be several users"
setpriv --reuid 1001 --regid 1001 --clear-groups test -x "$BUILD/tests/rotate/writer" ||
    skip "other users cannot reach the checkout"
RUNS=${RUNS:-3} SPANS=${SPANS:-15}
export PATIENCE=${PATIENCE:-4}
private_begin
chmod 755 "$TMPDIR" "$WORK"
start_sessiond || exit 1

# program USER: makes spans, and ends
program() {
    (cd / && exec setpriv --reuid "$1" --regid "$1" --clear-groups "$BUILD/tests/rotate/writer" 0 "$SPANS" 2000 "$WORK/made.$1/progress") \
        >>"$WORK/programs.log" 2>&1 </dev/null
}
deaths=0 lost=0 wrong=0
for ((run = 1; run <= RUNS; run++)); do
    rm -rf "$WORK/state" "$WORK/run" "$WORK/taken" "$WORK"/made.*
    for user in 1001 1002 1003; do mkdir "$WORK/made.$user" && chown "$user" "$WORK/made.$user"; done
    choose_live_places
    start_live --host=yes --endpoint="file:$WORK/taken"
    wait_read || exit 1
    wait_for 20 live "the time of the host's samples" status_is '.trace_time != null' true || exit 1
    for user in 1001 1002 1003; do program "$user" || fail "the program of user $user: $(<"$WORK/programs.log")"; done
    stop_part live TERM
    taken=$(cat "$WORK"/taken* | grep -o '"name":"n"' | wc -l)
    missing=$(grep -o 'missing: [0-9]* events' "$WORK/live.log" | tail -n 1 | tr -dc '0-9')
    died=$(grep -c 'its reader' "$WORK/live.log")
    ((deaths += died, lost += 3 * SPANS - taken, wrong += taken + ${missing:-0} < 3 * SPANS))
    [ "$taken" = $((3 * SPANS)) ] || {
        echo "run $run: $taken of $((3 * SPANS)) delivered, ${missing:-?} counted as missing, $died readers died"
        grep 'its reader\|Cannot\|blkin: ' "$WORK/live.log" | head -n 5
    }
done
echo "$RUNS runs: $deaths readers died, $lost spans not delivered, $wrong runs in which they were not all counted"
((deaths == 0 && lost == 0 && wrong == 0))
