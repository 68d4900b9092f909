#!/usr/bin/python3
"""The requests of blkin keep, its output for the answers, and its exit status.

SPDX-License-Identifier: BSD-2-Clause
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from control_socket import Agent  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
WORK = tempfile.TemporaryDirectory()
FOLDER = WORK.name
SHORT = "4fc0935fc2085a45"
LONG = "4bf92f3577b34da6a3ce929d0e0e4736"
FAILED = []


def keep(*arguments):
    return subprocess.run(
        [BLKIN, "keep", "--runtime-dir=" + FOLDER, *arguments],
        env={"PATH": os.environ["PATH"], "BLKIN_CONFIG": "/dev/null", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def expect(what, is_true, *shown):
    if not is_true:
        FAILED.append(what)
        print(f"FAILED: {what}", *shown, sep="\n", file=sys.stderr)


def host(name, state="answered", spans=1, back_s=60.0, **more):
    since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=back_s)
    since = since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"host": name, "state": state, "spans": spans, "held_from": since, **more}


def trace(trace_id, spans=3, missing=0, hosts=("one", "two")):
    return {"id": trace_id.rjust(32, "0"), "spans": spans, "missing": missing, "hosts": list(hosts)}


def answer(traces, hosts, done=True):
    return {"id": "one:1:1", "done": done, "traces": traces, "hosts": hosts}


def asked(*arguments, polls=None):
    """Runs the command. Returns the run and its requests."""
    polls = polls or [answer([trace(SHORT), trace(LONG)], [host("one"), host("two")])]
    with Agent(FOLDER, {"id": "one:1:1"}, polls) as agent:
        run = keep(*arguments)
        return run, agent.requests


def test_questions():
    for pasted, wanted in [
        (SHORT, SHORT),
        (SHORT.upper(), SHORT),
        (LONG, LONG),
        (f"http://zipkin:9411/zipkin/traces/{SHORT}", SHORT),
        (f"https://zipkin/zipkin/traces/{LONG}/?lookback=900000#x", LONG),
        (f"http://zipkin:9411/api/v2/trace/{SHORT}", SHORT),
        (f"00-{LONG}-00f067aa0ba902b7-01", LONG),
        (f"{LONG}-00f067aa0ba902b7-1", LONG),
        (f"{SHORT}-00f067aa0ba902b7", SHORT),
    ]:
        _, requests = asked(pasted)
        expect(f"the id in {pasted}", requests[:1] == [f"keep {wanted}"], requests)
    run, _ = asked(LONG[16:], polls=[answer([trace(LONG)], [host("one")])])
    expect("the lower half of an id", run.returncode == 0, run)
    run, _ = asked("1" + LONG[1:], polls=[answer([trace(LONG)], [host("one")])])
    expect("another upper half", run.returncode == 1, run)
    run, requests = asked(SHORT, LONG)
    expect("two ids", requests == [f"keep {SHORT} {LONG}", "kept one:1:1"] and run.returncode == 0, requests, run)
    ids = [f"{i + 1:016x}" for i in range(100)]
    run, requests = asked(*ids, polls=[answer([trace(i) for i in ids], [host("one")])])
    expect("a hundred ids", requests[0] == "keep " + " ".join(ids) and run.returncode == 0, run)
    for last, ms in [("10s", 10000), ("500ms", 500), ("2m", 120000)]:
        _, requests = asked("--last", last)
        expect(f"the last {last}", requests[:1] == [f"keep-last {ms}"], requests)
    _, requests = asked("--last=10s", "--service=my osd")
    expect("of a service", requests[:1] == ["keep-last 10000 my osd"], requests)


def test_wrong_usage():
    for arguments, said in [
        ([], "expected one to 100 trace ids"),
        (["4bf92f35-77b3-4da6-a3ce-929d0e0e4736"], "expected a trace id"),
        (["trace"], "expected a trace id"),
        (["0" * 32], "expected a trace id"),
        (["1" * 33], "expected a trace id"),
        (["http://zipkin:9411/zipkin/"], "expected a trace id"),
        (["00-" + SHORT + "-00f067aa0ba902b7-01"], "expected a trace id"),
        (["1"] * 101, "expected one to 100 trace ids"),
        (["--last=10"], "expected a duration"),
        (["--last=0s"], "expected a duration"),
        (["--last=999999999m"], "expected a duration"),
        (["--last=10s", SHORT], "expected trace ids alone"),
        (["--service=osd", SHORT], "expected trace ids alone"),
        (["--last=10s", "--service=a\nkeep b"], "expected a service's name"),
        (["--last=10s", "--service="], "expected a service's name"),
    ]:
        with Agent(FOLDER, {"id": "1"}, [answer([], [])]) as agent:
            run = keep(*arguments)
        expect(f"wrong usage: {arguments}", run.returncode == 2 and said in run.stderr, run)
        expect(f"asks nothing: {arguments}", not agent.requests, agent.requests)


def test_all_found():
    waiting = answer([trace(SHORT)], [host("one"), host("two", "waiting")], done=False)
    begun = time.monotonic()
    whole = answer([trace(SHORT, 13)], [host("one", spans=6, back_s=34.2), host("two", spans=7, held_from=None)])
    run, requests = asked(SHORT, polls=[waiting, waiting, whole])
    expect("waits for the end", len(requests) == 4 and run.returncode == 0, requests, run)
    rows = [line.split() for line in run.stdout.splitlines()]
    expect("the trace's line", [SHORT, "13", "0", "one,", "two"] in rows, run.stdout)
    latest = 34.3 + time.monotonic() - begun
    expect("the host's line", any(row[:3] == ["one", "answered", "6"] and 34.1 <= float(row[3]) <= latest for row in rows), run.stdout)
    expect("the line of one whose ring is empty", ["two", "answered", "7", "-"] in rows, run.stdout)
    expect("says so", run.stdout.endswith("All was found, and is on its way to the collector.\n"), run.stdout)
    run, _ = asked("--json", SHORT, polls=[whole])
    document = json.loads(run.stdout)
    expect("as JSON", document["complete"] is True and document["missing"] == [] and
           document["traces"] == whole["traces"], document)


def test_missing():
    for what, arguments, poll, said in [
        ("no trace", [SHORT], answer([], [host("one", spans=0)]), f"trace {SHORT}: no span was found"),
        ("one of two", [SHORT, LONG], answer([trace(LONG)], [host("one")]), f"trace {SHORT}: no span was found"),
        ("a trace of no span", [SHORT], answer([trace(SHORT, 0)], [host("one")]), f"trace {SHORT}: no span"),
        ("spans", [SHORT], answer([trace(SHORT, 3, 2)], [host("one")]), "2 parent spans were not found"),
        ("an answer", [SHORT], answer([trace(SHORT)], [host("one"), host("two", "waiting")]), "two: has not answered"),
        ("a host", [SHORT], answer([trace(SHORT)], [host("one"), host("two", "away")]), "host two: its agent does not run"),
        ("a snapshot", [SHORT], answer([trace(SHORT)], [host("one", error="no session")]), "host one: no session"),
        ("seconds", ["--last=200m"], answer([trace(SHORT)], [host("one", back_s=6000)]), "its ring goes back only 60"),
        ("anything", ["--last=10s"], answer([], [host("one")]), "nothing was found"),
        ("a service", ["--last=10s", "--service=osd"], answer([], [host("one")]), "nothing was found of service osd"),
    ]:
        run, _ = asked(*arguments, polls=[poll])
        expect(f"{what} is missing", run.returncode == 1 and "missing: " in run.stdout and said in run.stdout, run)
        expect(f"{what}: not all is found", "All was found" not in run.stdout, run.stdout)
        run, _ = asked("--json", *arguments, polls=[poll])
        document = json.loads(run.stdout)
        expect(f"{what} is missing in JSON", document["complete"] is False and said in document["missing"][0], document)


def test_many():
    ids = [f"{i + 1:016x}" for i in range(100)]
    traces = [trace(i, missing=int(i == ids[-1])) for i in ids]
    run, _ = asked("--last=1s", polls=[answer(traces, [host("one")])])
    lines = run.stdout.splitlines()
    expect("the one with a gap is the first of many", ids[-1] in lines[1] and "and 60 more" in run.stdout, run.stdout)
    run, _ = asked("--last=1s", polls=[{**answer([trace(ids[0])], [host("one")]), "more": 900}])
    expect("how many are sent and not listed", run.returncode == 0 and "and 900 more: they are sent too" in run.stdout, run)


def test_peers():
    run = keep(SHORT)
    expect("no agent", run.returncode == 1 and "no `blkin agent` runs here" in run.stderr and
           "systemctl start blkin-agent" in run.stderr, run)
    with Agent(FOLDER, {"error": "no session daemon runs"}) as _:
        run = keep(SHORT)
    expect("the agent refuses", run.returncode == 1 and "blkin keep: no session daemon runs\n" == run.stderr, run)
    with Agent(FOLDER, {"id": "1"}, [None]) as _:
        run = keep(SHORT)
    expect("the agent hangs up", run.returncode == 1 and "not JSON" in run.stderr, run)
    for odd in ({"number": 1}, {"id": 7}, {"id": "x" * 5000}, []):
        with Agent(FOLDER, odd) as _:
            run = keep(SHORT)
        expect(f"an odd answer: {str(odd)[:20]}", run.returncode == 1 and "unexpected answer" in run.stderr, run)
    hosts = [{"host": "\x1b[2J", "state": 7, "spans": "many", "held_from": "2026"}, 5]
    odd = {"id": "1", "done": True, "traces": [{"id": SHORT, "hosts": [7]}, "text", None], "hosts": hosts}
    run, _ = asked(SHORT, polls=[odd])
    expect("odd members", run.returncode == 1 and "\x1b" not in run.stdout and "\\x1b[2J" in run.stdout, run)


test_questions()
test_wrong_usage()
test_all_found()
test_missing()
test_many()
test_peers()
sys.exit(1 if FAILED else 0)
