#!/bin/bash
# The demo works with nobody at the terminal, with the agent, at a terminal, without Java, and after it was killed.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 400
set -u
. "$SRC/tests/lib.sh"

# The demo runs as by "make demo", in other namespaces than this test. The mark identifies its processes.
apart=(env -u BLKIN_PRIVATE -u BLKIN_ISOLATED DEMO_MARK=$$)
demo=("${apart[@]}" "$SRC/scripts/demo")
# with the lock of the build folder, because another test may install from it
make=("${apart[@]}" bash -c 'exec 9<"$1"; flock 9; exec make --no-print-directory -C "$2" demo' - "$BUILD" "$SRC")

processes_left() { grep -lzs "^DEMO_MARK=$$\$" /proc/[0-9]*/environ; }

none_left() { ! processes_left >/dev/null; }

says() { grep -qF -- "$1" "$WORK/demo.log"; }

# expect TEXT...: in the demo's output.
expect() {
    local text
    for text in "$@"; do
        says "$text" || {
            show_log demo 60
            fail "the demo does not say: $text"
        }
    done
}

# kill_when TEXT COMMAND...: starts the demo, and kills it with SIGKILL as soon as it prints TEXT.
kill_when() {
    start_part demo "${@:2}"
    wait_for 120 demo "the demo's saying \"$1\"" says "$1" || exit 1
    stop_part demo KILL
    wait_for 10 - "the end of all that a killed demo has started" none_left || {
        processes_left
        fail "something is left of a killed demo"
    }
}

private_begin
without_java=$BUILD/tests/without-java
rm -rf "$without_java"
mkdir -p "$without_java" || exit 1
ln -s /usr/bin/* /usr/sbin/* "$without_java/" 2>/dev/null
rm -f "$without_java"/java*

kill_when "waiting for Zipkin" "${demo[@]}"
kill_when "with a fault in store-1: slow-journal=20ms" env PATH="$without_java" FAULT=slow-journal "${demo[@]}"
kill_when "starting gateway, mapper and two stores" "${make[@]}"

start_part demo "${demo[@]}"
wait_part demo 60 || fail "the demo's status is $?: $(show_log demo 60 2>&1)"
expect "starting LTTng's session daemon" "starting blkin live" "starting gateway, mapper and two stores" "gateway: forward" \
    "store-2: journal" "longest self time: " "the same in Zipkin: http://127.0.0.1:"
none_left || fail "something is left of the demo: $(processes_left)"

# With the agent, the demo fails unless the slow request arrives as a whole trace, and no fast request. At a terminal the
# demo stays until Ctrl-C, after which demo and make have status 0.
start_part demo env AGENT=1 "$PYTHON" "$SRC/tests/e2e/on_terminal.py" $((60 * PATIENCE)) "Ctrl-C ends the demo" "${make[@]}"
wait_part demo 70 || fail "the demo with AGENT=1 at a terminal: status $?: $(show_log demo 60 2>&1)"
expect "starting blkin agent" " collected, and no other" "13 spans of 5 services" \
    "longest self time: store-1: journal, " "the same in Zipkin: http://127.0.0.1:"
! says "***" || fail "make calls the demo's good end a failure: $(show_log demo 5 2>&1)"
none_left || fail "something is left of the demo at a terminal: $(processes_left)"

# Without Java, the spans are in a file. A fault in the shown write, which is longer than a machine's delays, is found.
start_part demo env -u ZIPKIN_JAR PATH="$without_java" FAULT=slow-journal=4s@2 "${demo[@]}"
wait_part demo 60
status=$?
rm -rf "$without_java"
[ "$status" -eq 0 ] || fail "without Java the demo's status is $status: $(show_log demo 60 2>&1)"
expect "no java on PATH" "gateway: forward" "all spans are in $BUILD/demo/spans.json" \
    "with a fault in store-1: slow-journal=4s@2" "longest self time: store-1: journal, "
traces=$("$BUILD/bin/blkin" show --list "$BUILD/demo/spans.json" | grep -cE ": (write|read)$")
[ "$traces" -eq 20 ] || fail "$BUILD/demo/spans.json has $traces traces, expected 20"

said=$(FAULT=slow-dish "${demo[@]}" 2>&1 </dev/null)
status=$?
[[ $status -eq 2 && $said == *"bad FAULT 'slow-dish': expected slow-disk"* ]] ||
    fail "the demo with a bad FAULT: status $status, says: $said"
