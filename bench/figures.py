"""A figure: a JSON line that a benchmark prints and build/bench.json stores.

  name     its key, ROOM.WHAT
  value    a number, or null with the reason in "why"
  unit
  low, high, same, pairs    of a paired figure: its 95 % interval, the A/A comparison [value, low, high], the pairs
  is_unpaired    true: measured before there were A/A comparisons, and not judged by the target
  target   "<= 2", ">= 0.9", or null
  anchor   the thing that the value is compared with

SPDX-License-Identifier: BSD-2-Clause
"""
import json


def exact(value, unit, target=None, anchor=None):
    """Makes a figure that was counted, or measured without a partner."""
    return {"value": round(float(value), 5), "unit": unit, "target": target or None, "anchor": anchor or None}


def paired(result, unit, target=None, anchor=None):
    """Makes a figure of a paired.Result."""
    def rounded(*values):
        return [float(f"{value:.5g}") for value in values]

    figure = exact(0, unit, target, anchor)
    figure["same"], figure["pairs"] = rounded(*result.same), result.pairs
    if result.why_not():
        return {**figure, "value": None, "why": result.why_not()}
    figure["value"], figure["low"], figure["high"] = rounded(*result.found)
    return figure


def say(name, figure):
    print(json.dumps({"name": name, **figure}), flush=True)


def parse(text):
    """Returns name -> figure, from the output of benchmarks."""
    found = {}
    for line in text.splitlines():
        if line.startswith("{"):
            figure = json.loads(line)
            found[figure.pop("name")] = figure
    return found


def verdict(figure):
    """Returns "met" or "NOT MET" if the whole interval agrees, "open" if not; "" if there is nothing to judge."""
    if not figure["target"] or figure["value"] is None or figure.get("is_unpaired"):
        return ""
    relation, limit = figure["target"].split()
    low, high = (figure.get(side, figure["value"]) for side in ("low", "high"))
    if relation == ">=":
        low, high, limit = -high, -low, -float(limit)
    if high <= float(limit):
        return "met"
    return "NOT MET" if low > float(limit) else "open"


def number(value):
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def span(low, high):
    return f"{number(low)} to {number(high)}"


HEAD = ("figure", "value", "unit", "95 % interval", "A/A", "target", "verdict", "anchor")


def cells(name, figure):
    value = figure["why"] if figure["value"] is None else number(figure["value"])
    return (name, value, figure["unit"], span(figure["low"], figure["high"]) if "low" in figure else "",
            span(*figure["same"][1:]) if "same" in figure else "none" if figure.get("is_unpaired") else "",
            (figure["target"] or "").replace("<=", "≤").replace(">=", "≥"),
            verdict(figure) or ("not judged" if figure["target"] else ""), figure["anchor"] or "")


def table(figures):
    """Returns the figures as lines of text in columns."""
    rows = [HEAD, *(cells(name, figure) for name, figure in figures.items())]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def markdown(figures):
    rows = [HEAD, ("---",) * len(HEAD), *((f"`{name}`", *cells(name, figure)[1:]) for name, figure in figures.items())]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
