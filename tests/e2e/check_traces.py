#!/usr/bin/env python3
"""Compares collected spans with what the example stack did (examples/README.md), span by span.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import json
import sys
import time
from collections import Counter, defaultdict

BLOCK = 4096
BLOCKS = 256
HOUR_US = 3600 * 10**6


class Wrong(Exception):
    pass


def expect(got, wanted, what):
    if got != wanted:
        raise Wrong(f"{what}: expected {wanted!r}, got {got!r}")


def endpoint(service, address):
    """As the sink writes it; a client listens nowhere, so its address has port 0 and shows none."""
    ip, _, port = address.rpartition(":")
    made = {"serviceName": service, "ipv4": ip}
    if int(port):
        made["port"] = int(port)
    return made


class Stack:
    def __init__(self, gateway, replicas):
        ip = gateway.rpartition(":")[0]
        self.client = endpoint("client", f"{ip}:0")
        self.gateway = endpoint("gateway", gateway)
        self.replicas = {address: endpoint(f"replica-{i}", address)
                         for i, address in enumerate(replicas, 1)}


def only(spans, what):
    if len(spans) != 1:
        raise Wrong(f"{what}: expected 1, got {len(spans)}")
    return spans[0]


def check_span(span, *, name, kind, where, tags, annotations=()):
    what = f"span {where['serviceName']}/{name}"
    expect(span.get("name"), name, f"{what}: name")
    expect(span.get("kind"), kind, f"{what}: kind")
    expect(span.get("localEndpoint"), where, f"{what}: endpoint")
    expect(span.get("remoteEndpoint"), None, f"{what}: remote endpoint")
    own = {k: v for k, v in span.get("tags", {}).items() if not k.startswith("lttng.")}
    expect(own, tags, f"{what}: tags")
    expect("lttng.host" in span.get("tags", {}), True, f"{what}: the host of the trace")
    expect([a["value"] for a in span.get("annotations", [])], list(annotations),
           f"{what}: annotations")
    expect(span.get("shared", False), False, f"{what}: shared")
    for key in ("timestamp", "duration"):
        if not isinstance(span.get(key), int) or span[key] < 1:
            raise Wrong(f"{what}: {key} is {span.get(key)!r}, expected a number of at least 1")
    age = time.time() * 10**6 - span["timestamp"]
    if not 0 <= age < HOUR_US:
        raise Wrong(f"{what}: timestamp {span['timestamp']} is not in the last hour")
    for note in span.get("annotations", []):
        if not span["timestamp"] <= note["timestamp"] <= span["timestamp"] + span["duration"]:
            raise Wrong(f"{what}: annotation {note} lies outside of the span")


def check_inside(child, parent):
    start, end = parent["timestamp"], parent["timestamp"] + parent["duration"]
    if not start <= child["timestamp"] <= child["timestamp"] + child["duration"] <= end:
        raise Wrong(f"span {parent['id']} ({parent['name']}) does not enclose its child "
                    f"{child['id']} ({child['name']})")


def check_replica(children, call, where, op, tags):
    server = only(children[call["id"]], f"children of {call['name']}")
    check_span(server, name=op, kind="SERVER", where=where, tags=tags)
    step = only(children[server["id"]], f"children of the replica's {op}")
    check_span(step, name="pwrite+fdatasync" if op == "write" else "pread", kind=None, where=where,
               tags={}, annotations=["start", "end"])
    expect(step["annotations"][0]["timestamp"], step["timestamp"], "time of annotation start")


def check_trace(spans, stack):
    """Returns the operation, its offset, and the replicas that had a part in it."""
    by_id = {s["id"]: s for s in spans}
    expect(len(by_id), len(spans), "different span ids")
    children = defaultdict(list)
    for span in spans:
        children[span.get("parentId")].append(span)
    for parent in children.keys() - by_id.keys() - {None}:
        raise Wrong(f"parent {parent} is not in the trace")

    root = only(children[None], "spans without a parent")
    op = root.get("name")
    if op not in ("write", "read"):
        raise Wrong(f"the root's name is {op!r}, expected write or read")
    tags = {"offset": root.get("tags", {}).get("offset"), "length": str(BLOCK)}
    check_span(root, name=op, kind="CLIENT", where=stack.client, tags=tags)
    expect(root["id"].rjust(32, "0"), root["traceId"].rjust(32, "0"), "the root's id")

    server = only(children[root["id"]], "children of the client's span")
    check_span(server, name=op, kind="SERVER", where=stack.gateway, tags=tags)
    calls = children[server["id"]]
    used = sorted(call.get("tags", {}).get("replica", "?") for call in calls)
    expect(used, sorted(stack.replicas) if op == "write" else [used[0] if used else None],
           f"replicas called for a {op}")
    for call in calls:
        replica = call["tags"]["replica"]
        if replica not in stack.replicas:
            raise Wrong(f"a call to the unknown replica {replica}")
        check_span(call, name="replicate" if op == "write" else "fetch", kind="CLIENT",
                   where=stack.gateway, tags={"replica": replica})
        check_replica(children, call, stack.replicas[replica], op, tags)
    expect(len(spans), 2 + 3 * len(calls), "spans of the trace")
    for span in spans:
        if "parentId" in span:
            check_inside(span, by_id[span["parentId"]])
    return op, int(tags["offset"]), used


def check_all(spans, stack, requests):
    traces = defaultdict(list)
    for span in spans:
        traces[span["traceId"]].append(span)
    expect(len(traces), requests, "number of traces")
    done = {"write": Counter(), "read": Counter()}
    read_from = Counter()
    for trace_id, trace in traces.items():
        try:
            op, offset, replicas = check_trace(trace, stack)
        except Wrong as e:
            raise Wrong(f"trace {trace_id}: {e}") from None
        done[op][offset] += 1
        if op == "read":
            read_from.update(replicas)
    for op, count in (("write", (requests + 1) // 2), ("read", requests // 2)):
        wanted = Counter(i % BLOCKS * BLOCK for i in range(count))
        expect(done[op], wanted, f"offsets of all {op}s")
    reads = requests // 2
    expect(sorted(read_from.values()), sorted(c for c in (reads // 2, reads - reads // 2) if c),
           "reads of each replica, in turn")


def flatten(json_value):
    for item in json_value:
        if isinstance(item, list):
            yield from item
        else:
            yield item


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", help="Zipkin v2 JSON: a list of spans, or of traces")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--gateway", required=True, metavar="IP:PORT")
    parser.add_argument("--replica", required=True, action="append", metavar="IP:PORT")
    args = parser.parse_args()
    with open(args.file, encoding="utf-8") as f:
        spans = list(flatten(json.load(f)))
    try:
        check_all(spans, Stack(args.gateway, args.replica), args.requests)
    except Wrong as e:
        sys.exit(f"{args.file}: {e}")
    print(f"{args.requests} traces, {len(spans)} spans: as the stack made them")


main()
