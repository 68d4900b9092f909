#!/bin/bash
# blkin rotate as a plain user, as its unit runs it: what a dead session has left is not converted and deleted while a
# process has a file of it open for writing. The log names that process: for certain if it is of the same user; if it is
# another user's, whose descriptors rotate may not look at, an orphaned lttng-consumerd is the likely one. Meanwhile it
# does not spin, and buries a younger dead session; --once gives up after a minute.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/rotate/rotating.sh"
[ "$(id -u)" = 0 ] || skip "only root can be another user"
tracing=$(getent group tracing | cut -d : -f 3)
[ -n "$tracing" ] || skip "there is no group tracing"
rotating_begin
readonly as=(setpriv --reuid 1 --regid 1 --groups "1,$tracing" --bounding-set -all)
chmod 711 "$WORK" "$(dirname "$WORK")" # ours alone
for folder in "$WORK/state" "$WORK/run" "$WORK/shm"; do
    install -d -m 700 -o 1 -g 1 "$folder"
done
"${as[@]}" test -x "$BUILD/bin/blkin" || skip "no build that others may read"

waits_or_ended() {
    says "still has a file of it open" || ! part_runs rotate
}

has_ended() {
    ! part_runs rotate
}

# a session whose daemons die, with what they had written and what was in buffers
start_sessiond && start_taker || exit 1
start_part rotate "${as[@]}" "$BUILD/bin/blkin" rotate --rotate-ms=600000
wait_recording || exit 1
write_spans 0 3000 10000
stop_part rotate TERM || fail "status $? of SIGTERM"
kill -KILL "$(pgrep -x lttng-consumerd)" "${private_pid[sessiond]}"
stop_part sessiond KILL 2>/dev/null
stream=$(find "$OUTPUT" -name 'blkin_*' ! -name '*.idx' -size +0 | head -n 1)
[ -n "$stream" ] || fail "LTTng has written no stream: $(find "$OUTPUT")"

# nothing has changed for long, but a process has it open
find "$OUTPUT" -exec touch -d '10 minutes ago' {} +
size=$(stat -c %s "$stream")

# once_waits WHO: --once waits, and names who has the file open.
once_waits() {
    start_part rotate "${as[@]}" "$BUILD/bin/blkin" rotate --once {held}>&-
    wait_for 40 rotate "a word about the open file" waits_or_ended || exit 1
    says "but $1 still has a file of it open for writing: waiting. The file is $stream" ||
        fail "it does not name $1: $(<"$WORK/rotate.log")"
    says "has died" && fail "it says that the session has died"
    [ "$(stat -c %s "$stream")" = "$size" ] || fail "the file that $1 writes was touched"
}

# begun: how many processes and threads were begun in our namespace
begun() {
    local last
    read -r _ _ _ _ last </proc/loadavg
    echo "$last"
}

exec {held}>>"$stream"
"${as[@]}" sleep 300 >&"$held" {held}>&- &
sleeper=$!
exec {held}>&-
once_waits "process $sleeper (sleep)"
# it looks again at each scan, and not without a pause
before=$(begun)
sleep 5
tries=$(($(begun) - before))
echo "$tries processes and threads begun in 5 s of waiting"
[ "$BLKIN_ISOLATED" != namespaces ] || [ "$tries" -lt 60 ] || fail "$tries processes and threads were begun in 5 s of waiting"
stop_part rotate TERM
kill "$sleeper"

cp "$(command -v sleep)" "$WORK/lttng-consumerd"
"$WORK/lttng-consumerd" 300 >>"$stream" &
consumer=$!
install -d -m 700 -o 1 -g 1 "$OUTPUT"/999999-younger{,/.tmp_old_chunk}
find "$OUTPUT"/999999-younger -exec touch -d '10 minutes ago' {} +
once_waits "a process of another user, most likely process $consumer (lttng-consumerd)"
wait_for 20 rotate "the burial of a younger session" says "session 999999-younger has died" || exit 1
wait_for 90 rotate "the end of --once" has_ended || exit 1
wait_part rotate 5
[ $? = 1 ] && says 'a process still has a file in' || fail "--once gives up: $(<"$WORK/rotate.log")"
kill "$consumer"

exec {held}>>"$stream"
once_waits "a process that this user cannot see"
exec {held}>&-
wait_for 40 - "the end of --once" has_ended || exit 1
# what came in the last 100 ms waits for the next trace (hold.h), and there is none
"${as[@]}" "$BUILD/bin/blkin" rotate --end >"$WORK/end.log" 2>&1 || fail "--end: $(<"$WORK/end.log")"
has_taken 3000 || fail "$(taken distinct) spans for 3000: $(<"$WORK/rotate.log")"
[ "$(taken all)" = 3000 ] || fail "$(taken all) spans for 3000"
