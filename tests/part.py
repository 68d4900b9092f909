"""A program that a test starts, perhaps several times, with its log and its HTTP answers.

SPDX-License-Identifier: BSD-2-Clause
"""
import http.client
import signal
import subprocess
import urllib.request

from common import ENVIRONMENT, LIMIT_S


def options(keys):
    """Returns options of the command line: {"a_b": C} gives --a-b=C."""
    return [f"--{key.replace('_', '-')}={value}" for key, value in keys.items()]


def page(url):
    """Returns the text of a page; None: the server starts or ends, and there is no whole page."""
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            return answer.read().decode()
    except (OSError, http.client.HTTPException):
        return None


class Part:
    def __init__(self, log, args, **environment):
        self.log, self.args, self.process, self.environment = log, args, None, {**ENVIRONMENT, **environment}

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment)
        return self

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Returns the exit status; 0 for a program that was never started."""
        if self.runs():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S) if self.process else 0
