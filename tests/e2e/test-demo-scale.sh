#!/bin/bash
# "make demo SCALE=1" counts each span once, although the demo kills a worker. A killed demo leaves nothing behind.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 200
set -u
. "$SRC/tests/lib.sh"

jars=$("$SRC/scripts/fetch-kafka" 2>&1) || skip "no Kafka: $(tail -n 1 <<<"$jars")"
grep -q librdkafka.so "$BUILD/bin/blkin" || skip "this build is without librdkafka"

# in other namespaces than this test; the mark identifies the demo's processes
demo=(env -u BLKIN_PRIVATE -u BLKIN_ISOLATED SCALE=1 DEMO_MARK=$$ "$SRC/scripts/demo")
none_left() { ! grep -lzs "^DEMO_MARK=$$\$" /proc/[0-9]*/environ >/dev/null; }
says() { grep -qF -- "$1" "$WORK/demo.log"; }

private_begin
start_part demo "${demo[@]}"
wait_for 60 demo "workers" says "starting gateway, mapper and two stores" || exit 1
stop_part demo KILL
wait_for 10 - "the end of all that a killed demo has started" none_left || exit 1

start_part demo "${demo[@]}"
wait_part demo 150 || fail "the demo's status is $?: $(show_log demo 60 2>&1)"
for text in "killing a worker (SIGKILL)" "0 with an error" "gateway: forward" "store-2: journal" \
    "of 320 requests each span was counted once: 3370"; do
    says "$text" || fail "the demo does not say: $text: $(show_log demo 60 2>&1)"
done
none_left || fail "something is left of the demo"
