#!/usr/bin/env bash
# Servers that fork for each connection: each request is a span, under its child's pid; nobody waits for
# LTTng, and no child registers. ROUNDS: how often a child closes all descriptors (30; for the figures 1000).
# BLOCKS: of 20 connections, for the figures (10; 100).
# alone
# timeout: 120
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin
forks=$programs/forks
rounds=${ROUNDS:-30}
blocks=${BLOCKS:-10}

# forks_at NAME PORT WAY ARGUMENT...: a traced server; its pid in $server
forks_at() {
    LD_PRELOAD=$preload BLKIN_RUN=service=$1 timeout 100 "$forks" "$3" "$2" "${@:4}" &
    server=$!
    wait_for 20 - "$1 at $2" listening "$2" || exit 1
}

# compared NAME: a plain server and a traced one, both in turn; the cost of a connection is printed only
compared() {
    local plain
    "$forks" serve 7702 $((blocks * 20)) &
    plain=$!
    wait_for 20 - "the plain server" listening 7702 || exit 1
    forks_at "$1" 7701 serve $((blocks * 20))
    "$forks" compare 7702 7701 "$blocks" >"$WORK/$1.us" || fail "$1: a connection failed"
    echo "$1: us per connection, plain and traced, ratio: $(cat "$WORK/$1.us")"
    wait "$plain" || fail "the plain server: status $?"
    wait "$server" || fail "$1: status $?"
}

# made_by NAME REQUESTS PROCESSES: so many spans, each with an id of its own
made_by() {
    sunk "$1"
    "$PYTHON" - "$WORK/$1.json" "$2" "$3" <<'PY' || fail "$1: see above"
import json, sys
spans = [span for span in json.load(open(sys.argv[1])) if span.get("kind") == "SERVER"]
found = len(spans), len({span["id"] for span in spans}), len({span["tags"]["lttng.vpid"] for span in spans})
print("%d spans, %d ids, %d pids" % found)
sys.exit(found != (int(sys.argv[2]), int(sys.argv[2]), int(sys.argv[3])))
PY
}

# answers WAY PORT REQUESTS PROCESSES
answers() {
    session "$1" blkin:span blkin:process
    forks_at "$1" "$2" "$1" "$3"
    "$forks" ask "$2" "$3" >/dev/null
    wait "$server" || fail "$1: status $?"
    made_by "$1" "$3" "$4"
}

compared without-daemon

start_sessiond || exit 1
session forked blkin:span blkin:process
compared with-session
made_by forked $((blocks * 20)) $((blocks * 20))
lost_nothing forked

# no handler of forks runs: what the parent has served is not the child's, what the child serves is not lost
answers bare 7706 30 21

# a server that forks twice, as vsftpd does: whether the process in between lives does not matter
answers twice 7707 20 20

# a child that has threads at its end, as smbd's have, does not register for that
answers threaded 7709 30 30

# a grandchild whose server has been killed registers, so that it sees the next session
session before blkin:span
forks_at orphan 7708 orphan
exec {connection}<>/dev/tcp/127.0.0.1/7708
request() {
    local byte=
    printf x >&"$connection"
    read -r -t 10 -n 1 byte <&"$connection" && [ "$byte" = x ] || fail "orphan: no answer"
}
request
lttng destroy before >/dev/null
session after blkin:span
orphan_is_registered() {
    request
    lttng_programs | grep -q ' blkin:span'
}
wait_for 20 - "the registration of the orphan" orphan_is_registered || exit 1
for ((i = 0; i < 20; i++)); do
    request
done
exec {connection}>&-
{ wait "$server"; } 2>/dev/null # says that it was killed
sunk after
"$PYTHON" - "$WORK/after.json" <<'PY' || fail "orphan: see above"
import json, sys
spans = json.load(open(sys.argv[1]))
print(len(spans), "spans of 20 requests to an orphan, and of some before")
sys.exit(len(spans) < 20)
PY

# LTTng's descriptors are nobody else's, whatever session daemons do meanwhile
(
    for ((i = 0; ; i++)); do
        session "random$i" 'blkin:*' 'zipkin:*'
        lttng destroy "random$i" >/dev/null
        echo $i >"$WORK/sessions"
    done
) &
sessions=$!
for way in close syscall; do
    forks_at $way 7703 $way "$rounds" 60
    "$forks" ask 7703 "$rounds" >/dev/null || fail "$way: a file was taken: see above"
    wait "$server" || fail "$way: status $?"
done
wait_for 20 - "a session that has come and gone" test -s "$WORK/sessions" || exit 1
kill $sessions || fail "sessions have not come and gone all the time"
wait $sessions 2>/dev/null

# a session daemon that does not answer is not waited for (LTTng would, for 3 s), neither are threads that cannot start
most=$((500000 * PATIENCE))
unset LTTNG_UST_REGISTER_TIMEOUT # of private.sh
# shellcheck disable=SC2154 # of private.sh
kill -STOP "${private_pid[sessiond]}"
forks_at stopped 7704 serve 10
slowest=$("$forks" ask 7704 10)
kill -CONT "${private_pid[sessiond]}"
wait "$server" || fail "stopped: status $?"
echo "stopped daemon: the slowest of 10 connections took $slowest us"
[ "$slowest" -lt $most ] || fail "a stopped session daemon: $slowest us for a connection"

for limit in data=17M data=12M data=9M; do
    name=${limit%=*}
    prlimit --"$name=$(numfmt --from=iec "${limit#*=}")" env LD_PRELOAD="$preload" timeout 60 \
        "$forks" serve 7705 3 &
    server=$!
    wait_for 20 - "a server with $limit" listening 7705 || exit 1
    slowest=$("$forks" ask 7705 3)
    wait "$server" || fail "$limit: status $?"
    echo "$limit: the slowest of 3 connections took $slowest us"
    [ "$slowest" -lt $most ] || fail "$limit: $slowest us for a connection"
done
