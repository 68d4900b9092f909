#!/usr/bin/env bash
# Two networks with the same private addresses, as Docker makes them on two hosts. A client in one network and a server in
# the other, whose peers are not traced, agree in addresses, ports, offset and time. They are counted as ambiguous and not
# joined. A client and a server of one network are joined, although each has a network namespace of its own.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
{ [ "$(id -u)" -eq 0 ] && unshare --net true; } 2>/dev/null || skip "no network namespaces here"

# network NAME: makes a pair of interfaces for a client and a server, each in a namespace of its own.
network() {
    local end
    for end in client server; do
        start_part "$1-$end" unshare --net tail -f /dev/null
        wait_for 10 "$1-$end" "a namespace" is_apart "$1-$end" || exit 1
    done
    ip link add wire netns "${private_pid[$1-client]}" type veth \
        peer name wire netns "${private_pid[$1-server]}" || skip "this kernel has no veth"
    inside "$1-client" ip address add 172.17.0.2/16 dev wire
    inside "$1-server" ip address add 172.17.0.3/16 dev wire
    inside "$1-client" ip link set wire up
    inside "$1-server" ip link set wire up
}

is_apart() {
    [ "$(readlink "/proc/${private_pid[$1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

inside() { nsenter --target "${private_pid[$1]}" --net -- "${@:2}"; }

is_listening() { inside "$1" cat /proc/net/tcp | grep -q ':1B58 .* 0A '; }

# peers NETWORK traced|plain ROLE NUMBER...: starts peer.py in the background.
peers() {
    local as=()
    [ "$2" = plain ] || as=(env "BLKIN_RUN=service=$1-$3" LTTNG_UST_ALLOW_BLOCKING=1 "LD_PRELOAD=$preload")
    local end=client
    [ "$3" = request ] || end=server
    inside "$1-$end" "${as[@]}" timeout $((60 * PATIENCE)) "$PYTHON" -u "$SRC/tests/preload/peer.py" "$3" 172.17.0.3 \
        7000 "${@:4}" >"$WORK/$1-$3.log" 2>&1 &
    running+=($!)
    [ "$3" = request ] || wait_for 20 - "a server of $1" is_listening "$1-$end" || exit 1
}

# Checks that all peers have ended with status 0.
ended() {
    local pid
    for pid in "${running[@]}"; do
        wait "$pid" || fail "a peer: status $? ($(tail -n 1 "$WORK"/{one,two}-{serve,request}.log 2>&1))"
    done
    running=()
}

# spans_of SERVICE FILTER: prints the number of spans.
spans_of() {
    jq --arg service "$1" "[.[] | select(.localEndpoint.serviceName == \$service) | select($2)] | length" \
        "$WORK/networks.json"
}

running=()
network one
network two
start_sessiond || exit 1
session networks blkin:span blkin:process

# The second request takes place while the first one waits for its answer.
peers one plain serve 1 "$WORK/two-have-met" 100 300
peers one traced request 1 40000 100 300
wait_for 20 - "the first request" grep -q asked "$WORK/one-serve.log" || exit 1
peers two traced serve 1 0 100 200
peers two plain request 1 40000 100 200
wait "${running[-1]}" || fail "the second network's client: status $?"
unset 'running[-1]'
touch "$WORK/two-have-met"
ended
peers two traced serve 20 1 100 200
peers two traced request 20 0 100 200
ended

sunk networks ,join-wait-ms=60000 # a busy machine may delay one half of a request
lost_nothing networks
[ "$(spans_of one-request '.kind == "CLIENT"')" = 1 ] || fail "the first network has no client's span"
[ "$(spans_of two-serve '.kind == "SERVER"')" = 21 ] || fail "the second network does not have 21 servers' spans"
[ "$(spans_of two-serve '.kind == "SERVER" and (.traceId | startswith("626c6b2d6a6f696e"))')" = 1 ] ||
    fail "halves of two networks were joined, or halves of one network were not"
[ "$(spans_of two-serve '.kind == "SERVER" and .parentId')" = 20 ] || fail "a server's span has no parent"
grep -q 'halves of requests: .*20 joined.*1 ambiguous' "$WORK/networks-sink.log" || {
    show_log networks-sink
    fail "the account has other numbers of halves"
}
