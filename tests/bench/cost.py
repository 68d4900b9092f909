#!/usr/bin/env python3
"""Runs a command and appends to a file what it took: "CPU_SECONDS MAXIMUM_RSS_KIB".

usage: cost.py FILE COMMAND [ARGUMENT]...

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "a", encoding="ascii") as results:
    print(f"{usage.ru_utime + usage.ru_stime:.6f} {usage.ru_maxrss}", file=results)
sys.exit(os.waitstatus_to_exitcode(status))
