#!/usr/bin/env bash
# Servers and clients without instrumentation, with the preload. Both sides have as many interactions as there are
# requests. The key of each is that of exactly one interaction of the other side at that time. The servers have a thread
# or a process for each connection, or epoll, poll, select, or one thread that reads and another one that answers. They use
# every call that moves bytes. Messages are small, large, pipelined, or in pieces.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"

start_sessiond || exit 1
session all blkin:span blkin:process

expected=()
exchange() {
    serves "$1" "$2" "$3" "$4"
    traced "$1-client" "$programs/request" "$2" "$4" "$5" "${@:6}" || fail "$1-client: status $?"
    served "$1"
    local count=$(($4 * $5))
    expected+=("$1:server:$count:joined" "$1-client:client:$count:joined:root")
}
port=7000
for way in threads fork epoll poll select pool; do
    exchange "$way" $((++port)) $way 8 100
done
# responses that need many writes, requests that need many reads
exchange big-threads $((++port)) threads 4 20 900000 900000
exchange big-epoll $((++port)) epoll 4 20 900000 900000
exchange big-select $((++port)) select 4 20 900000 900000
# Sixteen requests in one message are one interaction of the client. A server that reads and answers one request after the
# other has sixteen interactions, of which the first has the key.
for way in threads epoll; do
    serves "pipelined-$way" $((++port)) $way 4
    traced "pipelined-$way-client" "$programs/request" $port 4 400 0 8 0 16 || fail "pipelined-$way: status $?"
    served "pipelined-$way"
    expected+=("pipelined-$way:server:1600" "pipelined-$way-client:client:100:joined:root")
done
# threads of a server share a connection with many requests in flight; the client is not traced
serves shared $((++port)) shared 4
timeout 60 "$programs/request" $port 4 2000 100 4000 0 16 keep || fail "shared: status $?"
served shared
expected+=("shared:server:8000:alike")
exchange six 6:$((++port)) epoll 4 50
exchange unix "$WORK/socket" epoll 4 50
exchange unix-threads "$WORK/another" threads 4 50
# a client that may not use sock_diag(7): both sides have one key nevertheless
if [ -e /usr/include/x86_64-linux-gnu/asm/unistd_64.h ]; then
    echo 'RestrictAddressFamilies=AF_UNIX AF_INET' >"$WORK/unit"
    serves unix-narrow "$WORK/third" epoll 2
    RUN=,seccomp=trace traced unix-narrow-client "$PYTHON" "$SRC/tests/zero/unit.py" "$WORK/unit" \
        "$programs/request" "$WORK/third" 2 10 || fail "unix-narrow-client: status $?"
    served unix-narrow
    expected+=("unix-narrow:server:20:joined" "unix-narrow-client:client:20:joined:root")
else
    complain "not tested: a filter of address families: no numbers of system calls"
fi
found all "${expected[@]}"

# An answer with pauses, which a proxy's event loop passes on. A pause of 0.9 s would be the end of the answer: if a busy
# machine may have made a pause of 0.3 s nearly as long, the test tries again.
for try in {1..10}; do
    session "stalled-$try" blkin:span blkin:process
    RUN=,file-calls=off begins stalled "$PYTHON" "$SRC/tests/preload/peer.py" stall 127.0.0.1 $((++port)) 4 300 37 20 \
        >"$WORK/pauses.log"
    stalled=$!
    wait_for 20 - stalled listening $port || exit 1
    begins stalled-proxy "$programs/proxy" $((port + 1)) $port 1 1
    server=$!
    wait_for 20 - stalled-proxy listening $((++port)) || exit 1
    timeout 60 "$programs/request" $port 1 4 0 20 || fail "stalled: status $?"
    served stalled-proxy
    server=$stalled
    served stalled
    { grep -q late "$WORK/pauses.log" && [ "$try" != 10 ] && lttng destroy "stalled-$try" >/dev/null; } || break
done
found "stalled-$try" stalled:server:4:joined:slow stalled-proxy:client:4:joined:below:slow stalled-proxy:server:4:slow
