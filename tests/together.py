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

AT_ONCE = int(os.environ.get("AT_ONCE", "4"))


def is_right(case, name):
    """Runs one test."""
    return unittest.TextTestRunner(verbosity=2).run(case(name)).wasSuccessful()


class Running:
    """A test in a child. Its output is printed when it has ended, so that several do not mix."""

    def __init__(self, case, name):
        self.output = tempfile.TemporaryFile()
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

    def ended(self):
        """Returns its exit status; None: it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.output.seek(0)
        print(self.output.read().decode(errors="replace"), flush=True)
        self.output.close()
        return status


def run_together(case, names):
    """Returns whether all have passed."""
    left, running, statuses = list(names), [], []
    while left or running:
        while left and len(running) < AT_ONCE:
            running.append(Running(case, left.pop(0)))
        pause(0.05)
        ended = {one: one.ended() for one in running}
        statuses += [status for status in ended.values() if status is not None]
        running = [one for one in running if ended[one] is None]
    return not any(statuses)


def main(case, alone=()):
    """alone: names of tests that stop shared parts, or measure; they run after the others, here, one by one. The
    program's arguments: the names of the tests to run; none: all."""
    names = sys.argv[1:] or unittest.defaultTestLoader.getTestCaseNames(case)
    try:
        case.setUpClass()
        are_right = run_together(case, [name for name in names if name not in alone])
        for name in names:
            if name in alone:
                are_right = is_right(case, name) and are_right
    finally:
        case.tearDownClass()
        case.doClassCleanups()
    sys.exit(not are_right)
