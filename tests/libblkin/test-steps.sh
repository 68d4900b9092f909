#!/usr/bin/env bash
# The same requests, their layers once as spans and once as steps: the same tree for the collector, in C and in
# C++, in one event per span and streamed.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin

compiler=$(type -P "${CXX:-g++}" || type -P clang++) || fail "no compiler for C++: g++ or clang++"
"$compiler" -std=c++11 -Wall -Wextra -Wshadow -Werror -O1 -pthread -I"$BUILD/include" -o "$WORK/layers++" \
    "$SRC/tests/libblkin/layers.cpp" -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib" ||
    fail "layers.cpp does not compile"

start_sessiond || exit 1

# records NAME PROGRAM spans|steps EVENT...
records() {
    session "$1" "${@:4}"
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 20 "$2" "$3" >"$WORK/$1.txt" || fail "$2 $3: status $?"
    recorded "$1"
    lost_nothing "$1"
}
# same NAME PROGRAM EVENT...
same() {
    records "$1-spans" "$2" spans "${@:3}"
    records "$1-steps" "$2" steps "${@:3}"
    "$PYTHON" "$SRC/tests/libblkin/check_layers.py" "$WORK/$1-spans".{txt,json} "$WORK/$1-steps".{txt,json} ||
        fail "$1: as steps they are not what they are as spans"
}
same c "$programs/layers" blkin:span blkin:process
same cpp "$WORK/layers++" blkin:span blkin:process
same c-streamed "$programs/layers" 'blkin:*'
same cpp-streamed "$WORK/layers++" 'blkin:*'

# What does not fit into the log of scan, 100 extents of two layers each, are events of their own; the others
# are none.
events() {
    grep -c 'blkin:span:' "$WORK/$1.events"
}
(($(events c-steps) < $(events c-spans) && $(events c-steps) > 150)) ||
    fail "$(events c-steps) events of steps, $(events c-spans) of spans"
