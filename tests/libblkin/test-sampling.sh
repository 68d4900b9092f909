#!/usr/bin/env bash
# Sampling: the policies, their texts, their sources, and the share in the events.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
sampling=$programs/sampling

start_sessiond || exit 1
session policies blkin:span
export BLKIN_SAMPLING_FILE=$WORK/sampling
"$sampling" || fail "sampling: status $?"
"$sampling" back || fail "sampling back: status $?"

first() {
    local expected=$1 said
    shift
    said=$(env "$@" "$sampling" first) || fail "sampling first: status $?"
    [ "$said" = "$expected" ] || fail "with $*: expected $expected, got $said"
}
first recorded BLKIN_SAMPLING=
first "not recorded" BLKIN_SAMPLING=never
first recorded BLKIN_SAMPLING=nonsense
said=$(BLKIN_DEBUG=1 BLKIN_SAMPLING=nonsense "$sampling" first 2>&1)
[[ $said == *nonsense* ]] || fail "BLKIN_DEBUG does not report the wrong policy"
echo never >"$WORK/sampling"
first "not recorded" BLKIN_SAMPLING=
first "not recorded" BLKIN_SAMPLING=always # the file overrides the variable
echo nonsense >"$WORK/sampling"
first "not recorded" BLKIN_SAMPLING=never

echo never >"$WORK/cancelled"
BLKIN_SAMPLING_FILE=$WORK/cancelled "$sampling" cancelled "$WORK/cancelled" || fail "sampling cancelled: status $?"

printf '  never\t \r\nalways\n' >"$WORK/sampling"
first "not recorded" BLKIN_SAMPLING=
# A text of more than 1023 bytes is refused, and not cut.
{
    printf 'never'
    for number in {10..23}; do
        printf ',%063d:always' "$number"
    done
    printf ',%016d:always' 0
} >"$WORK/cut"
[ "$(stat -c %s "$WORK/cut")" = 1023 ] || fail "the test's policy does not have 1023 bytes"
cp "$WORK/cut" "$WORK/sampling"
first "not recorded" BLKIN_SAMPLING=
echo ",first:always" >>"$WORK/sampling"
first recorded BLKIN_SAMPLING=
said=$(BLKIN_DEBUG=1 "$sampling" first 2>&1)
[[ $said == *"less than 1024 bytes"* ]] || fail "BLKIN_DEBUG does not say why the file is refused: $said"

# the policy changes while the program runs: the file is replaced, or written to
runs_until() {
    start_part until "$sampling" until "$1"
    wait_for 10 until "the first reading of the file" grep -q waits "$WORK/until.log" || exit 1
}
changed() { # HOW: an active program reads the file each second
    wait_part until 3 || fail "the program does not read the changed file ($1)"
}
echo never >"$WORK/sampling"
runs_until recorded
echo always >"$WORK/new" && mv "$WORK/new" "$WORK/sampling"
changed "replaced"
runs_until "not recorded"
echo never >"$WORK/sampling"
changed "written to"
rm "$WORK/sampling"
recorded policies

session shares blkin:span
"$sampling" shares || fail "sampling shares: status $?"
recorded shares
lost_nothing shares
"$PYTHON" "$SRC/tests/libblkin/packed.py" "$WORK/shares.events" name sampled trace_id >"$WORK/shares.txt"
# share NAME MILLIONTHS: checks the share in the events of the root NAME and its child
share() {
    local root
    root=$(sed -n "s/^$1\t//p" "$WORK/shares.txt")
    [ "${root%$'\t'*}" = "$2" ] || fail "$1: the event has \"$root\", expected a share of $2"
    grep -qxF $'child\t'"$root" "$WORK/shares.txt" || fail "the child of $1 has another share"
}
share quarter 250000
share rated 0
share all 1000000
share debug 0
grep -q 'flags = 515,.*name = "debug"' "$WORK/shares.events" || fail "the debug flag is not in the event"

# ---- severities ----

# severities EVENT POLICY SEVERITY...: checks which annotations are recorded
severities() {
    local event=$1 name=$1 expected="${*:3}" got
    name=${name//[^a-z]/}
    echo "$2" >"$WORK/sampling"
    session "$name" "$event"
    "$sampling" severities || fail "sampling severities: status $?"
    recorded "$name"
    got=$(grep -o '"value":"[a-z ]*' "$WORK/$name.json" | cut -d '"' -f 4 | sort -u | xargs)
    [ "$got" = "$expected" ] || fail "$event with $2: annotations $got, expected $expected"
}
severities blkin:span always,severity=notice alert crit emerg err literal emerg notice warning
severities 'blkin:s*' always alert crit debug emerg err info literal literal emerg notice warning
# streaming: LTTng's log levels select severities
severities 'blkin:*' always,severity=notice alert crit debug emerg err info literal literal emerg notice warning
