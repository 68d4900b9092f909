#!/bin/bash
# The disk with what is kept is full while the collector is away: as many of the oldest folders go as a fetch needs room
# for, no more. Folders that are there are looked at and delivered, each span once, though nothing can be written.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
[ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" = 0 ] || skip "no small file system: needs root and namespaces"
INTERVAL_MS=100 recording_begin
mkdir -m 700 "$WORK/state" && mount -t tmpfs -o size=64m,mode=700 blkin "$WORK/state" || fail "mount"
trap 'status=$?; umount -l "$WORK/state"; (exit $status); private_end' EXIT
start_taker || exit 1
: >"$WORK/taken.away"
RULES='many:request>1ns, max=100000/s' start_requests
start_agent --fetch-traces=4096 --linger-ms=0
wait_recording || exit 1

make "service many"
ids=()
for ((n = 1; n <= 6; n++)); do
    alarms=$(status totals alarms)
    make "fast 300" # their alarms have room in the ring
    make "keep"
    ids+=("$ID")
    wait_for 20 agent "all alarms" eval '[ "$(status totals alarms)" -gt '$((alarms + 300))' ]' || { status; exit 1; }
    wait_for 20 agent "that what is slow is kept" eval '[ "$(status kept waiting)" -ge '$n' ]' || exit 1
done
is totals alarms_lost 0 || fail "alarms are lost: this shows nothing"
wait_for 20 agent "all verdicts" is open_traces 0 || { status; exit 1; }
is totals kept_dropped 0 || fail "there was room, and something was dropped: $(status kept)"

# fill BYTES: leaves so much for kept folders. 16 MiB and the rings are what a fetch makes room for.
fill() {
    "$PYTHON" - "$WORK/state" "$1" <<'PY'
import os, sys
disk = os.statvfs(sys.argv[1])
free = (disk.f_bavail - disk.f_blocks // 1000 * 50) * disk.f_frsize
with open(sys.argv[1] + "/filler", "ab") as file:
    os.posix_fallocate(file.fileno(), os.path.getsize(file.name), free - int(sys.argv[2]))
PY
}
rings=$(status rings memories | jq 'map(.bytes) | add')
mapfile -t folders < <(find "$KEPT" -maxdepth 1 -name 'kept-*' | sort -V)
for folder in "${folders[@]}"; do
    cp "$folder/requests" "$WORK/requests.${folder##*/}" || exit 1
done
waiting=$(status kept waiting)
is_written() {
    [ "$(jq .traces_complete "$WORK/state/record.json")" = "$(status totals traces_complete)" ] && is kept saving_ms 0
}
wait_for 10 agent "a state that is written" is_written || exit 1
fill $(((16 << 20) + rings - $(du -sb "${folders[0]}" | cut -f1))) || fail "cannot fill the disk"
mkfifo "$WORK/state/record.json.new" || exit 1 # nothing is deleted before the state is written
make "keep"
ids+=("$ID")
wait_for 20 agent "that room is made" eval '[ "$(status totals kept_dropped)" -ge 1 ]' || { status; exit 1; }
dropped=$(status totals kept_dropped)
((dropped >= 1 && dropped <= waiting / 2)) || fail "$dropped of $waiting folders were dropped for the room of one"

mv "$WORK/state/record.json.new" "$WORK/state/pipe"
cat "$WORK/state/pipe" >/dev/null

# nothing at all can be written, and another recorder takes over: as if nobody had looked at the folders before
wait_for 20 agent "all verdicts" is open_traces 0 || { status; exit 1; }
are_deleted() {
    [ "$(find "$KEPT" -maxdepth 1 -name 'kept-*' | wc -l)" = "$(status kept waiting)" ]
}
wait_for 20 agent "that what was dropped is deleted" are_deleted || exit 1
dropped=()
for folder in "${folders[@]}"; do
    [ -e "$folder" ] || dropped+=("$WORK/requests.${folder##*/}")
done
rm -f "$KEPT"/*/found "$KEPT"/*/looked
fill 0
stop_part agent KILL
rm -f "$WORK"/state/*.stats # which would give back the room that they need
cat /dev/zero >"$WORK/state/filler.2" 2>/dev/null
start_agent --fetch-traces=4096 --linger-ms=0
wait_for 20 agent "that it records" is state recording || exit 1
waiting=$(status kept waiting)
sleep 4
is totals kept_damaged 0 && is kept waiting "$waiting" || {
    show_log agent
    fail "what can be read was deleted: $(status totals)"
}
rm "$WORK/taken.away"
wait_for 40 agent "all deliveries" is kept waiting 0 || { status; exit 1; }
for id in "${ids[@]}"; do
    grep -q "$id" "${dropped[@]}" || has_spans "$id" || fail "$(spans_of "$id") spans of trace $id"
done
is totals kept_damaged 0 && is totals kept_refused 0 || fail "what was delivered is counted as lost: $(status totals)"
rm "$WORK/state/filler" "$WORK/state/filler.2"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
