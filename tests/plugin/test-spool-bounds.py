#!/usr/bin/env python3
# timeout: 200
"""The spool's bounds: a disk that is full, and other users. test-queue.c has a disk that fails, and the owner of the spool.

test-spool-bounds.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import time

from faulty_collector import *  # noqa: F403 (the scenarios use its faults)
from scenarios import PATIENCE, Skipped, expect, run_scenarios, scenario
from spool_runs import Run, drain, each_once, fill, folder, ids

# ---- the disk ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(size):
    with tempfile.TemporaryDirectory() as path:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "none", path],
                          capture_output=True, check=False).returncode:
            raise Skipped("cannot mount a small disk")
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True)


@scenario
def full_disk():
    """Spans that do not fit on the disk wait in the queue, as without a spool. All spans arrive."""
    with small_disk(500000) as disk, Collector(listening=False) as collector:
        run = Run(collector, "live", "add:10000", "wait:spool-accepted:1000", "flush", "close",
                  when=("No space left on device", collector.start), spool=disk + "/spool",
                  batch_spans=100, noise=200, request_timeout_ms=20000)
        run.has(dropped=0, undelivered=0, spool_waiting=0).says("No space left on device")
        expect(run.counts["spool"]["errors"] > 0, run.explain())
        each_once(collector, 10000)


@scenario
def file_that_finds_no_room():
    """Any transport: spans that do not fit on a full disk are spooled on another one."""
    with folder() as spool, small_disk(300000) as disk:
        ballast = disk + "/ballast"
        with open(ballast, "wb") as file:
            file.write(bytes(200000))
        Run("file:" + disk + "/spans.json", "live", "add:1500", "wait:spooled:500", "say:room",
            "wait:spool-accepted:500", "flush", "close", spool=spool, batch_spans=100,
            when=("room\n", lambda: os.remove(ballast))).has(undelivered=0, dropped=0, spool_waiting=0)
        with open(disk + "/spans.json", encoding="utf-8") as file:
            got = [int(span["id"], 16) for span in json.load(file)]
        expect(got == ids(1500), "not in order")


# ---- other users, and the end ----------------------------------------------------------------------------


@scenario
def other_users_cannot_read():
    with folder() as spool:
        os.environ["SPOOL_TEST_TOKEN"] = "sesame-open"
        fill(spool, 300, bearer_token_env="SPOOL_TEST_TOKEN")
        expect(stat.S_IMODE(os.stat(spool).st_mode) == 0o700, "folder's mode")
        for name in os.listdir(spool):
            path = os.path.join(spool, name)
            expect(stat.S_IMODE(os.stat(path).st_mode) == 0o600, "mode of " + name)
            with open(path, "rb") as file:
                data = file.read()
            expect(b"sesame" not in data and b"Bearer" not in data, "a credential is in " + name)


@scenario
def interrupted_while_the_collector_hangs():
    """Spans in the queue and in flight go to the spool within flush-timeout-ms."""
    with folder() as spool, Collector(default=hang()) as hung, Collector() as collector:
        begin = time.monotonic()
        run = Run(hung, "add:5000", "interrupt", "close", spool=spool, on_full="block",
                  batch_spans=100, request_timeout_ms=30000, flush_timeout_ms=500)
        expect(time.monotonic() - begin < 10 * PATIENCE, "took too long")
        run.has(spooled=5000, undelivered=0, spool_waiting=5000)
        drain(spool, collector)
        each_once(collector, 5000)


if __name__ == "__main__":
    sys.exit(run_scenarios(4))
