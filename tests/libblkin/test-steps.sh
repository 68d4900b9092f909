#!/usr/bin/env bash
# The same requests, their layers once as spans and once as steps: the same tree for the collector, in one event
# per span and streamed. By the C++ API, which calls C's; steps in C in any nesting: test-nestings.sh.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
private_begin

compiler=$(type -P "${CXX:-g++}" || type -P clang++) || fail "no compiler for C++: g++ or clang++"
"$compiler" -std=c++11 -Wall -Wextra -Wshadow -Werror -O1 -pthread -I"$BUILD/include" -o "$WORK/layers" \
    "$SRC/tests/libblkin/layers.cpp" -L"$BUILD/lib" -lblkin -Wl,-rpath,"$BUILD/lib" ||
    fail "layers.cpp does not compile"

start_sessiond || exit 1

# records NAME spans|steps EVENT...
records() {
    session "$1" "${@:3}"
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 20 "$WORK/layers" "$2" >"$WORK/$1.txt" || fail "layers $2: status $?"
    recorded "$1"
    lost_nothing "$1"
}
# same NAME EVENT...
same() {
    records "$1-spans" spans "${@:2}"
    records "$1-steps" steps "${@:2}"
    "$PYTHON" "$SRC/tests/libblkin/check_layers.py" "$WORK/$1-spans".{txt,json} "$WORK/$1-steps".{txt,json} ||
        fail "$1: as steps they are not what they are as spans"
}
same whole blkin:span blkin:process
same streamed 'blkin:*'

# What does not fit into the log of scan, 100 extents of two layers each, are events of their own; the others
# are none.
events() {
    grep -c 'blkin:span:' "$WORK/$1.events"
}
(($(events whole-steps) < $(events whole-spans) && $(events whole-steps) > 150)) ||
    fail "$(events whole-steps) events of steps, $(events whole-spans) of spans"

# a step has its span's own service, in both forms
# own_services NAME EVENT...
own_services() {
    session "$1" "${@:2}"
    LTTNG_UST_ALLOW_BLOCKING=1 timeout 20 "$programs/services" || fail "services: status $?"
    recorded "$1"
    [ "$(jq -r '.[] | .name + " " + (.localEndpoint | .serviceName + .ipv4 + (.port | tostring))' "$WORK/$1.json" |
        sort | uniq -c | awk '{print $1, $2, $3}' | tr '\n' ,)" = \
        "20 after own10.0.0.17,20 before own10.0.0.17,20 outer own10.0.0.17,20 request own10.0.0.17," ] || {
        jq -c '.[] | [.name, .localEndpoint]' "$WORK/$1.json" | sort | uniq -c
        fail "$1: steps without the service of their span"
    }
}
own_services whole-own blkin:span blkin:process
own_services streamed-own 'blkin:*'
