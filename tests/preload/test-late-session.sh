#!/usr/bin/env bash
# A session that begins while servers and clients exchange requests, ROUNDS times (3). Earlier requests are not recorded,
# and recorded requests are whole. The payloads show that joined halves are of one request, and that the parent
# of each call is of the same request.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1
# shellcheck disable=SC2034 # for traced
RUN=,payload=39
serves server 7601 epoll 5
back_end=$server
begins proxy "$programs/proxy" 7602 7601 5 8
front=$!
wait_for 20 - "the proxy" listening 7602 || exit 1
begins client "$programs/request" 7602 8 1000000 0 100 1
client=$!

begins early "$programs/early"
early=$!

all_registered() { (($(lttng_programs | grep -c ' blkin:span') == 4)); }
wait_for 20 - "the registration of four programs" all_registered || exit 1
kill $early && wait $early

# received: prints the number of bytes that the server has received
received() {
    ss -tinH 'sport = :7601' | grep -o ' bytes_received:[0-9]*' | awk -F : '{ sum += $2 } END { print sum + 0 }'
}
has_received() { [ "$(received)" -ge "$1" ]; }

for ((i = 0; i < ${ROUNDS:-3}; i++)); do
    name=session$i
    session $name blkin:span blkin:process
    wait_for 20 - "some traffic" has_received $(($(received) + 100000)) || exit 1
    sunk $name ,join-wait-ms=60000 # a busy machine may delay one half of a request
    "$PYTHON" - "$WORK/$name.json" <<'PY' || fail "$name: see above"
import json, sys
spans = json.load(open(sys.argv[1]))
by_id = {span["id"]: span for span in spans}
kinds = {span.get("kind"): 0 for span in spans}
wrong = linked = 0
for span in spans:
    kinds[span.get("kind")] += 1
    parent = by_id.get(span.get("parentId"))
    if parent:
        linked += 1
        # one payload may have been read in two pieces, of which only the first is recorded
        first, second = parent["tags"]["payload"], span["tags"]["payload"]
        length = min(len(first), len(second))
        if length < 15 or first[:length] != second[:length]:
            wrong += 1
            if wrong <= 5:
                print("wrong:", json.dumps(parent), "\nabove:", json.dumps(span))
# the programs learn of a session one after the other: a half may have no other half
clients = {span["tags"].get("blkin.join"): span["id"] for span in spans if span.get("kind") == "CLIENT"}
whole = [span for span in spans if span.get("kind") == "SERVER" and span["tags"].get("blkin.join") in clients]
apart = sum(span.get("parentId") != clients[span["tags"]["blkin.join"]] for span in whole)
print(kinds, len(whole), "of two halves,", apart, "of them not joined;", linked, "linked,", wrong, "wrong")
sys.exit(wrong or apart or len(whole) < 50 or linked < len(whole))
PY
done
kill $client $front $back_end 2>/dev/null
wait "$client" "$front" "$back_end"
true
