#!/usr/bin/env python3
"""Compares collected spans with the actions of the example stack (examples/README.md), span by span.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import json
import sys
import time
from collections import Counter, defaultdict

BLOCK = 4096
BLOCKS = 256
EXTENT = 65536
HOUR_US = 3600 * 10**6


class Wrong(Exception):
    pass


def expect(got, wanted, what):
    if got != wanted:
        raise Wrong(f"{what}: expected {wanted!r}, got {got!r}")


def endpoint(service, address):
    """Returns an endpoint as the sink writes it. A client listens nowhere: its port is 0, and is left out."""
    ip, _, port = address.rpartition(":")
    made = {"serviceName": service, "ipv4": ip}
    if int(port):
        made["port"] = int(port)
    return made


class Stack:
    """The services, and the mapper's map as it must be at each request."""

    def __init__(self, gateway, mapper, stores):
        self.client = endpoint("client", f"{gateway.rpartition(':')[0]}:0")
        self.gateway = endpoint("gateway", gateway)
        self.mapper = endpoint("mapper", mapper)
        self.stores = [endpoint(f"store-{i}", address) for i, address in enumerate(stores, 1)]
        self.mapper_address = mapper
        self.addresses = stores
        self.objects = {}
        self.last_object = 0


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


EARLY_US = 5  # the clocks of two processes differ: see "Times" in doc/library.md
LATE_US = 20000  # after an answer, the sender may lose its CPU to the receiver, and end its span later


def is_inside(child, parent):
    start, end = parent["timestamp"], parent["timestamp"] + parent["duration"]
    return start - EARLY_US <= child["timestamp"] <= end and child["timestamp"] + child["duration"] <= end + LATE_US


def check_inside(spans):
    """Checks the times. On a machine with more work than CPUs, the clocks of two processes sometimes differ by more than
    EARLY_US: see "Times" in doc/library.md."""
    by_id = {(span["traceId"], span["id"]): span for span in spans}
    outside = [(child, parent) for child in spans if "parentId" in child
               for parent in [by_id[child["traceId"], child["parentId"]]]
               if not is_inside(child, parent)]
    if len(outside) > len(spans) / 100:
        child, parent = outside[0]
        raise Wrong(f"{len(outside)} of {len(spans)} spans are not inside of their parents: trace "
                    f"{child['traceId']}: span {parent['id']} ({parent['name']}) does not enclose "
                    f"its child {child['id']} ({child['name']})")


def check_children(children, parent, names):
    """Returns the children by name; there is one of each."""
    found = {child.get("name"): child for child in children[parent["id"]]}
    expect(sorted(c.get("name") for c in children[parent["id"]]), sorted(names),
           f"children of {parent['localEndpoint']['serviceName']}/{parent['name']}")
    return found


def check_steps(found, names, where):
    """Checks steps inside a store, one after the other; replicate is checked elsewhere."""
    for name in (n for n in names if n != "replicate"):
        check_span(found[name], name=name, kind=None, where=where, tags={})
    times = [found[name]["timestamp"] for name in names]
    expect(times, sorted(times), f"order of {names}")


def check_store(children, call, stack, tags):
    """Checks the steps of store-1 for a request, and of store-2 for a write."""
    server = only(children[call["id"]], f"children of {call['name']}")
    op = "write" if call["name"] == "store" else "read"
    check_span(server, name=op, kind="SERVER", where=stack.stores[0], tags=tags)
    if op == "read":
        check_steps(check_children(children, server, ["pread"]), ["pread"], stack.stores[0])
        return
    found = check_children(children, server, ["replicate", "journal", "apply"])
    check_steps(found, ["journal", "replicate", "apply"], stack.stores[0])
    check_span(found["replicate"], name="replicate", kind="CLIENT", where=stack.stores[0],
               tags={"secondary": stack.addresses[1]})
    second = only(children[found["replicate"]["id"]], "children of replicate")
    check_span(second, name="replicate", kind="SERVER", where=stack.stores[1], tags=tags)
    check_steps(check_children(children, second, ["journal", "apply"]), ["journal", "apply"],
                stack.stores[1])


def check_mapper(children, server, stack, op, offset):
    extent = offset // EXTENT
    new = extent not in stack.objects
    call = "store" if op == "write" else "fetch"
    found = check_children(children, server, ["lookup", call] + ["allocate"] * new)
    check_span(found["lookup"], name="lookup", kind=None, where=stack.mapper,
               tags={"extent": str(extent), "state": "absent" if new else "own"})
    if new:
        stack.last_object += 1
        stack.objects[extent] = str(stack.last_object)
        check_span(found["allocate"], name="allocate", kind=None, where=stack.mapper,
                   tags={"object": stack.objects[extent]})
    check_span(found[call], name=call, kind="CLIENT", where=stack.mapper,
               tags={"store": stack.addresses[0], "object": stack.objects[extent]})
    check_store(children, found[call], stack,
                {"object": stack.objects[extent], "offset": str(offset % EXTENT),
                 "length": str(BLOCK)})


def check_trace(spans, stack):
    """Returns the operation and its offset."""
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

    server = only(children[root["id"]], "children of the client's span")
    check_span(server, name=op, kind="SERVER", where=stack.gateway, tags=tags)
    call = only(children[server["id"]], "children of the gateway's span")
    check_span(call, name="forward", kind="CLIENT", where=stack.gateway,
               tags={"mapper": stack.mapper_address})
    server = only(children[call["id"]], "children of forward")
    check_span(server, name=op, kind="SERVER", where=stack.mapper, tags=tags)
    check_mapper(children, server, stack, op, int(tags["offset"]))
    return op, int(tags["offset"])


def check_all(spans, stack, requests):
    traces = defaultdict(list)
    for span in spans:
        traces[span["traceId"]].append(span)
    expect(len(traces), requests, "number of traces")
    done = {"write": Counter(), "read": Counter()}
    # in their order, because the mapper's action depends on the actions before
    for trace_id, trace in sorted(traces.items(),
                                  key=lambda item: min(s["timestamp"] for s in item[1])):
        try:
            op, offset = check_trace(trace, stack)
        except Wrong as e:
            raise Wrong(f"trace {trace_id}: {e}") from None
        done[op][offset] += 1
    check_inside(spans)
    for op, count in (("write", (requests + 1) // 2), ("read", requests // 2)):
        wanted = Counter(i % BLOCKS * BLOCK for i in range(count))
        expect(done[op], wanted, f"offsets of all {op}s")


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
    parser.add_argument("--mapper", required=True, metavar="IP:PORT")
    parser.add_argument("--store", required=True, action="append", metavar="IP:PORT")
    args = parser.parse_args()
    with open(args.file, encoding="utf-8") as f:
        spans = list(flatten(json.load(f)))
    try:
        check_all(spans, Stack(args.gateway, args.mapper, args.store), args.requests)
    except Wrong as e:
        sys.exit(f"{args.file}: {e}")
    print(f"{args.requests} traces, {len(spans)} spans: as the stack made them")


main()
