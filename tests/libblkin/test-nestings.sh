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

# nests NAME PROGRAM EVENT...
nests() {
    session "$1" "${@:3}"
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 100 "$2" "$seed" 10000 >"$WORK/$1.txt" || fail "$1: nestings: status $?"
    sunk "$1"
    lost_nothing "$1"
    "$PYTHON" "$SRC/tests/libblkin/check_nestings.py" "$WORK/$1.txt" "$WORK/$1.json" || fail "$1, seed $seed: see above"
    rm -rf "${WORK:?}/$1"*
}
nests whole "$programs/nestings" blkin:span blkin:process
nests streamed "$programs/nestings" blkin:begin 'blkin:annotation_*' blkin:tag blkin:end blkin:process
nests both "$programs/nestings" 'blkin:*'

# and what it does to memory
asan=$BUILD/asan
make -s -C "$SRC" BUILD="$asan" SANITIZE=address,undefined "${asan#"$SRC/"}/tests/libblkin/nestings" \
    >"$WORK/make.log" 2>&1 || { show_log make && fail "the build with SANITIZE=address,undefined"; }
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1
nests asan-whole "$asan/tests/libblkin/nestings" blkin:span blkin:process
nests asan-both "$asan/tests/libblkin/nestings" 'blkin:*'
