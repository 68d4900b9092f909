"""Checks the spans of spans.c in Zipkin's JSON: check_spans.py whole|streamed FILE.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import sys

mode, path = sys.argv[1:]
found = json.load(open(path))
for span in found:
    span.setdefault("name", "")
spans = {span["name"]: span for span in found}
root = spans["root"]
osd = {"serviceName": "osd", "ipv4": "10.0.0.1", "port": 50000}
OWN = {"serviceName": "own", "ipv4": "10.0.0.1", "port": 7}
SECOND = 1_000_000
STALL = 30 * SECOND  # a busy machine may stop the program for this time

# The expected spans of both modes. "own": tags without the sink's; "at": seconds from the start to each annotation;
# "parent": the parent's name, or its id; "lasts": the duration in s; "outside": the span is not within its parent.
EXPECTED = {
    "root": {
        "kind": "CLIENT", "parent": None, "remote": {"serviceName": "mon", "ipv6": "2001:db8::2", "port": 6789},
        "own": {"string": 'a|b\n"c"', "int64": str(-(2**63)), "uint64": str(2**64 - 1), "double": "0.25",
                "yes": "true", "no": "false", "error": "EIO"},
        "annotations": ["first", "second [debug]", "3 of a format", "third"],
    },
    "scope": {"kind": None, "service": {"serviceName": "journal"}, "annotations": ["inside"]},
    "back": {"kind": None, "service": osd},
    "far": {"kind": "SERVER"},
    "times": {"kind": "CONSUMER", "annotations": ["one second in [warning]", "at its begin",
                                                  "two seconds in [warning]"],
              "at": [1, 3, 2], "lasts": 2.5, "outside": True, "own": {"between": "1"}},
    "decoded": {"kind": "SERVER", "own": {"before": "b", "after": "a"}, "annotations": ["before", "after"]},
    "x" * 120: {"kind": None},
    "linked": {"kind": None, "links": ["root", "scope"]},
    "kept": {"kind": None, "parent": "missing" if mode == "whole" else "dropped"},
    "late": {"kind": "PRODUCER", "remote": {"serviceName": "client", "ipv4": "192.0.2.1", "port": 50001}, "outside": True, "annotations": ["written back"]},
    "debug": {"kind": "SERVER", "parent": "0000000000000003", "trace": "0000000000000002", "debug": True},
    "utf8": {"kind": None, "own": {"cut": "x" + "\u00e4" * 119, "k" * 99: "v", "short": "\u00e4"}},
    "x" + "\u00e4" * 49: {"kind": None, "parent": "utf8"},
    "": {"kind": None, "parent": "x" + "\u00e4" * 49},
    "euros": {"kind": None, "annotations": ["xx" + "\u20ac" * 79] * 2},
    "too much": {"kind": "PRODUCER"},
    "stepped": {"service": OWN, "kind": "SERVER", "own": {"own": "1"}, "annotations": ["before"]},
    "look up": {"service": OWN, "kind": None, "parent": "stepped", "own": {"own": "look up's"}, "annotations": ["found"]},
    "ask": {"service": OWN, "kind": "CLIENT", "parent": "look up", "own": {"error": "EAGAIN"},
            "remote": {"serviceName": "mon", "ipv6": "2001:db8::2", "port": 6789}},
    "asked": {"kind": "SERVER", "parent": "ask"},
    "left open": {"service": OWN, "kind": "PRODUCER", "parent": "stepped", "own": {"blkin.incomplete": "it ended only with its span"}},
    "after an error": {"kind": None, "parent": "stepped", "outside": True},
}
if mode == "streamed":
    EXPECTED["hung"] = {"kind": "SERVER", "parent": None, "annotations": ["last sign of life"],
                        "own": {"blkin.incomplete": "its end was not seen"}, "outside": True}
    EXPECTED["dropped"] = {"kind": None}
    EXPECTED["dropped step"] = {"kind": None, "parent": "dropped",
                                "own": {"blkin.incomplete": "it ended only with its span"}}


def check(condition, what, of):
    if not condition:
        sys.exit(f"{mode}: {what}: {json.dumps(of, indent=1)}")


def end_of(span):
    return span["timestamp"] + span["duration"]


def check_span(span, expected):
    name = span["name"]
    parent = expected.get("parent", "root")
    check(span.get("kind") == expected["kind"], "kind", span)
    if parent in spans:
        check(span.get("parentId") == spans[parent]["id"], f"not below {parent}", span)
    elif parent == "missing":
        check(span["parentId"] not in [other["id"] for other in found], "its parent is there", span)
    else:
        check(span.get("parentId") == parent, "parent", span)
    if "trace" in expected:
        check(span["traceId"] == expected["trace"], "trace", span)
    elif parent:
        check(span["traceId"] == root["traceId"], "trace", span)
    check(span["localEndpoint"] == expected.get("service", osd), "service", span)
    check(span.get("remoteEndpoint") == expected.get("remote"), "remote", span)
    check(span.get("debug", False) == expected.get("debug", False), "debug", span)
    if name != "too much":
        own = {key: value for key, value in span.get("tags", {}).items() if not key.startswith(("lttng.", "otlp."))}
        check(own == expected.get("own", {}), f"tags are not {expected.get('own', {})}", span)
    links = [value for key, value in span.get("tags", {}).items() if key.startswith("otlp.link.")]
    check(links == [f"{spans[to]['traceId']}|{spans[to]['id']}||{{}}|0" for to in expected.get("links", [])],
          "links", span)
    annotations = span.get("annotations", [])
    check(sorted(a["value"] for a in annotations) == sorted(expected.get("annotations", [])), "annotations", span)
    for text, at in zip(expected.get("annotations", []), expected.get("at", [])):
        time = next(a["timestamp"] for a in annotations if a["value"] == text)
        late = STALL if text == "at its begin" else 100_000  # the program gave no time of this annotation
        check(-100_000 < time - span["timestamp"] - at * SECOND < late, f"{text} is not {at} s after the start", span)
    if "at" not in expected:
        times = [span["timestamp"], *(a["timestamp"] for a in annotations), end_of(span)]
        check(times == sorted(times), "times", span)
    if "lasts" in expected:  # the program gave the start and the end
        check(abs(span["duration"] - expected["lasts"] * SECOND) < 100_000, f"does not last {expected['lasts']} s", span)
    check(0 <= span["duration"] < STALL, "duration", span)
    if parent in spans and not expected.get("outside"):
        above = spans[parent]
        check(above["timestamp"] <= span["timestamp"] and end_of(span) <= end_of(above),
              f"not within {parent}", [above, span])


check(set(spans) == set(EXPECTED) and len(found) == len(EXPECTED),
      f"other spans: {set(spans) ^ set(EXPECTED)}", found)
check(len(root["traceId"]) == 32, "128-bit trace id", root)
for name, expected in EXPECTED.items():
    check_span(spans[name], expected)

# whole spans drop what has no room in their logs; streamed spans do not
tags = spans["too much"]["tags"]
check(tags["long"] == "x" * 240, "long", tags)
if mode == "whole":
    check(int(tags["blkin.dropped"]) == 9, "dropped", tags)
else:
    check(tags["long#10"] == "x" * 240 and "blkin.dropped" not in tags, "all ten tags", tags)
