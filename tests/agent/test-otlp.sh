#!/bin/bash
# Spans of other SDKs in the agent. The agent sends the trace of a slow span, with libblkin's spans of the trace. Late
# spans of an SDK are sent late. Fast spans are not sent.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 90
set -u
. "$SRC/tests/agent/recording.sh"
ANSWER_MS=$((30000 * PATIENCE)) recording_begin # the test's spans arrive within this time
free_port OTLP_PORT
export BLKIN_OTLP_LISTEN=127.0.0.1:$OTLP_PORT BLKIN_OTLP_SOCKET=$WORK/otlp BLKIN_SLOW_FILE=$WORK/slow
echo '*>200ms' >"$WORK/slow"
chmod 644 "$WORK/slow"
start_all_parts

# send TRACE ID PARENT NAME MS...: sends spans of the service "gateway", each of five words
send() { "$PYTHON" "$SRC/tests/agent/parts/sdk_span.py" "$OTLP_PORT" "$@"; }

# foreign TRACE: prints the names of the gateway's spans that the collector has of the trace
foreign() {
    "$PYTHON" - "$WORK/taken" "$1" <<'PY'
import json, os, sys
spans = [json.loads(line) for line in open(sys.argv[1])] if os.path.exists(sys.argv[1]) else []
print(" ".join(sorted(span["name"] for span in spans if span["traceId"].rjust(32, "0") == sys.argv[2]
                      and span.get("localEndpoint", {}).get("serviceName") == "gateway")))
PY
}
has_foreign() { [ "$(foreign "$1")" = "$2" ]; }

# The agent watches a trace for late spans for 15 s from when it has collected it: a busy machine tries again.
begin_watch() { watches=$((${watches-0} + 1)) watched=$SECONDS; }
is_watched() { [ $((SECONDS - watched)) -lt 14 ]; }

# a trace of both: libblkin's span is slow, and the gateway's spans arrive before and after the trace was sent
until
    begin_watch
    make "slow 250"
    send "$ID" 0000000000000004 - early 5 || fail "the agent takes no spans"
    wait_for 20 agent "the spans of both" has_spans "$ID" "4 4" || { status; exit 1; }
    send "$ID" 0000000000000005 - late 5 || fail "the agent takes no spans"
    is_watched
do :; done
wait_for 20 agent "the gateway's spans" has_foreign "$ID" "early late" || { status; exit 1; }
wait_for 20 agent "its verdict" has traces_complete 1 || { status; exit 1; }

# a slow span beside fast ones; its parent arrives after the trace was sent, and makes the trace whole
until
    begin_watch
    one=0${watches}0102030405060708090a0b0c0d0e0f
    other=a${one#?}
    complete=$(total traces_complete)
    send $one 0000000000000001 0000000000000002 slow 300 $other 0000000000000003 - fast 3 || fail "the agent takes no spans"
    wait_for 20 agent "the slow span" has_foreign $one slow || { status; exit 1; }
    send $one 0000000000000002 - root 10 || fail "the agent takes no more spans"
    is_watched
do :; done
wait_for 20 agent "its parent, which arrived later" has_foreign $one "root slow" || { status; exit 1; }
wait_for 20 agent "the verdict" has traces_complete $((complete + 1)) || { status; exit 1; }
grep -q '"name": "slow".*"blkin.kept": "\*>200ms"' "$WORK/taken" || fail "the slow span has no tag with the rule"

# by hand: all traces of the last seconds
name=$(ask "keep-last 60000" id) || exit 1
wait_for 20 agent "the answer" kept "$name" || { ask "kept $name"; exit 1; }
wait_for 20 agent "the fast one" has_foreign $other fast || { status; exit 1; }
[ "$(foreign $one)" = "root slow" ] || fail "spans that were sent were sent again: $(foreign $one)"

# a reload frees the configuration with the text of the socket's path
wait_for 20 - reload "$BUILD/bin/blkin" reload agent >"$WORK/reload.log" 2>&1 || fail "reload: $(<"$WORK/reload.log")"
is otlp socket "$WORK/otlp" || fail "the socket after a reload: $(status otlp socket)"

# a body that is no OTLP is refused and counted
[ "$(curl -s -o /dev/null -w '%{http_code}' -d nonsense "http://127.0.0.1:$OTLP_PORT/v1/traces")" = 415 ] || fail "text was taken"
is otlp counts refused_type 1 || fail "refused_type is not 1: $(status otlp)"

# SDKs' spans in a killed agent are lost, and an answer has the time from which it is complete
make begin # the agent is killed while the request lasts
stop_part agent KILL
before=$(date -u +%FT%T.%3NZ) killed_ms=$(date +%s%3N)
start_agent
wait_for 20 agent "its recording" is state recording || exit 1
name=$(ask "keep-last 60000" id) || exit 1
wait_for 20 agent "the answer" kept "$name" || { ask "kept $name"; exit 1; }
[[ $(ask "kept $name" hosts | jq -r ".[0].held_from") > "$before" ]] || fail "held_from is before the kill: $(ask "kept $name")"

# this time concerns only spans that arrived by OTLP: an older trace without such spans is whole
complete=$(total traces_complete)
make "end 250"
wait_for 20 agent "the trace of the rings" has_spans "$ID" || { status; exit 1; }
wait_for 20 agent "its verdict" has traces_complete $((complete + 1)) || { status; exit 1; }
two=200102030405060708090a0b0c0d0e0f
send $two 0000000000000001 - slow @$((killed_ms - 5000)) || fail "the agent takes no spans"
wait_for 20 agent "the verdict on what may be lost" is totals traces_incomplete 1 || { status; exit 1; }
wait_for 20 agent "all deliveries" is_delivered || exit 1
grep '"name": "incomplete"' "$WORK/taken" | grep "${two#?}" | grep -q blkin.held_from || fail "the trace does not tell why"
stop_part agent TERM 20 || fail "status $? of SIGTERM"
[ ! -e "$WORK/otlp" ] || fail "the socket is left"
