"""doc/day.svg: the load of a day, and the workers that it took.

SPDX-License-Identifier: BSD-2-Clause
"""
from html import escape

WIDTH, LEFT, RIGHT, PANEL, GAP, TITLE = 760, 60, 20, 110, 34, 18
LINE, OTHER, LIMIT = "#2f6f9f", "#b8b8b8", "#b03030"


class Panel:
    """One curve over the hours of the day."""

    def __init__(self, top, title, highest, unit):
        self.top, self.highest, self.unit = top, highest, unit
        bottom = top + PANEL
        self.lines = [f'<text x="10" y="{top - 12}" font-weight="bold">{escape(title)}</text>',
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
    lines = [f'<text x="10" y="{top - 12}" font-weight="bold">{escape(title)}</text>']
    label, unit = 370, (WIDTH - 370 - 90) / max(value for _, value, _ in rows)
    for text, value, colour in rows:
        lines.append(f'<text x="{label - 10}" y="{top + 15}" text-anchor="end">{escape(text)}</text>'
                     f'<rect x="{label}" y="{top + 4}" width="{max(1, value * unit):.1f}" height="14" fill="{colour}"/>'
                     f'<text x="{label + value * unit + 6:.1f}" y="{top + 15}">{value:.0f} k/s</text>')
        top += 22
    return lines, top


def round_up(value):
    for step in (2, 4, 6, 8, 10, 12, 20, 40, 50, 60, 80, 100, 120, 160, 200, 400, 1000):
        if value <= step:
            return step
    return value


def draw(day, per_core):
    """day: what `scale day` has written; per_core: (label, k/s, is ours) of each."""
    top = GAP
    samples = day["samples"]
    rate = Panel(top, "Load, 1000 spans a second", round_up(max(one["rate"] for one in samples) / 1000), "")
    rate.curve([(one["hour"], one["rate"] / 1000) for one in samples])
    top += PANEL + GAP + TITLE
    workers = Panel(top, "Workers", round_up(max(one["workers"] for one in samples)), "")
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
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 10}"'
            f' font-family="sans-serif" font-size="13">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")
