#!/bin/bash
# `blkin live --from=rings`: spans of programs that began before it and after it, without any LTTng; what was
# overwritten is counted; another size of rings while programs write.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"

private_begin
export BLKIN_RINGS=$WORK/rings
LIVE_OPTIONS=(--runtime-dir="$WORK/run" --state-dir="$WORK/state" --config="$WORK/blkin.conf" --from=rings
    --ring-socket="$BLKIN_RINGS")
conf() {
    printf '%s\n' '[live]' "$@" >"$WORK/blkin.conf"
}
runs() {
    [ "$(status .state)" = running ]
}
start_rings() {
    start_live --endpoint="file:$WORK/$1.json"
    wait_for 20 live "the service" runs || exit 1
}
# write NAME ARGUMENT...: of the writer
write() {
    start_part "$1" "$BUILD/tests/live/writer" "${@:2}"
}
# has_run NAME FROM TO: its file has each number up to TO just once, from the moment on at which the agent had answered.
has_run() {
    "$PYTHON" - "$WORK/$1.json" "$2" "$3" <<'END'
import json, sys
numbers = sorted(int(s["tags"]["i"]) for s in json.load(open(sys.argv[1])) if "i" in s["tags"])
numbers = [i for i in numbers if int(sys.argv[2]) <= i < int(sys.argv[3])]
print(f"from {numbers[0]}: {len(numbers)} numbers")
sys.exit(numbers != list(range(numbers[0], int(sys.argv[3]))))
END
}

# all of them, once
conf ring-bytes=4M
start_rings all
write first 0 50000 25000 "$WORK/first.made"
write second 50000 50000 25000 "$WORK/second.made"
wait_part first 20 && wait_part second 20 || fail "a writer"
status_is .rings.overwritten_bytes 0 || fail "something was overwritten"
status_is .rings.reads "all users" || fail "it does not read the rings of all users"
status_is .counters.events_missing 0 || fail "something is missing"
timeout 60 "$blkin" doctor --section=live --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" --from=rings \
    --ring-socket="$BLKIN_RINGS" >"$WORK/doctor.log"
for id in rings.users rings.socket; do
    grep -q "^ok *$id " "$WORK/doctor.log" || fail "doctor says nothing of $id"
done
! grep -E '^(ok|note|BAD|-) +(version\.(lttng|ust)|sessiond\.|session\.|relayd\.|disk\.buffers)' "$WORK/doctor.log" ||
    fail "doctor asks for LTTng, which is not needed"
# spans that end in the past, of a thread that moves between CPUs
before=$(counter spans_accepted)
timeout 20 "$BUILD/tests/libblkin/wanders" 3000 || fail "a thread that wanders"
wait_for 20 live "its spans" counter_is spans_accepted $((before + 3000)) || exit 1
status_is .counters.events_missing 0 || fail "spans that came in another order are missing"
[ "$(status .rings.records)" = "$(status .counters.events)" ] || fail "records and events differ"

# another size, while a program writes
accepted=$(counter spans_accepted)
write third 1000000 1000000000 1000 "$WORK/third.made"
wait_for 20 live "its spans" counter_is spans_accepted $((accepted + 100)) || exit 1
conf ring-bytes=2M
timeout 10 "$blkin" reload --runtime-dir="$WORK/run" --config="$WORK/blkin.conf" live >"$WORK/reload.log" || fail "reload"
has_new() {
    [ "$(status '[.rings.memories[] | .state + (.ring_bytes | tostring)] | join(" ")')" = on2097152 ]
}
wait_for 30 live "the old rings' end" has_new || exit 1
accepted=$(counter spans_accepted)
wait_for 10 live "spans in the new rings" counter_is spans_accepted $((accepted + 1000)) || exit 1
status_is .counters.events_missing 0 || fail "something was lost on the way from one to the other"

# ended in order, and started again: the program comes back
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum
[ ! -e "$BLKIN_RINGS" ] || fail "its socket is there still"
has_run all 0 50000 || fail "spans of the first writer"
has_run all 50000 100000 || fail "spans of the second writer"
start_rings again
wait_for 20 live "its spans" counter_is spans_accepted 1000 || exit 1
stop_part third KILL 5 2>/dev/null
stop_part live TERM 30 || fail "exit status $? after SIGTERM"

# killed: the rings are kept, and the program goes on in them
start_rings killed
write steady 0 1000000000 1000 "$WORK/steady.made"
wait_for 20 live "its spans" counter_is spans_accepted 100 || exit 1
status_is .rings.outlive_a_kill true || fail "nobody keeps the rings"
kill -s KILL "${private_pid[live]}"
wait_part live 5 2>/dev/null
start_rings after
status_is .rings.taken_over 1 || fail "the rings are gone"
wait_for 5 live "spans at once" counter_is spans_accepted 100 || exit 1
status_is '.rings.memories | length' 1 || fail "the program has got another memory"
stop_part steady KILL 5 2>/dev/null
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
wait_for 10 - "the end of what keeps the rings" test ! -e "$WORK/run/rings.vault" || exit 1

# another one beside it has the memory of its own user, and holds none
start_rings holds
write shared 0 1000000000 1000 "$WORK/shared.made"
wait_for 20 live "its spans" counter_is spans_accepted 100 || exit 1
start_part beside "$blkin" live "${LIVE_OPTIONS[@]}" --runtime-dir="$WORK/run-2" --endpoint="file:$WORK/beside.json"
beside() {
    timeout 10 "$blkin" status --json --runtime-dir="$WORK/run-2" --config="$WORK/blkin.conf" live 2>/dev/null | jq -r "$1"
}
reads_beside() {
    [ "$(beside .counters.spans_accepted)" -ge "$1" ] 2>/dev/null
}
wait_for 20 beside "spans beside it" reads_beside 100 || exit 1
[ "$(beside .rings.holds_them)" = false ] || fail "both hold the rings"
[ "$(beside .rings.reads)" = "own user" ] || fail "it does not say whose rings it reads"
grep -q 'BK2076 .* only programs of user' "$WORK/beside.log" || fail "its log does not say whose rings it reads"
accepted=$(beside .counters.spans_accepted)
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
start_rings holds-again
wait_for 20 beside "spans of the next one's rings" reads_beside $((accepted + 2000)) || exit 1
[ "$(beside .rings.overwritten_bytes)" = 0 ] || fail "something was overwritten beside it"
stop_part beside TERM 30 || fail "exit status $? after SIGTERM"
stop_part shared KILL 5 2>/dev/null
stop_part live TERM 30 || fail "exit status $? after SIGTERM"

# too small for what is written while the service is stopped
conf ring-bytes=64K
start_rings few
write burst 0 100000 20000 "$WORK/burst.made"
has_made() {
    [ "$(od -An -tu8 -N8 "$WORK/burst.made")" -ge "$1" ]
}
wait_for 20 live "its spans" counter_is spans_accepted 100 || exit 1
kill -s STOP "${private_pid[live]}"
wait_for 20 - "more spans than a ring holds" has_made $(($(od -An -tu8 -N8 "$WORK/burst.made") + 10000)) || exit 1
kill -s CONT "${private_pid[live]}"
wait_part burst 30 || fail "the writer"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
must_say "events were overwritten before they were read"
missing=$(sed -n 's/.*missing: \([0-9]*\) events.*/\1/p' "$WORK/live.log")
"$PYTHON" - "$WORK/few.json" "$missing" <<'END' || fail "the gaps are not those that are counted"
import json, sys
numbers = [int(span["tags"]["i"]) for span in json.load(open(sys.argv[1]))]
gaps = max(numbers) - min(numbers) + 1 - len(numbers)
print(f"{len(numbers)} spans, {gaps} in gaps, {sys.argv[2]} counted as missing")
# the process's own events, one a second, are in the same numbers
sys.exit(not 0 < gaps <= int(sys.argv[2]) <= gaps + 20)
END
exit 0
