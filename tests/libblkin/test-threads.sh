#!/usr/bin/env bash
# Spans that move between threads, threads that record at once, and children that several threads begin. All spans
# arrive, ids and thread numbers are unique, sequences have no gaps, parents enclose their children, and ThreadSanitizer
# finds no data race.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"

start_sessiond || exit 1

run() {
    session "$1" blkin:span blkin:process
    timeout 60 "$programs/threads" "$1" || fail "threads $1: status $?"
    recorded "$1"
    lost_nothing "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_threads.py" "$WORK/$1.events" "${@:2}" || fail "$1: see above"
}
run handover 1 2 1001
for name in request queued; do
    [ "$(spans handover $name)" = 1000 ] || fail "of 1000 spans $name, $(spans handover $name) arrived"
done
[ "$(grep -o '"value":"completed"' "$WORK/handover.json" | wc -l)" = 1000 ] ||
    fail "annotations of the second thread are missing"
run crowd 1 4 8000

# children of a span that another thread uses, by 4 threads; then, by the main thread, children of the ended span
run family 1 5 5001

# ---- a parent encloses its children ----

encloses() {
    "$PYTHON" - "$WORK/$1.json" "$2" <<'PY' || fail "$1: a parent does not enclose its child"
import json, sys
spans = {span["id"]: span for span in json.load(open(sys.argv[1]))}
print(len(spans), "spans")
wrong = []
for span in spans.values():
    parent = spans.get(span.get("parentId"))
    if parent:
        early = parent["timestamp"] - span["timestamp"]
        late = span["timestamp"] + span["duration"] - parent["timestamp"] - parent["duration"]
        if early > 0 or late > 0:
            wrong.append((early, late))
for early, late in sorted(wrong, key=max)[-5:]:
    print(f"a child begins {early} us before its parent, or ends {late} us after it")
sys.exit(f"{len(wrong)} children are not within their parents" if wrong else len(spans) != int(sys.argv[2]))
PY
}
for mode in whole streamed; do
    events=(blkin:span blkin:process)
    [ $mode = streamed ] && events=('blkin:*')
    session "nested-$mode" "${events[@]}"
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 60 "$programs/threads" nested || fail "threads nested: status $?"
    recorded "nested-$mode"
    lost_nothing "nested-$mode"
    encloses "nested-$mode" 100000
done

# ---- ThreadSanitizer ----

tsan=$BUILD/tsan
flock "$BUILD" make -s -C "$SRC" BUILD="$tsan" SANITIZE=thread "${tsan#"$SRC/"}/tests/libblkin/threads" >"$WORK/make.log" 2>&1 ||
    { show_log make && fail "the build with SANITIZE=thread"; }
export TSAN_OPTIONS=exitcode=66
for mode in whole streamed; do
    events=(blkin:span blkin:process)
    [ $mode = streamed ] && events=('blkin:*')
    session "tsan-$mode" "${events[@]}"
    for what in handover crowd family; do
        timeout 100 "$tsan/tests/libblkin/threads" "$what" >"$WORK/tsan.log" 2>&1 || {
            show_log tsan 60
            fail "ThreadSanitizer, $mode, threads $what"
        }
    done
    recorded "tsan-$mode"
    [ "$(spans "tsan-$mode" request)" = 1000 ] || fail "with ThreadSanitizer nothing was recorded"
done
