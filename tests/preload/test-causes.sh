#!/usr/bin/env bash
# The cause of a call: a proxy of one thread between clients and a server, all with the preload. If requests differ,
# each call is below its own request, and none below another one's. If they are equal, no call has a parent, except
# those that are tagged as guesses, which are linked only on request. Connections are new ones, or of a pool that is
# smaller than the number of requests at once. (Equal requests differ only behind the bytes that the preload
# compares.) The three tiers are one trace.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin

start_sessiond || exit 1

# chain NAME POOL FIRST-ID FEATURES: sends through a proxy with POOL connections, requests with ids from FIRST-ID on
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
