"""Figures of the library, of the agent's ring, and of OpenTelemetry's SDK for Go beside the library.

SPDX-License-Identifier: BSD-2-Clause
"""
import shutil
import subprocess

from measure import BUILD, SRC, Failed, Found, script
from paired import difference, ratio

STEPS = 8  # of the span with steps in bench-lib.c
EMPTY = "an empty loop is subtracted"


def added_by_step(of, to):
    return (of - to) / STEPS


def lib():
    got = script("bench-lib.sh")
    found = Found("lib", got)
    off_figures(found, got)
    span_figures(found, got)
    step_figures(found, got)
    filter_figures(found, got)
    return {**found, **rule_figures(got), **usage_figures(got)}


def off_figures(found, got):
    for name, mode, what, unit, target in (
            ("off_ns", "off", "off_root_span", "ns/span", "<= 1.0"),
            ("init_child_ns", "off", "init_child", "ns/call", "<= 5.0"),
            ("id_ns", "off", "id", "ns/id", "<= 2.0")):
        found.compare(name, mode, what, "empty", difference, unit, target, EMPTY)
    found.worst("unsampled_ns", [("unsampled", f"unsampled_{kind}_span", "empty") for kind in ("child", "remote")],
                difference, "ns/span", "<= 2.0", EMPTY)
    found.worst("step_off_ns", [("off", "off_step", "empty"), ("unsampled", "unsampled_step", "empty")], difference,
                "ns/step", "<= 1.0", EMPTY)
    found.count("off_instructions", got.number("off", "root_instructions"), "instructions/span", "<= 20", EMPTY)


def span_figures(found, got):
    def ns(mode, name):
        return f"{got.median(mode, name):.1f} ns"

    counter = "counter" if "counter" in got.modes["on"] else "clock"
    found.absolute(f"{counter}_ns", "on", counter, "ns/reading")
    found.absolute("span_ns", "on", "span", "ns/span")
    found.compare("span_vs_tracepoint", "on", "span", "integer", ratio, "ratio", "<= 1.5",
                  f"a tracepoint of one integer: {ns('on', 'integer')}")
    found.compare("span_vs_original", "on", "span", "original_span", ratio, "ratio", "<= 0.25",
                  f"the original's four events: {ns('on', 'original_span')}")
    found.compare("annotation_vs_tracepoint", "streaming", "annotation", "integer", ratio, "ratio", "<= 1.25",
                  f"a tracepoint of one integer: {ns('streaming', 'integer')}")
    found.worst("record_vs_raw", [("on", f"record_{kind}", f"raw_{kind}") for kind in ("timestamp", "string", "integer")],
                ratio, "ratio", "<= 1.05", "the tracepoint of the same fields, the worst of three")
    if "threads" in got.modes:
        found.compare("two_threads", "threads", "together", "alone", ratio, "ratio", ">= 0.98",
                      "the rates of the two CPUs, one at a time")


def step_figures(found, got):
    bare = f"a span without annotations and tags: {got.median('on', 'bare_span'):.1f} ns"
    found.compare("step_ns", "on", "stepped_span", "bare_span", added_by_step, "ns/step", None,
                  "a span without steps is subtracted")
    found.compare("step_vs_span", "on", "stepped_span", "bare_span", lambda of, to: added_by_step(of, to) / to, "ratio",
                  "<= 0.35", bare)
    integer = got.median("on", "integer")
    found.compare("step_vs_tracepoint", "on", "stepped_span", "bare_span",
                  lambda of, to: added_by_step(of, to) / integer, "ratio", "<= 0.5",
                  f"a tracepoint of one integer: {integer:.1f} ns")


def filter_figures(found, got):
    for sessions, name in ((1, "filter_ns"), (2, "filter_2_ns")):
        found.compare(name, "filter", f"filter{sessions}_span", "filter0_span", difference, "ns/span", None,
                      f"{sessions} more session{'s' if sessions > 1 else ''} with a filter, added to "
                      f"{got.median('filter', 'filter0_span'):.1f} ns")


def rule_figures(got):
    found = Found("rec", got)
    for name, row, target, what in (
            ("rule", "ruled_span", "<= 1.02", "rules that match no span"),
            ("storm", "storm_span", "<= 2", "every span is slow, and the cap holds nearly all back")):
        found.compare(f"{name}_ratio", "rules", row, "span", ratio, "ratio", target,
                      f"a span without rules: {got.median('rules', 'span'):.1f} ns; {what}")
    return found


def usage_figures(got):
    found = Found("usage", got)
    kinds = [got.number("whole", f"{kind}_instructions") / got.number("without", f"{kind}_instructions")
             for kind in ("child", "current")]
    found.count("off_ratio", max(kinds), "ratio", "<= 1.01", "instructions of a span, and of one that is made current, at "
                "level 0: over those of a library without usage")
    level0, clock, meters = (f"{got.median('usage', name):.1f} ns" for name in ("level0", "cpu_clock", "meters"))
    for level, target, what in (
            (1, "<= 1100", f"a span without annotations and tags, at level 0: {level0}; the kernel's CPU clock alone, "
             f"read twice: {clock}"),
            (2, "<= 1100", f"the same; the CPU clock and getrusage(2) alone, each read twice: {meters}"),
            (3, None, "the same")):
        found.absolute(f"level{level}_ns", "usage", f"level{level}", "ns/span", target, what)
    return found


def ring():
    """Measures the time that the agent's ring adds to a span whose provider discards it. Measures also the time that
    waiting for an agent adds to a span that is off."""
    got = script("bench-ring.sh")
    found = Found("rec", got)
    for name, of, to, target, what in (
            ("ns", "ring_span", "nowhere_span", "<= 8", "added to a span that goes nowhere"),
            ("cold_ns", "ring_cold", "nowhere_cold", "<= 20", "the same after 1.5 MiB of data and 128 KiB of code"),
            ("awaited_ns", "awaiting_span", "off_span", None, "a span that is off, where an agent may come")):
        found.compare(f"ring_{name}", "ring", of, to, difference, "ns/span", target,
                      f"{what}: {got.median('ring', to):.1f}")
    count = got.number("ring", "nowhere_instructions")
    found.count("ring_instructions", got.number("ring", "ring_instructions") - count, "instructions/span", "<= 150",
                f"the same in instructions: {count:.1f}")
    return found


def otel():
    """Measures the same spans of another library, which `go build` builds."""
    if not shutil.which("go"):
        raise Failed("go is missing: install golang-go (1.19 or newer)")
    program = BUILD / "bench/otel"
    subprocess.run(["go", "build", "-o", program, "."], cwd=SRC / "bench/otel", check=True)
    got = script("bench-otel.sh", program)
    found = Found("otel", got)
    for name, ours, theirs, target in (
            ("off", "off_root_span", "off", "<= 0.22"),
            ("unsampled", "unsampled_child_span", "not_sampled", "<= 0.056"),
            ("span_vs_sampled", "span", "sampled", "<= 0.2")):
        found.compare(name, "otel", ours, f"otel_{theirs}", ratio, "ratio", target,
                      f"OpenTelemetry's SDK for Go: {got.median('otel', f'otel_{theirs}'):.1f} ns")
    return found
