"""The common parts of the figures' pictures.

SPDX-License-Identifier: BSD-2-Clause
"""
import math
from html import escape


def picture(width, height, lines):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' font-family="sans-serif" font-size="13">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")


def title(y, text):
    return f'<text x="10" y="{y}" font-weight="bold">{escape(text)}</text>'


def bar(y, x, length, text, value, colour):
    """Returns a bar from x on, with its title before and its value behind."""
    return (f'<text x="{x - 10}" y="{y + 15}" text-anchor="end">{escape(text)}</text>'
            f'<rect x="{x}" y="{y + 4}" width="{max(1, length):.1f}" height="14" fill="{colour}"/>'
            f'<text x="{x + length + 6:.1f}" y="{y + 15}">{value}</text>')


def round_up(value):
    """Rounds up to a number that may end an axis."""
    unit = 10 ** math.floor(math.log10(max(value, 1)))
    return next(step * unit for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * unit >= value)
