#!/usr/bin/env python3
"""How many spans of the load a rule fits: of a slow or failed request, that of the host and of each that calls it.

    fits.py FOLDER HOSTS

SPDX-License-Identifier: BSD-2-Clause
"""
import sys

sys.dont_write_bytecode = True
import planted  # noqa: E402

requests = planted.Planted(sys.argv[1], int(sys.argv[2])).read().values()
print(sum(host <= request.where and ended != 0
          for request in requests for host, ended in request.ended.items()))
