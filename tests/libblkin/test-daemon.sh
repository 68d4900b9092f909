#!/usr/bin/env bash
# A process that has become a daemon is seen, under its own pid, by sessions that start later: with
# no LD_PRELOAD, and without a deadlock where liblttng-ust-fork is preloaded all the same.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/scripts/private.sh"
private_begin

fail() {
    complain "$*"
    exit 1
}

ended() {
    ! kill -0 "$1" 2>/dev/null
}

# records NAME [ENVIRONMENT...]
records() {
    local name=$1 pid events
    shift
    mkfifo "$WORK/$name.go"
    timeout 20 env "$@" "$BUILD/tests/libblkin/daemon" "$WORK/$name.pid" "$WORK/$name.go" 20 ||
        fail "$name: the daemon did not start"
    wait_for 10 - "the daemon's pid file" test -s "$WORK/$name.pid" || exit 1
    pid=$(cat "$WORK/$name.pid")

    start_session "$name" --output="$WORK/$name" || exit 1
    timeout 10 bash -c 'echo >"$1"' - "$WORK/$name.go" || fail "$name: the daemon does not listen"
    wait_for 10 - "the daemon's end" ended "$pid" || exit 1
    lttng destroy "$name" >/dev/null || fail "$name: lttng destroy"
    events=$(babeltrace2 "$WORK/$name" | grep -c "vpid = $pid\b")
    [ "$events" = 20 ] || fail "$name: $events of 20 events bear the daemon's pid"
}

start_sessiond || exit 1
records plain
preload=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*liblttng-ust-fork.so.1 .*=> //p' | head -n 1)
[ -n "$preload" ] || fail "no liblttng-ust-fork.so.1 on this machine"
records preloaded LD_PRELOAD="$preload"
