#!/usr/bin/env bash
# A process becomes a daemon. Sessions that start later record the daemon at once, under its own pid. This needs no
# LD_PRELOAD, and does not deadlock with a preloaded liblttng-ust-fork.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin

listed() {
    lttng list -u >"$WORK/list.log" && grep -qw "$1" "$WORK/list.log" # the form of a line depends on the version
}

records() {
    local name=$1 pid events
    shift
    mkfifo "$WORK/$name.go"
    timeout 20 env "$@" "$BUILD/tests/libblkin/daemon" "$WORK/$name.pid" "$WORK/$name.go" 20 ||
        fail "$name: the daemon did not start"
    wait_for 10 - "the daemon's pid file" test -s "$WORK/$name.pid" || exit 1
    pid=$(cat "$WORK/$name.pid")
    wait_for 10 - "the daemon in lttng's list" listed "$pid" || exit 1

    start_session "$name" --output="$WORK/$name" || exit 1
    timeout 10 bash -c 'echo >"$1"' - "$WORK/$name.go" || fail "$name: the daemon does not listen"
    wait_for 10 - "the daemon's end" is_gone "$pid" || exit 1
    lttng destroy "$name" >/dev/null || fail "$name: lttng destroy"
    events=$(babeltrace2 "$WORK/$name" | grep -c "vpid = $pid\b")
    [ "$events" = 20 ] || fail "$name: $events of 20 events have the daemon's pid"
}

start_sessiond || exit 1
records plain
preload=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*liblttng-ust-fork.so.1 .*=> //p' | head -n 1)
[ -n "$preload" ] || fail "no liblttng-ust-fork.so.1 on this machine"
records preloaded LD_PRELOAD="$preload"

# A tracepoint of the program's own records the child's pid, also before blkin has recorded anything.
cat >"$WORK/own.c" <<'C'
#include <lttng/tracef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zipkin_c.h>
int main(void)
{
    blkin_init();
    lttng_ust_tracef("of the parent");
    if (fork() == 0) {
        lttng_ust_tracef("of the child");
        return printf("%d\n", (int)getpid()) < 0;
    }
    return wait(NULL) < 0;
}
C
"${CC:-cc}" -I"$BUILD/include/blkin" -o "$WORK/own" "$WORK/own.c" -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib" \
    -llttng-ust -ldl || fail "own.c does not compile"
lttng create own --output="$WORK/own-trace" >/dev/null && lttng enable-event -s own -u 'lttng_ust_tracef:*' >/dev/null &&
    lttng add-context -s own -u -t vpid >/dev/null && lttng start own >/dev/null || fail "cannot start the session own"
pid=$(timeout 20 "$WORK/own") || fail "own: status $?"
lttng destroy own >/dev/null
babeltrace2 "$WORK/own-trace" | grep -q "vpid = $pid .*of the child" ||
    fail "the child's own event does not have the child's pid, $pid: $(babeltrace2 "$WORK/own-trace")"
