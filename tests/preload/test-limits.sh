#!/usr/bin/env bash
# A server that forks for each connection and limits the child's address space, as vsftpd does: the limit is for what
# the program maps, not for what LTTng brought along.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/preload/session.sh"
private_begin
readonly clients=5

cat >"$WORK/server.py" <<'PY'
import mmap, os, resource, select, socket, sys

def size():
    return int(open("/proc/self/statm").read().split()[0]) * mmap.PAGESIZE

before = size()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for _ in range(int(sys.argv[2])):
    select.select([server], [], [])
    connection, _ = server.accept()
    if os.fork() == 0:
        limit = before + (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        connection.recv(1)
        answer = []
        for megabytes in (32, 200):  # within the limit, and beyond it
            try:
                mmap.mmap(-1, megabytes << 20)
                answer.append("yes")
            except OSError:
                answer.append("no")
        connection.sendall(" ".join(answer).encode())
        sys.exit()
    connection.close()
    os.wait()
PY

# answers: of so many connections, one after the other
answers() {
    "$PYTHON" - "$1" "$clients" <<'PY'
import socket, sys
for _ in range(int(sys.argv[2])):
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
    connection.sendall(b"?")
    print(connection.recv(100).decode())
PY
}

# serves NAME PORT [VARIABLE=VALUE]...
serves() {
    env "${@:3}" timeout 60 "$PYTHON" "$WORK/server.py" "$2" "$clients" &
    local server=$!
    wait_for 20 - "$1 at $2" listening "$2" || exit 1
    answers "$2" >"$WORK/$1.answers" || fail "$1: a connection failed"
    wait "$server" || fail "$1: status $?"
    [ "$(sort -u "$WORK/$1.answers")" = "yes no" ] || fail "$1: 32 MB, and 200 MB: $(tr '\n' ',' <"$WORK/$1.answers")"
}

serves plain 7701
serves without-daemon 7702 LD_PRELOAD="$preload" BLKIN_RUN=service=limited
start_sessiond || exit 1
session limited blkin:span blkin:process
serves traced 7703 LD_PRELOAD="$preload" BLKIN_RUN=service=limited
sunk limited
"$PYTHON" - "$WORK/limited.json" "$clients" <<'PY' || fail "see above"
import json, sys
spans = [span for span in json.load(open(sys.argv[1])) if span.get("kind") == "SERVER"]
print(len(spans), "spans of", sys.argv[2])
sys.exit(len(spans) != int(sys.argv[2]))
PY
