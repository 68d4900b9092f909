#!/bin/bash
# blkin stat, graph and report agree with Zipkin, on a recorded trace, a file and Zipkin's API. They agree on
# dependencies (caller, callee, calls, errors), spans, durations, self times, and the slowest traces.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 300
set -u
. "$SRC/tests/lib.sh"
requests=400
export BABELTRACE_PLUGIN_PATH=$BUILD/plugins

private_begin
need_zipkin
start_sessiond && start_stack || exit 1
record_requests trace $requests
send_recorded "$ZIPKIN_URL/api/v2/spans" "$WORK/trace"
spans=$(stack_spans "$requests")
wait_for 30 - "$spans spans in Zipkin" zipkin_holds "$spans" || exit 1

# made traces of another time, with errors, services that are not traced themselves, and halves of one span
"$PYTHON" - "$SRC" "$ZIPKIN_URL" <<'PY' || fail "Zipkin does not take made traces"
import json, sys, urllib.request
sys.path.insert(0, f"{sys.argv[1]}/tests/report")
from made import BASE, Trace, stack
import random

traces = stack(300)
chance = random.Random(5)
for number in range(1000, 1030):  # client and server share a span; only the client has an error
    trace = Trace(number, BASE + number * 1000, chance)
    client = trace.span(None, "client", "get", 0, 500, "CLIENT", error="timeout" if number % 3 == 0 else None)
    server = trace.span(None, "osd.0", "get", 40, 400, "SERVER")
    server.update(id=client["id"], shared=True)
    trace.span(client, "osd.0", "disk", 60, 300)
    other = trace.span(server, "osd.0", "ask", 370, 20, "CLIENT", remote="auth", error="no" if number % 5 == 0 else None)
    trace.span(other, "auth", "check", 372, 10, "SERVER")
    trace.span(server, "osd.0", "note", 392, 3, "PRODUCER", remote="broker")
    trace.span(server, "osd.0", "ask again", 395, 3, "CLIENT", remote="osd.1")
    traces.append(trace.spans)
for i in range(0, len(traces), 50):
    body = json.dumps([s for t in traces[i:i + 50] for s in t]).encode()
    urllib.request.urlopen(urllib.request.Request(f"{sys.argv[2]}/api/v2/spans", body,
                                                  {"Content-Type": "application/json"}), timeout=100).close()
print(sum(map(len, traces)))
PY
window="endTs=1700000100000&lookback=3600000"
made_are_there() {
    zipkin_get "api/v2/traces?serviceName=client&limit=10000&$window" >"$WORK/made.json" &&
        [ "$(grep -o '"traceId"' "$WORK/made.json" | wc -l)" -ge 3400 ]
}
wait_for 30 - "made traces in Zipkin" made_are_there || exit 1
zipkin_get "api/v2/traces?serviceName=client&limit=10000&lookback=86400000" >"$WORK/recorded.json" &&
    zipkin_get "api/v2/dependencies?endTs=$(date +%s)000&lookback=86400000" >"$WORK/recorded-calls.json" &&
    zipkin_get "api/v2/dependencies?$window" >"$WORK/made-calls.json" || exit 1

blkin() {
    # shellcheck disable=SC2086 # the command has options
    "$BUILD/bin/blkin" $1 "$2" >"$3" 2>"$WORK/blkin.log" || {
        show_log blkin
        fail "blkin $1 $2"
    }
}
blkin "graph -f json" "$WORK/trace" "$WORK/recorded-folder.graph"
blkin "graph -f json" "$WORK/recorded.json" "$WORK/recorded-file.graph"
blkin "graph -f json" "$WORK/made.json" "$WORK/made-file.graph"
blkin "graph -f json" "$ZIPKIN_URL/api/v2/traces?serviceName=client&limit=10000&$window" "$WORK/made-url.graph"
blkin "stat --json" "$WORK/trace" "$WORK/recorded.stat"
blkin report "$WORK/trace" "$WORK/recorded-folder.html"
blkin report "$ZIPKIN_URL/api/v2/traces?serviceName=client&limit=10000&$window" "$WORK/made-url.html"

PYTHONPATH="$SRC/tests/stat" "$PYTHON" - "$WORK" "$spans" <<'PY' || fail "Zipkin has other figures"
import collections, json, re, sys, unittest
from expected import check

folder, spans = sys.argv[1], int(sys.argv[2])
test = unittest.TestCase()
test.maxDiff = None


def load(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return json.load(file)


def services_of(traces):
    rows = collections.defaultdict(lambda: [0, 0])
    for span in (s for t in traces for s in t):
        row = rows[span["localEndpoint"]["serviceName"]]
        row[0] += 1
        row[1] += "error" in span.get("tags", {})
    return {name: tuple(row) for name, row in rows.items()}


for name, of in (("recorded-folder", "recorded"), ("recorded-file", "recorded"), ("made-file", "made"), ("made-url", "made")):
    graph, traces = load(f"{name}.graph"), load(f"{of}.json")
    wanted = {(c["parent"], c["child"], c["callCount"], c.get("errorCount", 0)) for c in load(f"{of}-calls.json")}
    got = {(c["parent"], c["child"], c["callCount"], c["errorCount"]) for c in graph["calls"]}
    assert got == wanted and wanted, (name, "only here", got - wanted, "only in Zipkin", wanted - got)
    assert {s["name"]: (s["spans"], s["errors"]) for s in graph["services"] if s["spans"]} == services_of(traces), name
    print(f"{name}: {graph['spans']} spans, {len(got)} pairs with calls, {sum(c[3] for c in got)} errors: as Zipkin says")

assert sum(map(len, load("recorded.json"))) == spans, spans
check(test, load("recorded.stat"), load("recorded.json"))

for name, of in (("recorded-folder", "recorded"), ("made-url", "made")):
    with open(f"{folder}/{name}.html", encoding="utf-8") as file:
        page = file.read()
    traces = {t[0]["traceId"]: t for t in load(f"{of}.json")}
    took = {i: max(s["timestamp"] + s["duration"] for s in t) - min(s["timestamp"] for s in t) for i, t in traces.items()}
    part = page[page.index('<section id="traces">'):]
    part = part[:part.index("</section>")]
    shown = re.findall(r'<details class="tr"[^>]*><summary><b>([\d.]+) (\S+)</b>.*?<code>([0-9a-f]+)</code>', part, re.S)
    slowest = sorted(took, key=lambda i: (-took[i], i))[:10]
    assert [i for _, _, i in shown] == slowest, (shown, slowest)
    for value, unit, trace in shown:
        us = float(value) * {"µs": 1, "ms": 1000, "s": 1e6}[unit]
        assert abs(us - took[trace]) <= 0.005 * us, (value, unit, took[trace])
    assert part.count('<details class="r">') == sum(len(traces[i]) for i in slowest)
    print(f"{name}.html: the 10 slowest of {len(traces)} traces, as Zipkin has them")
PY
