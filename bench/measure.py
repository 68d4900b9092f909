"""Runs the benchmark programs, and reads what they print.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import figures
import paired
from paired import Failed

SRC = pathlib.Path(os.environ["SRC"])
BUILD = SRC / os.environ["BUILD"]
ISOLATE = SRC / "scripts/isolate"


def output_of(*command):
    """Returns the standard output. A failure has the command, its status, and the last lines of its output."""
    command = list(map(str, command))
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace") as process:
            said = collections.deque(maxlen=10)
            for line in process.stderr:
                sys.stderr.write(line)
                said.append(line)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with status {process.returncode}; its last messages:\n{''.join(said)}"
                     "its last output:\n" + "\n".join(text.splitlines()[-5:]))
    return text


class Measured:
    """Runs of modes, and the rows "MODE NAME NUMBER..."."""

    def __init__(self, text):
        lines = text.splitlines()
        self.modes = paired.parse(lines)
        self.rows = {}
        for line in lines:
            if not line.startswith("run "):
                mode, name, *numbers = line.split()
                self.rows[mode, name] = tuple(map(float, numbers))

    def has(self, mode, name):
        return (mode, name) in self.rows

    def number(self, mode, name, column=0):
        try:
            return self.rows[mode, name][column]
        except (KeyError, IndexError):
            raise Failed(f"there is no row {mode} {name}, or it has no column {column}") from None

    def median(self, mode, name):
        return self.modes[mode].median(name)


def script(name, *arguments):
    """Runs a shell script of this folder in namespaces of its own."""
    return Measured(output_of(ISOLATE, "bash", SRC / "bench" / name, *arguments))


def program(name):
    """Runs a Python program of this folder that prints figures. Its arguments are in the environment: in BENCH_NBD for
    bench-nbd."""
    arguments = os.environ.get(name.upper().replace("-", "_"), "").split()
    return figures.parse(output_of(sys.executable, SRC / "bench" / name, *arguments))


class Found(dict):
    """key -> figure, of one Measured."""

    def __init__(self, room, got):
        super().__init__()
        self.room, self.got = room, got

    def count(self, name, value, unit, target=None, anchor=None):
        self[f"{self.room}.{name}"] = figures.exact(value, unit, target, anchor)

    def absolute(self, name, mode, what, unit, target=None, anchor=None, of=float):
        self[f"{self.room}.{name}"] = figures.paired(self.got.modes[mode].absolute(what, of), unit, target, anchor)

    def compare(self, name, mode, of, to, how, unit, target=None, anchor=None):
        self.worst(name, [(mode, of, to)], how, unit, target, anchor)

    def worst(self, name, pairs, how, unit, target=None, anchor=None):
        """Adds the figure of the pair with the highest value."""
        results = [self.got.modes[mode].compare(of, to, how) for mode, of, to in pairs]
        self[f"{self.room}.{name}"] = figures.paired(max(results, key=lambda result: result.found.value), unit, target,
                                                     anchor)
