#!/usr/bin/env bash
# The cause of a call: a proxy of one thread between clients and a server, all with the preload. If requests differ, each
# call has its own request as the parent, and the three tiers are one trace. If requests are equal, a call has its own
# request as the parent, or is tagged as a guess without a parent. (Equal requests differ only behind the bytes that the
# preload compares.) The proxy uses new connections, a pool, or a pool with fewer connections than requests at once.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1

# chain NAME POOL FIRST-ID FEATURES: sends requests with ids from FIRST-ID on through a proxy with POOL connections
chain() {
    local name=$1 pool=$2 first=$3 requests=${REQUESTS:-100} upstream=$((++port)) at=$((++port))
    local count=$((16 * requests)) connections=$(($2 ? $2 : 16 * requests)) back_end
    session "$name" blkin:span blkin:process
    traced "$name-server" "$programs/serve" $upstream epoll $connections &
    back_end=$!
    wait_for 20 - "$name-server" listening $upstream || exit 1
    RUN=,payload=64 traced "$name-proxy" "$programs/proxy" $at $upstream "$pool" 16 &
    server=$!
    wait_for 20 - "$name-proxy" listening $at || exit 1
    traced "$name-client" "$programs/request" $at 16 "$requests" 20 100 "$first" || fail "$name-client: status $?"
    served "$name-proxy"
    wait $back_end || fail "$name-server: status $?"
    found "$name" "$name-client:client:$count:joined:root" "$name-proxy:server:$count:joined" \
        "$name-proxy:client:$count:joined:$4" "$name-server:server:$count:joined"
}
port=7100
chain new 0 1 unique:true
chain pooled 16 1 unique:true
chain queued 5 1 unique:true
chain new-equal 0 0 guess:true
chain pooled-equal 16 0 guess:true
chain queued-equal 5 0 guess:true
