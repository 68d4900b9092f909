#!/bin/bash
# A program whose libblkin is newer than the agent: its alarms are counted, with one message. The newer libblkin is a
# copy with another version in the mark of its alarms.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/agent/recording.sh"
mark=blkslow1
grep -q "$mark" "$BUILD/lib/libblkin.so.1" || skip "this compiler cuts the mark of an alarm"
recording_begin
mkdir "$WORK/newer"
cp "$BUILD/lib/libblkin-lttng.so.1" "$WORK/newer"
LC_ALL=C sed "s/$mark/${mark%1}2/" "$BUILD/lib/libblkin.so.1" >"$WORK/newer/libblkin.so.1"

LD_LIBRARY_PATH=$WORK/newer start_requests
start_recording
make "slow 250"
wait_for 20 agent "three alarms of a newer version" is totals alarms_newer 3 || { status; exit 1; }
make "slow 250"
wait_for 20 agent "three more" is totals alarms_newer 6 || { status; exit 1; }
is totals alarms 0 && is totals alarms_lost 0 || fail "alarms: $(status totals alarms), lost: $(status totals alarms_lost)"
is totals fetches 0 || fail "the agent has fetched traces of alarms of a newer version"
[ "$(grep -c "BK4025 .* alarms of a newer version" "$WORK/agent.log")" = 1 ] || fail "the agent does not log BK4025 once"
