#!/usr/bin/env bash
# 10,000 random nestings of steps, in logs that overflow at every place: what nestings.c has done comes out once
# and where it belongs, or is counted, in one event per span, streamed, and with both.
#
#   test-nestings.sh [SEED]   by default another one each time
#
# timeout: 300
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin
seed=${1-$RANDOM$RANDOM}
echo "seed $seed"

start_sessiond || exit 1

# nest PROGRAM
nest() {
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 100 "$1" "$seed" 10000 >"$WORK/model" || fail "nestings: status $?"
}
# check NAME
check() {
    sunk "$1"
    lost_nothing "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_nestings.py" "$WORK/model" "$WORK/$1.json" || fail "$1, seed $seed: see above"
    rm -rf "${WORK:?}/$1"*
}
# both PROGRAM PREFIX: in two sessions of which each has one form, and in one that has both
both() {
    session "$2whole" blkin:span blkin:process
    session "$2streamed" blkin:begin 'blkin:annotation_*' blkin:tag blkin:end blkin:process
    nest "$1"
    check "$2whole"
    check "$2streamed"
    session "$2both" 'blkin:*'
    nest "$1"
    check "$2both"
}
both "$programs/nestings" ""

# and what it does to memory
asan=$BUILD/asan
make -s -C "$SRC" BUILD="$asan" SANITIZE=address,undefined "${asan#"$SRC/"}/tests/libblkin/nestings" \
    >"$WORK/make.log" 2>&1 || { show_log make && fail "the build with SANITIZE=address,undefined"; }
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1
both "$asan/tests/libblkin/nestings" asan-
