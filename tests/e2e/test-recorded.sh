#!/bin/bash
# A recorded trace becomes the same spans over HTTP and in a file, and in CTF 2 where LTTng writes it.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
requests=200

private_begin
need_zipkin
start_sessiond && start_session recorded --output="$WORK/trace" || exit 1
ctf2=
if knows_ctf_2; then
    ctf2=$WORK/trace-ctf-2
    TRACE_FORMAT=ctf-2 start_session recorded-ctf-2 --output="$ctf2" || exit 1
fi
start_stack && run_client "$requests" || exit 1
lttng destroy recorded >/dev/null || fail "lttng destroy"
[ -z "$ctf2" ] || lttng destroy recorded-ctf-2 >/dev/null || fail "lttng destroy"

send_recorded "$ZIPKIN_URL/api/v2/spans" "$WORK/trace"
check_account "$(stack_spans $requests)"
check_zipkin "$requests" || fail "what Zipkin has is not what the stack did"

send_recorded "file:$WORK/spans.json" "$WORK/trace"
check_account "$(stack_spans $requests)"
check_traces "$WORK/spans.json" "$requests" || fail "what is in the file is not what the stack did"

# Another session has other times, and equals the first in all other fields.
if [ -n "$ctf2" ]; then
    grep -qa preamble "$ctf2"/ust/uid/*/*/metadata || fail "$ctf2 is not CTF 2"
    send_recorded "file:$WORK/spans-ctf-2.json" "$ctf2"
    check_account "$(stack_spans $requests)"
    check_traces "$WORK/spans-ctf-2.json" "$requests" || fail "what CTF 2 has is not what the stack did"
else
    echo "not tested: CTF 2: LTTng before 2.16, or babeltrace2 before 2.1"
fi

# Late spans of a server's half have the client's id. Zipkin adds them to that half, and they change no dependency.
send_recorded "$ZIPKIN_URL/api/v2/spans" "$BUILD/tests/plugin/traces/original-late"
late_is_there() {
    zipkin_get api/v2/trace/000000000000004d >"$WORK/late.json" 2>/dev/null &&
        grep -q committed "$WORK/late.json"
}
wait_for 30 - "the late pieces in Zipkin" late_is_there || exit 1
zipkin_get "api/v2/dependencies?endTs=1700000100000&lookback=3600000" >"$WORK/calls.json" ||
    fail "Zipkin does not tell who calls whom"
"$PYTHON" - "$WORK/late.json" "$WORK/calls.json" <<'PY' || fail "the late pieces are not the server's"
import json, sys

spans, calls = (json.load(open(name)) for name in sys.argv[1:])
assert sorted((c["parent"], c["child"], c["callCount"]) for c in calls) == [
    ("gateway", "osd", 1), ("osd", "store", 1)], calls
half = [s for s in spans if s["localEndpoint"]["serviceName"] == "osd"]
assert half and all(s.get("shared") for s in half if s["id"] == "000000000000004e"), half
PY
