"""The report that blkin stat must make of spans, computed independently from their JSON.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import math

QUANTILE_ERROR = 0.0054  # relative, as blkin-stat(1) promises


def children_by_index(spans):
    """Returns the children of each span of a trace, by its index."""
    children = collections.defaultdict(list)
    for i, span in enumerate(spans):
        wanted = span["id"] if span.get("shared") else span.get("parentId")
        found = None
        for j, other in enumerate(spans):
            if i == j or other["id"] != wanted or (span.get("shared") and other.get("shared")):
                continue
            same = other["localEndpoint"]["serviceName"] == span["localEndpoint"]["serviceName"]
            if found is None or same:
                found = j
        if found is not None:
            children[found].append(span)
    return children


def self_time(span, children):
    """Returns the duration without the times with an open child."""
    start, end = span["timestamp"], span["timestamp"] + span["duration"]
    busy = sorted((max(c["timestamp"], start), min(c["timestamp"] + c.get("duration", 0), end))
                  for c in children if "timestamp" in c)
    total, reached = 0, start
    for begins, ends in busy:
        if begins >= end:
            break
        total += max(begins - reached, 0)
        reached = max(reached, ends)
    return total + end - reached


def quantile(values, q):
    ordered = sorted(values)
    return ordered[max(math.ceil(q * len(ordered)), 1) - 1]


def expected(traces):
    """(service, name) -> spans, errors, durations, self times; traces is a list of lists."""
    rows = collections.defaultdict(lambda: {"spans": 0, "errors": 0, "duration": [], "self": []})
    for spans in traces:
        children = children_by_index(spans)
        for i, span in enumerate(spans):
            row = rows[span.get("localEndpoint", {}).get("serviceName", ""), span.get("name", "")]
            row["spans"] += 1
            row["errors"] += "error" in span.get("tags", {})
            if span.get("duration"):
                row["duration"].append(span["duration"])
                row["self"].append(self_time(span, children[i]))
    return rows


def check(test, report, traces):
    """Checks the report of the traces: exact, except for quantiles of 185 us and more."""
    rows = expected(traces)
    test.assertEqual(report["spans"], sum(len(spans) for spans in traces))
    test.assertEqual({(row["service"], row["name"]) for row in report["rows"]}, set(rows))
    for row in report["rows"]:
        wanted = rows[row["service"], row["name"]]
        test.assertEqual((row["spans"], row["errors"]), (wanted["spans"], wanted["errors"]), row)
        for what in ("duration", "self"):
            check_distribution(test, row[what], wanted[what])


def check_distribution(test, got, values):
    test.assertEqual(got["count"], len(values))
    if not values:
        return
    test.assertEqual((got["min"], got["max"], got["sum"]), (min(values), max(values), sum(values)))
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        exact = quantile(values, q)
        if exact < 185:
            test.assertEqual(got[name], exact)
        test.assertLessEqual(abs(got[name] - exact), QUANTILE_ERROR * exact, (name, got, exact))
