#!/bin/bash
# Somebody destroys the session while LTTng's consumer daemon stands still, as on a machine that is overloaded: `blkin
# rotate` waits for it, all that was recorded arrives, once, and what no session recorded is said and counted.
# `blkin rotate --end` ends, and says why, while the session daemon does not answer.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
# shellcheck source=tests/rotate/rotating.sh
. "$SRC/tests/rotate/rotating.sh"
rotating_begin
start_sessiond && start_taker || exit 1
start_rotate
wait_recording || exit 1

# all but the last of 100000 spans, then the writer stands still until the other session records
touch "$WORK/hold"
start_part writer "$BUILD/tests/rotate/writer" 0 100000 50000 "$WORK/progress" "$WORK/hold"
wait_for 60 writer "99999 spans" made_are 99999 || exit 1
consumer=$(pgrep -x lttng-consumerd | head -n 1)
[ -n "$consumer" ] || fail "there is no consumer daemon"
kill -STOP "$consumer"
lttng destroy --no-wait blkin >"$WORK/destroy.log" 2>&1 &
destroying=$!
sleep 8 # longer than QUIET_S, in which nothing changes
says "has died" && fail "it took the files that the consumer daemon still writes"
kill -CONT "$consumer"
wait "$destroying" || show_log destroy
wait_for 60 rotate "another session" eval '[ "$(status totals sessions)" -ge 2 ]' || exit 1
wait_recording || exit 1
rm "$WORK/hold"
wait_part writer 20 || fail "the writer failed: $?"
wait_for 60 rotate "100000 spans" has_taken 100000 || {
    printf '%s of 100000 taken\n' "$(taken distinct)"
    exit 1
}
[ "$(taken all)" = 100000 ] || fail "$(taken all) spans for 100000"
says "somebody ended the last session" || fail "it does not say that for a time nothing was recorded"

# the end of a thread, while there is no session: no counter can have it, and that is what is said
stop_part rotate TERM 20 || fail "status $? of SIGTERM"

kill -STOP "${private_pid[sessiond]}"
start_rotate --end
PATIENCE=1 wait_part rotate 50
status=$?
kill -CONT "${private_pid[sessiond]}"
[ "$status" = 1 ] || fail "--end: status $status while the session daemon does not answer"
says "LTTng's session daemon has not answered for" || fail "--end does not say why: $(<"$WORK/rotate.log")"

# and when it answers again, --end does what it is for
wait_for 20 - "the session daemon's answer" sessiond_answers || exit 1
timeout 60 "$BUILD/bin/blkin" rotate --end || fail "--end: $?"
lttng list 2>/dev/null | grep -q "$OUTPUT" && fail "the session is there still"
exit 0
