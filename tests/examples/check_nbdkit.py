"""Compares the spans of nbdkit's blkin filter with the requests that nbdkit's log filter, just below it, has seen.

usage: check_nbdkit.py SPANS.json SERVICE LOG [OPTION...]

  --types A,B        the types of requests that there must be (default: any)
  --layers N         spans below each server span, one within the other (default: 1)
  --events FILE N    babeltrace2's text of the trace: it has N events for each request
  --delay US         the first span below a read lasts this much longer than the second
  --parent TRACE-SPAN  the parent of all server spans (default: each starts a trace)
  --export NAME      the tag "export" of all server spans (default: none)
  --client IP        the remote endpoint of all server spans (default: none)

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import collections
import json
import re
import sys

arguments = argparse.ArgumentParser()
arguments.add_argument("spans")
arguments.add_argument("service")
arguments.add_argument("log")
arguments.add_argument("--types", type=lambda text: set(text.split(",")))
arguments.add_argument("--layers", type=int, default=1)
arguments.add_argument("--events", nargs=2)
arguments.add_argument("--delay", type=int, default=0)
arguments.add_argument("--parent")
arguments.add_argument("--export")
arguments.add_argument("--client")
options = arguments.parse_args()

LAYER = {"read": "next.pread", "write": "next.pwrite"}
# the flags as in the log and in the filter's tag; in the tag's order
FLAGS = (("trim", "may_trim"), ("fua", "fua"), ("req_one", "req_one"), ("fast", "fast_zero"))


def check(condition, what, *of):
    if not condition:
        sys.exit("\n".join([f"{options.service}: {what}", *(json.dumps(one) for one in of[:3])]))


def logged():
    """(type, offset, length, flags, error) -> how often"""
    pending = {}
    found = collections.Counter()
    pattern = re.compile(r"connection=(\d+) (\.\.\.)?([A-Z][a-z]+) id=(\d+) ?(.*)")
    for line in open(options.log, encoding="ascii"):
        match = pattern.search(line)
        if not match:
            continue
        connection, is_end, kind, number, rest = match.groups()
        fields = dict(field.split("=", 1) for field in rest.split() if "=" in field)
        if not is_end:
            pending[connection, number] = kind.lower(), fields
            continue
        kind, begin = pending.pop((connection, number))
        place = (None, None) if kind == "flush" else (int(begin["offset"], 16), int(begin["count"], 16))
        flags = ",".join(tag for name, tag in FLAGS if begin.get(name) == "1")
        error = fields["error"] if fields["return"].startswith("-1") else None
        found[kind, *place, flags or None, error] += 1
    check(not pending, "requests without an end in the log", *pending)
    return found


def recorded(servers):
    found = collections.Counter()
    for span in servers:
        tags = span["tags"]
        place = [int(tags[name]) if name in tags else None for name in ("offset", "length")]
        found[span["name"], *place, tags.get("flags"), tags.get("error")] += 1
    return found


spans = [span for span in json.load(open(options.spans, encoding="utf-8"))
         if span["localEndpoint"]["serviceName"] == options.service]
servers = [span for span in spans if span.get("kind") == "SERVER"]
below = collections.defaultdict(list)
for span in spans:
    if span.get("kind") != "SERVER":
        below[span.get("parentId")].append(span)

log, record = logged(), recorded(servers)
check(log, "the log has no requests")
check(log == record, "log and spans differ: only in the log, only in the spans",
      *(list((one - other).items())[:10] for one, other in ((log, record), (record, log))))
types = {span["name"] for span in servers}
check(options.types is None or types == options.types, f"there were {sorted(types)}")
check(len(spans) == len(servers) * (1 + options.layers), f"{len(servers)} requests, {len(spans)} spans")

outside = 0
for server in servers:
    above = server
    durations = []
    for _ in range(options.layers):
        check(len(below[above["id"]]) == 1, "not one span below", above, *below[above["id"]])
        layer, = below[above["id"]]
        check(layer["traceId"] == server["traceId"], "another trace", above, layer)
        check(layer["name"] == LAYER.get(server["name"], "next." + server["name"]), "name", above, layer)
        check(layer["tags"].get("error") == server["tags"].get("error"), "error", above, layer)
        # to a microsecond, because the times are rounded
        outside += (layer["timestamp"] + 1 < above["timestamp"] or
                    layer["timestamp"] + layer["duration"] > above["timestamp"] + above["duration"] + 2)
        durations.append(layer["duration"])
        above = layer
    if options.delay and server["name"] == "read":
        check(durations[0] - durations[1] >= options.delay, f"the delay is not in {durations}", server)
    check(server["tags"].get("export") == options.export, "export", server)
    check(server.get("remoteEndpoint", {}).get("ipv4") == options.client, "client", server)
    parent = f"{server['traceId']}-{server['parentId']}" if "parentId" in server else None
    check(parent == options.parent, "parent", server)
# libblkin corrects its time after a suspend of the machine: a few spans may be outside
check(outside <= 1 + len(servers) // 100, f"{outside} spans are not within the one above")
if options.events:
    wanted = f'service = "{options.service}"'
    events = sum("blkin:span:" in line and wanted in line for line in open(options.events[0], encoding="utf-8"))
    check(events == len(servers) * int(options.events[1]), f"{len(servers)} requests are {events} events")
if not options.parent:
    check(len({span["traceId"] for span in servers}) == len(servers), "requests share a trace")
print(f"{options.service}: {len(servers)} requests as logged, {len(spans)} spans")
