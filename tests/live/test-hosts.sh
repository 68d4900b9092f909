#!/bin/bash
# Sessions of other hosts on one relay daemon are found, read and forgotten as they come and go. One session belongs to
# a "host" with another name and its own session daemon; `follow` names another session. `blkin live` ignores a session
# that no key names.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
. "$SRC/tests/live/live.sh"

unshare --uts --mount true 2>/dev/null || skip "no namespaces for another host"
choose_live_places
start_sessiond || exit 1
start_live --endpoint="file:$WORK/spans.json" --follow='*/blkin,*/extra-*'
wait_read || exit 1

# A host: its daemons have their own /run/lttng and shared memory. The host records 100 spans when a file tells it to,
# then waits.
cat >"$WORK/host.sh" <<'END'
. "$SRC/tests/lib.sh"
RELAYD_CONTROL=$1 RELAYD_DATA=$2 WORK=$3
mount -t tmpfs host /run/lttng && mount -t tmpfs host /dev/shm && hostname other-host || exit 1
export LTTNG_HOME=$WORK
lttng-sessiond --no-kernel --daemonize >"$WORK/sessiond.log" 2>&1
start_live_session blkin || exit 1
wait_for 120 - "the word to go on" test -e "$WORK/go" || exit 1
"$BUILD/tests/libblkin/killed" 100 2>/dev/null
wait_for 120 - "the word to leave" test -e "$WORK/leave" || exit 1
lttng destroy blkin
END
mkdir "$WORK/host"
start_part host unshare --uts --mount --pid --fork --kill-child bash "$WORK/host.sh" "$RELAYD_CONTROL" "$RELAYD_DATA" "$WORK/host"
wait_read other-host/blkin || {
    show_log host
    exit 1
}
touch "$WORK/host/go"
wait_for 20 live "the other host's spans" counter_reaches spans_accepted 100 || exit 1

# Two more sessions of this host: one is followed.
start_live_session extra-1 && start_live_session ignored || exit 1
wait_read "$(uname -n)/extra-1" || exit 1
"$BUILD/tests/libblkin/killed" 50 2>/dev/null # in both that are followed here
wait_for 20 live "spans of two sessions" counter_reaches spans_accepted 200 || exit 1
status_is '[.readers[].session | select(endswith("ignored"))] | length' 0 || fail "blkin live reads a session that no key names"

# The followed sessions end: the counters do not fall.
touch "$WORK/host/leave"
lttng destroy extra-1 >/dev/null
is_alone() { status_is '[.readers[].session] | length' 1; }
wait_for 30 live "the end of the other readers" is_alone || exit 1
counter_reaches spans_accepted 200 || fail "the counter has fallen to $(counter spans_accepted)"
status_is .lost.readers_died 0 || fail "a reader was killed: $(cat "$WORK/live.log")"
stop_part live TERM 30 || fail "exit status $? after SIGTERM"
[ ! -e "$WORK/state/relayd" ] || fail "the relay daemon's files are there: $(find "$WORK/state/relayd")"
check_sum
