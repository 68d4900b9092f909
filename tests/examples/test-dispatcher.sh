#!/usr/bin/env bash
# The dispatcher. In blind turns, the slow store of three gets a third of the requests. If the traces decide, the slow
# store gets few requests, but not none. Without statistics the dispatcher works, too.
#
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 90
set -u
. "$SRC/tests/examples/dispatching.sh"
threads=6

private_begin
start_stores 2ms 300ms || exit 1

run_reads() {
    "$PYTHON" "$read_load" read "$DISPATCHER" $threads "$2" >"$WORK/$1.log" 2>&1 || {
        show_log "$1"
        show_log dispatcher
        fail "the load failed: $1"
    }
}

# ---- blindly

start_dispatcher turn || exit 1
run_reads turn 150
stop_part dispatcher || fail "the dispatcher ended with status $?"
for store in store-1 store-2 store-3; do
    [ "$(got $store)" = 50 ] || fail "in turns $store got $(got $store) of 150 requests"
done

# ---- by statistics

start_dispatcher wait || exit 1
start_part background "$PYTHON" "$read_load" read "$DISPATCHER" $threads 3600s
slow_is_known() {
    [ "$(wait_of store-3)" -gt 30000 ] 2>/dev/null && [ "$(wait_of store-1)" -gt 1000 ] 2>/dev/null
}
wait_for 20 dispatcher "a word on the slow store" slow_is_known || exit 1
stop_part background TERM
line=$(tail -n 1 "$WORK/dispatcher.log")
echo "known: $line"
requests_so_far() {
    sed -n "s/.*$1: \([0-9]*\) requests.*/\1/p" <<<"$line"
}
before=()
for store in store-1 store-2 store-3; do
    before+=("$(requests_so_far $store)")
done
# While the slow store gets no requests, each document of statistics halves the wait that the dispatcher expects of it.
start_part background "$PYTHON" "$read_load" read "$DISPATCHER" $threads 3600s
slow_is_asked_again() {
    line=$(tail -n 1 "$WORK/dispatcher.log")
    [ "$(requests_so_far store-3)" -gt "${before[2]}" ] && [ "$(requests_so_far store-1)" -gt $((before[0] + 1000)) ]
}
wait_for 60 dispatcher "another request to the slow store, so that the dispatcher learns when it is well again" \
    slow_is_asked_again || exit 1
stop_part background TERM
stop_part dispatcher || fail "the dispatcher ended with status $?"
after=("$(got store-1)" "$(got store-2)" "$(got store-3)")
slow=$((after[2] - before[2]))
all=$((after[0] + after[1] + after[2] - before[0] - before[1] - before[2]))
echo "of $all requests the slow store got $slow"
# without a choice it would be a third
((slow * 100 < all * 15)) || fail "the slow store got $slow of $all requests"

# ---- lines that are no statistics, and a back end that does not exist

free_port nobody
printf '{"rows": 3}\nnonsense\n{"rows":[{"service":"store-1","name":"read","duration":{"count":-1,"sum":1e300}}]}\n' \
    >"$WORK/nonsense"
# shellcheck disable=SC2016,SC2154 # for that shell; by free_port
start_server dispatcher bash -c 'exec "${@:2}" <"$1"' - "$WORK/nonsense" "$SRC/examples/dispatcher/dispatcher.py" \
    --back "nobody=127.0.0.1:$nobody" --back "store-1=$(part_address store-1)" || exit 1
DISPATCHER=$(part_address dispatcher)
run_reads without 60
wait_for 10 dispatcher "the end of the lines" grep -q "the statistics have ended" "$WORK/dispatcher.log" || exit 1
stop_part dispatcher || fail "the dispatcher ended with status $?"
[ "$(got store-1)" = 60 ] && [ "$(got nobody)" = 0 ] || {
    show_log dispatcher
    fail "without statistics: store-1 got $(got store-1), nobody $(got nobody) of 60 requests"
}
[ "$(grep -c 'not from "blkin stat --json"' "$WORK/dispatcher.log")" = 2 ] ||
    fail "the dispatcher does not report lines that are no statistics: $(<"$WORK/dispatcher.log")"

# ---- wrong usage

refused() {
    local said
    said=$("$SRC/examples/dispatcher/dispatcher.py" "${@:2}" 2>&1 </dev/null)
    [[ $? -eq 2 && $said == *"$1"* ]] || fail "dispatcher ${*:2}: says $said"
}
refused "bad back end 'store-1'" --back store-1
refused "bad address 'here'" --back store-1=here
refused "bad policy 'best'" --back store-1=127.0.0.1:1 --policy best
refused "usage:"
