#!/usr/bin/env python3
# timeout: 120
"""Power cuts: after a cut, all data that were reported as safe are there.

RUNS=100 SEED=N test-power.py [NAME]...     RUNS images of each workload (default 3)

A program works on an ext4 on a loop device. At random moments the test copies its image as the disk has it at that
instant, and mounts the copy: the journal is replayed, as after a cut. All data that the program had reported until
then must be there.

The image is in memory (tmpfs). So it has the data that were given to the loop device, and not data that wait in the
kernel. The disk keeps the order of its writes: a disk's own cache is not simulated. The test uses the worst settings of
ext4. fsync is slowed down (disk.c). Replacing a file by rename does not store it (noauto_da_alloc). Names are stored
each second (commit=1) without their data (delayed allocation).

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import pause, wait_until  # noqa: E402

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
sys.path.insert(0, os.path.join(SRC, "tests/plugin"))
from faulty_collector import Collector  # noqa: E402
from scenarios import expect, run_scenarios, scenario  # noqa: E402

RUNS = int(os.environ.get("RUNS", "3"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
IMAGE_BYTES = 12 << 20  # small, so that a copy takes a short time
PER_RUN = 5  # images of one run of the program
AWAY = "http://127.0.0.1:1"  # nobody listens


def call(*command, **options):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, **options).stdout


class Mount:
    """An image as a file system."""

    def __init__(self, image):
        self.image, self.path = image, tempfile.mkdtemp(dir=MEMORY_FOLDER)

    def __enter__(self):
        call("mount", "-t", "ext4", "-o", "loop,noauto_da_alloc,commit=1", self.image, self.path)
        return self.path

    def __exit__(self, *_):
        call("umount", self.path)
        os.rmdir(self.path)


def read_at_once(path, program):
    """Returns the file at one instant: two copies are equal. On a slow machine the program must stand still."""
    before, after = bytearray(IMAGE_BYTES), bytearray(IMAGE_BYTES)
    with open(path, "rb", buffering=0) as file:
        for turn in range(500):
            before, after = after, before
            file.seek(0)
            file.readinto(after)
            if turn and before == after:
                program.send_signal(signal.SIGCONT)
                return after
            if turn == 400:
                program.send_signal(signal.SIGSTOP)
    raise AssertionError("the image changes too often to be copied")


def images(chance, workload, count):
    """Runs the workload's command on a fresh image. Returns `count` copies of the image, each with the last report before."""
    image = tempfile.mkdtemp(dir=MEMORY_FOLDER) + "/image"
    taken = []
    shutil.copyfile(EMPTY, image)
    with Mount(image) as folder:
        call("sync", "-f", folder)
        program = subprocess.Popen(workload.command(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "LD_PRELOAD": SLOW, "SLOW_MS": "15"})
        try:
            os.set_blocking(program.stdout.fileno(), False)
            wait_until(lambda: workload.said(program), "the first things are safe", every_s=0.001)
            for _ in range(count):
                pause(chance.uniform(0, 0.35))
                reported = workload.said(program)
                taken.append((f"{image}.{len(taken)}", reported))
                with open(taken[-1][0], "wb") as file:
                    file.write(read_at_once(image, program))
        finally:
            program.kill()
            program.communicate()
            # the program's child processes may end a moment later
            fuser = "fuser", "-s", "-M", "-m", folder
            wait_until(lambda: subprocess.run(fuser, check=False, stderr=subprocess.DEVNULL).returncode, "none uses it")
    os.unlink(image)
    return taken


class Workload:
    """A program, and its data that must be there after a cut. It prints "safe N" or "settled N": 1 to N are safe."""

    def __init__(self):
        self.program, self.text, self.last = None, b"", 0

    def command(self, folder):
        raise NotImplementedError

    def check(self, folder, reported):
        """Returns how many things were reported as safe, and how many of them are missing."""
        raise NotImplementedError

    def said(self, program):
        """Returns the number of the last report."""
        if program is not self.program:
            self.program, self.text, self.last = program, b"", 0
        while data := program.stdout.read():
            self.text += data
        lines = self.text.split(b"\n")
        self.text = lines.pop()
        if lines:
            self.last = int(lines[-1].split()[1])
        return self.last


def cut(workload):
    """Makes RUNS power cuts."""
    chance = random.Random(f"{SEED} {type(workload).__name__}")
    cuts = safe = missing = 0
    while cuts < RUNS:
        for image, reported in images(chance, workload, min(PER_RUN, RUNS - cuts)):
            with Mount(image) as folder:
                things, lost = workload.check(folder, reported)
            cuts, safe, missing = cuts + 1, safe + things, missing + lost
            os.unlink(image)
    note = f"seed {SEED}: {cuts} power cuts, {safe} things said to be safe, {missing} of them missing"
    expect(missing == 0, note)
    expect(safe > 0, "nothing was said: " + note)
    return note


# ---- the state of the root of workers -----------------------------------------------------------------


class RootState(Workload):
    def command(self, folder):
        return [BUILD + "/tests/work/saving", folder + "/root.json"]

    def check(self, folder, reported):
        try:
            with open(folder + "/root.json", encoding="utf-8") as file:
                found = json.load(file)["offsets"][0]
        except (FileNotFoundError, json.JSONDecodeError):
            found = 0
        return reported, max(reported - found, 0)


@scenario
def root_state():
    return cut(RootState())


# ---- the spool ----------------------------------------------------------------------------------------


class Spool(Workload):
    driver = [BUILD + "/tests/plugin/exporter-driver", "require-collector=no"]

    def command(self, folder):
        return self.driver + [
            "endpoint=" + AWAY, f"spool={folder}/spool", "spool-fsync=batch", "spool-bytes=8388608", "batch-spans=20",
            "batch-timeout-ms=5", "number:0", "live", "settled", "pace:2000", "add:1000000"]

    def check(self, folder, reported):
        with Collector() as collector:
            call(*self.driver, "endpoint=" + collector.url, f"spool={folder}/spool", "flush", "close")
            return reported, len(set(range(1, reported + 1)) - set(collector.accepted))


@scenario
def spool():
    return cut(Spool())


# ---- is it possible here? -----------------------------------------------------------------------------


def skip(why):
    print(why)
    sys.exit(77)


def prepare():
    if os.geteuid() != 0:
        skip("power cuts need root: a loop device is mounted")
    if not shutil.which("mkfs.ext4"):
        skip("power cuts need mkfs.ext4 (e2fsprogs)")
    with open(EMPTY, "wb") as file:
        file.truncate(IMAGE_BYTES)
    call("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-b", "1024", "-J", "size=1", EMPTY)
    call(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", SLOW, os.path.join(SRC, "tests/power/disk.c"))
    try:
        with Mount(EMPTY) as folder:
            os.rmdir(folder + "/lost+found")
    except subprocess.CalledProcessError as error:
        skip(f"power cuts need a loop device that can be mounted: {error.output.strip()}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="blkin-power.", dir="/dev/shm") as MEMORY_FOLDER:
        EMPTY, SLOW = os.path.join(MEMORY_FOLDER, "empty"), os.path.join(MEMORY_FOLDER, "slow.so")
        prepare()
        status = run_scenarios(2)
    sys.exit(status)
