"""Runs the tests of a class at once, each in a process of its own, because tests with a broker mostly wait: until
sessions time out, and until periods end.

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


def passes(case, name):
    """Runs one test. Returns whether it passes."""
    return unittest.TextTestRunner(verbosity=2).run(case(name)).wasSuccessful()


class Running:
    """A test in a child process. Its output is printed when the test has ended, so that outputs do not mix. The end of a
    failed test's output is printed a second time, after all tests."""

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
            status = not passes(case, name)
        except BaseException:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def ended(self, failed):
        """Returns whether the test has ended. Appends the end of a failed test's output to `failed`."""
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
    """Runs the tests. Returns the ends of the failed tests' outputs."""
    left, running, failed = list(names), [], []
    while left or running:
        while left and len(running) < AT_ONCE:
            running.append(Running(case, left.pop(0)))
        pause(0.05)
        running = [one for one in running if not one.ended(failed)]
    return failed


def main(case, alone=()):
    """alone: names of tests that stop shared parts, or that measure. They run one by one after the others, in this
    process. The program's arguments are names of tests to run; without arguments, all run."""
    names = sys.argv[1:] or unittest.defaultTestLoader.getTestCaseNames(case)
    try:
        case.setUpClass()
        failed = run_together(case, [name for name in names if name not in alone])
        failed += [f"FAIL: {name}" for name in names if name in alone and not passes(case, name)]
    finally:
        case.tearDownClass()
        case.doClassCleanups()
    print(*failed, sep="\n", flush=True)
    sys.exit(bool(failed))
