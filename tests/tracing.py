"""LTTng's commands and sessions, for tests and benchmarks in Python. scripts/isolate keeps the daemons of tests apart.

SPDX-License-Identifier: BSD-2-Clause
"""
import subprocess

from common import PATIENCE, wait_until

LOSES_NOTHING = "--subbuf-size=4M", "--num-subbuf=4", "--blocking-timeout=inf"  # programs wait for room
OVERWRITTEN = "--overwrite", "--subbuf-size=1M", "--num-subbuf=4"


class Lttng:
    """Runs lttng. fails: the exception that a failed command raises."""

    def __init__(self, fails=AssertionError):
        self.fails = fails

    def __call__(self, *command, check=True):
        """Returns the exit status."""
        words = ["timeout", "-k", "2", str(30 * PATIENCE), "lttng", "--no-sessiond", *map(str, command)]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise self.fails(f"lttng {' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.returncode

    def wait_ready(self):
        wait_until(lambda: self("list", check=False) == 0, "the session daemon's answer", fails=self.fails)

    def session(self, name, *create, channel=OVERWRITTEN, events="blkin:span,blkin:process", contexts=()):
        """Starts a session that records these events."""
        self("create", name, *create)
        self("enable-channel", "-s", name, "-u", "--buffers-uid", *channel, "all")
        self("enable-event", "-s", name, "-u", "-c", "all", events)
        if contexts:
            self("add-context", "-s", name, "-u", "-c", "all", *(word for one in contexts for word in ("-t", one)))
        self("start", name)
