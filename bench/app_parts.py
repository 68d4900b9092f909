"""The processes that the application benchmark runs beside nbdkit: LTTng's daemons and the like.

SPDX-License-Identifier: BSD-2-Clause
"""
import functools
import os
import pathlib
import subprocess
import sys
import time

SRC = os.environ.get("SRC", str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, os.path.join(SRC, "tests"))
import common
import tracing
from paired import Failed

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


wait_for = functools.partial(common.wait_until, fails=Failed, every_s=0.02)


def cpu_seconds(pid):
    """All that the process has used, threads that have ended included (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def stat_of(pid):
    """The fields of its line in /proc after the name."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()


def children(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat_of(path.parent.name)[1]) == pid:
                found.append(int(path.parent.name))
        except (OSError, IndexError):
            pass
    return found


class Parts:
    """What runs in the background; ended with us."""

    def __init__(self):
        self.running = []

    def start(self, *command, **more):
        part = subprocess.Popen([str(word) for word in command], **{**QUIET, **more})
        self.running.append(part)
        return part

    def end(self, part):
        part.terminate()
        try:
            part.wait(10)
        except subprocess.TimeoutExpired:
            part.kill()
            part.wait()
        self.running.remove(part)

    def end_all(self):
        while self.running:
            self.end(self.running[-1])


class Tracing:
    """A session daemon, and sessions of the span API's events."""
    lttng = tracing.Lttng(Failed)

    def __init__(self, parts):
        self.sessiond = parts.start("lttng-sessiond", "--no-kernel")
        self.lttng.wait_ready()

    def session(self, name, *create):
        """A session that is overwritten if it is one of snapshots."""
        is_snapshot = "--snapshot" in create
        self.lttng.session(name, *create, channel=tracing.OVERWRITTEN[not is_snapshot:])

    def consumer(self):
        """The pid of the consumer daemon, a child of the session daemon."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                head, tail = stat.read_text(encoding="ascii", errors="replace").rsplit(")", 1)
            except OSError:
                continue
            if int(tail.split()[1]) == self.sessiond.pid and "consumerd" in head:
                return int(stat.parent.name)
        raise Failed("LTTng has no consumer daemon")
