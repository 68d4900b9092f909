#!/bin/bash
# A recorder that ends answers other hosts before: a request that came just then is fetched, and its answer is posted.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/agent/recording.sh
. "$SRC/tests/agent/recording.sh"
LINGER_MS=2000 recording_begin
free_port HUB_PORT
mkdir "$WORK/hub"
start_part hub "$BUILD/bin/blkin" hub --runtime-dir="$WORK/hub/run" --state-dir="$WORK/hub" --hub-listen="127.0.0.1:$HUB_PORT" \
    --expose-hub=yes
wait_for 20 hub "the hub's port" listening "$HUB_PORT" || exit 1
start_taker || exit 1
RULES='' start_requests
start_agent --hub="http://127.0.0.1:$HUB_PORT"
wait_recording || exit 1
wait_for 20 agent "the hub" is exchange state connected || exit 1

# peer ARGUMENT... [BODY]: another recorder at the hub
peer() {
    curl -fsS --max-time 20 -H 'Content-Type: application/json' "http://127.0.0.1:$HUB_PORT/v1/messages?host=peer$1" "${@:2}"
}
peer '&agent=1&wait=0' >"$WORK/news" || fail "the hub does not answer"
make "slow 1"
peer '' -d '[{"type": "keep", "id": "peer:1:1", "post": "peer:1:1", "host": "peer", "at": 1, "traces": [{"id": "'"$ID"'", "why": "x"}]}]' \
    >"$WORK/posted" || fail "the hub takes no request"
wait_for 10 agent "the request" is totals traces_asked_by_others 1 || exit 1
stop_part agent TERM 20 || fail "status $? of SIGTERM"
has_spans "$ID" || fail "the end has lost a trace that another host wants"
peer '&agent=1&wait=0' | jq -e '.messages | any(.type == "found" and .id == "peer:1:1" and .traces[0].spans == 3)' >/dev/null ||
    fail "the other host has no answer: $(peer '&agent=1&wait=0')"
