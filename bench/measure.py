"""Runs the benchmark programs, and reads what they print.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import pathlib
import subprocess
import sys

import figures
import paired
from paired import Failed

SRC = pathlib.Path(os.environ["SRC"])
BUILD = SRC / os.environ["BUILD"]
ISOLATE = SRC / "scripts/isolate"


def output_of(*command, **more):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode != 0:
        name = next(word for word in map(str, command) if "isolate" not in word and "python" not in word and word[:2] != "--"
                    and word != "bash")
        raise Failed(f"{name} ended with status {done.returncode}")
    return done.stdout


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
    """A shell script of this folder, in namespaces of its own."""
    return Measured(output_of(ISOLATE, "bash", SRC / "bench" / name, *arguments))


def program(name):
    """A Python program of this folder that says figures; BENCH_NBD, say, in the environment is its arguments."""
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
        """Of several pairs the one with the highest value."""
        results = [self.got.modes[mode].compare(of, to, how) for mode, of, to in pairs]
        self[f"{self.room}.{name}"] = figures.paired(max(results, key=lambda result: result.found.value), unit, target,
                                                     anchor)
