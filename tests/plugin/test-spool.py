#!/usr/bin/env python3
# timeout: 200
"""The spool: what a collector does not take now is on disk, and arrives later.

    test-spool.py [NAME]...     all scenarios, or those whose names contain one of these

KILLS=N: how often the sink is killed (default 20; each takes some 0.3 s).

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faulty_collector import *  # noqa: E402,F403 (faults are words here)
from scenarios import PATIENCE, Skipped, expect, run_scenarios, scenario  # noqa: E402

DRIVER = os.environ["BUILD"] + "/tests/plugin/exporter-driver"
KILLS = int(os.environ.get("KILLS", "20"))
HEAD = struct.Struct("<IIIIqIIII")  # as struct record_head
DONE = int.from_bytes(b"done", "little")


class Run:
    """What a run of the driver has said; its accounts have been checked all the time by itself."""

    def __init__(self, target, *steps, status=0, when=(), environment=None, **options):
        """when: (words, function): called when the driver says that for the first time."""
        url = target if isinstance(target, str) else target.url
        args = [DRIVER, "endpoint=" + url, "require-collector=no"]
        args += ["%s=%s" % (key.replace("_", "-"), value) for key, value in options.items()]
        self.messages = ""
        with subprocess.Popen(args + list(steps), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) as driver:
            timer = threading.Timer(60 * PATIENCE, driver.kill)
            timer.start()
            for line in driver.stderr:
                self.messages += line
                if when and when[0] in line:
                    when[1]()
                    when = ()
            said = driver.stdout.read()
            self.status = driver.wait()
            timer.cancel()
        self.counts = json.loads(said.splitlines()[-1]) if self.status == 0 else {}
        expect(self.status == status, self.explain())

    def explain(self):
        return "status %d, %s\n%s" % (self.status, self.counts, self.messages)

    def has(self, **expected):
        """These counters; of the spool with spool_ before the name."""
        for name, value in expected.items():
            counts = self.counts["spool"] if name.startswith("spool_") else self.counts
            got = counts[name.replace("spool_", "")]
            expect(got == value, "%s: expected %s, got %s: %s" % (name, value, got, self.explain()))
        return self

    def says(self, words):
        expect(words in self.messages, "it does not say \"%s\": %s" % (words, self.explain()))
        return self


@contextlib.contextmanager
def folder():
    """One for a spool, that is not there yet."""
    with tempfile.TemporaryDirectory() as path:
        yield path + "/spool"


AWAY = "http://127.0.0.1:1"  # nobody listens


def fill(spool, spans, first=0, **options):
    """Leaves so many spans in the spool, in records of 100 unless told otherwise."""
    options.setdefault("batch_spans", 100)
    run = Run(AWAY, "number:%d" % first, "live", "add:%d" % spans, "flush", "close", spool=spool,
              **options)
    return run.has(spooled=spans)


def drain(spool, target, **options):
    """Delivers what is in the spool."""
    return Run(target, "flush", "close", spool=spool, **options)


def ids(count, first=0):
    return list(range(first + 1, first + count + 1))


def files(spool):
    return sorted(glob.glob(spool + "/*.spool"))


def records(path):
    """(offset, spans, size) of each record in the file."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        spans, _, stored = HEAD.unpack_from(data, at)[5:8]
        size = HEAD.size + 4 * spans + stored
        yield at, spans, size
        at += size


def change(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


# ---- away and back -----------------------------------------------------------------------------------


def each_once(collector, spans):
    """Each span was accepted once."""
    expected, times = set(ids(spans)), collections.Counter(collector.accepted)
    expect(len(collector.accepted) == spans and set(times) == expected,
           "of %d spans %d never came, %d came again" %
           (spans, len(expected - set(times)), len(collector.accepted) - len(times)))


@scenario
def untouched_while_the_collector_is_well():
    with folder() as spool, Collector() as collector:
        run = Run(collector, "live", "add:5000", "flush", "close", spool=spool)
        run.has(accepted=5000, spooled=0, retries=0, spool_spans=0, spool_bytes=0)
        expect(os.listdir(spool) == ["lock"], "files: %s" % os.listdir(spool))
        expect(collector.accepted == ids(5000), "not in order")


@scenario
def away_then_back_in_order():
    """With one sender all is in order: what waited, what came meanwhile, what came later."""
    with folder() as spool, Collector(listening=False) as collector:
        run = Run(collector, "live", "add:1000", "wait:spooled:1000", "say:back", "pace:1000",
                  "add:1000",
                  "wait:spool-accepted:1000", "add:1000", "flush", "close", spool=spool,
                  spool_senders=1, batch_spans=100, when=("back\n", collector.start))
        expect(collector.accepted == ids(3000), "not in order, or not all")
        run.has(undelivered=0, dropped=0, waiting=0, spool_waiting=0, spool_bytes=0)
        run.says("not delivered yet, but spooled").says("the collector answers again")
        expect(run.counts["accepted"] > 0, "nothing went directly in the end: " + run.explain())


@scenario
def away_then_back_with_many_senders():
    with folder() as spool, Collector(listening=False) as collector:
        run = Run(collector, "live", "add:10000", "wait:spooled:10000", "say:back",
                  "wait:spool-accepted:10000", "add:100", "flush", "close", spool=spool,
                  batch_spans=100, when=("back\n", collector.start))
        run.has(spool_waiting=0, spool_bytes=0)
        each_once(collector, 10100)


@scenario
def faults_that_pass():
    """Whatever goes wrong with single requests, each span arrives, by several senders."""
    faults = [status(503), reset_after_request(), close_at_once(), status(429), raw(b"HTTP/1.1 2"),
              status(500), reset_at_once(), status(404), raw(b"")] * 3
    script = [step for fault in faults for step in (fault, ok())]  # else the pauses grow
    with folder() as spool, Collector(script) as collector:
        run = Run(collector, "live", "add:3000", "flush", "sleep:300", "flush", "close",
                  spool=spool, batch_spans=50)
        expect(run.counts["dropped"] + run.counts["undelivered"] == 0, run.explain())
        drain(spool, collector)
        each_once(collector, 3000)


@scenario
def slow_collector_and_full_queue():
    """A live session whose collector is slower than what comes: nothing is dropped."""
    with folder() as spool, Collector(default=slow(0.2)) as collector:
        run = Run(collector, "live", "pace:20", "add:5000", "flush", "close", spool=spool,
                  batch_spans=50, batch_bytes=1 << 16, queue_bytes=1 << 19)
        run.has(dropped=0, undelivered=0, spool_waiting=0)
        expect(run.counts["spooled"] > 2500, run.explain())
        each_once(collector, 5000)


@scenario
def recorded_and_slow_goes_directly():
    """Who waits for room needs no disk for a collector that is merely slow."""
    with folder() as spool, Collector(default=slow(0.02)) as collector:
        run = Run(collector, "add:10000", "flush", "close", spool=spool, batch_spans=200,
                  queue_bytes=1 << 18, on_full="block")
        run.has(accepted=10000, spooled=0)


@scenario
def several_requests_at_once():
    peak = [0, 0]
    lock = threading.Lock()

    def count(connection):
        request = read(connection)
        with lock:
            peak[0] += 1
            peak[1] = max(peak)
        time.sleep(0.1)
        with lock:
            peak[0] -= 1
        return connection.answer(202, request=request)

    with folder() as spool, Collector(default=count) as collector:
        fill(spool, 4000)
        drain(spool, collector, spool_senders=5).has(spool_accepted=4000)
        expect(peak[1] == 5, "%d at once" % peak[1])
        each_once(collector, 4000)


@scenario
def one_asks_while_it_is_away():
    """Eight senders do not knock at once: each would do so some ten times."""
    with folder() as spool:
        fill(spool, 10000)
        run = Run(AWAY, "sleep:2000", "interrupt", "close", spool=spool)
        run.has(spool_waiting=10000)
        expect(run.counts["requests"] < 50, run.explain())


@scenario
def retry_after_is_heeded():
    with folder() as spool, Collector([status(429, ["Retry-After: 1"])]) as collector:
        Run(collector, "live", "add:1000", "wait:spool-accepted:1000", "flush", "close", spool=spool,
            batch_spans=100).has(spooled=1000)
        times = [request.time for request in collector.requests]
        expect(times[1] - times[0] > 0.9, "it did not wait: %s" % times)


# ---- what the collector refuses ----------------------------------------------------------------------


@scenario
def invalid_span_in_a_record():
    with folder() as spool, Collector(default=judge(has_bad_span)) as collector:
        fill(spool, 2000, bad="777", batch_spans=1000)
        run = drain(spool, collector).has(spool_accepted=1999, spool_invalid=1, spool_waiting=0)
        run.has(spool_lost_own=0).says("span refused")
        expect(sorted(collector.accepted) == [i for i in ids(2000) if i != 778], "not the others")


@scenario
def too_large_records_are_split():
    with folder() as spool, Collector(default=judge(lambda r: r.bytes > 10000, 413)) as collector:
        fill(spool, 2000, big="5:30000", batch_spans=1000)
        drain(spool, collector).has(spool_accepted=1999, spool_too_large=1)
        expect(sorted(collector.accepted) == [i for i in ids(2000) if i != 6], "not the others")


@scenario
def refused_record():
    with folder() as spool, Collector([status(422), status(422)]) as collector:
        fill(spool, 300)
        drain(spool, collector, spool_senders=1).has(spool_accepted=200, spool_refused=100)


@scenario
def poison_does_not_stop_the_others():
    """A batch that the collector answers with 500 for ever is given up; nothing waits for it."""
    poison = lambda connection: judge(has_bad_span, 500)(connection)  # noqa: E731
    with folder() as spool, Collector(default=poison) as collector:
        fill(spool, 1000, bad="5")
        run = Run(collector, "wait:spool-accepted:900", "wait:spool-undelivered:100", "close",
                  spool=spool, retry_timeout_ms=500)
        run.has(spool_accepted=900, spool_undelivered=100, spool_waiting=0)


# ---- records that are not as they were ---------------------------------------------------------------


@scenario
def corrupt_records():
    """A changed text, a changed head, a changed start, a torn end: the others arrive."""
    with folder() as spool, Collector() as collector:
        fill(spool, 1000)
        [path] = files(spool)
        all_records = list(records(path))
        expect([spans for _, spans, _ in all_records] == [100] * 10, "records: %s" % all_records)
        at, _, size = all_records[2]
        change(path, at + size - 50, b"X")
        change(path, all_records[5][0] + 20, b"XXXX")
        change(path, all_records[7][0] + HEAD.size + 4 * 10, b"X")
        os.truncate(path, all_records[9][0] + 300)
        run = drain(spool, collector)
        run.has(spool_found=900, spool_corrupt=300, spool_unreadable=1, spool_accepted=600,
                spool_bytes=0).says("0 as it was full, 0 too old, 300 in corrupt records, and 1 pieces")
        kept = [i for i in ids(900) if (i - 1) // 100 not in (2, 5, 7)]
        expect(sorted(collector.accepted) == kept, "not the others")


@scenario
def rubbish_in_files():
    with folder() as spool, Collector() as collector:
        fill(spool, 300)
        [path] = files(spool)
        with open(path, "rb") as file:
            data = file.read()
        second = list(records(path))[1][0]
        magic = data[:4]
        with open(path, "wb") as file:
            file.write(b"hello " + magic + data[:second] + magic * 9 + data[second:] + bytes(5000))
        with open(spool + "/00000000000000ff.spool", "wb") as file:
            file.write(os.urandom(200000))
        open(spool + "/0000000000000100.spool", "wb").close()
        with open(spool + "/notes.txt", "w", encoding="ascii") as file:
            file.write("not ours")
        drain(spool, collector).has(spool_accepted=300, spool_unreadable=4, spool_bytes=0)
        expect(sorted(os.listdir(spool)) == ["lock", "notes.txt"], "left: %s" % os.listdir(spool))


@scenario
def done_records_are_not_sent_again():
    with folder() as spool, Collector() as collector:
        fill(spool, 500)
        [path] = files(spool)
        for at, _, _ in list(records(path))[:3]:
            change(path, at + 4, struct.pack("<I", DONE))
        drain(spool, collector).has(spool_found=200, spool_accepted=200)


# ---- bounds --------------------------------------------------------------------------------------------


@scenario
def full_of_bytes_live():
    """The oldest go."""
    with folder() as spool, Collector() as collector:
        run = Run(AWAY, "live", "add:20000", "flush", "close", spool=spool, spool_bytes=1 << 20,
                  batch_spans=100, noise=200)
        run.has(spooled=20000, dropped=0).says("has lost spans")
        dropped = run.counts["spool"]["dropped"]
        expect(run.counts["spool"]["lost_own"] == dropped, run.explain())
        expect(12000 < dropped < 15500, run.explain())
        expect(sum(map(os.path.getsize, files(spool))) <= 1 << 20, "too many bytes")
        drain(spool, collector)
        expect(sorted(collector.accepted) == ids(20000)[dropped:], "not the newest")


@scenario
def full_of_bytes_recorded():
    """Nothing of a recorded trace is dropped: it is there to be read again."""
    with folder() as spool:
        run = Run(AWAY, "add:20000", "flush", "close", spool=spool, spool_bytes=1 << 20,
                  batch_spans=100, noise=200, queue_bytes=1 << 20, retry_timeout_ms=500)
        run.has(failed=True, spool_dropped=0, dropped=0).says("is full")
        expect(run.counts["spooled"] + run.counts["undelivered"] == 20000, run.explain())


@scenario
def too_old():
    with folder() as spool, Collector() as collector:
        fill(spool, 1000)
        time.sleep(0.5)
        run = Run(collector, "live", "add:10", "flush", "close", spool=spool, spool_age_ms=400)
        run.has(spool_found=1000, spool_expired=1000, spool_bytes=0, accepted=10)


@scenario
def too_old_while_away():
    with folder() as spool:
        fill(spool, 1000)
        run = Run(AWAY, "sleep:600", "live", "add:100", "flush", "close", spool=spool,
                  spool_age_ms=400, batch_spans=100)
        expect(run.counts["spool"]["expired"] >= 900, run.explain())


def boot_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


def written_at(spool, time_ms):
    """As if the wall clock had said that when the records were written."""
    for path in files(spool):
        for at, _, _ in records(path):
            with open(path, "rb") as file:
                file.seek(at)
                head = list(HEAD.unpack(file.read(HEAD.size)))
            head[4] = time_ms
            head[2] = zlib.crc32(HEAD.pack(*head)[12:])
            change(path, at, HEAD.pack(*head))


@scenario
def not_too_old_where_the_clock_was_wrong():
    """A host without a clock of its own boots in 2000, and NTP sets it; the same boot, then another one."""
    in_2000 = 946684800000
    for boot in ("this", "another"):
        with folder() as spool, Collector() as collector:
            fill(spool, 1000)
            written_at(spool, in_2000)
            with open(spool + "/lock", "w", encoding="ascii") as lock:
                with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                    lock.write("%s %d\n" % (file.read().strip() if boot == "this" else "other", in_2000 - boot_ms()))
            drain(spool, collector, spool_age_ms=60000).has(spool_found=1000, spool_accepted=1000, spool_expired=0)


@scenario
def too_old_after_another_boot():
    """The time that the host was off is not counted, but what came later is newer."""
    with folder() as spool:
        fill(spool, 1000)
        written_at(spool, int(time.time() * 1000) - 3600000)
        os.truncate(spool + "/lock", 0)
        fill(spool, 100, first=2000, spool_age_ms=1800000).has(spool_expired=0)
        time.sleep(0.5)
        Run(AWAY, "live", "add:1", "flush", "close", spool=spool, spool_age_ms=400).has(spool_expired=1100)


FAILING_FSYNC = """
#include <errno.h>
int fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}
"""


@scenario
def failed_fsync_is_told():
    """Within a second: it is said and counted. Before a batch counts: spans wait for a disk that does."""
    with folder() as spool:
        library = os.path.dirname(spool) + "/failing.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=FAILING_FSYNC, text=True, check=True)
        environment = {**os.environ, "LD_PRELOAD": library}
        run = Run(AWAY, "live", "add:100", "flush", "close", spool=spool, environment=environment, status=1)
        run.says("cannot be stored: Input/output error").says("some may not be on disk")
        shutil.rmtree(spool)
        run = Run(AWAY, "live", "add:100", "flush", "close", spool=spool, environment=environment, spool_fsync="batch",
                  flush_timeout_ms=300)
        run.says("cannot be written: Input/output error").has(spooled=0, undelivered=100)


SLOW_DISK = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static void wait_long(const char *what)
{
    const struct timespec some = {1, 0};
    (void)!write(2, what, 5);
    nanosleep(&some, NULL);
}
int fdatasync(int fd)
{
    wait_long("sync\n");
    return (int)syscall(SYS_fdatasync, fd);
}
int unlinkat(int folder, const char *name, int flags)
{
    wait_long("gone\n");
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}
"""


@scenario
def a_slow_disk_holds_up_nobody():
    """Files are stored and removed without the lock of the spool: who adds spans, or asks for the account, does not wait
    for the disk."""
    with folder() as spool, Collector() as collector:
        library = os.path.dirname(spool) + "/slow.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=SLOW_DISK, text=True, check=True)
        environment = {**os.environ, "LD_PRELOAD": library}
        run = Run(AWAY, "live", "pace:1000", "add:3000", "flush", "close", spool=spool, environment=environment,
                  batch_spans=100)
        run.says("sync").has(spooled=3000)
        expect(max(run.counts["slowest_add_ms"], run.counts["slowest_counts_ms"]) < 200 * PATIENCE, run.explain())
        # what is found is sent and removed while others are added
        run = Run(collector, "number:3000", "live", "pace:1000", "add:3000", "flush", "close", spool=spool,
                  environment=environment, batch_spans=100)
        run.says("gone").has(spool_accepted=3000)
        expect(max(run.counts["slowest_add_ms"], run.counts["slowest_counts_ms"]) < 200 * PATIENCE, run.explain())


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
    """What the disk has not taken waits in the queue, as without a spool; all arrives."""
    with small_disk(500000) as disk, Collector(listening=False) as collector:
        run = Run(collector, "live", "add:10000", "wait:spool-accepted:1000", "flush", "close",
                  when=("No space left on device", collector.start), spool=disk + "/spool",
                  batch_spans=100, noise=200)
        run.has(dropped=0, undelivered=0, spool_waiting=0).says("No space left on device")
        expect(run.counts["spool"]["errors"] > 0, run.explain())
        each_once(collector, 10000)


@scenario
def full_disk_and_queue():
    """Then the oldest of the queue are dropped, and counted; the spool's are kept."""
    with small_disk(500000) as disk, Collector() as collector:
        spool = disk + "/spool"
        run = Run(AWAY, "live", "add:50000", "flush", "close", spool=spool, batch_spans=100, noise=200,
                  queue_bytes=1 << 20, flush_timeout_ms=300, retry_timeout_ms=300)
        counts = run.counts
        expect(counts["dropped"] > 0 and counts["spooled"] > 1000, run.explain())
        drain(spool, collector).has(spool_accepted=counts["spooled"])
        expect(len(set(collector.accepted)) == counts["spooled"], "not all")


@scenario
def full_disk_recorded():
    """Neither disk nor collector: the conversion fails, as without a spool, and does not hang."""
    with small_disk(500000) as disk:
        run = Run(AWAY, "add:50000", "flush", "close", spool=disk + "/spool", batch_spans=100, noise=200,
                  queue_bytes=1 << 20, retry_timeout_ms=500)
        run.has(failed=True, dropped=0)
        expect(run.counts["undelivered"] > 0, run.explain())


@scenario
def file_that_finds_no_room():
    """Any transport: what a full disk does not take is spooled on another one."""
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


# ---- whose it is ---------------------------------------------------------------------------------------


@scenario
def second_sink_is_refused():
    with folder() as spool, Collector() as collector:
        args = [DRIVER, "endpoint=" + collector.url, "spool=" + spool, "add:1",
                "wait:accepted:1", "say:ready", "sleep:60000"]
        with subprocess.Popen(args, stderr=subprocess.PIPE, text=True) as first:
            try:
                expect(first.stderr.readline() == "ready\n", "it did not start")
                Run(collector, "add:1", "close", spool=spool, status=1).says("another sink uses it")
            finally:
                first.kill()
        drain(spool, collector)


@scenario
def nothing_for_others():
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
def no_such_place():
    Run(AWAY, "close", spool="/proc/spool", status=1).says('spool "/proc/spool": cannot be made')
    Run(AWAY, "close", spool="/etc/passwd", status=1).says('spool "/etc/passwd": expected a folder')
    Run(AWAY, "close", spool="", status=1).says("expected the path of a folder")


@scenario
def folder_of_others():
    with folder() as shared:
        os.makedirs(shared, exist_ok=True)
        os.chmod(shared, 0o777)
        Run(AWAY, "close", spool=shared, status=1).says("nobody else can write").says("mode 777")
        if os.geteuid() == 0:
            os.chmod(shared, 0o700)
            os.chown(shared, 65534, 65534)
            Run(AWAY, "close", spool=shared, status=1).says("of user 65534")


@scenario
def interrupted_while_it_hangs():
    """What is in the queue, and on its way, goes to the spool within flush-timeout-ms."""
    with folder() as spool, Collector(default=hang()) as hung, Collector() as collector:
        begin = time.monotonic()
        run = Run(hung, "add:5000", "interrupt", "close", spool=spool, on_full="block",
                  batch_spans=100, request_timeout_ms=30000, flush_timeout_ms=500)
        expect(time.monotonic() - begin < 10 * PATIENCE, "it took too long")
        run.has(spooled=5000, undelivered=0, spool_waiting=5000)
        drain(spool, collector)
        each_once(collector, 5000)


@scenario
def fsync_each_way():
    for way in ("batch", "second", "never"):
        with folder() as spool, Collector() as collector:
            fill(spool, 1000, spool_fsync=way)
            drain(spool, collector, spool_fsync=way).has(spool_accepted=1000)


@scenario
def fsync_beside_a_checkpoint():
    """Who has set it to "second" is told, once, that it is "batch"; who has not set it is not."""
    words = 'spool-fsync="second" is "batch" here'
    for way, count in (("second", 1), ("batch", 0), ("never", 0), (None, 0)):
        with folder() as spool:
            options = {"spool_fsync": way} if way else {}
            run = Run(AWAY, "settled", "live", "add:100", "flush", "close", spool=spool, **options)
            expect(run.messages.count(words) == count, "%s: %s" % (way, run.messages))
    with folder() as spool:
        run = Run(AWAY, "live", "add:100", "flush", "close", spool=spool, spool_fsync="second")
        expect(words not in run.messages, run.messages)


# ---- killed ----------------------------------------------------------------------------------------------


class Flighty:
    """A collector that comes and goes, at one port; remembers ids and how often each came."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.taken = collections.Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.come_and_go, daemon=True)

    def open(self):
        return Collector(port=self.port, default=slow(0.002))

    def come_and_go(self):
        source = random.Random(13)
        while not self.stopping.is_set():
            with self.open() as collector:
                self.stopping.wait(source.uniform(0, 0.3))
            with collector.lock:
                self.taken.update(collector.accepted)
                collector.take = self.take_late
            self.stopping.wait(source.uniform(0, 0.4))

    def take_late(self, request):
        """Of a connection that outlives its collector: its answer may arrive."""
        self.taken.update(request.ids())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


@scenario
def killed_at_random():
    """
    Spans come all the time, the collector comes and goes, the sink is killed. What had its outcome
    when it was killed is at the collector in the end; and of each kill, at most a batch of each
    sender is there twice. What waited in the queue is lost with the process, but was not settled.
    """
    senders, batch = 3, 20
    source = random.Random(int(os.environ.get("SEED", "1")))
    settled, first, kills_in_spool = set(), 0, 0
    with folder() as spool, Flighty() as collector:
        args = [DRIVER, "endpoint=" + collector.url, "spool=" + spool, "require-collector=no",
                "spool-senders=%d" % senders, "batch-spans=%d" % batch, "batch-timeout-ms=5",
                "spool-bytes=%d" % (1 << 30), "request-timeout-ms=1000"]
        for _ in range(KILLS):
            steps = ["number:%d" % first, "live", "settled", "pace:500", "add:100000"]
            with subprocess.Popen(args + steps, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL) as sink:
                timer = threading.Timer(source.uniform(0.02, 0.5) * PATIENCE, sink.kill)
                timer.start()
                last = first
                for line in sink.stdout:
                    if line.endswith("\n"):
                        last = int(line.split()[1])
                sink.wait()
                timer.join()
                expect(sink.returncode == -signal.SIGKILL, "it ended by itself: %s" % sink.returncode)
            settled.update(ids(last - first, first))
            first += 1000000
            kills_in_spool += bool(files(spool))
        collector.stopping.set()
        collector.thread.join()
        with collector.open() as last_one:
            run = Run(last_one, "flush", "close", spool=spool, spool_senders=senders)
            run.has(spool_waiting=0, spool_dropped=0, spool_expired=0)
            collector.taken.update(last_one.accepted)
    lost = settled - set(collector.taken)
    twice = sum(count - 1 for count in collector.taken.values())
    print("killed %d times, %d of them with something in the spool: %d spans settled, %d taken, "
          "%d lost, %d twice (at most %d), %d torn" %
          (KILLS, kills_in_spool, len(settled), len(collector.taken), len(lost), twice,
           KILLS * senders * batch, run.counts["spool"]["corrupt"]))
    expect(not lost, "lost: %s" % sorted(lost)[:20])
    expect(twice <= KILLS * senders * batch, "too many came twice")
    expect(kills_in_spool or KILLS < 10, "the spool was never used")


if __name__ == "__main__":
    sys.exit(run_scenarios(4))
