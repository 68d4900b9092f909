"""What the program spans.c must look like in Zipkin's JSON: check_spans.py whole|streamed FILE.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import sys

mode, path = sys.argv[1:]
found = json.load(open(path))
spans = {span["name"]: span for span in found}
root = spans["root"]
osd = {"serviceName": "osd", "ipv4": "10.0.0.1", "port": 50000}


def check(condition, what, of):
    if not condition:
        sys.exit(f"{mode}: {what}: {json.dumps(of, indent=1)}")


def is_tag(span, key, value):
    check(span["tags"].get(key) == value, f"tag {key} is not {value!r}", span)


expected = {"root", "scope", "far", "times", "too much"} | ({"hung"} if mode == "streamed" else set())
check(set(spans) == expected and len(found) == len(expected), "other spans", found)

check(root["kind"] == "CLIENT" and "parentId" not in root, "root", root)
check(len(root["traceId"]) == 32, "128-bit trace id", root)
check(root["localEndpoint"] == osd, "endpoint", root)
check(root["remoteEndpoint"] == {"serviceName": "mon", "ipv6": "2001:db8::2", "port": 6789}, "remote", root)
is_tag(root, "string", 'a|b\n"c"')
is_tag(root, "int64", str(-(2**63)))
is_tag(root, "uint64", str(2**64 - 1))
is_tag(root, "double", "0.25")
is_tag(root, "yes", "true")
is_tag(root, "no", "false")
is_tag(root, "error", "EIO")
check([a["value"] for a in root["annotations"]] == ["first", "second [debug]"], "annotations", root)
times = [root["timestamp"], *(a["timestamp"] for a in root["annotations"]),
         root["timestamp"] + root["duration"]]
check(times == sorted(times) and root["duration"] < 10_000_000, "times", root)

for name in expected - {"root", "hung"}:
    check(spans[name]["parentId"] == root["id"], f"parent of {name}", spans[name])
    check(spans[name]["traceId"] == root["traceId"], f"trace of {name}", spans[name])
    if name != "times":
        check(root["timestamp"] <= spans[name]["timestamp"] and
              spans[name]["timestamp"] + spans[name]["duration"] <= root["timestamp"] + root["duration"],
              f"{name} is not within root", [root, spans[name]])

if mode == "whole":
    check(spans["scope"]["localEndpoint"] == {"serviceName": "journal"}, "own service", spans["scope"])
    check(spans["times"]["kind"] == "CONSUMER", "kind", spans["times"])
    check(abs(spans["times"]["duration"] - 2_000_000) < 20_000, "explicit times", spans["times"])
    second = spans["times"]["annotations"][0]["timestamp"] - spans["times"]["timestamp"]
    check(abs(second - 1_000_000) < 20_000, "time of the annotation", spans["times"])
    is_tag(spans["too much"], "long", "x" * 240)
    check(int(spans["too much"]["tags"]["blkin.dropped"]) > 0, "dropped", spans["too much"])
else:
    is_tag(spans["hung"], "blkin.incomplete", "its end was not seen")
    check(spans["hung"]["annotations"][0]["value"] == "last sign of life", "hung", spans["hung"])
