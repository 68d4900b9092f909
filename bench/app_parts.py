"""Programs that benchmarks of applications run: nbdkit, LTTng's daemons and the like.

SPDX-License-Identifier: BSD-2-Clause
"""
import functools
import os
import pathlib
import subprocess
import sys
import time

SRC = pathlib.Path(os.environ.get("SRC", pathlib.Path(__file__).resolve().parents[1]))
BUILD = pathlib.Path(os.environ.get("BUILD", SRC / "build"))
sys.path.insert(0, str(SRC / "tests"))
import common
import tracing
from paired import Failed

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


wait_for = functools.partial(common.wait_until, fails=Failed, every_s=0.02)


def isolated(main):
    """Runs main() in namespaces of its own, and prints the failure if main() raises one."""
    if "BLKIN_PRIVATE" not in os.environ:
        isolate = str(SRC / "scripts/isolate")
        os.execv(isolate, [isolate, sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    try:
        main()
    except Failed as failure:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {failure}")


def cpu_seconds(pid):
    """The CPU time of a process, that of its ended threads included (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def stat_of(pid):
    """The fields of the process's line in /proc/PID/stat after the name."""
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
    """Processes in the background, which end with this program."""

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


class Nbdkit:
    """An nbdkit with these arguments, at a socket of its own. The environment has the given variables, too."""
    number = 0

    def __init__(self, parts, work, *arguments, **environment):
        Nbdkit.number += 1
        self.parts = parts
        self.path = work / f"socket{Nbdkit.number}"
        self.process = parts.start("nbdkit", "-f", "-U", self.path, *arguments,
                                   env={**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "-1", **environment})
        wait_for(lambda: self.path.exists() or self.process.poll() is not None, "nbdkit's start")
        if self.process.poll() is not None:
            raise Failed(f"nbdkit ended with status {self.process.returncode}")

    def end(self):
        self.parts.end(self.process)


class Tracing:
    """A session daemon, and LTTng's command."""
    lttng = tracing.Lttng(Failed)

    def __init__(self, parts):
        self.sessiond = parts.start("lttng-sessiond", "--no-kernel")
        self.lttng.wait_ready()
