#!/usr/bin/env bash
# Servers without instrumentation, with the agent's rings and without LTTng. Each request has two spans, the server's
# and the client's; children record, too. A program that puts itself under a seccomp filter is traced under the filter.
# The library makes no system call that the filter does not allow.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
export BLKIN_LTTNG=no

# agent_begins NAME: starts an agent for the programs
agent_begins() {
    mkdir "$WORK/$1" && mkfifo "$WORK/$1/end"
    "$BUILD/tests/libblkin-ring/agent" "$WORK/$1" <"$WORK/$1/end" >"$WORK/$1.found" &
    agent=$!
    exec 9>"$WORK/$1/end"
    export BLKIN_RINGS=$WORK/$1/socket
    wait_for 20 - "the agent" test -S "$BLKIN_RINGS" || exit 1
}

# agent_answered NAME TIMES: checks that the agent has answered at least TIMES times
agent_answered() {
    echo >&9
    [ "$(sed -n 's/^answered //p' "$WORK/$1.found" | tail -n 1)" -ge "$2" ]
} 2>/dev/null

has_rings() {
    grep -q memfd:blkin-rings "/proc/$(pgrep -x serve | head -n 1)/maps"
} 2>/dev/null

# requests_of WAY PORT: sends requests to a server, which waits 300 ms for rings and passes them to its children. If the
# agent did not get a CPU in that time, the test starts another server. The requests begin when the agent has answered
# the client, too.
requests_of() {
    local try
    for try in 1 2 3 4 5 6 7 8; do
        serves server "$2" "$1" 5
        wait_for 1 - "the rings of server $try" has_rings && break
        kill $server
        wait $server
    done
    REQUEST_HOLD=$WORK/$1/go begins client "$programs/request" "$2" 5 2000
    wait_for 20 - "$((try + 1)) answers of the agent" agent_answered "$1" $((try + 1)) || exit 1
    touch "$WORK/$1/go"
    wait $! || fail "the client: status $?"
    served server
}

# has_found NAME LEAST MOST PROCESSES: ends the agent, and checks the number of spans. Spans from before the program has
# rings may be missing; each is counted as lost.
has_found() {
    local spans lost
    exec 9>&-
    wait $agent || fail "$1: the agent: status $?"
    spans=$(sed -n 's/^spans //p' "$WORK/$1.found")
    lost=$(sed -n 's/^lost //p' "$WORK/$1.found")
    ((spans >= $2 && spans + lost == $3)) && grep -qx "processes $4" "$WORK/$1.found"
}

agent_found() {
    has_found "$@" || {
        cat "$WORK/$1.found"
        fail "$1: not $2 to $3 spans of $4 processes"
    }
}

# finds NAME SPANS PROCESSES PROGRAM...: runs a short program with an agent, which finds exactly these numbers. A program
# waits 300 ms for the agent's answer. If the agent did not get a CPU in that time, the program runs again.
finds() {
    local try
    for try in 1 2 3 4 5; do
        agent_begins "$1-$try"
        traced "$1" "${@:4}" >/dev/null || fail "$1: status $?"
        has_found "$1-$try" "$2" "$2" "$3" && return
        cat "$WORK/$1-$try.found"
    done
    fail "$1: not $2 spans of $3 processes"
}

agent_begins epoll
requests_of epoll 7701
agent_found epoll 15000 20000 2

# five children serve one connection each
agent_begins fork
requests_of fork 7702
agent_found fork 15000 20000 6

# a filter that refuses each call of the library that serving does not need: three requests are recorded
port=7710
for action in kill trap errno; do
    for when in before after; do
        for how in prctl fork tsync; do
            finds "$action-$when-$how" 3 "$([ $how$when = forkafter ] && echo 2 || echo 1)" \
                timeout $((20 * PATIENCE)) "$programs/filtered" $action $when $how $((++port))
        done
    done
done
# alarms and usage need no system call under a filter
for when in before after; do
    BLKIN_SLOW='*>0ns' BLKIN_SAMPLING=always,usage=3 finds "alarms-$when" 3 "$([ $when = after ] && echo 2 || echo 1)" \
        timeout $((20 * PATIENCE)) "$programs/filtered" kill $when fork $((++port))
done
# a host whose id is unknown: the program does not look again
hidden=(unshare -m sh -c 'mount -n --bind /dev/null /proc/sys/kernel/random/boot_id && exec "$@"' sh)
"${hidden[@]}" true 2>/dev/null && finds hidden 3 1 "${hidden[@]}" timeout $((20 * PATIENCE)) "$programs/filtered" kill before tsync $((++port))
agent_begins left
RUN=,seccomp=leave traced filtered timeout $((20 * PATIENCE)) "$programs/filtered" kill before prctl 7703 || fail "left: status $?"
agent_found left 0 0 0

# a filter that the program inherits
finds inherited 4 1 setpriv --no-new-privs "$programs/inherits" "$programs/tricks" greeting 7704

# the doctor does not report that a traced program is untraced
agent_begins doctor
for try in 1 2 3 4 5 6 7 8; do
    begins server setpriv --no-new-privs "$programs/inherits" "$programs/serve" 7706 epoll 2
    server=$!
    wait_for 20 - "the server" listening 7706 || exit 1
    wait_for 1 - "the server's rings" has_rings && break
    kill $server
    wait $server
done
REQUEST_HOLD=$WORK/doctor/go begins client "$programs/request" 7706 2 10
client=$!
wait_for 20 - "the server's rings" has_rings || exit 1
wait_for 20 - "$((try + 1)) answers of the agent" agent_answered doctor $((try + 1)) || exit 1
"$BUILD/bin/blkin" doctor --json --pid="$(pgrep -x serve)" |
    jq -e '[.checks[].id] | index("program.preloaded") and (index("program.filtered") | not)' >/dev/null || fail "the doctor"
touch "$WORK/doctor/go"
wait $client || fail "the client: status $?"
served server
agent_found doctor 20 40 2
