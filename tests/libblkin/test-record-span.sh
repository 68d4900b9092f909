#!/usr/bin/env bash
# blkin_record_span() as a binding for another language uses it: one call for each span. Wrong buffers record nothing.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/libblkin/session.sh"
start_sessiond || exit 1
session whole blkin:span
session streamed 'blkin:*'
LTTNG_UST_ALLOW_BLOCKING=1 BLKIN_LIB=$BUILD/lib/libblkin.so.1 "$PYTHON" - <<'PY' || fail "see above"
import ctypes, os, random, struct, time

lib = ctypes.CDLL(os.environ["BLKIN_LIB"])
lib.blkin_record_span.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
lib.blkin_now.restype = ctypes.c_uint64
lib.blkin_init()


def attribute(kind, key, value):
    return struct.pack("=cBH", kind, len(key), len(value)) + key + value


def buffer(name, attributes, version=1, kind=2, flags=3, ids=(5, 6, 7, 8), start=1, end=2):
    return struct.pack("=BBHI6Q", version, kind, len(name), flags, *ids, start, end) + name + attributes


def record(data):
    return lib.blkin_record_span(data, len(data))


now = lib.blkin_now()
assert abs(now - time.monotonic_ns()) < 10**9
every = b"".join([
    attribute(b"s", b"object", b"rbd_data.1"), attribute(b"I", b"int", struct.pack("=q", -5)),
    attribute(b"U", b"uint", struct.pack("=Q", 2**64 - 1)), attribute(b"D", b"double", struct.pack("=d", 0.5)),
    attribute(b"B", b"bool", b"\1"), attribute(b"s", b"error", b"EIO"),
    attribute(b"4", b"", struct.pack("=Q", now - 5000000) + b"late"),
    attribute(b"l", b"", struct.pack("=3Q", 1, 2, 3)),
    attribute(b"r", b"mon", struct.pack("=H", 50000) + b"10.0.0.9"),
    attribute(b"e", b"osd.7", struct.pack("=H", 6800) + b"2001:db8::1")])
times = dict(start=now - 10000000, end=now - 1000000)
assert record(buffer(b"whole", every, **times)) == 0
assert record(buffer(b"root", b"", ids=(0, 0, 0, 0), flags=0, **times)) == 0
assert record(buffer(b"unsampled", b"", flags=2, **times)) == 0
# one wrong attribute: nothing is recorded
right = buffer(b"wrong", every, **times)
hostile = [right[:length] for length in range(56 + 5)] + [b"", right + b"x", right + b"s\5\0\0", right + b"s\0\xff\xff"]
hostile += [buffer(b"wrong", every, version=version) for version in (0, 2, 255)] + [buffer(b"wrong", every, kind=5)]
hostile += [buffer(b"wrong", attribute(*bad)) for bad in (
    (b"I", b"k", b"1234567"), (b"U", b"k", b""), (b"D", b"k", b"123456789"), (b"B", b"k", b""), (b"B", b"k", b"12"),
    (b"4", b"", b"1234567"), (b"4", b"k", b"12345678"), (b"8", b"", b"12345678"), (b"l", b"", b"1" * 23),
    (b"l", b"k", b"1" * 24), (b"r", b"k", b"1"), (b"e", b"", b""), (b"z", b"k", b"v"), (b"\0", b"", b""))]
for data in hostile:
    assert record(data) == -22, data
# long texts and any bytes are cut, not refused
big = b"".join(attribute(b"s", b"k" * 255, bytes([i]) * 65535) for i in range(1, 20))
assert record(buffer(b"n" * 65535, big + attribute(b"r", b"r" * 255, b"\1\0" + b"9" * 60000), **times)) == 0
seed = random.randrange(2**32)
print("seed", seed)
chance, accepted = random.Random(seed), 0
for _ in range(50000):
    data = bytearray(buffer(b"fuzz", every, ids=(0, 9, 0, 0), **times))
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(48, len(data))] = chance.choice([0, 1, 255, chance.randrange(256)])
    data = bytes(data[:chance.randrange(len(data) + 1)]) if chance.randrange(2) else bytes(data)
    code = record(data)
    assert code in (0, -22), code
    accepted += code == 0
print(f"{accepted} of 50000 random changes accepted")
assert 1000 < accepted < 49000
PY
for mode in whole streamed; do
    recorded $mode
    "$PYTHON" - "$WORK/$mode.json" <<'PY' || fail "$mode: the spans differ"
import json, sys
spans = {}
for span in json.load(open(sys.argv[1])):
    spans.setdefault(span.get("name"), []).append(span)
assert not {"wrong", "unsampled"} & set(spans), set(spans)
[whole], [root], [long] = spans["whole"], spans["root"], spans["n" * 120]
assert whole["traceId"] == f"{5:016x}{6:016x}" and whole["id"] == f"{7:016x}" and whole["parentId"] == f"{8:016x}", whole
assert whole["kind"] == "SERVER" and whole["duration"] in (9000, 9001), whole
assert whole["localEndpoint"] == {"serviceName": "osd.7", "ipv6": "2001:db8::1", "port": 6800}, whole
assert whole["remoteEndpoint"] == {"serviceName": "mon", "ipv4": "10.0.0.9", "port": 50000}, whole
tags = {key: value for key, value in whole["tags"].items() if not key.startswith("lttng.")}
assert tags == {"object": "rbd_data.1", "int": "-5", "uint": str(2**64 - 1), "double": "0.5", "bool": "true",
                "error": "EIO", "otlp.link.0": f"{1:016x}{2:016x}|{3:016x}||{{}}|0"}, tags
[note] = whole["annotations"]
assert note["value"] == "late [warning]" and note["timestamp"] - whole["timestamp"] in (5000, 5001), whole
assert "parentId" not in root and len(root["traceId"]) == 32 and root["id"] != f"{7:016x}", root
assert len(spans["fuzz"]) >= 1000, len(spans["fuzz"])
PY
done
exit 0
