#!/usr/bin/env python3
"""Reads a tap to its end, waiting for it to be there: tap_reader.py PATH

SPDX-License-Identifier: BSD-2-Clause
"""
import socket
import sys
import time

tap = socket.socket(socket.AF_UNIX)
while True:
    try:
        tap.connect(sys.argv[1])
        break
    except OSError:
        time.sleep(0.001)
buffer = bytearray(1 << 20)
while tap.recv_into(buffer):
    pass
