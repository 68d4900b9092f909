#!/bin/bash
# The relay daemon is killed, and another one starts, while the session daemon does not answer a request. When the session
# daemon answers, `blkin live` makes and reads the session again. It waits also for a foreign relay daemon with a name.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/live/live.sh"

choose_live_places
start_sessiond || exit 1
start_live --endpoint="file:$WORK/spans.json"
wait_read || exit 1
# Does `blkin live` ask the session daemon? Then it has a child that is no reader.
asks() { pgrep -P "${private_pid[live]}" -x blkin | grep -qvxF "$(status '.readers[].pid')"; }
is_back() { status_is '.relayd.state' up && [ "$(status .relayd.pid)" != "$relayd" ]; }
is_made_again() { [ "$(status .session.made)" -gt "$made" ]; }
is_read_again() { is_made_again && is_read; }
for _ in 1 2 3 4 5; do
    made=$(status .session.made)
    kill -s STOP "${private_pid[sessiond]}"
    wait_for 10 live "its look at the session" asks || exit 1
    relayd=$(status .relayd.pid)
    kill -s KILL "$relayd"
    wait_for 9 live "another relay daemon" is_back || fail "$(status .relayd)"
    asks && asked=1 && break
    # the request has ended after 10 s, in which a busy machine did not start the relay daemon
    kill -s CONT "${private_pid[sessiond]}"
    wait_for 30 live "the session of the next try" is_read_again || exit 1
done
[ -n "${asked-}" ] || fail "it does not ask any more: too late for this test"
kill -s CONT "${private_pid[sessiond]}"
wait_for 20 live "a session that is made again" is_made_again || exit 1
wait_read || exit 1
"$BUILD/tests/libblkin/killed" 100 2>/dev/null
wait_for 20 live "spans of that session" counter_reaches spans_accepted 100 || exit 1
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
check_sum

# ---- a foreign relay daemon comes late, and is started again
start_live --endpoint="file:$WORK/foreign.json" --relayd="localhost:$RELAYD_LIVE"
wait_for 20 live "that it is ready without the relay daemon" status_is .state running || exit 1
must_say 'the relay daemon is gone, or does not answer'
for made in 0 1; do
    start_part relayd lttng-relayd -C "tcp://127.0.0.1:$RELAYD_CONTROL" -D "tcp://127.0.0.1:$RELAYD_DATA" \
        -L "tcp://127.0.0.1:$RELAYD_LIVE" -o "$WORK/relayd"
    wait_for 20 live "a reader with relay daemon $made" is_read_again || exit 1
    stop_part relayd KILL
done
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
exit 0
