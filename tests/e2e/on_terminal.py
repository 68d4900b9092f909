#!/usr/bin/env python3
"""Runs a command on a terminal of its own. Types Ctrl-C when the command has written a text. Ends with the command's
status.

usage: on_terminal.py SECONDS TEXT COMMAND [ARGUMENT]...

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import pty
import select
import sys
import time


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO when the other end is closed
        return b""


def main():
    deadline = time.monotonic() + float(sys.argv[1])
    text, command = sys.argv[2].encode(), sys.argv[3:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    seen = b""
    typed = False
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            os.kill(pid, 9)
            sys.exit(f"on_terminal.py: not ended in time; Ctrl-C {'' if typed else 'not '}typed")
        data = read(terminal)
        if not data:
            break
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        seen += data
        if not typed and text in seen:
            typed = True
            os.write(terminal, b"\x03")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not typed:
        sys.exit(f"on_terminal.py: ended with status {status} before it wrote {sys.argv[2]!r}")
    sys.exit(status if status >= 0 else 128 - status)


main()
