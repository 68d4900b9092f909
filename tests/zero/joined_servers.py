#!/usr/bin/env python3
"""The client of tests/zero/joined-servers.sh, and how its slow requests were collected.

    joined_servers.py ask HOST:PORT CLIENTS REQUESTS EACH   each EACH-th request is slow; prints the paths of these
    joined_servers.py judge COLLECTED [HOST]                 standard input has the paths

A request is whole if one trace has the halves of all servers, each below its caller. It is marked if each
trace with one of its halves is marked as incomplete, and silent if one of these traces is not. It is named if each mark
has the name of HOST. A link is wrong if the parent is a
span of another request, or of another server than the caller; it is apart if the parent is in another trace.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import re
import sys
import threading
import urllib.request

# each server's half of a request, and the service of its caller
WANTED = {"haproxy": None, "nginx": "haproxy", "php": "nginx", "mariadb": "php"}


def ask(address, clients, requests, each):
    def one(client):
        for number in range(int(requests)):
            is_slow = number % int(each) == int(each) - 1
            path = f"/n{client:02d}{number:05d}{'slow' if is_slow else 'fast'}"
            answer = urllib.request.urlopen(f"http://{address}{path}", timeout=60).read().decode()
            if answer != path:
                raise ValueError(f"{path}: {answer}")
            if is_slow:
                sys.stdout.write(f"{path}\n")  # in one call, as other threads print, too
                sys.stdout.flush()
    threads = [threading.Thread(target=one, args=(client,)) for client in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def number_of(span):
    found = re.search(r"/n[0-9]{7}(?:slow|fast)", span["tags"].get("payload", ""))
    return found.group() if found else None


def judge(collected, host=""):
    spans, incomplete = {}, {}
    with open(collected, encoding="utf-8") as file:
        for line in file:
            for trace, number, parent, service, _, tags in json.loads(line)["spans"]:
                if "blkin.incomplete" in tags:
                    incomplete.setdefault(trace, tags["blkin.incomplete"])
                else:
                    spans[number] = {"trace": trace, "parent": parent, "service": service, "tags": tags}
    counts = collections.Counter()
    of_request = collections.defaultdict(list)
    for span in spans.values():
        own, parent = number_of(span), spans.get(span["parent"])
        if own:
            of_request[own].append(span)
        if not parent:
            continue
        above = number_of(parent)
        counts["links"] += 1
        counts["apart"] += parent["trace"] != span["trace"]
        if (own and above and own != above) or parent["service"] not in (span["service"], WANTED.get(span["service"])):
            counts["wrong"] += 1
            print("wrong", span, parent, file=sys.stderr)
    reasons = collections.Counter()
    slow = sys.stdin.read().split()
    for path in slow:
        parts = of_request[path]
        found = {(span["service"], spans.get(span["parent"], {}).get("service")) for span in parts}
        traces = {span["trace"] for span in parts}
        marks = [incomplete[trace] for trace in traces if trace in incomplete]
        is_whole = len(traces) == 1 and all((service, caller) in found for service, caller in WANTED.items())
        kind = "whole" if is_whole else "marked" if marks and len(marks) == len(traces) else "silent"
        counts[kind] += 1
        counts["named"] += kind == "marked" and all(host in mark for mark in marks)
        counts["whole_marked"] += is_whole and bool(marks)
        reasons.update(marks)
        if kind == "silent":
            print(kind, path, [(span["trace"][-6:], span["trace"] in incomplete, span["service"],
                                span["tags"].get("request.bytes"), span["tags"].get("response.bytes")) for span in parts],
                  file=sys.stderr)
    for reason, count in reasons.most_common(8):
        print(count, "marks:", reason, file=sys.stderr)
    print(f"joined whole {counts['whole']} {len(slow)} marked {counts['marked']} silent {counts['silent']} "
          f"wrong {counts['wrong']} {counts['links']} apart {counts['apart']} whole_marked {counts['whole_marked']} named {counts['named']}")


{"ask": ask, "judge": judge}[sys.argv[1]](*sys.argv[2:])
