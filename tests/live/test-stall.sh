#!/bin/bash
# A program dies in the middle of a record, and its session stands still for ever. `blkin live` reports that, and continues
# in another session. At the end it removes both sessions, also after SIGKILL.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
set -u
. "$SRC/tests/live/live.sh"

choose_live_places
start_sessiond || exit 1
options=(--endpoint="file:$WORK/spans.json")
start_live "${options[@]}"
wait_read || exit 1
start_part writer "$BUILD/tests/live/writer" 0 1000000000 1000 "$WORK/made"
wait_for 20 live "the first spans" counter_reaches spans_accepted 500 || exit 1
"$BUILD/tests/libblkin/killed" 10 mid-record 2>/dev/null
accepted=$(counter spans_accepted)
goes_on_or_says() {
    live_says 'session "blkin" stands still: recording continues in session "blkin-2"' ||
        { repairs_itself && counter_reaches spans_accepted $((accepted + 20000)); }
}
# LTTng 2.16 has a watchdog, which repairs the rings of a killed program: no session stands still
repairs_itself() {
    [ "$(printf '%s\n' 2.16 "$(lttng --version | sed -n 's/.* \([0-9][0-9.]*\).*/\1/p')" | sort -V | head -n 1)" = 2.16 ]
}
wait_for 40 live "a word about the session" goes_on_or_says || exit 1
if ! live_says 'session "blkin" stands still'; then
    stop_part live TERM 30 || fail "exit status $? after SIGTERM"
    check_sum
    skip "this LTTng repairs what a killed program leaves: no session stands still"
fi
wait_for 10 live "a reader of the other session" is_read "$(uname -n)/blkin-2" || exit 1
status_is .session.name blkin-2 || fail "status tells of session $(status .session.name)"
accepted=$(counter spans_accepted)
wait_for 10 live "spans of the other session" counter_reaches spans_accepted $((accepted + 1000)) || exit 1
retired() { [ "$(status '[.readers[] | select(.state == "reading")] | length')" = 1 ]; }
wait_for 20 live "the end of the first reader" retired || exit 1
status_is .lost.sessions_stalled 1 || fail "sessions_stalled is not 1"

# killed, and started again: one session, that of the configuration
kill -s KILL "${private_pid[live]}"
wait_part live 5 2>/dev/null
wait_for 10 - "the end of its relay daemon" relayd_is_gone || exit 1
start_live "${options[@]/spans.json/more.json}"
wait_read || exit 1
lttng list 2>/dev/null | grep -q 'blkin-2' && fail "the other session is there still"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum
lttng list 2>/dev/null | grep -q 'blkin' && fail "a session is there still"
exit 0
