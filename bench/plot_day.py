"""doc/day.svg: the load of a day, and the workers that it took.

SPDX-License-Identifier: BSD-2-Clause
"""
import svg

WIDTH, LEFT, RIGHT, PANEL, GAP, TITLE, LABEL = 760, 60, 20, 110, 34, 18, 370
LINE, OTHER, LIMIT = "#2f6f9f", "#b8b8b8", "#b03030"


class Panel:
    """One curve over the hours of the day."""

    def __init__(self, top, title, highest, unit):
        self.top, self.highest, self.unit = top, highest, unit
        bottom = top + PANEL
        self.lines = [svg.title(top - 12, title),
                      f'<path d="M{LEFT} {top}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="black"/>']
        for share in (0, 0.5, 1):
            self.lines.append(f'<text x="{LEFT - 6}" y="{self.y(share * highest) + 4:.1f}" text-anchor="end">'
                              f'{share * highest:g}{unit}</text>')
        for hour in range(0, 25, 4):
            self.lines.append(f'<text x="{self.x(hour):.1f}" y="{bottom + 16}" text-anchor="middle">{hour} h</text>')

    def x(self, hour):
        return LEFT + hour / 24 * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return self.top + PANEL * (1 - value / self.highest)

    def curve(self, points, colour=LINE, steps=False):
        path, last = [], None
        for hour, value in points:
            if last is None:
                path.append(f"M{self.x(hour):.1f} {self.y(value):.1f}")
            elif steps:
                path.append(f"H{self.x(hour):.1f}V{self.y(value):.1f}")
            else:
                path.append(f"L{self.x(hour):.1f} {self.y(value):.1f}")
            last = hour
        self.lines.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')

    def limit(self, value, text):
        y = self.y(value)
        self.lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LIMIT}" stroke-dasharray="4 3"/>'
                          f'<text x="{WIDTH - RIGHT}" y="{y - 4:.1f}" text-anchor="end" fill="{LIMIT}">{text}</text>')


def bars(top, title, rows):
    """Returns the lines and where they end."""
    lines = [svg.title(top - 12, title)]
    unit = (WIDTH - LABEL - 90) / max(value for _, value, _ in rows)
    for text, value, colour in rows:
        lines.append(svg.bar(top, LABEL, value * unit, text, f"{value:.0f} k/s", colour))
        top += 22
    return lines, top


def draw(day, per_core):
    """day: what `scale day` has written; per_core: (label, k/s, is ours) of each."""
    top = GAP
    samples = day["samples"]
    rate = Panel(top, "Load, 1000 spans a second", svg.round_up(max(one["rate"] for one in samples) / 1000), "")
    rate.curve([(one["hour"], one["rate"] / 1000) for one in samples])
    top += PANEL + GAP + TITLE
    workers = Panel(top, "Workers", svg.round_up(max(one["workers"] for one in samples)), "")
    workers.curve([(one["hour"], one["workers"]) for one in samples], steps=True)
    top += PANEL + GAP + TITLE
    behind = Panel(top, "Seconds behind: of the worker that is furthest behind", 12, " s")
    behind.limit(10, "10 s")
    behind.curve([(one["hour"], min(one["behind"], 12)) for one in samples])
    top += PANEL + GAP + TITLE
    lines = rate.lines + workers.lines + behind.lines
    if per_core:
        more, top = bars(top, "What one CPU does in a second",
                         [(label, value, LINE if ours else OTHER) for label, value, ours in per_core])
        lines += more
    return svg.picture(WIDTH, top + 10, lines)
