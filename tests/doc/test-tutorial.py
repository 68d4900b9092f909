#!/usr/bin/env python3
# timeout: 120
"""The tutorial: each command runs, and has the output that the page shows; numbers and ids may differ. Without
BUILD/bin/blkin, the test uses the installed BlkKin.

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import wait_until  # noqa: E402

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
PAGE = os.path.join(SRC, "doc/tutorial.md")


def blocks(text):
    return re.findall(r"^```(console|diff)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(block):
    """[command, the output that the page shows]"""
    return [part.split("\n", 1) for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]


def normal(text):
    """Returns the text without the parts that differ from run to run: times, numbers, ids, lengths of bars, and the
    load of a busy host."""
    text = re.sub(r"\|[█ ]+\|", "BAR", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    text = re.sub(r"\d[\d.:-]*\s*(us|ms|s|%)?(?![\w])", "N", text)
    return [" ".join(line.split()) for line in text.strip().splitlines()
            if line.split() and not line.startswith("while ")]


class Shell:
    """A bash like the reader's, in a folder of its own."""

    def __init__(self, folder):
        environment = dict(os.environ, CHECKOUT=SRC, LC_ALL="C.UTF-8", BLKIN_STATE_DIR=f"{folder}/state",
                           BLKIN_RUNTIME_DIR=f"{folder}/run")
        if os.path.exists(f"{BUILD}/bin/blkin"):
            environment.update(self.as_if_installed(folder), PATH=f"{BUILD}/bin:{os.environ['PATH']}")
        self.bash = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, cwd=folder, env=environment, encoding="utf-8")

    @staticmethod
    def as_if_installed(folder):
        """Finds library, headers and plugin of the build. Without a build they are the system's."""
        with open(f"{SRC}/libblkin/blkin.pc.in", encoding="utf-8") as template:
            pc = template.read().replace("@LIBDIR@", f"{BUILD}/lib").replace("@INCLUDEDIR@", f"{BUILD}/include")
        with open(f"{folder}/blkin.pc", "w", encoding="utf-8") as file:
            file.write(pc.replace("@PREFIX@", "/none").replace("@VERSION@", "0"))
        return {"PKG_CONFIG_PATH": folder, "LD_LIBRARY_PATH": f"{BUILD}/lib", "BABELTRACE_PLUGIN_PATH": f"{BUILD}/plugins"}

    def run(self, command):
        """(exit status, output)"""
        self.bash.stdin.write(f"{command}\necho \"--- $? ---\"\n")
        self.bash.stdin.flush()
        output = ""
        for line in self.bash.stdout:
            ended = re.search(r"--- (\d+) ---\n$", line)
            if ended:
                return int(ended[1]), output + line[:ended.start()]
            output += line
        sys.exit(f"bash has ended while it ran: {command}\n{output}")

    def run_until_done(self, command):
        """Tries a command until it succeeds, because a part that it needs may have been started just before."""
        tries = []

        def is_done():
            tries.append(self.run(command))
            return tries[-1][0] == 0 or command.startswith(("patch", "cc", "mkdir"))
        with contextlib.suppress(AssertionError):
            wait_until(is_done, limit_s=20, every_s=0.05)
        return tries[-1]

    def serve(self, command):
        """Starts the server. If an agent runs, restarts the server until it has the agent's rings: a busy agent answers too
        late for the server's first requests."""
        for _ in range(8):
            started = self.run(command)
            if self.run("test -S rings")[0] != 0:
                break
            with contextlib.suppress(AssertionError):
                wait_until(lambda: self.run("grep -q memfd:blkin-rings /proc/$!/maps")[0] == 0, limit_s=1, every_s=0.05)
                break
            self.run("kill $!; wait $!")
        return started


def check_commands(shell, block, tries=8):
    """While a machine stands still, another request than the page's may be the slowest: runs the block again."""
    for command, shown in commands(block):
        status, output = (shell.serve if "notes serve" in command else shell.run_until_done)(command)
        if "kill $(jobs" in command:  # the shell's messages about its jobs, or 143 of wait
            continue
        if status != 0:
            _, logs = shell.run("tail *.log")
            sys.exit(f"$ {command}\nexit status {status}\n{output}\n{logs}")
        if normal(output) != normal(shown) and command.startswith("blkin show") and "blkin agent" in block and tries:
            shell.run(f"rm -f {command.split()[-1]}")
            return check_commands(shell, block, tries - 1)
        if normal(output) != normal(shown):
            sys.exit(f"$ {command}\nthe page shows:\n{shown}\nit is:\n{output}\n"
                     f"compared:\n{normal(shown)}\n{normal(output)}")


def check_diff(block, patches):
    """Checks that each line of the page is in the last applied patch, in this order."""
    with open(os.path.join(SRC, "examples/tutorial", patches[-1]), encoding="utf-8") as file:
        lines = iter(file.read().splitlines())
    for line in block.splitlines():
        if line != "..." and line not in lines:
            sys.exit(f"{patches[-1]} has no such line, or not there: {line}")


def main():
    count, patches = 0, []
    with open(PAGE, encoding="utf-8") as page, tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder)
        for kind, block in blocks(page.read()):
            patches += re.findall(r"^\$ patch < (\S+)", block, re.MULTILINE)
            if kind == "diff":
                check_diff(block, patches)
            else:
                check_commands(shell, block)
                count += len(commands(block))
        shell.bash.stdin.close()
        shell.bash.wait()
    print(f"{count} commands")
    if count < 30:
        sys.exit("the page has lost commands")


main()
