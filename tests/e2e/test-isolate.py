#!/usr/bin/env python3
# The promises of scripts/isolate: the command's exit status, its signals, and no process or file afterwards.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 180
import fcntl
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import PATIENCE, pause, wait_until  # noqa: E402

ISOLATE = os.path.join(os.environ["SRC"], "scripts", "isolate")
DEADLINE = 20 * PATIENCE
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", what)


def environment(mode):
    return {**os.environ, "ISOLATE": mode}


def run(mode, *command, **kw):
    return subprocess.run([ISOLATE, *command], env=environment(mode), timeout=DEADLINE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def children(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True).stdout
    return [int(p) for p in out.split()]


def family(pid):
    """Returns the pid and all its descendants, oldest first."""
    found = [pid]
    for p in found:
        found += children(p)
    return found


def marked(mark):
    """Returns the processes with this word among their arguments, whichever process started them."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/cmdline", "rb") as f:
                state = open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0]
                if mark.encode() in f.read().split(b"\0") and state != "Z":
                    found.append(int(p))
        except OSError:
            pass
    return found


# Python, because a shell may miss one of two signals that come together.
COMMAND = """
import os, signal, subprocess, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
signals = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
null = subprocess.DEVNULL
subprocess.Popen(["sleep", sys.argv[2]], stdin=null, stdout=null, stderr=null,  # its duration is a mark
                 start_new_session=True)
os.write(log, b"ready\\n")
while True:
    got = signal.sigwait(signals)
    os.write(log, signal.Signals(got).name[3:].encode() + b"\\n")
    if got == signal.SIGTERM:
        sys.exit(5)
"""


class Running:
    """A command under isolate that has left a daemon in a session of its own."""

    count = 0
    all = []

    def __init__(self, mode, folder, **kw):
        Running.count += 1
        self.mark = f"86400.{os.getpid()}{Running.count}"
        self.log = os.path.join(folder, f"log{Running.count}")
        # isolate does not hide the folder in which a command runs
        self.process = subprocess.Popen(
            [ISOLATE, sys.executable, "-c", COMMAND, self.log, self.mark], env=environment(mode),
            cwd=folder, **kw)
        Running.all.append(self)
        wait_until(lambda: self.lines()[:1] == ["ready"], "the command's start")

    def lines(self):
        try:
            with open(self.log) as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def status(self):
        return self.process.wait(DEADLINE)

    def gone(self, what):
        wait_until(lambda: not marked(self.mark), what)


def test_status(mode):
    check(run(mode, "sh", "-c", "exit 7").returncode == 7, f"{mode}: exit status 7")
    check(run(mode, "true").returncode == 0, f"{mode}: exit status 0")
    check(run(mode, "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV,
          f"{mode}: status of a signal")
    check(run(mode, "/no/such/program").returncode == 127, f"{mode}: status of a missing program")
    check(run(mode, "cat", input="hello\n").stdout == "hello\n", f"{mode}: standard input")
    check(run(mode, "id", "-u").stdout.strip() == str(os.getuid()), f"{mode}: same user")
    check(run(mode, "--frobnicate").returncode == 125, f"{mode}: a wrong option")


def test_private(mode):
    out = run(mode, "sh", "-c", "echo x >$TMPDIR/x; echo $BLKIN_PRIVATE $LTTNG_HOME $TMPDIR;"
              "echo $BLKIN_ISOLATED; ls -A /run/lttng 2>/dev/null").stdout.split()
    check(out[1].startswith(out[0]) and out[2].startswith(out[0]), f"{mode}: private folders: {out}")
    check(out[3] == mode, f"{mode}: says how it isolates: {out}")
    check(len(out) == 4 or mode == "plain", f"{mode}: nothing of the machine's LTTng: {out}")
    check(not os.path.exists(f"{out[2]}/x"), f"{mode}: {out[2]}/x is left")


def test_policies():
    """Policies of the machine do not apply inside: see BLKIN_RUN_FILE."""
    folder = "/run/blkin"
    if not os.access("/run", os.W_OK) or os.path.exists(folder):
        return
    os.mkdir(folder)
    try:
        check(run("namespaces", "ls", folder).returncode == 2, "namespaces: the machine's policies are seen")
    finally:
        os.rmdir(folder)


def test_network(mode):
    """A server inside cannot be reached from here."""
    ended = run(mode, "--own-network", "sh", "-c", "ip -brief address; readlink /proc/self/ns/net")
    if mode == "plain":
        check(ended.returncode == 125 and "no network of its own" in ended.stderr, f"{mode}: {ended}")
        return
    *links, network = ended.stdout.splitlines()
    check(len(links) == 1 and links[0].startswith("lo ") and "127.0.0.1" in links[0], f"{mode}: a loopback: {links}")
    check(network != os.readlink("/proc/self/ns/net"), f"{mode}: a network of its own")


def test_signals(mode, folder):
    r = Running(mode, folder)
    r.process.terminate()
    check(r.status() == 5, f"{mode}: TERM reaches the command, its status comes back")
    check(r.lines() == ["ready", "TERM"], f"{mode}: one TERM: {r.lines()}")
    check(not marked(r.mark), f"{mode}: nothing is left when isolate has ended")

    r = Running(mode, folder)
    r.process.send_signal(signal.SIGINT)
    wait_until(lambda: "INT" in r.lines(), "INT in the command")
    check(r.lines() == ["ready", "INT"], f"{mode}: one INT: {r.lines()}")
    check(r.process.poll() is None, f"{mode}: the command decides what INT does")
    r.process.terminate()
    check(r.status() == 5, f"{mode}: TERM after INT")


def test_terminal(mode, folder):
    ours, theirs = pty.openpty()

    def own_the_terminal():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    r = Running(mode, folder, stdin=theirs, stdout=theirs, stderr=theirs,
                preexec_fn=own_the_terminal)
    os.write(ours, b"\x03")
    wait_until(lambda: "INT" in r.lines(), "INT in the command")
    r.process.terminate()
    check(r.status() == 5, f"{mode}: TERM after Ctrl-C: {r.status()}")
    check(r.lines() == ["ready", "INT", "TERM"], f"{mode}: one INT for a Ctrl-C: {r.lines()}")
    r.gone(f"{mode}: the end after Ctrl-C")
    os.close(ours)
    os.close(theirs)


def name(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def test_sigkill(mode, folder):
    """Kills the processes of isolate and the command, one in each run."""
    position = 0
    while True:
        r = Running(mode, folder)
        chain = [p for p in family(r.process.pid) if name(p) not in ("sleep", "")]
        if position < len(chain):
            os.kill(chain[position], signal.SIGKILL)
        pause(0.05)  # so isolate may have noticed the SIGKILL, or not
        r.process.terminate()
        r.status()
        r.gone(f"{mode}: nothing left after SIGKILL of process {position} of {len(chain)}")
        position += 1
        if position > len(chain):
            return


def end_all():
    for r in Running.all:
        r.process.kill()
        for pid in marked(r.mark):
            os.kill(pid, signal.SIGKILL)


def main():
    modes = ["plain"]
    if run("", "printenv", "BLKIN_ISOLATED").stdout.strip() == "namespaces":
        modes.append("namespaces")
        test_policies()
    else:
        print("namespaces are not allowed here: only the other way is tested")
    # not in TMPDIR, which may be below /dev/shm: an isolate inside hides that folder
    with tempfile.TemporaryDirectory(dir=os.path.join(os.environ["BUILD"], "tests")) as folder:
        try:
            for mode in modes:
                for test in (test_signals, test_terminal, test_sigkill):
                    test(mode, folder)
                for test in (test_status, test_private, test_network):
                    test(mode)
        finally:
            end_all()
    sys.exit(1 if failures else 0)


main()
