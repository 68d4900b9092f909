#!/usr/bin/env bash
# Usage: a span's tags have the resources that its thread used. Each unit of usage is in one span, or in none if the
# library does not know the span.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
export BLKIN_SAMPLING_FILE=$WORK/none

start_sessiond || exit 1
export LTTNG_UST_ALLOW_BLOCKING=1 # after the session daemon: newer ones refuse to start with it

# usage_of SESSION EVENT CHECK MODE: runs the mode in a session of its own
usage_of() {
    local name=$1 event=$2 check=$3
    shift 3
    session "$name" "$event"
    timeout 60 "$programs/usage" "$@" || fail "usage $*: status $?"
    recorded "$name"
    # handlers that interrupt a record disorder the numbers of events
    [ "$name" = storm ] || lost_nothing "$name"
    "$PYTHON" "$SRC/tests/libblkin/check_usage.py" "$check" "$WORK/$name.json" ||
        fail "$name: spans have the wrong usage"
}

usage_of planted blkin:span planted planted
usage_of charges blkin:span charges charges
usage_of streamed 'blkin:*' charges charges
usage_of storm blkin:span storm storm
usage_of levels blkin:span levels levels
usage_of off blkin:span levels off
usage_of descriptors blkin:span levels descriptors
