#!/bin/bash
# The messages of services. The check finds a line without an id, an id in two places, and an id that no line has. The
# man page has all ids.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

check() {
    "$SRC/scripts/messages" --root="$work/copy"
}

# plant FILE SED TEXT: changes the file, and expects this message of the check.
plant() {
    rm -rf "$work/copy"
    mkdir "$work/copy" && cp -r "$SRC/tools" "$work/copy" || exit 1
    sed -i "$2" "$work/copy/tools/$1"
    cmp -s "$work/copy/tools/$1" "$SRC/tools/$1" && fail "$1: nothing was changed"
    check >"$work/said" && fail "$1: the check finds nothing wrong"
    grep -q "$3" "$work/said" || fail "$1: the check says: $(<"$work/said")"
}

"$SRC/scripts/messages" || fail "the sources are not right"
plant live/relay.c 's/say(BK2014, /say(BT_LOGGING_LEVEL_ERROR, /' 'logs without an id'
plant live/relay.c 's/say(BK2014, /say(BK2015, /' 'BK2015 is said in several places'
plant live/relay.c 's/say(BK2014, /say(BK2999, /' 'BK2999 is not in'
plant live/relay.c 's/say(BK2014, /fprintf(stderr, /' 'prints to the standard error'
plant live/relay.c 's/say(BK2014, /perror(/' 'prints to the standard error'
plant base/messages.def 's/^M(2014,/M(2999,/' 'BK2999 is said nowhere'
plant base/messages.def 's/^M(2015,/M(2014,/' 'BK2014 comes after BK2014'

# the man page has each message with its explanation
"$PYTHON" "$SRC/scripts/tables" --man=messages >"$work/list" || fail "no list"
count=$(grep -c '^M(' "$SRC/tools/base/messages.def")
[ "$(grep -c '^\.TP$' "$work/list")" = "$count" ] || fail "the list has $(grep -c '^\.TP$' "$work/list") of $count messages"
grep -A1 '^\\fBBK2031' "$work/list" | tail -n 1 | grep -q 'starts the reader again' || fail "BK2031: $(grep -A1 BK2031 "$work/list")"
