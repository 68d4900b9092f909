"""usage: sdk_span.py PORT TRACE ID PARENT NAME MS|@BEGIN_MS...: sends ended spans of the service "gateway"."""
# SPDX-License-Identifier: BSD-2-Clause
import http.client
import os
import sys
import time

sys.path.insert(0, os.environ["SRC"] + "/tests/otlp")
from parts import LIMIT_S, post, request, span  # noqa: E402

words, spans = sys.argv[2:], []
while words:
    (trace, number, parent, name, ms), words, now_ns = words[:5], words[5:], time.time_ns()
    ms = now_ns // 1000000 - int(ms[1:]) if ms[0] == "@" else int(ms)
    spans.append(span(int(trace, 16), int(number, 16), 0 if parent == "-" else int(parent, 16), name,
                      start_ns=now_ns - ms * 1000000, ms=ms))
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=LIMIT_S)
sys.exit(post(connection, request(spans, service="gateway"))[0] != 200)
