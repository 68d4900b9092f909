#!/usr/bin/env bash
# The ABI: the library has the functions of abi/libblkin.abi, and doc/compatibility.md has the digest of that file. A
# program that was built against 0.9 (see abi/program.c) runs with the library.
#
# test-abi.sh --write   writes abi/libblkin.abi again, and prints its digest for doc/compatibility.md
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
abi=$SRC/tests/libblkin/abi
lib=$BUILD/lib/libblkin.so.1

[ "$(uname -m)" = x86_64 ] || {
    echo "the baseline is of x86_64"
    exit 77
}
described() {
    abidw --headers-dir "$BUILD/include/blkin" --drop-private-types --drop-undefined-syms "$lib"
}
as_text() { "${PYTHON:-/usr/bin/python3}" "$abi/text.py"; }
if [ "${1-}" = --write ]; then
    set -o pipefail
    described | as_text >"$abi/libblkin.abi" && sha256sum "$abi/libblkin.abi" | cut -c 1-12
    exit
fi
. "$SRC/tests/libblkin/session.sh"

# ---- the library ----

grep -q "^| .*\`$(sha256sum "$abi/libblkin.abi" | cut -c 1-12)\` |$" "$SRC/doc/compatibility.md" ||
    fail "doc/compatibility.md has no line for the ABI of abi/libblkin.abi"

if type -P abidw >/dev/null; then
    described >"$WORK/abi.xml" || fail "abidw: status $?"
    as_text <"$WORK/abi.xml" | diff -u "$abi/libblkin.abi" - ||
        fail "the ABI has changed: if this is intended, run test-abi.sh --write and change doc/compatibility.md"
    # the comparison finds a change of a span's size, and of a function's name
    for change in "s/\(name='blkin_span' [^>]*size-in-bits=\)'[0-9]*'/\1'5184'/" "s/blkin_span_drop_/blkin_span_forget_/g"; do
        sed "$change" "$WORK/abi.xml" | as_text | cmp -s "$abi/libblkin.abi" - && fail "no difference with $change"
    done
else
    echo "not tested: the ABI's text: there is no abidw (package abigail-tools)"
fi

# ---- a program that was built against 0.9 ----

program() {
    LD_LIBRARY_PATH=$BUILD/lib timeout 20 "$abi/program-0.9" || fail "the program of 0.9: status $?"
}
start_sessiond || exit 1
program # without a session
session whole blkin:span blkin:process 'zipkin:*'
program
recorded whole
session streamed 'blkin:*'
program
recorded streamed
for mode in whole streamed; do
    lost_nothing $mode
    "$PYTHON" - $mode "$WORK/$mode.json" <<'PY' || fail "$mode: the spans differ"
import json, sys
mode, path = sys.argv[1:]
found = json.load(open(path))
spans = {span["name"]: span for span in found}
expected = {"root", "renamed", "x" * 120, "late", "small", "completed", "step"} | ({"original"} if mode == "whole" else {"dropped"})
assert set(spans) == expected and len(found) == len(expected), found
root, child, late, full = spans["root"], spans["renamed"], spans["late"], spans["x" * 120]
for span in (child, late, full, spans["small"], spans["completed"]):
    assert span["parentId"] == root["id"] and span["traceId"] == root["traceId"], span
assert root["localEndpoint"] == {"serviceName": "osd", "ipv4": "10.0.0.1", "port": 6800}, root
mon = {"serviceName": "mon", "ipv4": "10.0.0.2", "port": 6789}
assert child["localEndpoint"] == child["remoteEndpoint"] == mon and child["kind"] == "CLIENT", child
tags = {"string": "value", "int64": "-1", "uint64": str(2**64 - 1), "double": "0.5", "bool": "true", "error": "EIO",
        "otlp.link.0": f"{root['traceId']}|{root['id']}||{{}}|0"}
assert {key: value for key, value in child["tags"].items() if not key.startswith("lttng.")} == tags, child
texts = sorted(annotation["value"] for annotation in child["annotations"])
assert texts == ["1 of printf", "annotated", "at a time [debug]", "warned [warning]"], child
assert 1_000_000 <= child["duration"] < 60_000_000, child
assert full["localEndpoint"]["serviceName"] == "x" * 72, full
if mode == "whole":
    assert full["tags"]["blkin.dropped"] == "10", full
else:
    assert full["tags"]["x" * 100] == "x" * 239, full
PY
done
