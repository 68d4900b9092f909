#!/usr/bin/env python3
"""The part of scripts/isolate that waits for the command: passes signals on, ends what is left.

usage: supervise.py run|unshare|plain COMMAND [ARGUMENT]...

  run      COMMAND is a child of ours, and we may be the first process of a pid namespace
  unshare  COMMAND is unshare(1), whose child is the first process of a pid namespace; we are outside
  plain    there is no namespace: a mark in the environment (BLKIN_MARK) finds the processes that are
           left when COMMAND or this process ends; and BLKIN_PRIVATE is removed

This program is not in bash, which can miss a signal, or a child's status, when two arrive together.

SPDX-License-Identifier: BSD-2-Clause
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

PASSED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
SI_KERNEL = 128  # the code of a terminal's signal, which COMMAND gets, too; signals of kill(2) have another code
RUN_LTTNG = "/run/lttng"
kept = []  # Popen objects: Python would reap the child of a freed one, and supervise() would miss its status


def start(command):
    def default_signals():
        for number in PASSED | {signal.SIGQUIT}:
            signal.signal(number, signal.SIG_DFL)
        # unshare and the shell in the namespace pass on the signals that come before somebody waits for them
        signal.pthread_sigmask(signal.SIG_SETMASK, PASSED if sys.argv[1] == "unshare" else [])

    try:
        process = subprocess.Popen(command, close_fds=False, preexec_fn=default_signals)
        kept.append(process)
        return process.pid
    except OSError as error:
        print(f"isolate: {command[0]}: {error.strerror}", file=sys.stderr)
        return None


def child_of(pid):
    """Returns the only child of unshare, which may need a moment to start it."""
    for _ in range(200):
        out = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False).stdout
        if out.split():
            return int(out.split()[0])
        time.sleep(0.01)
    return pid


def send(number, pid):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def reap(wanted):
    """Reaps all children that have ended. Returns the status of `wanted`, or None if that one has not ended."""
    status = None
    try:
        while True:
            pid, raw = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == wanted:
                status = os.waitstatus_to_exitcode(raw)
    except ChildProcessError:
        pass
    return status


def supervise(command, through_unshare):
    child = start(command)
    if child is None:
        return 127
    while True:
        got = signal.sigwaitinfo(PASSED | {signal.SIGCHLD})
        if got.si_signo == signal.SIGCHLD:
            status = reap(child)
            if status is not None:
                return status if status >= 0 else 128 - status
        elif got.si_code != SI_KERNEL:
            send(got.si_signo, child_of(child) if through_unshare else child)


# ---- without a namespace


supervisors = set()  # this process and the janitor, which also have the mark


def marked():
    """The processes whose environment has our mark."""
    mark = os.environb[b"BLKIN_MARK"]
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/environ", "rb") as environ:
                values = [v for v in environ.read().split(b"\0") if v.startswith(b"BLKIN_MARK=")]
        except OSError:
            continue
        pid = int(os.path.basename(folder))
        if pid not in supervisors and values and values[0].find(mark) >= 0:
            yield pid


def ust_files():
    return set(glob.glob("/dev/shm/lttng-ust-*"))


def sweep(before, run_lttng_is_ours):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = list(marked())
        if not left:
            break
        for pid in left:
            send(signal.SIGKILL, pid)
        time.sleep(0.02)
    shutil.rmtree(os.environ["BLKIN_PRIVATE"], ignore_errors=True)
    for path in ust_files() - before:
        try:
            if os.stat(path).st_uid == os.getuid():
                os.unlink(path)
        except OSError:
            pass
    if run_lttng_is_ours:
        shutil.rmtree(RUN_LTTNG, ignore_errors=True)


def plain(command):
    before, run_lttng_is_ours = ust_files(), os.getuid() == 0 and not os.path.exists(RUN_LTTNG)
    ours, theirs = os.pipe()
    supervisors.add(os.getpid())
    janitor = os.fork()
    supervisors.add(janitor or os.getpid())
    if janitor == 0:
        # os.read() returns when the supervisor closes its end of the pipe, or ends in any way: no other process has it.
        os.close(theirs)
        os.read(ours, 1)
        sweep(before, run_lttng_is_ours)
        os._exit(0)
    os.close(ours)
    status = supervise(command, False)
    os.close(theirs)
    try:
        os.waitpid(janitor, 0)
    except ChildProcessError:
        pass
    sweep(before, run_lttng_is_ours)  # in case somebody has killed the janitor
    return status


def main():
    mode, command = sys.argv[1], sys.argv[2:]
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED | {signal.SIGCHLD})
    sys.exit(plain(command) if mode == "plain" else supervise(command, mode == "unshare"))


main()
