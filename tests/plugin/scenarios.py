# Runs tests that consist of scenarios: functions whose names the command line may give.
# SPDX-License-Identifier: BSD-2-Clause
import concurrent.futures
import functools
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import PATIENCE, expect, pause, wait_until  # noqa: E402,F401

SCENARIOS = {}


class Skipped(Exception):
    """The machine cannot run the test."""


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def scenarios_of(function, cases):
    """Makes one scenario for each name: the function with these arguments."""
    for name, (positional, named) in cases.items():
        SCENARIOS[name] = functools.partial(function, *positional, **named)


def attempt(name):
    """Runs a scenario. Returns whether it failed, the word for its result, its messages and its duration."""
    begin = time.monotonic()
    try:
        note = SCENARIOS[name]()
        return False, "ok", f" ({note})" if note else "", time.monotonic() - begin
    except Skipped as reason:
        return False, "skip", f"\nnot tested: {name}: {reason}", time.monotonic() - begin
    except Exception:  # pylint: disable=broad-except
        return True, "FAIL", "\n" + traceback.format_exc(), time.monotonic() - begin


def run_scenarios(at_once):
    """Runs the scenarios whose names contain an argument; without arguments, all. Returns the exit status."""
    words = sys.argv[1:]
    names = [name for name in SCENARIOS if not words or any(word in name for word in words)]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        # scenarios that run one at a time run in the main thread, because they may set signals
        went = map(attempt, names) if at_once == 1 else pool.map(attempt, names)
        for name, (has_failed, how, note, seconds) in zip(names, went):
            print(f"{how:4} {seconds:5.2f} s  {name}{note}", flush=True)
            failures += has_failed
    print(f"{len(names)} scenarios, {failures} failed")
    return 1 if failures or not names else 0
