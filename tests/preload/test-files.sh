#!/usr/bin/env bash
# Calls on files of a server without instrumentation. Each call is a child of its request, with path, offset and bytes, or
# it is only added to the request's sums. A call for several requests belongs to none of them.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
server=$BUILD/tests/preload/files
unset BLKIN_RUN
export BLKIN_RUN_FILE=$WORK/run BLKIN_SAMPLING_FILE=$WORK/none BLKIN_DEBUG=1

start_sessiond || exit 1
session files blkin:span blkin:process

cat >"$WORK/client.py" <<'TXT'
# client.py PORT LINE...: sends one request after the other. "commits N": N clients send a request at once. "/FILE TEXT":
# writes a file; after the run file, waits until the server must have read it.
import os, socket, sys, time

def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])))

def ask(clients, line):
    for client in clients:
        client.sendall(line.encode() + b"\n")
    for client in clients:
        got = b""
        while not got.endswith(b"done\n"):
            part = client.recv(100)
            assert part, f"{line}: closed after {got}"
            got += part

one = connect()
for line in sys.argv[2:]:
    if line.startswith("commits"):
        several = [connect() for _ in range(int(line.split()[1]))]
        for client in several:
            ask([client], "none")
        ask([one], f"gather {len(several)}")
        ask(several, "commit")
        for client in several:
            client.close()
    elif line.startswith("/"):
        path, _, text = line.partition(" ")
        open(path + ".new", "w").write(text)
        os.rename(path + ".new", path)  # the server never reads a part
        end = time.monotonic() + (1.1 if path == os.environ["BLKIN_RUN_FILE"] else 0)
        is_due = False
        while not is_due:
            is_due = time.monotonic() >= end  # so the last request begins after the end
            ask([one], "none")
            time.sleep(0.02)  # between requests
    else:
        ask([one], line)
one.close()
TXT

# traced NAME CLIENTS OPTION... -- LINE...: runs the server on these lines, as the service NAME
traced() {
    local name=$1 clients=$2 options=() port
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    free_port port
    mkdir -p "$WORK/data"
    rm -f "$WORK"/data/*
    start_part server-"$name" "$BUILD/bin/blkin" run --service="$name" "${options[@]}" -- "$server" "$port" "$WORK/data/file" "$clients"
    wait_for 20 server-"$name" "its start" grep -q listens "$WORK/server-$name.log" || exit 1
    timeout 60 "$PYTHON" "$WORK/client.py" "$port" "$@" || {
        show_log "server-$name"
        fail "$name: the client has failed"
    }
    wait_part server-"$name" 20 || fail "$name: the server ended with status $?"
}

# spans_are NAME <<PYTHON: checks spans of this service. `spans`: all; `requests`: the SERVER spans by start, each with its
# `calls`
cat >"$WORK/spans.py" <<'TXT'
import json, sys
spans = [s for s in json.load(open(sys.argv[1])) if s["localEndpoint"]["serviceName"] == sys.argv[2]]
path = sys.argv[3]
by_id = {span["id"]: span for span in spans}
for span in spans:
    span.setdefault("tags", {})
    span["calls"] = sorted((s for s in spans if s.get("parentId") == span["id"]), key=lambda s: s["timestamp"])
requests = sorted((s for s in spans if s.get("kind") == "SERVER"), key=lambda s: s["timestamp"])

def show():
    for span in spans:
        print({key: span[key] for key in ("name", "kind", "tags") if key in span}, file=sys.stderr)

def call(span):
    tags = span["tags"]
    inside = by_id[span["parentId"]]
    assert inside["timestamp"] <= span["timestamp"], span
    assert span["timestamp"] + span["duration"] <= inside["timestamp"] + inside["duration"] + 1, (span, inside)
    return (span["name"], tags.get("file.path"), tags.get("offset"), tags.get("bytes"), tags.get("error"))

def numbers(span):
    return {key: int(value) for key, value in span["tags"].items() if key.startswith("file.")}

try:
    exec(sys.stdin.read())
except AssertionError:
    show()
    raise
TXT
spans_are() {
    "$PYTHON" "$WORK/spans.py" "$WORK/files.json" "$1" "$WORK/data/file" || fail "$1: the spans are wrong"
}

# ---- all runs are in one session; each run is a service

traced each 1 -- "pread 4096 512" "pwrite 100 8192;fdatasync" "read 10;write 20;readv;writev;preadv 0 7;pwritev 0 8" \
    "fallocate 1000 0;ftruncate 5000;sync_file_range 100 0;fsync" "bad" "none" "sendfile 3000 100"
traced names 1 -- "write 1" "/$WORK/other x" "/$WORK/third x" "reopen $WORK/other" "write 2" "replace $WORK/third" "fsync" \
    "write 3" "close" "write 4"
traced group 9 -- "write 1" "commits 8" "fsync"
traced totals 4 --file-calls=totals -- "read 1;read 2;pread 40 0" "write 5;fsync;fdatasync;pwrite 50 1" "commits 3"
cost_requests=(none)
for _ in 1 2 3 4; do
    cost_requests+=("write 100;fdatasync" "pread 100 0")
done
traced cost 1 --usage=1 -- "${cost_requests[@]}"
traced short 1 --min-us=60000000 "--files=*/file" -- "write 7"
traced others 1 "--files=/nowhere/*" -- "write 7"
traced changed 1 --file-calls=off -- "write 1" "$BLKIN_RUN_FILE file-calls=each" "write 2" \
    "$BLKIN_RUN_FILE file-calls=every" "write 3" "$BLKIN_RUN_FILE " "write 4"
sunk files
lost_nothing files

# ---- each call is a span of its request, with its path, offset and bytes

spans_are each <<'TXT'
calls = [[call(c) for c in request["calls"]] for request in requests]
expected = [
    [("pread", path, "512", "4096", None)],
    [("pwrite", path, "8192", "100", None), ("fdatasync", path, None, None, None)],
    [("read", path, None, "10", None), ("write", path, None, "20", None), ("readv", path, None, "30", None),
     ("writev", path, None, "30", None), ("preadv", path, "7", "30", None), ("pwritev", path, "8", "30", None)],
    [("fallocate", path, "0", None, None), ("ftruncate", path, "5000", None, None),
     ("sync_file_range", path, "0", None, None), ("fsync", path, None, None, None)],
    [("pwrite", path, "0", None, "EBADF")],
    [],
    [("sendfile", path, "100", "3000", None)]]
assert calls == expected, calls
assert all(not numbers(request) for request in requests)
assert all("kind" not in c for request in requests for c in request["calls"])
assert len({request["traceId"] for request in requests}) == len(requests) == 7
TXT

# ---- a descriptor becomes another file: by calls that the library sees, and by raw calls, which a sync detects

spans_are names <<'TXT'
paths = [call(c)[:2] for request in requests for c in request["calls"]]
other, third = (path.replace("data/file", name) for name in ("other", "third"))
assert paths == [("write", path), ("write", other), ("fsync", third), ("write", third), ("write", path)], paths
TXT

grep -q ' replaced 1 ' "$WORK/server-names.log" || fail "names: the replaced descriptor is not counted"

# ---- a group commit belongs to several requests

spans_are group <<'TXT'
commits = [r for r in requests if "file.shared_calls" in r["tags"]]
assert len(commits) == 8 and len(requests) == 19, (len(commits), len(requests))
for commit in commits:
    assert numbers(commit).keys() == {"file.shared_calls", "file.shared_syncs", "file.shared_us"}, commit
    assert numbers(commit)["file.shared_calls"] == 2 and numbers(commit)["file.shared_syncs"] == 1
    assert numbers(commit)["file.shared_us"] <= commit["duration"] + 2, commit
    assert not commit["calls"]
others = [call(c)[:2] for r in requests for c in r["calls"]]
assert others == [("write", path), ("fsync", path)], others
TXT

# ---- only sums of the request

spans_are totals <<'TXT'
own = [numbers(r) for r in requests if numbers(r) and "file.shared_calls" not in r["tags"]]
assert len(own) == 2 and len(requests) == 9, requests
reads, writes = own
us = {key: reads.pop(key) for key in list(reads) if key.endswith("_us")}
assert reads == {"file.reads": 3, "file.read_bytes": 43} and us.keys() == {"file.read_us"}, (reads, us)
us = {key: writes.pop(key) for key in list(writes) if key.endswith("_us")}
assert writes == {"file.writes": 2, "file.written_bytes": 55, "file.syncs": 2}, writes
assert us.keys() == {"file.write_us", "file.sync_us"} and sum(us.values()) <= requests[1]["duration"] + 2, us
assert all(len(r["calls"]) == 0 for r in requests) and len(spans) == len(requests)
TXT

# ---- the usage of a call is its whole duration, and never more. The usage may be less if the thread is stopped between the
# readings of the clock and of the usage: this happens to some requests, not to all.

spans_are cost <<'TXT'
missing = {}
for request in requests[1:]:
    for c in request["calls"] + [request]:
        used = int(c["tags"]["usage.cpu_us"]) + int(c["tags"]["usage.off_cpu_us"])
        own = c["duration"] - sum(inner["duration"] for inner in c["calls"])
        slack = 3 + len(c["calls"]) * 3 + own // 10
        assert used <= own + slack, (used, own, c)
        missing.setdefault((c["name"], len(c["calls"])), []).append(own - used - slack)
assert missing.keys() == {("write", 0), ("fdatasync", 0), ("pread", 0), *((requests[0]["name"], n) for n in (1, 2))}, missing
assert all(min(each) <= 0 for each in missing.values()), missing
assert [len(request["calls"]) for request in requests] == [0] + [2, 1] * 4
TXT

# ---- short spans and other files are not wanted

spans_are short <<'TXT'
assert not spans, spans
TXT
spans_are others <<'TXT'
assert len(spans) == 1 and not numbers(spans[0]), spans
TXT

# ---- the run file changes while the server runs; a wrong text is reported once, and changes nothing

spans_are changed <<'TXT'
calls = [c["tags"]["bytes"] for r in requests for c in r["calls"]]
assert calls == ["2", "3"], calls
TXT
[ "$(grep -c '"file-calls=every" is not file-calls=auto, each, totals or off' "$WORK/server-changed.log")" = 1 ] || {
    show_log server-changed
    fail "the wrong text is not reported once"
}
exit 0
