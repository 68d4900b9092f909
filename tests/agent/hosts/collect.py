#!/usr/bin/env python3
"""A Zipkin collector that writes received spans and their time to a file.

    collect.py PORT FILE [URL]

A POST with spans is a line of FILE: {"at": ns since 1970, "spans": [[trace, id, parent, service, name, tags]...]}.
FILE has only the tags "payload", "blkin.*" and "*.bytes". With URL the collector passes each such POST on to that collector
first.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
from server import Server  # noqa: E402

PORT, FILE, *URL = sys.argv[1:]
OUTPUT = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def brief(span):
    tags = {key: value for key, value in span.get("tags", {}).items() if key.startswith("blkin.") or key == "payload" or key.endswith(".bytes")}
    return [span["traceId"], span["id"], span.get("parentId"),
            span.get("localEndpoint", {}).get("serviceName"), span.get("name"), tags]


def hand_on(body):
    request = urllib.request.Request(URL[0] + "/api/v2/spans", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).read()


def answer(request):
    spans = json.loads(request.body or b"[]")
    if spans:
        if URL:
            hand_on(request.body)
        line = json.dumps({"at": time.time_ns(), "spans": [brief(span) for span in spans]})
        os.write(OUTPUT, line.encode() + b"\n")
    return 202


collector = Server(answer, int(PORT), "0.0.0.0")
print("collector listening", flush=True)
collector.serve_forever()
