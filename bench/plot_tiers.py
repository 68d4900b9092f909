"""Draws doc/sysprof-*.svg: the time of a request in a tier, by part and number of clients.

SPDX-License-Identifier: BSD-2-Clause
"""
from html import escape

import svg
from tiers import PARTS

WIDTH, HEIGHT, LEFT, TOP, BAR = 760, 260, 70, 54, 62
LEGEND = {"cpu": ("on CPU", "#2f6f9f"), "queue": ("waiting for a CPU", "#d9822b"),
          "next": ("in the back end", "#d0d0d0"), "network": ("network", "#7a5fa0"),
          "fsync": ("fsync", "#b03030"), "file": ("other file calls", "#d98c8c"),
          "blocked": ("blocked otherwise", "#8a8a5c")}


def legend(used):
    lines, x = [], LEFT
    for part in used:
        text, colour = LEGEND[part]
        lines.append(f'<rect x="{x}" y="30" width="12" height="12" fill="{colour}"/>'
                     f'<text x="{x + 17}" y="40">{escape(text)}</text>')
        x += 34 + 7 * len(text)
    return lines


def axis(highest, scale):
    bottom = TOP + HEIGHT
    lines = [f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - 20}" fill="none" stroke="black"/>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - highest * share * scale
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{highest * share:,.0f}</text>')
    return lines


def bar(x, parts, scale, used):
    lines, y = [], TOP + HEIGHT
    for part in used:
        height = parts[part] * scale
        y -= height
        if height > 0.2:
            lines.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{BAR}" height="{height:.1f}"'
                         f' fill="{LEGEND[part][1]}"/>')
    lines.append(f'<text x="{x + BAR / 2:.1f}" y="{y - 5:.1f}" text-anchor="middle">'
                 f'{sum(parts.values()):,.0f}</text>')
    return lines


def draw(title, rows):
    """rows: (number of clients, us by part) of each bar."""
    used = [part for part in PARTS
            if any(parts[part] > 0.005 * sum(parts.values()) for _, parts in rows)]
    highest = max(sum(parts.values()) for _, parts in rows)
    top = svg.round_up(highest)
    scale = HEIGHT / top * 0.95
    step = (WIDTH - LEFT - 40) / len(rows)
    lines = [svg.title(18, title), *legend(used),
             *axis(top, scale)]
    for i, (clients, parts) in enumerate(rows):
        x = LEFT + 20 + i * step + (step - BAR) / 2
        lines += bar(x, parts, scale, used)
        lines.append(f'<text x="{x + BAR / 2:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{clients}</text>')
    lines.append(f'<text x="{WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">clients at once</text>')
    return svg.picture(WIDTH, TOP + HEIGHT + 50, lines)
