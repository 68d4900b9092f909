#!/usr/bin/env bash
# A session that begins while servers and clients talk, six times: what has begun before is not
# told, what is told is whole: each half that has its other half belongs to it, as the payload of both says, and
# no call has a parent that is another request.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin

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

for name in first second third fourth fifth sixth; do
    session $name blkin:span blkin:process
    sleep 0.4 # some traffic, however much
    sunk $name
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
        # one may have been read in two pieces, of which the first is recorded
        first, second = parent["tags"]["payload"], span["tags"]["payload"]
        length = min(len(first), len(second))
        if length < 15 or first[:length] != second[:length]:
            wrong += 1
            if wrong <= 5:
                print("wrong:", json.dumps(parent), "\nabove:", json.dumps(span))
print(kinds, linked, "linked,", wrong, "wrong")
sys.exit(wrong or len(spans) < 100 or linked < len(spans) / 2)
PY
done
kill $client $front $back_end 2>/dev/null
wait "$client" "$front" "$back_end"
true
