#!/bin/bash
# blkin stat of a recorded trace, of a file and of Zipkin's API says what Zipkin's own spans do.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
requests=400
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins

# stat SOURCE FILE: its report.
stat() {
    "$BUILD/bin/blkin" stat --json "$1" >"$2" 2>"$WORK/stat.log" || {
        show_log stat
        fail "blkin stat $1"
    }
}

private_begin
need_zipkin
start_sessiond && start_session recorded --output="$WORK/trace" || exit 1
start_stack && run_client "$requests" || exit 1
lttng destroy recorded >/dev/null || fail "lttng destroy"

start_collector "$ZIPKIN_URL/api/v2/spans" "$WORK/trace"
wait_part collector 60 || {
    show_log collector
    fail "babeltrace2 to Zipkin"
}
# and some that have an error, which the stack has none of
start_collector "$ZIPKIN_URL/api/v2/spans" "$SRC/tests/plugin/traces/steps"
wait_part collector 60 || fail "babeltrace2 of steps"
spans=$(stack_spans "$requests")
wait_for 30 - "$spans spans in Zipkin" zipkin_holds "$spans" || exit 1
all="$ZIPKIN_URL/api/v2/traces?limit=100000&serviceName"
zipkin_get "api/v2/traces?serviceName=client&limit=100000&lookback=86400000" >"$WORK/traces.json" || exit 1

stat "$WORK/trace" "$WORK/folder.json"
stat "$WORK/traces.json" "$WORK/file.json"
stat "$all=client&lookback=86400000" "$WORK/url.json"

PYTHONPATH="$SRC/tests/stat" "$PYTHON" - "$WORK" "$spans" <<'PY' || fail "the report is not what Zipkin says"
import json, sys, unittest
from expected import check

folder, spans = sys.argv[1], int(sys.argv[2])
test = unittest.TestCase()
test.maxDiff = None
traces = json.load(open(f"{folder}/traces.json"))
reports = {name: json.load(open(f"{folder}/{name}.json")) for name in ("folder", "file", "url")}
assert sum(map(len, traces)) == spans, (sum(map(len, traces)), spans)
for name, report in reports.items():
    check(test, report, traces)
    print(f"{name}: {report['spans']} spans, {len(report['rows'])} rows: as Zipkin says")
# the same figures in the same order, however they come
test.assertEqual(reports["folder"]["rows"], reports["file"]["rows"])
test.assertEqual(reports["folder"]["rows"], reports["url"]["rows"])
PY

# errors: by the same way
late_is_there() {
    zipkin_get "api/v2/traces?serviceName=osd&endTs=1700000100000&lookback=3600000&limit=1000" >"$WORK/traces.json" &&
        grep -q '"error"' "$WORK/traces.json"
}
wait_for 30 - "the spans with an error in Zipkin" late_is_there || exit 1
stat "$SRC/tests/plugin/traces/steps" "$WORK/folder.json"
PYTHONPATH="$SRC/tests/stat" "$PYTHON" - "$WORK" <<'PY' || fail "the report of errors is not what Zipkin says"
import json, sys, unittest
from expected import check

folder = sys.argv[1]
report = json.load(open(f"{folder}/folder.json"))
check(unittest.TestCase(), report, json.load(open(f"{folder}/traces.json")))
assert sum(row["errors"] for row in report["rows"]) == 2
PY
