"""Figures of the sink, on recorded traces, live, and over a long time.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

import figures
from figures import number
from measure import ISOLATE, SRC, Found, Measured, output_of, script
from paired import ratio


def sink():
    got = script("bench-sink.sh")
    found = Found("sink", got)
    spans = got.number("sink", "spans")
    found.compare("original_vs_dummy", "original_time", "ours", "dummy", ratio, "ratio", "<= 1.30",
                  f"time; sink.utils.dummy: {number(spans / got.median('original_time', 'dummy'))} spans/s")
    for name, kind, target in (("original_spans_per_core", "original", ">= 450000"),
                               ("spans_per_core", "span", ">= 1100000")):
        found.absolute(name, f"{kind}_cpu", "ours", "spans/s/core", target, of=lambda seconds: spans / seconds)
    found.absolute("json_ns", "json", "json", "ns/span", "<= 150", f"copying its {got.number('sink', 'json_bytes'):.0f} bytes: "
                   f"{got.median('json', 'json_copy'):.1f} ns")
    found.absolute("post_ns", "post", "post", "ns/span", "<= 170",
                   f"writing the same to a socket: {got.median('post', 'post_bare'):.1f} ns")
    found.count("drain_spans", got.number("sink", "drain"), "spans/s", ">= 50000",
                f"one request after the other: {number(got.number('sink', 'drain_one'))} spans/s")
    otlp = Found("otlp", got)
    otlp.compare("vs_json", "json", "otlp", "otlp_json", ratio, "ratio", "<= 0.8",
                 f"time; the same spans as JSON: {got.median('json', 'otlp_json'):.1f} ns/span")
    return {**found, **otlp}


def of_bisections(got, name, anchor):
    """Makes the ratio of two rates, each known to lie between two values."""
    (low, high), (anchor_low, anchor_high) = (got.rows["live", f"{which}_rate"] for which in (name, anchor))
    return [round(value, 4) for value in (low / anchor_low, low / anchor_high, high / anchor_low)]


def live():
    got = script("bench-live.sh")
    found = Found("sink", got)
    stock = got.number("live", "stock_rate")
    rate = figures.exact(0, "ratio", ">= 0.90", f"sink.utils.counter: {number(stock)} spans/s of the original's four events")
    rate["value"], rate["low"], rate["high"] = of_bisections(got, "ours", "stock")
    rate["same"] = of_bisections(got, "again", "stock")
    if not rate["same"][1] <= 1 <= rate["same"][2]:
        rate = {**{key: value for key, value in rate.items() if key not in ("low", "high")}, "value": None,
                "why": "machine too noisy"}
    found["sink.live_vs_stock"] = rate
    timer = got.number("live", "latency_p99_ms", 1)
    found.count("latency_over_timer_ms", got.number("live", "latency_p99_ms") - timer, "ms", "<= 15",
                f"live timer: {timer:.0f} ms; median: {got.number('live', 'latency_p50_ms'):.0f} ms")
    found.count("memory_base_mb", got.number("live", "base_kib") * 1024 / 1e6, "MB", "<= 24")
    cpu = Found("live", got)
    cpu.compare("rings_vs_lttng", "live_whole", "rings", "blkin", ratio, "ratio", "<= 0.3",
                f"`blkin live` by LTTng, with LTTng's daemons: {got.median('live_whole', 'blkin'):.0f} ms of CPU time")
    cpu.count("rings_p99_ms", got.number("live", "rings_p99_ms"), "ms", None,
              f"median: {got.number('live', 'rings_p50_ms'):.0f} ms")
    cpu.count("rings_rate", got.number("live", "rings_rate"), "spans/s", None, "asked for: 1,000,000 spans/s for 4 s")
    cpu.count("rings_lost", got.number("live", "rings_lost"), "spans", "<= 0",
              f"overwritten: {got.number('live', 'rings_lost', 1):,.0f} bytes of the rings")
    cpu.compare("cpu_vs_plain", "live_cpu", "blkin", "plain", ratio, "ratio", "<= 1.03",
                f"babeltrace2 with the same sink at 50,000 spans/s: {got.median('live_cpu', 'plain'):.0f} ms of CPU time")
    return {**found, **cpu}


def memory():
    got = script("bench-memory.sh")
    found = Found("sink", got)
    found.count("bytes_per_open_span", got.number("memory", "bytes_per_open_span"), "bytes", "<= 400",
                "with three of the original's events")
    found.count("memory_growth", got.number("memory", "growth"), "ratio", "<= 0.01",
                f"{got.number('memory', 'early_kib'):,.0f} KiB early in a run of {got.number('memory', 'events'):,.0f} events")
    found.count("memory_at_limit", got.number("memory", "over_limit"), "ratio", "<= 1.2",
                "max-open-bytes, where every event opens a span")
    return found


def overload():
    got = script("bench-overload.sh", os.environ.get("RUNS", "50"))
    found = Found("sink", got)
    found.count("overload_difference", got.number("overload", "difference"), "spans", "<= 0",
                f"the worst of {got.number('overload', 'runs'):.0f} runs, "
                f"{got.number('overload', 'lost_share') * 100:.0f} % of the spans were lost")
    return found


def kafka():
    got = Measured(output_of(ISOLATE, sys.executable, SRC / "bench/bench-kafka.py"))
    found = Found("kafka", got)
    found.absolute("span_ns", "kafka", "kafka", "ns/span", "<= 500", "CPU time of all threads, queue to acknowledgement, as "
                   f"OTLP; as JSON: {got.median('kafka', 'kafka_json'):.0f} ns/span")
    return found
