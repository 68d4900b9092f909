#!/usr/bin/env bash
# Servers that fork for each connection: each request is a span, with the pid of its child. No child of a busy process
# hangs. ROUNDS=N: how often a child closes all descriptors (15). FORKS=N: children of a busy process (300).
# timeout: 120
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
forks=$programs/forks
rounds=${ROUNDS:-15}

# forks_at NAME PORT WAY ARGUMENT...: starts a traced server, with its pid in $server
forks_at() {
    LD_PRELOAD=$preload BLKIN_RUN=service=$1 timeout 100 "$forks" "$3" "$2" "${@:4}" &
    server=$!
    wait_for 20 - "$1 at $2" listening "$2" || exit 1
}

# made_by NAME SPANS PROCESSES: checks the number of server spans, of their different ids, and of processes.
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

# answers WAY PORT REQUESTS SPANS PROCESSES: sends requests to a traced server, and checks its spans
answers() {
    session "$1" blkin:span blkin:process
    forks_at "$1" "$2" "$1" "$3"
    echo "$1: the slowest connection took $("$forks" ask "$2" "$3") us"
    wait "$server" || fail "$1: status $?"
    made_by "$1" "$4" "$5"
}

forks_at without-daemon 7701 serve 80
echo "without a daemon: the slowest connection took $("$forks" ask 7701 80) us"
wait "$server" || fail "without a daemon: status $?"

start_sessiond || exit 1
answers serve 7701 80 80 80
lost_nothing serve

# forks without handlers: LTTng records no event in these children, and the parent's requests are not recorded again
answers bare 7706 30 10 1

# a server that forks twice, as vsftpd does; the process in between may have ended
answers twice 7707 20 20 20

# a process with threads that record
session busy blkin:span
LD_PRELOAD=$preload timeout 300 "$forks" busy 7708 "${FORKS:-300}" || fail "busy: status $?"
lttng destroy busy >/dev/null

# a child that closes all descriptors keeps its own files, while sessions begin and end
(
    for ((i = 0; ; i++)); do
        session "random$i" 'blkin:*' 'zipkin:*'
        lttng destroy "random$i" >/dev/null
        echo $i >"$WORK/sessions"
    done
) &
sessions=$!
forks_at close 7703 close "$rounds" 60
"$forks" ask 7703 "$rounds" >/dev/null || fail "a child lost a file: see above"
wait "$server" || fail "close: status $?"
wait_for 20 - "a session that has ended" test -s "$WORK/sessions" || exit 1
kill $sessions || fail "sessions did not begin and end all the time"
wait $sessions 2>/dev/null

# the preload does not wait for threads that cannot start, which would take LTTNG_UST_REGISTER_TIMEOUT
most=100000000
for limit in data=17M data=12M data=9M; do
    name=${limit%=*}
    prlimit --"$name=$(numfmt --from=iec "${limit#*=}")" env LD_PRELOAD="$preload" LTTNG_UST_REGISTER_TIMEOUT=200000 \
        timeout $((60 * PATIENCE)) "$forks" serve 7705 3 &
    server=$!
    wait_for 20 - "a server with $limit" listening 7705 || exit 1
    slowest=$("$forks" ask 7705 3)
    wait "$server" || fail "$limit: status $?"
    echo "$limit: the slowest of 3 connections took $slowest us"
    [ "$slowest" -lt $most ] || fail "$limit: $slowest us for a connection"
done
