#!/usr/bin/env python3
"""Prints how many spans of the load fit a rule: in a slow or failed request, the span of its host and of each calling
host.

    fits.py FOLDER HOSTS

SPDX-License-Identifier: BSD-2-Clause
"""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

requests = planted.Planted(sys.argv[1], int(sys.argv[2])).read().values()
print(sum(host <= request.where and ended != 0
          for request in requests for host, ended in request.ended.items()))
