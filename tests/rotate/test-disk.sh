#!/bin/bash
# The collector is away for long: chunks take no more room than they may, the oldest go, counted, and
# what is left is delivered; the same when the file system is full.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/rotate/rotating.sh"
rotating_begin
export LTTNG_UST_REGISTER_TIMEOUT=-1 # on a busy machine a program waits longer than 3 s for LTTng
start_sessiond && start_taker || exit 1

is_taken() {
    [ "$(taken last)" -ge "$1" ] 2>/dev/null && [ "$(status chunks waiting)" = 0 ]
}

# write SPANS: while the collector is away, but for the first and the last one: of a thread that the sink has never
# seen before, or does not see again, it cannot know what is missing.
write() {
    rm -f "$WORK/taken.away" "$WORK/hold"
    start_part writer "$BUILD/tests/rotate/writer" 0 "$1" 20000 "$WORK/progress" "$WORK/hold"
    wait_for 40 rotate "the first span" is_taken 0 || exit 1
    touch "$WORK/taken.away" "$WORK/hold"
    wait_for 60 writer "$1 spans" made_are $(($1 - 1)) || exit 1
}

# in = out + counted: what is missing lay in dropped chunks
check() {
    local made=$1 name=$2 dropped
    rm -f "$WORK/taken.away"
    wait_for 40 rotate "$name: the delivery of what is left" eval '[ "$(status chunks waiting)" = 0 ]' || exit 1
    dropped=$(status totals chunks_dropped)
    [ "$dropped" -ge 1 ] || fail "$name: no chunk was dropped"
    grep -q 'no room on the disk' "$WORK/rotate.log" || fail "$name: nothing is said"
    rm "$WORK/hold"
    wait_part writer 60 || fail "$name: the writer failed"
    stop_part rotate TERM || fail "exit status $? after SIGTERM"
    timeout 60 "$BUILD/bin/blkin" rotate --end || fail "$name: --end"
    printf '%s: %s chunks dropped, %s of %s spans taken, %s counted as missing\n' "$name" "$dropped" \
        "$(taken distinct)" "$made" "$(missing)"
    [ "$(taken distinct)" -gt 0 ] && [ "$(taken distinct)" -lt "$made" ] || fail "$name: taken: $(taken distinct)"
    # what LTTng records of a process is an event, too
    local seen=$(($(taken distinct) + $(missing)))
    ((seen >= made && seen <= made + 20)) || fail "$name: the account does not show all that is missing"
}
missing() {
    "$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["counters"]["events_missing"])' \
        "$WORK/state/rotate.json"
}

start_rotate --max-disk-bytes=4M
wait_recording || exit 1
write 60000
wait_for 10 - "the loss told as a problem" eval '[[ $(status problem) == *"deleted unread"* ]]' || exit 1
"$BUILD/bin/blkin" doctor --section=rotate --runtime-dir="$WORK/run" --json 2>/dev/null |
    jq -e '.checks[] | select(.id == "service.loss" and .level == "bad")' >"$WORK/loss" || fail "doctor does not call it bad"
wait_for 10 - "a bound that is kept" eval '[ "$(status chunks bytes)" -le 4194304 ] && [ "$(status totals chunks_dropped)" -ge 1 ]' || exit 1
check 60000 "max-disk-bytes"

# a small file system
[ "$BLKIN_ISOLATED" = namespaces ] && [ "$(id -u)" = 0 ] || {
    echo "not tested: a small file system: needs root and namespaces"
    exit 0
}
rm -rf "$WORK/taken" "$WORK/state" "$WORK/run" # its account begins anew
mkdir -m 700 "$WORK/state"
stop_part taker
start_taker || exit 1
mkdir -m 700 "$OUTPUT" && mount -t tmpfs -o size=24m,mode=700 blkin "$OUTPUT" || fail "mount"
trap 'status=$?; umount -l "$OUTPUT"; (exit $status); private_end' EXIT
start_rotate
wait_recording || exit 1
write 160000
check 160000 "a full file system"
