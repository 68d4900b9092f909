#!/usr/bin/env bash
# A signal whose handler only sets a flag ends a wait. The signal may arrive while the preload looks for rings in that
# wait, or records in the middle of it.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
port=7730
# meets WAY EXPECTED: checks that the program's output is EXPECTED
meets() {
    local said
    said=$(env LD_PRELOAD="$preload" timeout 60 "$programs/interrupts" "$1" $((++port))) || fail "$1: status $?"
    [ "$said" = "$1: $2" ] || fail "$1: the program prints: $said"
}
for way in poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2 accept accept4; do
    meets "$way" woken
done
meets restart continues
meets ignored continues

start_sessiond || exit 1
session interrupted blkin:span
meets idle woken
sunk interrupted
[ "$(jq '[.[] | select(.kind == "SERVER")] | length' "$WORK/interrupted.json")" -ge 1 ] || fail "no request is recorded"
