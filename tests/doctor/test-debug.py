#!/usr/bin/env python3
# `blkin doctor --pid` names the file that gets the lines of BLKIN_DEBUG of a program, and this file gets them.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
import json
import os
import pty
import socket
import subprocess
import sys
import tempfile
import unittest

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
PROGRAM = "sleep"  # opens no file itself


class DebugTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def doctor(self, error, debug=True, command=(PROGRAM, "100")):
        """Returns the check of BLKIN_DEBUG for a process with this standard error; "closed": without one."""
        environment = {key: value for key, value in os.environ.items() if key != "BLKIN_DEBUG"}
        if debug:
            environment["BLKIN_DEBUG"] = "1"
        if error == "closed":
            command = ("sh", "-c", 'exec "$@" 2>&-', "sh", *command)
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                              stderr=None if error == "closed" else error) as process:
            try:
                while open(f"/proc/{process.pid}/comm", encoding="ascii").read() != PROGRAM + "\n":
                    pass
                run = subprocess.run([BLKIN, "doctor", "--json", f"--pid={process.pid}", f"--runtime-dir={self.folder}"],
                                     stdout=subprocess.PIPE, timeout=60, check=False)
            finally:
                process.kill()
        found = [check for check in json.loads(run.stdout)["checks"] if check["id"] == "program.debug"]
        self.assertEqual(len(found), 1, run.stdout.decode())
        self.assertIn(f"process {process.pid} ({PROGRAM})", found[0]["saw"])
        return found[0]

    def says(self, level, words, *args, **keys):
        found = self.doctor(*args, **keys)
        self.assertIn(words, found["saw"])
        self.assertEqual(found["level"], level)
        return found

    def test_files(self):
        path = self.folder + "/log"
        with open(path, "wb") as file:
            self.says("ok", f"writes the lines of BLKIN_DEBUG to its standard error, {path}", file)
            found = self.says("ok", f"without BLKIN_DEBUG; with it, the lines would go to its standard error, {path}", file, debug=False)
            self.assertIn("BLKIN_DEBUG=1", found["mend"])
            os.unlink(path)
            found = self.says("note", f"its standard error, {path} (deleted)", file)
            self.assertIn("2>>FILE", found["mend"])

    def test_others(self):
        """Standard errors that are no files."""
        terminal, pipe, local = pty.openpty(), os.pipe(), socket.socketpair()
        for error, level, words in (
                (subprocess.DEVNULL, "note", "its standard error, /dev/null"),
                ("closed", "note", "nowhere: it is closed"),
                (terminal[1], "ok", f"its standard error, {os.ttyname(terminal[1])}"),
                (pipe[1], "ok", "its standard error, pipe:["),
                (local[1], "ok", "if that is a connection to a client: to syslog, facility daemon")):
            with self.subTest(words):
                self.says(level, words, error)
        for end in (*terminal, *pipe):
            os.close(end)
        for end in local:
            end.close()


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=2).result.wasSuccessful())
