#!/bin/bash
# QEMU's own events as spans, live. qemu-img sends 100,000 requests to qemu-nbd; each is a client's span with the
# server's below it, and none is left over. Then qemu-img sends requests to nbdkit with our filter, which uses
# blkin.h: `blkin show --around` lists both sides of one. REQUESTS=N: so many.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
set -u
# shellcheck source=tests/live/live.sh
. "$SRC/tests/live/live.sh"
REQUESTS=${REQUESTS-100000}
MORE=1000
readonly events=(send_request receive_simple_reply receive_structured_reply_chunk co_receive_request_decode_type
    co_receive_request_payload_received co_send_simple_reply co_send_structured_done co_send_structured_read
    co_send_structured_read_hole)

qemu=$("$SRC/scripts/fetch-qemu" --cached 2>/dev/null) || skip "QEMU with LTTng events is not built: run scripts/fetch-qemu"

all_sent() {
    counter_is rule_spans $((2 * REQUESTS)) && [ "$(counter spans_accepted)" = "$(counter spans_finished)" ]
}

all_of_nbdkit() {
    counter_is rule_spans $((2 * REQUESTS + MORE)) && counter_is spans_finished $((2 * REQUESTS + 2 * MORE)) &&
        [ "$(counter spans_accepted)" = "$(counter spans_finished)" ]
}

private_begin
choose_live_places
start_sessiond || exit
start_live --endpoint="file:$WORK/spans.json" --rules="$SRC/rules/qemu.rules" --host-min-ms=-1
wait_read || exit
lttng enable-event --session=blkin --userspace --channel=blkin "$(printf 'qemu:nbd_%s,' "${events[@]}")" >/dev/null ||
    fail "cannot enable QEMU's events"
export LTTNG_UST_REGISTER_TIMEOUT=20000
truncate -s 64M "$WORK/disk"
start_part nbd "$qemu/qemu-nbd" --persistent --format=raw --socket="$WORK/nbd" "$WORK/disk"
wait_for 20 nbd "the server's socket" test -S "$WORK/nbd" || exit
timeout 180 "$qemu/qemu-img" bench -q -w -f raw -c "$REQUESTS" -d 8 -s 4096 "nbd+unix:///?socket=$WORK/nbd" \
    >"$WORK/bench.log" 2>&1 || fail "qemu-img bench: $(tail -n 3 "$WORK/bench.log")"
wait_for 60 live "spans of both sides of all requests" all_sent || {
    status '.counters' | grep -E 'rule|lttng' >&2
    exit 1
}
stop_part nbd TERM 10
filter=$BUILD/examples/nbdkit-blkin-filter.so
if command -v nbdkit >/dev/null && [ -e "$filter" ]; then
    start_part nbdkit nbdkit --foreground --unix="$WORK/nbdkit" --filter="$filter" --filter=delay memory 64M \
        delay-write=1ms blkin-service=nbdkit
    wait_for 20 nbdkit "the server's socket" test -S "$WORK/nbdkit" || exit
    timeout 60 "$qemu/qemu-img" bench -q -w -f raw -c "$MORE" -d 8 -s 4096 "nbd+unix:///?socket=$WORK/nbdkit" \
        >"$WORK/bench.log" 2>&1 || fail "qemu-img bench of nbdkit: $(tail -n 3 "$WORK/bench.log")"
    wait_for 60 live "spans of requests to nbdkit" all_of_nbdkit || exit
    stop_part nbdkit TERM 10
else
    echo "not tested: QEMU and nbdkit side by side: no nbdkit, or no filter"
    MORE=0
fi
stop_part live TERM 20 || fail "exit status $? after SIGTERM"
check_sum
must_say '.*lost before by LTTng: 0 events, 0 packets'
"$PYTHON" - "$WORK/spans.json" "$REQUESTS" >"$WORK/pairs" <<'EOF' || fail "not all are pairs: $(cat "$WORK/pairs")"
import collections, json, sys
kinds, nbdkit = collections.defaultdict(list), []
for span in json.load(open(sys.argv[1])):
    if span["localEndpoint"]["serviceName"] == "nbdkit":
        nbdkit.append(span)
    else:
        kinds[span.get("kind")].append(span)
clients = {span["id"]: span for span in kinds["CLIENT"]}
alone = [span for span in kinds["SERVER"] if clients.get(span.get("parentId"), {}).get("traceId") != span["traceId"]]
print(f'{len(clients)} clients\' spans, {len(kinds["SERVER"])} servers\', {len(alone)} of them without the other half')
for span in nbdkit:
    around = [client["id"] for client in kinds["CLIENT"] if client["timestamp"] <= span["timestamp"] and
              span["timestamp"] + span["duration"] <= client["timestamp"] + client["duration"]]
    if around and span.get("kind") == "SERVER":
        print("around", around[0])
        break
sys.exit(len(clients) < int(sys.argv[2]) or len(kinds["SERVER"]) < int(sys.argv[2]) or len(alone) > 0)
EOF
cat "$WORK/pairs"
[ $MORE = 0 ] && exit 0
id=$(sed -n 's/^around //p' "$WORK/pairs")
[ -n "$id" ] || fail "no request to nbdkit is within one of qemu-img"
"$blkin" show --around="$id" "$WORK/spans.json" >"$WORK/around" || fail "show --around failed"
grep -q 'qemu-img: .* <$' "$WORK/around" && grep -q 'nbdkit: ' "$WORK/around" ||
    fail "show --around: $(head -n 20 "$WORK/around")"
exit 0
