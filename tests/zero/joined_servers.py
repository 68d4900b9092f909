#!/usr/bin/env python3
"""The client of tests/zero/joined-servers.sh, and the check of its collected slow requests.

joined_servers.py ask HOST:PORT CLIENTS REQUESTS EACH   every EACH-th request is slow; prints the paths of these
joined_servers.py judge COLLECTED                        standard input has the paths

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
                print(path, flush=True)
    threads = [threading.Thread(target=one, args=(client,)) for client in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def number_of(span):
    found = re.search(r"/n[0-9]{7}(?:slow|fast)", span["tags"].get("payload", ""))
    return found.group() if found else None


def judge(collected):
    spans, incomplete = {}, set()
    with open(collected, encoding="utf-8") as file:
        for line in file:
            for trace, number, parent, service, _, tags in json.loads(line)["spans"]:
                if "blkin.incomplete" in tags:
                    incomplete.add(trace)
                else:
                    spans[number] = {"trace": trace, "parent": parent, "service": service, "tags": tags}
    links = wrong = 0
    of_request = collections.defaultdict(list)
    for span in spans.values():
        parent = spans.get(span["parent"])
        own = number_of(span)
        if parent:
            above = number_of(parent)
            links += 1
            wrong += parent["trace"] != span["trace"] or bool(own and above and own != above)
        if own:
            of_request[own].append(span)
    counts = collections.Counter()
    slow = sys.stdin.read().split()
    for path in slow:
        parts = of_request[path]
        found = {(span["service"], spans.get(span["parent"], {}).get("service")) for span in parts}
        traces = {span["trace"] for span in parts}
        is_whole = len(traces) == 1 and all((service, caller) in found for service, caller in WANTED.items())
        kind = "whole" if is_whole else "marked" if traces & incomplete else "silent"
        counts[kind] += 1
        if kind != "whole":
            print(kind, path, [(span["trace"][-6:], span["service"], span["tags"].get("request.bytes"),
                              span["tags"].get("response.bytes")) for span in parts], file=sys.stderr)
    print(f"joined whole {counts['whole']} {len(slow)} marked {counts['marked']} silent {counts['silent']} wrong {wrong} {links}")


{"ask": ask, "judge": judge}[sys.argv[1]](*sys.argv[2:])
