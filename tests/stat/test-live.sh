#!/bin/bash
# blkin stat beside a plain babeltrace2 that reads a live session: its intervals add up to what was delivered.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
requests=300

private_begin
tap=$WORK/tap
start_sessiond && start_relayd && start_live_session live || exit 1
start_part collector babeltrace2 --plugin-path="$BUILD/plugins" --retry-duration=50000 "$LIVE_URL" \
    --component=sink.blkin.zipkin --params="endpoint=\"file:$WORK/spans.json\",tap=\"$tap\""
wait_attached || exit 1
start_part stat "$BUILD/bin/blkin" stat --json --interval=0.5 "$tap"
start_part other "$BUILD/bin/blkin" stat "$tap"
wait_for 10 stat "the first interval" grep -q seconds "$WORK/stat.log" || exit 1
start_stack && run_client "$requests" || exit 1
spans=$(stack_spans "$requests")

# sum KEY: over all intervals so far.
sum() {
    jq -s "map($1) | add" "$WORK/stat.log"
}

seen_all() {
    [ "$(sum .spans)" = "$spans" ] && [ "$(sum '.rows | map(.self.count) | add // 0')" = "$spans" ]
}

wait_for 20 stat "$spans spans in blkin stat" seen_all || exit 1
[ "$(sum .passed)" = "$spans" ] || fail "$(sum .passed) spans passed, expected $spans"
[ "$(sum .dropped)" = 0 ] || fail "spans were dropped"
stop_part other KILL # nobody cares
stop_part collector INT
[ $? -eq 2 ] || fail "babeltrace2 did not end as it should"
check_account "$spans"
grep -q "spans not shown by the tap" "$WORK/collector.log" && fail "the tap has dropped spans"
wait_part stat 10 || fail "blkin stat did not end with its sink"
[ ! -e "$tap" ] || fail "the socket is still there"

"$PYTHON" - "$WORK" <<'PY' || fail "the intervals do not add up to the spans"
import collections, json, os, sys
sys.path.insert(0, os.environ["SRC"] + "/tests/stat")
from expected import expected

folder = sys.argv[1]
traces = collections.defaultdict(list)
for span in json.load(open(f"{folder}/spans.json")):
    traces[span["traceId"]].append(span)
got = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
for line in open(f"{folder}/stat.log"):
    for row in json.loads(line)["rows"]:
        sums = got[row["service"], row["name"]]
        for i, value in enumerate((row["spans"], row["errors"], row["duration"]["sum"], row["self"]["sum"])):
            sums[i] += value
        sums[4] = max(sums[4], row["duration"]["max"])
wanted = {key: [row["spans"], row["errors"], sum(row["duration"]), sum(row["self"]), max(row["duration"])]
          for key, row in expected(traces.values()).items()}
assert dict(got) == wanted, [(key, got[key], wanted.get(key)) for key in got if got[key] != wanted.get(key)]
print(f"{len(wanted)} rows are as the spans are")
PY
