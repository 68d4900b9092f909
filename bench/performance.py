"""Makes doc/performance.md of doc/figures.json, a list of runs, the newest first.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import pathlib

import figures

SRC = pathlib.Path(os.environ.get("SRC", pathlib.Path(__file__).resolve().parents[1]))
KEPT = SRC / "doc/figures.json"
PAGE = SRC / "doc/performance.md"
WITHOUT_TARGET = ("lib.counter_ns", "lib.span_ns", "lib.step_ns", "lib.filter_ns", "lib.filter_2_ns", "lib.start_ms",
                  "lib.start_daemon_ms", "lib.start_session_ms", "rec.ring_awaited_ns",
                  "rec.cpu_steps_us", "rec.latency_steps_us", "usage.level3_ns", "zero.rings_us", "zero.hosts_whole_many")


def runs():
    return json.loads(KEPT.read_text(encoding="utf-8"))


def all_figures(of):
    """Returns key -> figure, of the newest run that has the key."""
    return {name: figure for run in reversed(of) for name, figure in run["figures"].items()}


def section(run):
    """Returns a run's table: figures with a target, and those that other pages cite. figures.json has all figures."""
    where = "; ".join(f"{name}: {value}" for name, value in run["machine"].items())
    shown = {name: figure for name, figure in run["figures"].items()
             if figure["target"] or name in WITHOUT_TARGET}
    return f"### {run['name']}\n\n{where}\n\n{figures.markdown(shown)}".replace("\n\n\n", "\n\n")


def page(of):
    template = (SRC / "bench/performance.md.in").read_text(encoding="utf-8")
    return template.replace("@RUNS@", "\n\n".join(section(run) for run in of if run["figures"]))


def publish(run):
    """Puts the run first. Older runs lose the figures that the run has measured; a run of its name is replaced."""
    others = [other for other in (runs() if KEPT.exists() else []) if other["name"] != run["name"]]
    for other in others:
        other["figures"] = {name: figure for name, figure in other["figures"].items() if name not in run["figures"]}
    of = [run, *(other for other in others if other["figures"])]
    KEPT.write_text(json.dumps(of, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(of), encoding="utf-8")
