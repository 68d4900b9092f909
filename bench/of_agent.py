"""Figures of the agent on four hosts.

SPDX-License-Identifier: BSD-2-Clause
"""
import os

from measure import Found, script


def figures_of_hosts(got):
    """Makes the agent's figures from the parts that ran."""
    found = Found("rec", got)
    add = found.count

    def has(name):
        return got.has("record", name)

    def value(name):
        return got.number("record", name)

    def other(name):
        return got.rows["record", name][1]

    def growth(name, figure):
        late, early = value(name), other(name)
        add(figure, late / early - 1 if early else 0, "ratio", "<= 0.05",
            f"{early:,.0f} KiB early, {late:,.0f} KiB late")

    def counts(part, what):
        add(f"{part}complete", value(f"{part}complete_share"), "share", ">= 0.999" if not part else None,
            f"of {value(part + 'planted'):.0f} {what}, {value(part + 'tagged'):.0f} came tagged as incomplete")
        add(f"{part}unexplained", value(f"{part}untagged") + value(f"{part}silent"), "traces", "<= 0",
            f"neither whole nor tagged; of {value(part + 'silent'):.0f} nothing came; "
            f"{value(f'{part}late'):.0f} more had parts recorded later than linger-ms after the alarm")
        add(f"{part}fast_sent", value(f"{part}fast"), "traces", "<= 0", "that nothing had asked for")
        add(f"{part}doubles", value(f"{part}doubles"), "spans", "<= 0")

    if has("retrieve_p99"):
        add("retrieve_s", value("retrieve_p99"), "s", "<= 2",
            f"the 99th percentile; median {value('retrieve_p50'):.2f} s, greatest {other('retrieve_p99'):.2f} s")
        counts("", "planted slow requests")
        add("hosts_daemons_pct", value("agents_pct"), "% of a core", None,
            "the agents of four hosts with their children")
    if has("faults_complete_share"):
        counts("faults_", f"planted slow requests, with {value('faults'):.0f} faults")
    if has("storm_cpu_1"):
        worst = max(("storm_cpu_1", "storm_cpu_2", "storm_cpu_3", "storm_cpu_4"),
                    key=lambda name: got.number("record", name, 2))
        add("storm_cpu_ratio", got.number("record", worst, 2), "ratio", "<= 2",
            f"CPU per request: {other(worst):.2f} us while one in 10,000 is slow")
        add("storm_unaccounted", value("storm_unaccounted"), "alarms", "<= 0",
            f"made: {value('storm_made'):,.0f}, read: {value('storm_read'):,.0f}, held back by the rules' cap and "
            f"counted: {value('storm_dropped'):,.0f}")
        growth("storm_agent_kib", "storm_memory_growth")
    if has("last_delivered_s"):
        add("last_s", value("last_delivered_s"), "s", "<= 2",
            "until all of the last seconds of four hosts is delivered; the answer came after "
            f"{other('last_delivered_s'):.2f} s")
        add("last_share", value("last_spans") / other("last_spans"), "share", ">= 0.99",
            f"{value('last_spans'):,.0f} spans, in {value('last_fetches'):.0f} fetches")
    return found


def hosts():
    """Runs the parts in HOSTS_PARTS; see bench-agent.sh."""
    found = {}
    for part in os.environ.get("HOSTS_PARTS", "planted faults storm last").split():
        found.update(figures_of_hosts(script("bench-agent.sh", part)))
    return found
