#!/bin/bash
# blkin keep, with the agent itself: the requested traces are in Zipkin, whole, and no other traces.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 200
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
readonly sent=20

# keep STATUS ARGUMENT...: writes to $WORK/kept
keep() {
    local expected=$1
    shift
    timeout $((30 * PATIENCE)) "$BUILD/bin/blkin" keep --runtime-dir="$WORK/run" "$@" >"$WORK/kept" 2>"$WORK/kept.err"
    local status=$?
    [ "$status" -eq "$expected" ] ||
        fail "blkin keep $*: status $status: $(cat "$WORK/kept" "$WORK/kept.err"; show_log agent 2>&1)"
}

kept_says() {
    grep -qF -- "$1" "$WORK/kept" || fail "blkin keep does not say \"$1\": $(<"$WORK/kept")"
}

keep 1 --last=10s
grep -q 'systemctl start blkin-agent' "$WORK/kept.err" || fail "no agent: it is not said what to do"

need_zipkin
start_blkin_agent "$ZIPKIN_URL" || exit 1
start_stack && run_client 1 || exit 1
first=$((SECONDS + 1)) # the end of the first request, at the latest

# A trace that does not exist; and no request was made for the one that exists.
goes_back_6_s() {
    keep 1 --json 1234567890abcdef
    jq -e '(now - (.hosts[0].held_from | sub("\\.[0-9]+Z"; "Z") | fromdate)) > 6' "$WORK/kept" >/dev/null
}
wait_for 60 agent "the ring's going back for 6 s" goes_back_6_s || exit 1
keep 1 1234567890abcdef
kept_says "trace 1234567890abcdef: no span was found"
[ "$(zipkin_counter spans)" = 0 ] || fail "spans were sent that nobody has asked for"

# A program waits 300 ms at its start for rings. A busy agent may answer later: then the daemons are started again.
have_rings() {
    local part
    start_stack || return
    for part in gateway mapper store-1 store-2; do
        grep -q /memfd:blkin-rings "/proc/${private_pid[$part]}/maps" || return
    done
}
wait_for 20 agent "daemons that have rings from their start" have_rings && run_client "$sent" || exit 1

# Keeps all traces but the first, which ended 6 s before the others. `blkin keep` must start within these 6 s.
keep 0 --last=$((SECONDS - first))s
kept_says "All was found"
[ "$(grep -cE "^[0-9a-f]{16} .* 0  $(uname -n)\$" "$WORK/kept")" -eq "$sent" ] ||
    fail "not $sent traces: $(<"$WORK/kept")"
wait_for 30 - "all spans in Zipkin" zipkin_holds "$(stack_spans "$sent")" || exit 1
[ "$(jq '[.[][] | select(.tags["blkin.kept"] | startswith("blkin keep") | not)] | length' "$WORK/traces.json")" = 0 ] ||
    fail "not each span tells why it was kept"
jq 'map(map(del(.tags["blkin.kept"])))' "$WORK/traces.json" >"$WORK/untagged.json"
check_traces "$WORK/untagged.json" "$sent" || exit 1

# A trace again, pasted as its page's address: Zipkin has the same span twice, and shows it once.
trace=$(jq -r '.[0][0].traceId' "$WORK/traces.json")
keep 0 --json "$ZIPKIN_URL/zipkin/traces/$trace"
[ "$(jq -r '[.complete, .done, (.traces | length), (.hosts[0].state)] | @csv' "$WORK/kept")" = \
    'true,true,1,"answered"' ] || fail "as JSON: $(<"$WORK/kept")"

# The traces of one service, which has spans in all of them.
keep 0 --last=$((SECONDS - first))s --service=store-2
[ "$(grep -cE '^[0-9a-f]{16} ' "$WORK/kept")" -eq $((sent / 2)) ] ||
    fail "store-2 has a part in each write: $(<"$WORK/kept")"
keep 1 --last=1s --service=nobody
kept_says "nothing was found of service nobody"

# The agent does not have traces from before its start, and says so.
keep 1 --last=60m
kept_says "its ring goes back only"
