"""Draws doc/performance.svg: the figures of bench.json as bars, each in units of its anchor.

SPDX-License-Identifier: BSD-2-Clause
"""
from html import escape

WIDTH, LABEL, ROW, VALUE = 760, 300, 22, 110
OURS, OTHERS = "#2f6f9f", "#b8b8b8"


def span_bars(value):
    """The program's cost of a span, in tracepoints of one integer."""
    tracepoint = value("lib.tracepoint_ns")
    if not tracepoint:
        return []
    span = value("lib.span_vs_tracepoint")
    otel = value("otel.span_vs_sampled")
    return [
        ("no session", value("lib.off_ns", tracepoint), OURS),
        ("session on, trace not sampled", value("lib.unsampled_ns", tracepoint), OURS),
        ("a tracepoint of one integer", 1, OTHERS),
        ("a step of a span", value("lib.step_vs_tracepoint"), OURS),
        ("an annotation, streamed", value("lib.annotation_vs_tracepoint"), OURS),
        ("a span, texts are literals", span, OURS),
        ("a span, texts known at run time", value("lib.variable_span_ns", tracepoint), OURS),
        ("the original's four events", value("lib.original_span_ns", tracepoint), OTHERS),
        ("OpenTelemetry's SDK for Go", span / otel if span and otel else None, OTHERS),
    ]


def sink_bars(value):
    """The time for a recorded trace, in units of babeltrace2 alone."""
    return [
        ("babeltrace2, sink.utils.dummy", 1, OTHERS),
        ("to Zipkin: four events a span", value("sink.original_vs_dummy"), OURS),
        ("to Zipkin: one event a span", value("sink.span_vs_dummy"), OURS),
    ]


def live_bars(value):
    """The highest rate of a live session that the viewer keeps up with."""
    return [
        ("babeltrace2, sink.utils.counter", 1, OTHERS),
        ("to Zipkin: four events a span", value("sink.live_vs_stock"), OURS),
    ]


GROUPS = (
    ("One span, in bare LTTng tracepoints", span_bars),
    ("Time for a recorded trace, in babeltrace2's alone", sink_bars),
    ("Rate of a live session, in babeltrace2's alone", live_bars),
)


def draw_group(top, title, bars):
    """Returns the lines and the top of the next group."""
    bars = [bar for bar in bars if bar[1] is not None]
    if len(bars) < 2:
        return [], top
    unit = (WIDTH - LABEL - VALUE) / max(size for _, size, _ in bars)
    lines = [f'<text x="10" y="{top + 18}" font-weight="bold">{escape(title)}</text>']
    top += 30
    for label, size, colour in bars:
        lines.append(f'<text x="{LABEL - 10}" y="{top + 15}" text-anchor="end">{escape(label)}</text>'
                     f'<rect x="{LABEL}" y="{top + 4}" width="{max(1, size * unit):.1f}" height="14" fill="{colour}"/>'
                     f'<text x="{LABEL + size * unit + 6:.1f}" y="{top + 15}">{size:.3g}</text>')
        top += ROW
    return lines, top + 16


def draw(results):
    """Draws the figures of bench.json. Returns the picture, or None if there is no figure."""
    def value(name, anchor=1):
        found = results.get(name, {}).get("value")
        return None if found is None else found / anchor

    lines, top = [], 6
    for title, bars_of in GROUPS:
        group, top = draw_group(top, title, bars_of(value))
        lines += group
    if not lines:
        return None
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" font-family="sans-serif" font-size="13">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")
