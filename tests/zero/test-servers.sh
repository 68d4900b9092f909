#!/bin/bash
# Real servers that nobody instrumented, under `blkin run`: redis, nginx in front of nginx, and nbdkit. All requests
# of their clients are counted, one by one and 16 at once, with the right parents. tests/zero/matrix tests all cases.
# SPDX-License-Identifier: BSD-2-Clause
exec "${PYTHON:-/usr/bin/python3}" "$SRC/tests/zero/matrix" --cached --requests 400 redis nginx-pooled nbdkit
