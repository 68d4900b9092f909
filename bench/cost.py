#!/usr/bin/env python3
"""Runs a command and writes its cost to a file: "CPU_SECONDS SECONDS".

usage: cost.py FILE COMMAND [ARGUMENT]...

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys
import time

began = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
seconds = time.monotonic() - began
with open(sys.argv[1], "w", encoding="ascii") as results:
    print(f"{usage.ru_utime + usage.ru_stime:.6f} {seconds:.6f}", file=results)
sys.exit(os.waitstatus_to_exitcode(status))
