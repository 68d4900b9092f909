"""Runs babeltrace2 with our sink on recorded traces. Gives its log, its spans and its counters.

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import json
import os
import subprocess

from scenarios import PATIENCE, expect

PLUGINS = os.path.join(os.environ["BUILD"], "plugins")


class Conversion:
    """A running conversion. The run writes stats and log to the folder. Without an endpoint, it also writes spans.json.
    parameters: texts such as "batch-spans=10"."""

    def __init__(self, folder, *traces, parameters=(), endpoint=None):
        self.output, self.stats, self.log = (os.path.join(folder, name) for name in ("spans.json", "stats", "log"))
        parameters = f'endpoint="{endpoint or "file:" + self.output}"', f'stats-file="{self.stats}"', *parameters
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.output)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["babeltrace2", f"--plugin-path={PLUGINS}", *traces, "-c", "sink.blkin.zipkin", "-p", ",".join(parameters)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def said(self):
        """Returns the log so far, on one line."""
        with open(self.log, encoding="utf-8") as log:
            return " ".join(log.read().split())

    def end(self, status=0):
        try:
            ended = self.process.wait(100 * PATIENCE)
        finally:
            self.process.kill()
        expect(ended == status, f"status {ended}, expected {status}: {self.said}")
        expect("does not add up" not in self.said, self.said)
        return self

    def spans(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)

    def counters(self):
        with open(self.stats, encoding="utf-8") as file:
            return json.load(file)["counters"]
