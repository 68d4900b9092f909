#!/bin/bash
# Streamed spans, and those of the original's events, that are open over many chunks are sent once and
# whole, though the service and its children are killed meanwhile.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/rotate/rotating.sh"
rotating_begin
start_sessiond && start_taker || exit 1
events=(--events='zipkin:*,blkin:*')
start_rotate "${events[@]}"
wait_recording || exit 1
start_part crossing "$BUILD/tests/rotate/crossing" 50 12 250
for ((i = 0; i < 4; i++)); do
    sleep 0.$((RANDOM % 5 + 3))
    pkill -KILL -P "${private_pid[rotate]}"
    stop_part rotate KILL 2>/dev/null
    start_rotate "${events[@]}"
done
wait_part crossing 20 || fail "the writer: $?"
# a chunk that is closed after the last event
is_whole() {
    "$PYTHON" - "$WORK/taken" <<'PY'
import json, sys
spans = [s for line in open(sys.argv[1]) for s in json.loads(line)]
for name in "streamed", "original":
    those = [s for s in spans if s[1] == name]
    ids = {s[2] for s in those}
    print(name, len(those), "sent,", len(ids), "ids,", {s[3] for s in those}, "annotations")
    if len(ids) != 50 or any(s[3] < 12 for s in those):
        sys.exit(1)
PY
}
wait_for 40 rotate "50 spans of each kind, each with its 12 annotations" is_whole || {
    is_whole
    exit 1
}
is_whole
