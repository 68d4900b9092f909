#!/usr/bin/env python3
# timeout: 200
"""The spool's bounds: bytes, age, a disk that is full, slow or broken, and the owner of the spool.

test-spool-bounds.py [NAME]...     all scenarios, or those whose names contain one of these

SPDX-License-Identifier: BSD-2-Clause
"""
import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zlib

from delivery import DRIVER  # noqa: E402
from faulty_collector import *  # noqa: F403 (the scenarios use its faults)
from scenarios import PATIENCE, Skipped, expect, run_scenarios, scenario, scenarios_of
from spool_runs import AWAY, HEAD, Run, change, drain, each_once, files, fill, filled, folder, ids, records

# ---- bounds --------------------------------------------------------------------------------------------


@scenario
def full_of_bytes_live():
    """The oldest records are removed."""
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
    """No span of a recorded trace is dropped, because the trace can be read again."""
    with folder() as spool:
        run = Run(AWAY, "add:20000", "flush", "close", spool=spool, spool_bytes=1 << 20,
                  batch_spans=100, noise=200, queue_bytes=1 << 20, retry_timeout_ms=500)
        run.has(failed=True, spool_dropped=0, dropped=0).says("is full")
        expect(run.counts["spooled"] + run.counts["undelivered"] == 20000, run.explain())


@scenario
def too_old():
    with folder() as spool, Collector() as collector:
        fill(spool, 1000)
        written_at(spool, int(time.time() * 1000) - 1000)
        run = Run(collector, "add:10", "flush", "close", spool=spool, spool_age_ms=400)
        run.has(spool_found=1000, spool_expired=1000, spool_bytes=0, accepted=10)


@scenario
def too_old_while_away():
    for _ in range(5):  # a busy machine may start the sink when the spans are too old already
        with folder() as spool:
            fill(spool, 1000)
            run = Run(AWAY, "sleep:5500", "live", "add:100", "flush", "close", spool=spool, spool_age_ms=5000)
        expect(run.counts["spool"]["expired"] + run.counts["spool"]["dropped"] == 1000, run.explain())
        if run.counts["spool"]["dropped"] >= 100:  # a sender's record was removed while the sender read it
            return
    expect(False, run.explain())


def boot_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


def written_at(spool, time_ms):
    """Sets the time (of the wall clock) in the records."""
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
    """A host without a hardware clock boots in 2000. NTP sets the clock in the same boot, then in another boot."""
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
    """The time while the host was off does not count, but the time since then does."""
    with folder() as spool:
        fill(spool, 1000)
        written_at(spool, int(time.time() * 1000) - 3600000)
        os.truncate(spool + "/lock", 0)
        fill(spool, 100, first=2000, spool_age_ms=1800000).has(spool_expired=0)
        run = Run(AWAY, "live", "add:1", "flush", "close", spool=spool, spool_age_ms=1)
        expect(run.counts["spool"]["expired"] in (1100, 1101), run.explain())  # the new record may be old, too


FAILING_FSYNC = """
#include <errno.h>
int fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}
"""


def preloaded(spool, code, **environment):
    """Returns the environment of a sink in which this C code replaces functions of the C library."""
    library = os.path.dirname(spool) + "/preloaded.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=code, text=True, check=True)
    return {"LD_PRELOAD": library, **environment}


@scenario
def failed_fsync_is_reported():
    """A failed fsync is reported within a second. With spool-fsync=batch, spans wait in the queue until fsync works."""
    with folder() as spool:
        environment = preloaded(spool, FAILING_FSYNC)
        run = Run(AWAY, "live", "add:100", "flush", "close", spool=spool, env=environment, status=1)
        run.says("cannot be stored: Input/output error").says(" may not be on disk: fsync failed")
        shutil.rmtree(spool)
        run = Run(AWAY, "live", "add:100", "flush", "close", spool=spool, env=environment, spool_fsync="batch",
                  flush_timeout_ms=300, retry_timeout_ms=2000)
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
    nanosleep(&some, NULL); /* the disk is slow */
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
def slow_disk_delays_nobody():
    """Files are synced and removed without the lock of the spool: adding spans, and reading the account, do not wait
    for the disk."""
    for _ in range(4):  # a busy machine may delay calls, but not each time
        with folder() as spool, Collector() as collector:
            options = {"spool": spool, "env": preloaded(spool, SLOW_DISK), "batch_spans": 100}
            first = Run(AWAY, "live", "pace:1000", "add:3000", "flush", "close", **options)
            first.says("sync").has(spooled=3000)
            # found records are sent and removed while others are added
            run = Run(collector, "number:3000", "live", "pace:1000", "add:3000", "flush", "close", **options)
            # on a busy machine, some of the new spans wait in the spool behind those that were found
            late = run.counts["spooled"]
            run.says("gone").has(spool_found=3000, spool_accepted=3000 + late, accepted=3000 - late)
        calls = "slowest_add_ms", "slowest_counts_ms"
        if max(each.counts[call] for each in (first, run) for call in calls) < 200 * PATIENCE:
            return
    expect(False, first.explain() + run.explain())


NO_DESCRIPTORS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int openat(int folder, const char *name, int flags, ...)
{
    static char opened = '0';
    const char which[] = {++opened, 0};
    va_list values;
    int mode;
    if (!strstr(name, ".spool") || flags & O_CREAT)
        opened--;
    else if (strstr(getenv("FAILS"), which)) {
        errno = EMFILE;
        return -1;
    }
    va_start(values, flags);
    mode = flags & O_CREAT ? va_arg(values, int) : 0;
    va_end(values);
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}
"""


@scenario
def no_descriptors():
    """A file that cannot be opened now is not lost: a start reports it, and a running sink tries again."""
    with folder() as spool, Collector() as collector:
        fill(spool, 1000)
        environment = preloaded(spool, NO_DESCRIPTORS, FAILS="1")
        Run(collector, "close", spool=spool, env=environment, status=1).says("cannot be read: Too many open files")
        environment["FAILS"] = "2,3"
        run = Run(collector, "wait:spool-accepted:1000", "flush", "close", spool=spool, env=environment)
        run.has(spool_found=1000, spool_accepted=1000, spool_corrupt=0, spool_waiting=0)
        each_once(collector, 1000)


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
                  when=("No space left on device", collector.start), spool=disk + "/spool", batch_spans=100, noise=200)
        run.has(dropped=0, undelivered=0, spool_waiting=0).says("No space left on device")
        expect(run.counts["spool"]["errors"] > 0, run.explain())
        each_once(collector, 10000)


@scenario
def full_disk_and_queue():
    """If the disk and the queue are full, the oldest spans of the queue are dropped and counted. Spooled spans stay."""
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
    """Without disk and collector, the conversion fails as without a spool, and does not hang."""
    with small_disk(500000) as disk:
        run = Run(AWAY, "add:50000", "flush", "close", spool=disk + "/spool", batch_spans=100, noise=200,
                  queue_bytes=1 << 20, retry_timeout_ms=500)
        run.has(failed=True, dropped=0)
        expect(run.counts["undelivered"] > 0, run.explain())


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


# ---- the owner of the spool ----------------------------------------------------------------------------


@scenario
def second_sink_is_refused():
    with folder() as spool, Collector() as collector:
        args = [DRIVER, "endpoint=" + collector.url, "spool=" + spool, "request-timeout-ms=%d" % (20000 * PATIENCE),
                "add:1", "wait:accepted:1", "say:ready", "pause"]
        with subprocess.Popen(args, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
            try:
                expect(first.stderr.readline() == "ready\n", "the first sink did not start")
                Run(collector, "add:1", "close", spool=spool, status=1).says("another sink uses it")
            finally:
                first.kill()
        drain(spool, collector)


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
def wrong_folder():
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
            Run(AWAY, "close", spool=shared, status=1).says("belongs to user 65534")


@scenario
def interrupted_while_the_collector_hangs():
    """Spans in the queue and in flight go to the spool within flush-timeout-ms."""
    with folder() as spool, Collector(default=hang()) as hung, Collector() as collector:
        run = Run(hung, "add:5000", "interrupt", "close", spool=spool, on_full="block", batch_spans=100,
                  flush_timeout_ms=500)
        expect(run.seconds < 15 * PATIENCE, "took too long")
        run.has(spooled=5000, undelivered=0, spool_waiting=5000)
        drain(spool, collector)
        each_once(collector, 5000)


scenarios_of(filled, {"fsync_" + way: (({}, {"spool_fsync": way}, 1000, {"spool_fsync": way}), {"spool_accepted": 1000})
                      for way in ("batch", "second", "never")})


if __name__ == "__main__":
    sys.exit(run_scenarios(4))
