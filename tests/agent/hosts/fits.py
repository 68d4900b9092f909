#!/usr/bin/env python3
"""Prints the number of spans of the load that match a rule. In each slow or failed request, these are the spans of the
host at fault and of the hosts that call it.

    fits.py FOLDER HOSTS

SPDX-License-Identifier: BSD-2-Clause
"""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

requests = planted.Planted(sys.argv[1], int(sys.argv[2])).read().values()
print(sum(host <= request.where and ended != 0
          for request in requests for host, ended in request.ended.items()))
