#!/usr/bin/env bash
# Events of the original's libraries become spans; foreign and broken ones are passed over, counted.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
private_begin

start_sessiond || exit 1
start_session old --output="$WORK/trace" || exit 1
"$BUILD/tests/plugin/old_events" || fail "old_events ended with status $?"
lttng destroy old >/dev/null || fail "lttng destroy"

start_collector "file:$WORK/spans.json" "$WORK/trace"
wait_part collector 20 || fail "babeltrace2 ended with status $?"
account="events: 7 = 4 in spans + 2 foreign + 1 unreadable"
grep -q "$account" "$WORK/collector.log" || {
    show_log collector
    fail "expected in the summary: $account"
}
"$PYTHON" - "$WORK/spans.json" <<'PY' || fail "the spans differ"
import json, sys

spans = {s["name"]: s for s in json.load(open(sys.argv[1]))}
write = spans["write"]
assert len(spans) == 2, spans
assert write["traceId"] == "0000000000000001" and write["id"] == "fffffffffffffffe", write
assert "parentId" not in write and write["kind"] == "SERVER", write
assert write["localEndpoint"] == {"serviceName": "osd", "ipv4": "10.0.0.1", "port": 50000}, write
tags = write["tags"]
assert tags["who"] == "v0" and tags["lttng.procname"] == "old_events", write
assert tags["lttng.vpid"] == tags["lttng.vtid"] and tags["lttng.host"], write
other = spans["no address"]
assert other["localEndpoint"] == {"serviceName": "rbd"}, other
assert other["parentId"] == write["id"] and "kind" not in other, other
PY
