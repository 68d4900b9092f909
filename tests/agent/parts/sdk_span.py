"""usage: sdk_span.py PORT TRACE ID PARENT NAME MS...: sends spans of the service "gateway", as an SDK does."""
# SPDX-License-Identifier: BSD-2-Clause
import struct, sys, time, urllib.request

def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def field(number, value):
    return bytes([number << 3 | 2]) + varint(len(value)) + value

def fixed(number, value):
    return bytes([number << 3 | 1]) + struct.pack("<Q", value)

spans, words, now = b"", sys.argv[2:], time.time_ns()
while words:
    (trace, span, parent, name, ms), words = words[:5], words[5:]
    spans += field(2, field(1, bytes.fromhex(trace)) + field(2, bytes.fromhex(span)) +
                   (field(4, bytes.fromhex(parent)) if parent != "-" else b"") + field(5, name.encode()) +
                   b"\x30\x02" + fixed(7, now - int(ms) * 1000000) + fixed(8, now))
service = field(1, field(1, field(1, b"service.name") + field(2, field(1, b"gateway"))))
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v1/traces", field(1, service + field(2, spans)),
                                 {"Content-Type": "application/x-protobuf"})
sys.exit(urllib.request.urlopen(request, timeout=10).status != 200)
