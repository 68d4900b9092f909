#!/usr/bin/env python3
"""The statistics of paired benchmarks, and the check of figures in texts.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SRC = os.environ["SRC"]
sys.path.insert(0, os.path.join(SRC, "bench"))
import figures  # noqa: E402
import paired  # noqa: E402


def measured(rounds, turns, added, drift=0, seed=1):
    """Returns runs of "one", and of "other" that takes `added` more; second passes take `drift` more."""
    dice, runs = random.Random(seed), paired.Runs()
    for number in range(rounds):
        of_round = dice.gauss(100, 20)
        for turn, pass_, name in paired.plan(("one", "other"), turns, dice):
            runs.add(f"{number}.{turn}", pass_, name, of_round + drift * pass_ + added * (name == "other") + dice.gauss(0, 1))
    return runs


class Paired(unittest.TestCase):
    def test_plan(self):
        plan = list(paired.plan("abc", 50, random.Random(1)))
        self.assertEqual(len(set(plan)), 300)
        firsts = collections.Counter(name for number, (_, _, name) in enumerate(plan) if number % 3 == 0)
        self.assertTrue(all(firsts[name] > 15 for name in "abc"), firsts)
        self.assertEqual(plan, list(paired.plan("abc", 50, random.Random(1))))

    def test_difference_is_found(self):
        result = measured(10, 5, added=3).compare("other", "one", paired.difference)
        self.assertTrue(result.found.holds(3), result)
        self.assertFalse(result.found.holds(0), result)
        self.assertIsNone(result.why_not(), result)

    def test_interval_is_one_of_95_percent(self):
        held = sum(measured(8, 3, 3, seed=seed).compare("other", "one", paired.difference).found.holds(3)
                   for seed in range(40))
        self.assertGreaterEqual(held, 33)

    def test_equals(self):
        result = measured(10, 5, added=0).compare("other", "one", paired.ratio)
        self.assertTrue(result.found.holds(1), result)
        self.assertEqual(result.neutral, 1)

    def test_drift_is_noise(self):
        for runs in (measured(10, 5, added=3, drift=2).compare("other", "one", paired.difference),
                     measured(10, 5, added=3, drift=2).absolute("one")):
            self.assertEqual(runs.why_not(), "machine too noisy")
            figure = figures.paired(runs, "ns", "<= 200")
            self.assertIsNone(figure["value"])
            self.assertEqual(figures.verdict(figure), "")
            self.assertEqual(figures.cells("a.b", figure)[1], "machine too noisy")

    def test_few_pairs(self):
        self.assertIn("too few pairs: 18", measured(3, 3, added=3).compare("other", "one", paired.difference).why_not())

    def test_half_a_turn_makes_no_pair(self):
        runs = paired.Runs()
        runs.add("0.0", 0, "one", 1)
        runs.add("0.0", 1, "other", 1)
        with self.assertRaises(paired.Failed):
            runs.compare("other", "one", paired.difference)

    def test_runs_of_lines(self):
        modes = paired.parse(["run m 0.0 0 a 1", "run m 0.0 0 a 3", "run m 0.0 0 a 2", "else m a 9", "run n 0.0 1 a 5"])
        self.assertEqual(modes["m"].each("a", 0), {("0", "0"): 2})
        self.assertEqual(modes["n"].each("a", 1), {("0", "0"): 5})

    def test_verdict_needs_whole_interval(self):
        for target, low, high, verdict in (("<= 2", 1, 1.9, "met"), ("<= 2", 1, 2.1, "open"), ("<= 2", 2.1, 3, "NOT MET"),
                                           (">= 2", 2.1, 3, "met"), (">= 2", 1.9, 3, "open"), (">= 2", 1, 1.9, "NOT MET"),
                                           (None, 1, 2, "")):
            figure = {"value": (low + high) / 2, "low": low, "high": high, "target": target}
            self.assertEqual(figures.verdict(figure), verdict, figure)


class Texts(unittest.TestCase):
    """Runs scripts/figures on a small tree."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("scripts/figures", "bench/figures.py", "bench/performance.py"):
            os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
            shutil.copy(f"{SRC}/{name}", f"{self.folder}/{name}")
        os.mkdir(f"{self.folder}/doc")
        self.write("bench/performance.md.in", "@RUNS@\n")
        self.write("doc/figures.json", '[{"name": "x", "machine": {}, "parts": {}, "figures": {'
                   '"a.ns": {"value": 1234.5, "unit": "ns/span", "target": null, "anchor": null},'
                   '"a.noisy": {"value": null, "why": "machine too noisy", "unit": "ns", "target": null, "anchor": null}}}]')

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, *flags):
        done = subprocess.run([sys.executable, f"{self.folder}/scripts/figures", *flags], capture_output=True, text=True,
                              check=False, env={name: value for name, value in os.environ.items() if name != "SRC"})
        return done.returncode, done.stderr

    def test_right(self):
        self.write("a.md", "1,234 ns<!-- =a.ns -->, 1.2 µs<!-- =a.ns -->\n")
        self.write("a.h", "/* 1200 ns (=a.ns) */\n".replace("1200", "1,200"))
        self.assertEqual(self.check("--fill"), (0, ""))
        self.assertEqual(self.check(), (0, ""))

    def test_wrong(self):
        self.check("--fill")
        for text, said in (("1.3 us<!-- =a.ns -->", "expected 1.2"), ("2 ns<!-- =a.other -->", "no such figure"),
                           ("2 ns<!-- =a.noisy -->", "machine too noisy"), ("so much<!-- =a.ns -->", "no number before it")):
            self.write("a.md", text)
            status, stderr = self.check()
            self.assertEqual(status, 1, text)
            self.assertIn(said, stderr)

    def test_fill(self):
        self.write("a.md", "1.3 us<!-- =a.ns -->\n")
        self.assertEqual(self.check("--fill"), (0, ""))
        with open(f"{self.folder}/a.md", encoding="utf-8") as file:
            self.assertEqual(file.read(), "1.2 us<!-- =a.ns -->\n")

    def test_page_is_made(self):
        self.check("--fill")
        self.write("doc/performance.md", "edited\n")
        status, stderr = self.check()
        self.assertEqual(status, 1)
        self.assertIn("doc/performance.md", stderr)


if __name__ == "__main__":
    unittest.main()
