#!/usr/bin/env bash
# A program opens a plug-in that links libblkin, lets it record and closes it, 100 times: no span is lost.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"

shared=("-L$BUILD/lib" -lblkin "-Wl,-rpath,$BUILD/lib")
compile() { # OPTION...
    "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -DPLUGIN -shared -fPIC -I"$BUILD/include" -I"$SRC/tests" \
        -o "$WORK/plugin.so" "$SRC/tests/libblkin/plugin.c" "$@" || fail "the plug-in does not compile"
}
# opens COUNT: opens the plug-in 100 times, and checks the number of recorded spans
opens() {
    local said
    said=$(timeout 60 "$programs/plugin" "$WORK/plugin.so" 100) || fail "status $?"
    [ "$said" = "$1" ] || fail "$said spans recorded, expected $1"
}
compile "${shared[@]}"
opens 0 # no session daemon
start_sessiond || exit 1
session plugged 'blkin:span' 'blkin:process'
opens 200
recorded plugged
[ "$(spans plugged plugged)" = 200 ] || fail "$(spans plugged plugged) of 200 spans arrived"
lost_nothing plugged

# with the agent's rings; then also with the library inside the plug-in
mkdir "$WORK/rings" && mkfifo "$WORK/rings/end"
"$BUILD/tests/libblkin-ring/agent" "$WORK/rings" <"$WORK/rings/end" >"$WORK/found" &
agent=$!
exec 9>"$WORK/rings/end"
export BLKIN_RINGS=$WORK/rings/socket BLKIN_LTTNG=no
wait_for 20 - "the agent" test -S "$BLKIN_RINGS" || exit 1
compile -DPATIENT "${shared[@]}"
opens 200
compile -DPATIENT "$BUILD/lib/libblkin.a"
opens 200
exec 9>&-
wait $agent && grep -qx 'spans 400' "$WORK/found" || fail "of 400 spans in the rings: $(cat "$WORK/found")"
unset BLKIN_RINGS BLKIN_LTTNG

compile -DCONSTRUCTOR "${shared[@]}"
timeout 20 "$programs/plugin" "$WORK/plugin.so" || fail "a first span in a constructor: status $?"
