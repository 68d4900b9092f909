#!/bin/bash
# blkin stat beside `blkin agent` with send = all: its intervals add up to the delivered spans.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
requests=300

recording_begin
printf '[agent]\nsend = all\nendpoint = file:%s\n' "$WORK/spans.json" >"$WORK/blkin.conf"
unset BLKIN_ENDPOINT
start_agent --config="$WORK/blkin.conf"
wait_for 20 agent "the service" is state recording || exit 1
start_part stat "$BUILD/bin/blkin" stat --json --interval=0.5 --runtime-dir="$WORK/run" --config=/dev/null
start_part other "$BUILD/bin/blkin" stat --runtime-dir="$WORK/run" --config=/dev/null
wait_for 10 stat "the first interval" grep -q seconds "$WORK/stat.log" || exit 1
start_stack && run_client "$requests" || exit 1

# sum KEY: prints the sum over all intervals so far.
sum() {
    grep '^{' "$WORK/stat.log" | jq -s "map($1) | add"
}

# A program does not record before it has its rings: so the service's accepted spans count.
seen_all() {
    local spans
    spans=$(status counters spans_accepted)
    [ "$spans" -gt "$requests" ] && [ "$(status counters spans_waiting)" = 0 ] && [ "$(sum .spans)" = "$spans" ] &&
        [ "$(sum '.rows | map(.self.count) | add // 0')" = "$spans" ]
}

# Nothing more is written, and on a busy machine the agent may be behind.
for part in gateway mapper store-1 store-2; do
    stop_part $part >/dev/null
done
all_is_read() {
    status rings | jq -e '.read_bytes + .overwritten_bytes == ([.memories[].written_bytes] | add)' >/dev/null
}
wait_for 20 agent "the reading of all rings" all_is_read || exit 1
wait_for 20 stat "all spans in blkin stat" seen_all || exit 1
stop_part other KILL # nobody cares
stop_part agent TERM 20 || fail "blkin agent ended with status $?"
wait_part stat 10 || fail "blkin stat did not end with its service"
grep -q "the service has ended" "$WORK/stat.log" || fail "it does not say why it ends"

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
    if not line.startswith("{"):
        continue  # the service has ended
    for row in json.loads(line)["rows"]:
        sums = got[row["service"], row["name"]]
        for i, value in enumerate((row["spans"], row["errors"], row["duration"]["sum"], row["self"]["sum"])):
            sums[i] += value
        sums[4] = max(sums[4], row["duration"]["max"])
wanted = {key: [row["spans"], row["errors"], sum(row["duration"]), sum(row["self"]), max(row["duration"])]
          for key, row in expected(traces.values()).items()}
assert got.keys() == wanted.keys(), (got, wanted)
for key, row in wanted.items():
    # the sink's times are in ns, and those in JSON are rounded to us, the children's, too
    assert got[key][:2] == row[:2] and all(abs(a - b) <= 4 * row[0] for a, b in zip(got[key][2:], row[2:])), (key, got[key], row)
print(f"{len(wanted)} rows are as the spans are")
PY
