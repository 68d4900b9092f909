"""Compares the spans of usage.c with its work.

usage: check_usage.py planted|charges|storm|levels SPANS.json

Except in the mode planted, a span's name gives its expected usage: "nested 5" is five units of page faults, "level 2" the tags of level 2, and any
other name no usage.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import re
import statistics
import sys

PAGES = 200  # of one unit
LEVELS = [
    set(),
    {"cpu_us", "off_cpu_us"},
    {"cpu_us", "off_cpu_us", "switches", "preemptions", "faults", "major_faults", "dirtied_pages"},
]
LEVELS.append(LEVELS[2] | {"run_delay_us"})
failures = 0


def check(holds, what):
    global failures
    if not holds:
        failures += 1
        print(what)


def near(got, expected, least=0.0):
    """Returns whether a number differs from the expected one by at most 5 %, or by `least`."""
    return abs(got - expected) <= max(0.05 * expected, least)


def usage(span):
    return {key[6:]: int(value) for key, value in span.get("tags", {}).items() if key.startswith("usage.")}


def check_level(span, level):
    check(set(usage(span)) == LEVELS[level], f"{span['name']}: at level {level} it has {usage(span)}")


def check_times(span):
    """Checks that times on and off a CPU are at most the duration, and that the time off contains the wait for a CPU.
    Returns whether they add up to the duration: not if the thread was stopped between two readings."""
    of, duration = usage(span), span["duration"]
    used = of["cpu_us"] + of["off_cpu_us"]
    check(used < duration or near(used, duration, 3), f"{span['name']}: {of}, in {duration} us")
    check(of["run_delay_us"] <= of["off_cpu_us"], f"{span['name']}: {of}")
    return near(used, duration, 3)


def check_planted(spans):
    names, stopped = collections.defaultdict(list), []
    for span in spans:
        if span["name"] != "first":
            check_level(span, 3)
            stopped += [] if check_times(span) else [span]
            names[span["name"]].append((usage(span), {key[9:]: int(value) for key, value in span["tags"].items()
                                                      if key.startswith("expected.")}))
    check(len(names["burns"]) == 300 and len(names["sleeps"]) == 10, "spans are missing")
    check(len(stopped) <= 5, f"the times of {len(stopped)} spans do not add up to their durations: {stopped}")
    burnt = statistics.median(of["cpu_us"] for of, _ in names["burns"])
    check(near(burnt, 40), f"40 us of CPU time are {burnt}")
    # While a virtual machine gets no CPU, its kernel counts CPU time for the running thread: the least time is right.
    of, expected = min(names["sleeps"], key=lambda sleep: sleep[0]["cpu_us"])
    check(near(of["off_cpu_us"], expected["off_cpu_us"]), f"blocked of {expected}: {of}")
    check(of["switches"] == 1 and of["cpu_us"] < 500, f"blocked: {of}")
    # A thread that is preempted before its pause waits for a CPU while its timer runs.
    blocked = statistics.median(of["off_cpu_us"] - of["run_delay_us"] for of, _ in names["sleeps"])
    check(blocked >= 9500, f"10 ms blocked: {blocked}")
    of, _ = names["faults"][0]
    check(near(of["faults"], 2 * PAGES), f"{2 * PAGES} faults are {of}")
    # While a virtual machine gets no CPU, its kernel may count time off the CPU that is no wait: the least time is right.
    of, expected = min(names["waits"], key=lambda wait: wait[0]["off_cpu_us"] - wait[0]["run_delay_us"])
    check(near(of["cpu_us"], 60000), f"60 ms of CPU time: {of}")
    check(any(near(one["run_delay_us"], own["run_delay_us"]) for one, own in names["waits"]), f"no wait as measured: {names['waits']}")
    check(of["run_delay_us"] > 20000 and of["preemptions"] >= 3, f"waiting for a CPU: {of}")
    check(of["off_cpu_us"] - of["run_delay_us"] <= 0.05 * of["off_cpu_us"], f"not blocked: {of}")


def check_storm(spans):
    """A handler that interrupts the reading of meters has no usage: its two units count for the interrupted span."""
    found = collections.Counter((span["name"], usage(span).get("faults", 0) // PAGES) for span in spans[1:])
    for (name, units), count in found.items():
        if name.startswith("handler"):
            check(units in (0, 2), f"{count} of {name}: {units}")
        else:
            check(units % 2 == 1, f"{count} of {name}: {units}")
    names = collections.Counter(span["name"] for span in spans)
    done = 2 * names["handler 2"] + names["stormed 1"] + names["stormed child 1"]
    charged = sum(units * count for (_, units), count in found.items())
    # The usage of a handler between two spans may belong to no span. If no handler's usage were
    # charged, a quarter of all units would be.
    check(names["handler 2"] >= 200 and 0.5 * done <= charged <= done, f"{charged} of {done} units in a storm")


def check_charges(spans):
    found = collections.Counter(span["name"] for span in spans)
    for span in spans:
        name, of = span["name"], usage(span)
        units = re.search(r" (\d+)$", name)
        if not units:
            check(not of, f"{name}: {of}")
            continue
        check(set(of) == LEVELS[3] and near(of["faults"], int(units[1]) * PAGES), f"{name}: {of}")
    check(found["deep 1"] == 32 and found["in turns"] == 2 and found["current in turns 5"] == 2, found)
    full = next(span for span in spans if span["name"] == "a full log 1")
    check(len(full["localEndpoint"]["serviceName"]) == 72 and len(full["annotations"]) >= 7, full)


def check_levels(spans):
    levels = 0
    for span in spans:
        level = re.fullmatch(r"level (\d)", span["name"])
        if level:
            levels += 1
            check_level(span, int(level[1]))
        else:
            check_level(span, 0)
    check(levels >= 3, f"{levels} spans of a level")


def main():
    mode, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as file:
        spans = json.load(file)
    {"planted": check_planted, "charges": check_charges, "storm": check_storm, "levels": check_levels}[mode](spans)
    sys.exit(1 if failures else 0)


main()
