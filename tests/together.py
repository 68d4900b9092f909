"""Runs the tests of a class at once, each in a process of its own: tests with a broker mostly wait, for sessions to
time out and for periods to pass.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import random
import sys
import tempfile
import traceback
import unittest

from common import pause

LAST_LINES = 30  # of each failed test
AT_ONCE = int(os.environ.get("AT_ONCE", "4"))


def is_right(case, name):
    """Runs one test."""
    return unittest.TextTestRunner(verbosity=2).run(case(name)).wasSuccessful()


class Running:
    """A test in a child. Its output is printed when it has ended, so that several do not mix; that of a failed test once
    more, after all tests."""

    def __init__(self, case, name):
        self.name, self.output = name, tempfile.TemporaryFile()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self.run(case, name)

    def run(self, case, name):
        status = 1
        try:
            os.dup2(self.output.fileno(), 1)
            os.dup2(self.output.fileno(), 2)
            random.seed()  # other ports than its siblings'
            status = not is_right(case, name)
        except BaseException:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def ended(self, failed):
        """Adds the end of a failed test's output."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return False
        self.output.seek(0)
        said = self.output.read().decode(errors="replace")
        self.output.close()
        print(said, flush=True)
        if status:
            failed.append("\n".join([f"FAIL: {self.name}", *said.splitlines()[-LAST_LINES:]]))
        return True


def run_together(case, names):
    """Returns the ends of the failed tests' output."""
    left, running, failed = list(names), [], []
    while left or running:
        while left and len(running) < AT_ONCE:
            running.append(Running(case, left.pop(0)))
        pause(0.05)
        running = [one for one in running if not one.ended(failed)]
    return failed


def main(case, alone=()):
    """alone: names of tests that stop shared parts, or measure; they run after the others, here, one by one. The
    program's arguments: the names of the tests to run; none: all."""
    names = sys.argv[1:] or unittest.defaultTestLoader.getTestCaseNames(case)
    try:
        case.setUpClass()
        failed = run_together(case, [name for name in names if name not in alone])
        failed += [f"FAIL: {name}" for name in names if name in alone and not is_right(case, name)]
    finally:
        case.tearDownClass()
        case.doClassCleanups()
    print(*failed, sep="\n", flush=True)
    sys.exit(bool(failed))
