#!/bin/bash
# outage.sh live|rotate [SECONDS [RATE]]: the collector is away for so long (600 s) while a program records (10,000
# spans/s). All of them must arrive, once. Prints a line of JSON.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"
mode=$1 away=${2-600} rate=${3-10000}
spans=$((rate * (away + 10)))

number() { # in a file of 8 bytes
    od -An -N8 -td8 "$1" 2>/dev/null | tr -d ' '
}
start_taker() {
    start_server taker "$PYTHON" "$SRC/tests/collector.py" "$port" "$WORK/collected" numbers || exit 1
}
# Sets got (different ones) and twice.
count() {
    read -r got twice < <("$PYTHON" - "$WORK/collected/got" <<'END'
import array, sys
numbers = array.array("q")
with open(sys.argv[1], "rb") as file:
    numbers.frombytes(file.read())
print(len(set(numbers)), len(numbers) - len(set(numbers)))
END
    )
}
has_all() {
    [ "$(stat -c %s "$WORK/collected/got" 2>/dev/null || echo 0)" -ge $((spans * 8)) ]
}
disk_kib() {
    du -sk "$WORK/spool" "$WORK/state" 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'
}

private_begin
choose_live_places
free_port port
export BLKIN_SHM_PATH=$WORK/shm
start_sessiond || exit 1
start_taker
options=(--endpoint="http://127.0.0.1:$port" --events=blkin:span)
if [ "$mode" = live ]; then
    mkdir -m 700 "$WORK/spool"
    start_live "${options[@]}" --spool="$WORK/spool"
    wait_read || exit 1
else
    start_part rotate "$blkin" rotate --runtime-dir="$WORK/run" --state-dir="$WORK/state" \
        --config="$WORK/blkin.conf" "${options[@]}"
    records() {
        lttng list 2>/dev/null | grep -q '\[active\]'
    }
    wait_for 20 rotate "a session that records" records || exit 1
fi
start_part writer "$BUILD/tests/rotate/writer" 0 "$spans" "$rate" "$WORK/made"
has_come() {
    [ "$(number "$WORK/collected/latest")" -gt "$rate" ] 2>/dev/null
}
wait_for 30 writer "the first spans" has_come || exit 1
stop_part taker KILL >/dev/null 2>&1
end=$((SECONDS + away)) most=0
while ((SECONDS < end)); do
    sleep 1
    disk=$(disk_kib)
    ((disk > most)) && most=$disk
done
start_taker
begin=$SECONDS
wait_for $((away + 120)) "$mode" "all spans" has_all || {
    count
    fail "$got of $spans spans have come, $twice twice"
}
took=$((SECONDS - begin))
count
printf '{"mode": "%s", "away_s": %d, "spans": %d, "delivered": %d, "twice": %d, "caught_up_after_s": %d, "disk_kib": %d}\n' \
    "$mode" "$away" "$spans" "$got" "$twice" "$took" "$most"
[ "$got" = "$spans" ] || fail "$((spans - got)) spans were lost"
