#!/usr/bin/env bash
# Spans that wander between threads, threads that record at once, forks: whole spans, unique ids and
# thread numbers, sequences without gaps, and no data race that ThreadSanitizer sees.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin

start_sessiond || exit 1

# run NAME PROCESSES THREADS SPANS
run() {
    session "$1" blkin:span blkin:process
    timeout 60 "$programs/threads" "$1" || fail "threads $1: status $?"
    recorded "$1"
    lost_nothing "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_threads.py" "$WORK/$1.events" "${@:2}" || fail "$1: see above"
}
run handover 1 2 1001
[ "$(spans handover request)" = 1000 ] || fail "of 1000 requests $(spans handover request) arrived"
[ "$(grep -o '"value":"completed"' "$WORK/handover.json" | wc -l)" = 1000 ] ||
    fail "what the second thread annotated is missing"
run crowd 1 4 8000
# 1 + 4 + 16 processes, 20 spans each, and the root
run forks 21 21 421

# ---- ThreadSanitizer ----

tsan=$BUILD/tsan
make -s -C "$SRC" BUILD="$tsan" SANITIZE=thread "${tsan#"$SRC/"}/tests/libblkin/threads" >"$WORK/make.log" 2>&1 ||
    { show_log make && fail "the build with SANITIZE=thread"; }
export TSAN_OPTIONS=exitcode=66
for mode in whole streamed; do
    events=(blkin:span blkin:process)
    [ $mode = streamed ] && events=('blkin:*')
    session "tsan-$mode" "${events[@]}"
    for what in handover crowd; do
        timeout 100 "$tsan/tests/libblkin/threads" "$what" >"$WORK/tsan.log" 2>&1 || {
            show_log tsan 60
            fail "ThreadSanitizer, $mode, threads $what"
        }
    done
    recorded "tsan-$mode"
    [ "$(spans "tsan-$mode" request)" = 1000 ] || fail "with ThreadSanitizer nothing was recorded"
done
