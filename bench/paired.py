#!/usr/bin/env python3
"""Compares things that are measured in turns. Every paired benchmark uses this file, and only this file.

A turn measures each thing twice: a first pass over all things in random order, then a second pass in another random
order. Two things that are compared give two pairs in each turn. The anchor's second run over its first run is the A/A
comparison: the same thing compared with itself, by the same arithmetic.

A value is the median over all pairs. Its interval is the 95 % confidence interval, by bootstrap. The bootstrap draws
whole rounds, because turns of one round are correlated; if there is one round only, it draws pairs. (A round is one
process, or one set of servers, with all its turns.) The A/A interval is one of 99 %: a run has some 60 figures, and of
60 intervals of 95 % three exclude the truth on the quietest machine. A figure whose A/A interval excludes "no
difference" has no value.

A benchmark prints a line for each run:     run MODE ROUND.TURN PASS NAME VALUE

Several lines for the same run count as their median. A shell script asks for its order by

usage: paired.py plan TURNS NAME...         prints "TURN PASS NAME" for each run, in random order

BENCH_SEED in the environment repeats all orders.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import os
import random
import statistics
import sys

MIN_PAIRS = 20
DRAWS = 2000
SURE, SAME_SURE = 0.95, 0.99


class Failed(Exception):
    """A failure with a message for the user."""


def seed():
    """Returns the seed of this run of all benchmarks, which child processes share."""
    return int(os.environ.setdefault("BENCH_SEED", str(random.SystemRandom().randrange(1, 1 << 30))))


def plan(names, turns, dice=None):
    """Yields (turn, pass, name) of each run, in order."""
    dice = dice or random.Random(seed())
    for turn in range(turns):
        for number in range(2):
            for name in dice.sample(list(names), len(names)):
                yield turn, number, name


def take_turns(runs, measures, turns, round_=0):
    """Adds to `runs` the results of `measures`: name -> a function that measures once."""
    for turn, number, name in plan(measures, turns, random.Random(f"{seed()} {round_}")):
        runs.add(f"{round_}.{turn}", number, name, measures[name]())
    return runs


# ---- how one thing compares with another ----------------------------------------------------------------

def difference(of, to):
    return of - to


def ratio(of, to):
    return of / to


def percent_more(of, to):
    return (of / to - 1) * 100


class Interval(collections.namedtuple("Interval", "value low high")):
    def holds(self, number):
        """Returns whether the interval has the number. Quotients of equal numbers differ in their last bit."""
        return self.low - 1e-9 <= number <= self.high + 1e-9


class Result(collections.namedtuple("Result", "found same neutral pairs")):
    """found, same: intervals of the figure and of A/A; neutral: the number that A/A has to include."""

    def why_not(self):
        """Returns the reason for a missing value; None if there is a value."""
        if self.pairs < MIN_PAIRS:
            return f"too few pairs: {self.pairs}, expected {MIN_PAIRS}"
        return None if self.same.holds(self.neutral) else "machine too noisy"


def interval(rounds, sure):
    """Returns the interval of the median of all values; rounds: lists of values."""
    rounds = [values for values in rounds if values]
    if len(rounds) == 1:  # only its turns can be drawn
        rounds = [[value] for value in rounds[0]]
    value = statistics.median(sum(rounds, []))
    dice = random.Random(1)
    drawn = sorted(statistics.median(sum(dice.choices(rounds, k=len(rounds)), [])) for _ in range(DRAWS))
    out = round(DRAWS * (1 - sure) / 2)
    return Interval(value, drawn[out], drawn[-1 - out])


class Runs:
    """All runs of one mode."""

    def __init__(self):
        self.values = {}  # (round, turn) -> (pass, name) -> values

    def add(self, turn, number, name, *values):
        round_, _, turn = str(turn).rpartition(".")
        self.values.setdefault((round_ or turn, turn), {}).setdefault((int(number), name), []).extend(map(float, values))

    def __contains__(self, name):
        return any((0, name) in at for at in self.values.values())

    def names(self):
        return list(dict.fromkeys(name for at in self.values.values() for _, name in at))

    def each(self, name, number):
        """(round, turn) -> the value of this pass."""
        return {turn: statistics.median(at[number, name]) for turn, at in self.values.items() if (number, name) in at}

    def median(self, name):
        return statistics.median([*self.each(name, 0).values(), *self.each(name, 1).values()])

    def rounds(self, of, to, how):
        """Returns for two passes: round -> the values of how(of, to) in the turns that have both."""
        found = collections.defaultdict(list)
        for turn, value in of.items():
            if turn in to:
                found[turn[0]].append(how(value, to[turn]))
        return found

    def same(self, name, how):
        return interval(self.rounds(self.each(name, 1), self.each(name, 0), how).values(), SAME_SURE)

    def compare(self, of, to, how):
        found = collections.defaultdict(list)
        for number in range(2):
            for round_, values in self.rounds(self.each(of, number), self.each(to, number), how).items():
                found[round_] += values
        if not found:
            raise Failed(f"{of} and {to} were not measured in turns")
        return Result(interval(found.values(), SURE), self.same(to, how), how(1.0, 1.0),
                      sum(map(len, found.values())))

    def absolute(self, name, of=float):
        """Returns the result of one thing alone, whose second run over its first has to be 1. of(value) is the
        figure."""
        found = collections.defaultdict(list)
        for number in range(2):
            for (round_, _), value in self.each(name, number).items():
                found[round_].append(of(value))
        if not found:
            raise Failed(f"{name} was not measured")
        return Result(interval(list(found.values()), SURE), self.same(name, ratio), 1.0, sum(map(len, found.values())))


def parse(lines):
    """Returns mode -> Runs, from the lines that begin with "run"."""
    modes = collections.defaultdict(Runs)
    for line in lines:
        if line.startswith("run "):
            _, mode, *run = line.split()
            modes[mode].add(*run)
    return modes


def main():
    if len(sys.argv) < 4 or sys.argv[1] != "plan" or not sys.argv[2].isdigit():
        sys.exit("usage: paired.py plan TURNS NAME...")
    for run in plan(sys.argv[3:], int(sys.argv[2])):
        print(*run)


if __name__ == "__main__":
    main()
