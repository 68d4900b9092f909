#!/usr/bin/env bash
# A signal handler that records up to 100000 times in a thread that records: no deadlock, nothing broken, no span lost,
# with a session on and without.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"

start_sessiond || exit 1
timeout 60 "$programs/signals" 100000 >/dev/null || fail "without a session: status $?"
for ((i = 0; i < 5; i++)); do
    timeout 20 "$programs/signals" loading || fail "while the library starts: status $?"
done
session signals blkin:span blkin:process
said=$(timeout 60 "$programs/signals" 100000) || fail "status $?"
recorded signals
read -r under ended <<<"$said"
[ "$ended" -ge 100 ] || fail "the handler has ended $ended spans, expected 100 at least"
[ "$(spans signals handler)" = "$ended" ] || fail "of $ended spans of the handler, $(spans signals handler)"
[ "$(spans signals "step of the handler")" = $((10 * ended)) ] || fail "steps of the handler are missing"
for name in under "step under"; do
    [ "$(spans signals "$name")" = "$under" ] || fail "of $under spans $name of the thread, $(spans signals "$name")"
done
grep -q "lost by LTTng: 0 events" "$WORK/signals-sink.log" || fail "LTTng has lost events"
