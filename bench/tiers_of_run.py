#!/usr/bin/env python3
"""A line for each tier of a run of bench-sysprof.sh.

    tiers_of_run.py SPANS CLIENTS WRITES

SPDX-License-Identifier: BSD-2-Clause
"""
import sys

sys.dont_write_bytecode = True
import tiers  # noqa: E402

clients, writes = int(sys.argv[2]), int(sys.argv[3])
found = tiers.tiers_of(tiers.read(sys.argv[1]))
for name in "proxy", "back-end":
    tier = found[name]
    if tier.requests < writes:
        sys.exit(f"tiers_of_run: {name} has {tier.requests} requests of {writes} writes")
    parts = tier.mean(writes)
    print(name, clients, writes, tier.requests, tier.unmetered, *(f"{parts[part]:.1f}" for part in tiers.PARTS))
