#!/usr/bin/env python3
# Real servers that nobody instrumented, under `blkin run`: redis, nginx in front of nginx, and nbdkit. All requests
# of their clients are counted, one by one and 16 at once, with the right parents. All the others: tests/zero/matrix.
# SPDX-License-Identifier: BSD-2-Clause
import sys

from cases import CASES, packages
from load import Failed
from parts import World, fetch

NAMES = "redis", "nginx-pooled", "nbdkit"
REQUESTS = 400


def main():
    try:
        fetch("--cached", *packages(NAMES))
    except Failed as failure:
        print(failure)
        return 77
    with World(packages(NAMES)) as world:
        world.start_sessiond()
        for name in NAMES:
            for connections in (1, 16):
                print(f"{name}, {connections}: {CASES[name](world, REQUESTS, connections)}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")
