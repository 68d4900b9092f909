#!/usr/bin/env bash
# BLKIN_DEBUG=check reports each misuse of a span once for each calling instruction, and reports no right use. Misuses
# that C allows are harmless.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
start_sessiond || exit 1
session misuse blkin:span

# check: prints the messages of BLKIN_DEBUG=check without those on LTTng and on rings
check() {
    BLKIN_DEBUG=check "$programs/misuse" "$@" 2>&1 >/dev/null | grep -vE '^libblkin: (LTTng is loaded|no rings)' >"$WORK/said"
    return "${PIPESTATUS[0]}"
}
check right || fail "right use: status $?"
[ -s "$WORK/said" ] && {
    cat "$WORK/said"
    fail "right use is reported as misuse"
}
check || fail "misuse: status $?"
cat "$WORK/said"
# reports WHAT FUNCTION: checks that one message has WHAT, with an address in this function
reports() {
    local places
    places=$(sed -n "s|.* $1 by [^;]*/misuse+\(0x[0-9a-f]*\).*|\1|p" "$WORK/said")
    [[ $(addr2line -fi -e "$programs/misuse" $places | grep -cxE "$2(\.[a-z0-9.]+)?") = 1 && $places != *[[:space:]]* ]] ||
        fail "not reported once: $2: $1"
}
reports 'has ended, and is ended' end_twice
reports 'has ended, but is used' use_after_end
reports 'was never begun, but is used' end_garbage
reports 'has a step that another thread began, ended' end_step
grep -q 'is ended by .*; it was ended by .*/misuse+0x' "$WORK/said" || fail "no message has the caller that ended the span"
[ "$(wc -l <"$WORK/said")" = 4 ] || fail "a misuse is reported twice"
recorded misuse
# each begun span was recorded once
[ "$(spans misuse right) $(spans misuse twice) $(spans misuse used) $(spans misuse across)" = "6 1 1 1" ] ||
    fail "spans: $(spans misuse right) right, $(spans misuse twice) twice, $(spans misuse used) used"
exit 0
