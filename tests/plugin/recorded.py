"""For tests of rules: traces of any events, converted by the sink."""
# SPDX-License-Identifier: BSD-2-Clause
import os
import tempfile
import unittest

from conversion import Conversion
from ctf import Characters, Integer, Trace


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.traces = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def rules(self, text, name="test.rules"):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def convert(self, *inputs, rules=None, parameters=(), fails=False):
        given = [f'rules="{rules}"'] if rules else []
        run = Conversion(self.folder, *inputs, parameters=[*given, *parameters]).end(1 if fails else 0)
        return run.said if fails else (run.spans(), run.counters())

    def record(self, classes, events, context=None, host="h", **more_context):
        """Events: (time, name, values[, context])."""
        self.traces += 1
        trace = Trace(self.traces, hostname=host, context={
            "vpid": Integer(32, True), "vtid": Integer(32, True), "procname": Characters(17), **more_context})
        for name, fields in classes.items():
            trace.event_class(name, fields)
        stream = trace.stream()
        usual = context or {"vpid": 10, "vtid": 11, "procname": "prog"}
        stream.packet([(*event[:3], event[3] if len(event) > 3 else usual) for event in events])
        folder = self.path(f"trace-{self.traces}")
        trace.write(folder)
        return folder
