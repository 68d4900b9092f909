"""The requests of layers.cpp: the same tree, whether their layers were spans or steps, and as
the program has measured it.

usage: check_layers.py SPANS.txt SPANS.json STEPS.txt STEPS.json

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import math
import sys


def fail(what, *of):
    sys.exit("\n".join([what, *(json.dumps(one, indent=1, sort_keys=True) for one in of)]))


def read_lines(path):
    """What the program has printed: name -> (name above, least ns, most ns)."""
    layers = {}
    for line in open(path):
        name, above, *bounds = line.rstrip("\n").split("\t")
        layers[name] = (above, *map(int, bounds))
    return layers


def is_own(key):
    return not key.startswith("lttng.")


def tree_of(lines_path, json_path):
    """name -> all of it that is to be the same; durations and times are held against the program's."""
    layers, found = read_lines(lines_path), json.load(open(json_path))
    by_id = {span["id"]: span for span in found}
    names = {f"{span['traceId']}|{span['id']}||{{}}|0": span["name"] for span in found}
    if sorted(span["name"] for span in found) != sorted(layers) or len(by_id) != len(found):
        fail(f"{json_path}: not each layer once", sorted(span["name"] for span in found), sorted(layers))
    tree = {}
    for span in found:
        name, parent = span["name"], by_id.get(span.get("parentId"))
        above, least, most = layers[name]
        if (parent["name"] if parent else "-") != above or parent and parent["traceId"] != span["traceId"]:
            fail(f"{json_path}: {name} is not below {above}", span, parent)
        # its start is rounded down, its end up
        if not least / 1000 - 1 <= span["duration"] <= math.ceil(most / 1000) + 1:
            fail(f"{json_path}: {name} took {least} to {most} ns", span)
        times = [span["timestamp"], *(note["timestamp"] for note in span.get("annotations", [])),
                 span["timestamp"] + span["duration"]]
        if times != sorted(times):
            fail(f"{json_path}: {name}: times", span)
        if parent and name != "aside" and not (parent["timestamp"] <= times[0] and
                                               times[-1] <= parent["timestamp"] + parent["duration"]):
            fail(f"{json_path}: {name} is not within {above}", span, parent)
        tree[name] = {
            "above": above,
            "kind": span.get("kind"),
            "tags": {key: names.get(value, value) for key, value in span.get("tags", {}).items() if is_own(key)},
            # Zipkin sorts those of one microsecond by their text
            "annotations": sorted(note["value"] for note in span.get("annotations", [])),
            "local": span["localEndpoint"],
            "remote": span.get("remoteEndpoint"),
            "rest": sorted(set(span) - {"duration", "id", "parentId", "timestamp", "traceId"}),
        }
    return tree


as_spans, as_steps = tree_of(*sys.argv[1:3]), tree_of(*sys.argv[3:5])
for name in sorted({*as_spans, *as_steps}):
    if as_spans.get(name) != as_steps.get(name):
        fail(f"{name} is another span than it is a step:", as_spans.get(name), as_steps.get(name))
links = [key for layer in as_steps.values() for key, to in layer["tags"].items()
         if key.startswith("otlp.link.") and to in as_steps]
errors = [name for name, layer in as_steps.items() if "error" in layer["tags"]]
kinds = {layer["kind"] for layer in as_steps.values()}
if len(links) != 2 or len(errors) != 17 or len(kinds) != 5:
    fail("not what the program does", links, errors, sorted(map(str, kinds)))
print(f"{len(as_steps)} layers")
