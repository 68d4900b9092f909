#!/bin/bash
# clock-steps.sh live|rotate [COUNT]: THIS SETS THE MACHINE'S CLOCK, an hour ahead and back, COUNT times (20), while a
# program records. All of its spans must arrive, once. Prints a line of JSON. For a machine of your own only: it needs
# root and MAY_SET_CLOCK=yes.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
[ "${MAY_SET_CLOCK-}" = yes ] || {
    echo "clock-steps.sh: it sets this machine's clock: say MAY_SET_CLOCK=yes if it may" >&2
    exit 77
}
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"
mode=$1 count=${2-20} rate=2000
spans=$((rate * (count * 2 + 5)))

# step SECONDS: from what it is.
step() {
    "$PYTHON" -c 'import sys, time
time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + float(sys.argv[1]))' "$1"
}
has_all() {
    [ "$(stat -c %s "$WORK/collected/got" 2>/dev/null || echo 0)" -ge $((spans * 8)) ]
}

private_begin
choose_live_places
free_port port
export BLKIN_SHM_PATH=$WORK/shm
start_sessiond || exit 1
start_server taker "$PYTHON" "$SRC/tests/collector.py" "$port" "$WORK/collected" numbers || exit 1
[ "$mode" = live ] || LIVE_OPTIONS=("${LIVE_OPTIONS[@]:0:3}") # the others are live's own
start_part "$mode" "$blkin" "$mode" --endpoint="http://127.0.0.1:$port" --events=blkin:span,blkin:process \
    "${LIVE_OPTIONS[@]}"
if [ "$mode" = live ]; then
    wait_for 20 live "a reader of the session" is_read || exit 1
else
    records() {
        lttng list 2>/dev/null | grep -q '\[active\]'
    }
    wait_for 20 rotate "a session that records" records || exit 1
fi
start_part writer "$BUILD/tests/rotate/writer" 0 "$spans" "$rate" "$WORK/made"
for ((i = 0; i < count; i++)); do
    sleep 1
    step 3600
    sleep 0.$((RANDOM % 9))
    step -3600
done
wait_for 60 "$mode" "all spans" has_all
"$PYTHON" - "$WORK/collected/got" "$mode" "$count" "$spans" <<'END'
import array, json, sys
numbers = array.array("q")
with open(sys.argv[1], "rb") as file:
    numbers.frombytes(file.read())
got = len(set(numbers))
print(json.dumps({"mode": sys.argv[2], "steps": 2 * int(sys.argv[3]), "spans": int(sys.argv[4]), "delivered": got,
                  "twice": len(numbers) - got}))
sys.exit(got != int(sys.argv[4]))
END
