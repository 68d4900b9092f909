#!/usr/bin/env python3
"""The client of tests/zero/joined-servers.sh: each client makes REQUESTS requests, one after the other.

    joined_servers.py HOST:PORT CLIENTS REQUESTS EACH   each EACH-th request is slow; prints these

SPDX-License-Identifier: BSD-2-Clause
"""
import sys
import threading
import urllib.request


def ask(address, clients, requests, each):
    def one(client):
        for number in range(int(requests)):
            is_slow = number % int(each) == int(each) - 1
            name = f"n{client:02d}{number:05d}{'slow' if is_slow else 'fast'}"
            answer = urllib.request.urlopen(f"http://{address}/{name}", timeout=60).read().decode()
            if answer != f"/{name}":
                raise ValueError(f"{name}: {answer}")
            if is_slow:
                sys.stdout.write(f"{name}\n")  # in one call, as other threads print, too
                sys.stdout.flush()
    threads = [threading.Thread(target=one, args=(client,)) for client in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


ask(*sys.argv[1:])
