#!/bin/bash
# A disk that hangs while the agent writes its state delays nothing else: the agent answers, reads alarms and delivers.
# When the disk is back, the agent writes the state. A pipe without a reader stands for the disk.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
. "$SRC/tests/agent/recording.sh"
INTERVAL_MS=100 LINGER_MS=100 ANSWER_MS=$((30000 * PATIENCE)) recording_begin # a busy program may end a span late
start_all_parts
make "slow 250"
wait_for 20 agent "a slow request" has_spans "$ID" || exit 1
wait_for 20 agent "its verdict" has traces_complete 1 || exit 1
wait_for 10 agent "the state on disk" jq -e ".traces_complete >= 1" "$WORK/state/agent.json" || exit 1

wait_for 10 agent "a moment without a write" mkfifo "$WORK/state/agent.json.new" 2>/dev/null || exit 1
for n in 1 2 3; do
    make "slow 250"
    wait_for 20 agent "slow request $n beside a disk that hangs" has_spans "$ID" || exit 1
done
wait_for 10 agent "a verdict" has traces_complete 4 || exit 1
hangs() { [ "$(status saving_ms)" -gt 0 ]; }
wait_for 10 agent "the disk hangs" hangs || exit 1
jq -e '.traces_complete < 4' "$WORK/state/agent.json" >/dev/null || fail "the state was written"

# the disk is back: the interrupted write has failed, the waiting state is written
mv "$WORK/state/agent.json.new" "$WORK/pipe"
timeout $((10 * PATIENCE)) cat "$WORK/pipe" >/dev/null || fail "nobody writes into the pipe"
make "slow 250"
wait_for 20 agent "a slow request after that" has_spans "$ID" || exit 1
wait_for 20 agent "the state on disk" jq -e '.traces_complete >= 5' "$WORK/state/agent.json" || exit 1
grep -q 'cannot write .*agent.json' "$WORK/agent.log" || fail "the log does not name the file that was not written"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
