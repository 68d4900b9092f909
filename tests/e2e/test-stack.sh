#!/bin/bash
# The example stack stores data: thin-provisioned, with copy-on-write, for many clients at once. A copy shows in the
# trace of the write that caused it.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"

# volume STEP: uses the protocol of wire.c, with requests that are not traced.
volume() {
    "$PYTHON" - "$GATEWAY" "$1" <<'PY' || fail "what the volume holds is wrong ($1)"
import errno, socket, struct, sys

WRITE, READ, SNAPSHOT, REPLICATE = 1, 2, 3, 4
HEADER = struct.Struct(">IIQQII24s")
host, port = sys.argv[1].split(":")
peer = socket.create_connection((host, int(port)), timeout=100)

def receive(size):
    data = b""
    while len(data) < size:
        got = peer.recv(size - len(data))
        assert got, "connection closed"
        data += got
    return data

def call(op, offset, length, data=b""):
    peer.sendall(HEADER.pack(0x424c4b58, op, 0, offset, length, 0, bytes(24)) + data)
    status = HEADER.unpack(receive(HEADER.size))[5]
    return status, receive(length) if op == READ and status == 0 else b""

def pattern(size):
    return bytes((i * 7 + i // 251) % 256 for i in range(size))

if sys.argv[2] == "fill":
    assert call(READ, 1 << 20, 9000) == (0, bytes(9000)), "never written: zeros"
    assert call(WRITE, 0, 65536, pattern(65536)) == (0, b"")
    across = pattern(200000)
    assert call(WRITE, 500000, len(across), across) == (0, b""), "across extents"
    assert call(READ, 500000, len(across)) == (0, across)
    assert call(READ, 499999, 1) == (0, b"\0"), "an extent's part that was never written"
    assert call(WRITE, (1 << 36) - 1, 2, b"ab")[0] == errno.ENOSPC, "past the end"
    assert call(REPLICATE, 0, 1, b"a")[0] == errno.EOPNOTSUPP, "not from a client"
else:
    status, data = call(READ, 0, 65536)
    assert status == 0 and data[4096:] == pattern(65536)[4096:], "the copied part"
    assert data[:4096] != pattern(4096), "the part that was written after the snapshot"
PY
}

# has SPANS TEXT...: checks that one trace has SPANS spans and these texts.
has() {
    local trace shown text
    trace=$("$BUILD/bin/blkin" show --list "$WORK/spans.json" | awk -v n="$1" '$2 == n { print $1 }')
    [ "$(wc -w <<<"$trace")" -eq 1 ] || fail "not one trace of $1 spans: ${trace:-none}"
    shown=$("$BUILD/bin/blkin" show -a "$WORK/spans.json" "$trace")
    shift
    for text in "$@"; do
        grep -qF -- "$text" <<<"$shown" || fail "the trace does not show \"$text\": $shown"
    done
}

private_begin
start_sessiond && start_stack && start_session copy --output="$WORK/trace" || exit 1
volume fill
run_client 2 --snapshot || exit 1
volume check
lttng destroy copy >/dev/null || fail "lttng destroy"
send_recorded "file:$WORK/spans.json" "$WORK/trace"

# A snapshot, a write with a copy and a read are traced; requests without a trace are not.
check_account $((4 + 26 + 8))
has 4 "mapper: snapshot" "snapshot = 1"
# the steps of a thread are one event
events=$(babeltrace2 "$WORK/trace" | grep -c 'blkin:span: .*service = "mapper"')
[ "$events" -eq 3 ] || fail "the mapper made $events events of three requests"
has 26 "state = shared" "mapper: allocate" "mapper: copy" "mapper: fetch" "store-1: pread"

# Many clients at once, each in its part of the volume, over a snapshot.
run_client 640 --threads 32 && run_client 640 --threads 32 --snapshot || exit 1
