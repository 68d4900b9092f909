#!/usr/bin/env python3
# timeout: 3000
"""The parameter checkpoint: a recording that is read trace by trace, each by a babeltrace2 of its own, gives
the spans of the whole one, whatever is killed; what cannot be said of a file is said clearly.

KILLS=300 test-checkpoint.py: so many SIGKILLs in place of 20

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
import faulty_collector
from common import wait_until
from faulty_collector import Collector
from make_traces import CONTEXT, MS, S, STREAMED, Thread, add_blkin, add_zipkin, context, step, tag, zipkin
from ctf import Trace

PLUGINS = os.path.join(os.environ["BUILD"], "plugins")
KILLS = int(os.environ.get("KILLS", 20))
BATCH = 50


# ---- recordings ----

def recording(seed, requests):
    """Events of a daemon that streams, with the original's and whole spans, steps and a process's; in the
    order of their times, no two at one."""
    chance = random.Random(seed)
    context_of = context(100, 101, "osd")
    thread = Thread(0x70, context=context_of)
    other = Thread(0x90, service="mon", context=context_of)
    plain = Thread(0x123, context=context_of)
    events, now = [], 10 * S
    for i in range(requests):
        begin = now
        now += chance.randrange(100_000, 40 * MS)
        span, osd = 10 * i + 1, {"trace_id": i + 1, "service": "osd", "parent": 5}
        some = [thread.begin(begin, span, "read"),
                (begin + 7000, "zipkin:timestamp", zipkin(span + 1, event="sr", **osd), context_of),
                other.detail(begin + 20000, "annotation_info", span, text="queued")]
        end = begin + chance.randrange(30000, 400 * MS)
        some.append(thread.detail(end + 1, "tag", span, log=tag("pool", "rbd")))
        log = step(10, "lock", tag("who", "v0"), end=500) if chance.random() < 0.5 else ""
        if chance.random() < 0.7:  # both forms, as libblkin records them
            some.append(thread.span(end + 2, span, "read", duration=end - begin, log=log, flags=STREAMED))
        if chance.random() < 0.9:  # else its end is lost
            some.append(other.detail(end + 3, "end", span))
        some += [(end + 11, "zipkin:keyval_string",
                  zipkin(span + 1, key="object", val=f"rbd.{i}", **osd), context_of),
                 (end + 13, "zipkin:timestamp", zipkin(span + 1, event="ss", **osd), context_of),
                 other.span(end + 17, span + 2, "write", parent=span, log=log)]
        if i % 20 == 0:
            some.append(plain.process(begin + 5))
        events += some
    events.sort(key=lambda event: event[0])
    return [event for at, event in enumerate(events) if not at or event[0] != events[at - 1][0]]


def write_trace(folder, streams):
    """Streams: events and when each of them ends, or None."""
    trace = Trace(hostname="node1", context=CONTEXT)
    add_blkin(trace)
    add_zipkin(trace)
    for events, end in streams:
        stream = trace.stream()
        for at in range(0, max(len(events), 1), 500):
            part = events[at:at + 500]
            last = at + 500 >= len(events)
            stream.packet(part, end=end if last and end else None,
                          begin=None if part else end)
    trace.write(folder)


def cut(events, count, seed, skew=0):
    """Traces of two CPUs, whose buffers are not cut at one moment."""
    chance = random.Random(seed)
    at = sorted(chance.choice(events)[0] for _ in range(count - 1))
    cpus = [chance.randrange(2) for _ in events]
    ends = [[time, time + skew] for time in at] + [[None, None]]
    begins = [0, 0]
    for both in ends:
        yield [([event for event, cpu in zip(events, cpus) if cpu == which and
                 begins[which] <= event[0] and (end is None or event[0] < end)], end)
               for which, end in enumerate(both)]
        begins = both


# ---- runs ----

class Run:
    """One babeltrace2 that reads a folder, or nothing (None)."""

    def __init__(self, test, folder, name, url, *more, **options):
        self.stats = os.path.join(test.folder, "stats")
        params = [f'endpoint="{url}"', f'stats-file="{self.stats}"', f"batch-spans={BATCH}",
                  "retry-timeout-ms=300", "end-timeout-ms=50", "idle-timeout-ms=2000",
                  "open-timeout-ms=5000", *more]
        if test.file:
            params.append(f'checkpoint="{test.file}"')
        if name:
            params.append(f'checkpoint-trace="{name}"')
        source = (["--component=src:source.ctf.fs", f'--params=inputs=["{folder}"]',
                   "--component=mux:filter.utils.muxer", "--connect=src:mux", "--connect=mux:sink"]
                  if folder else
                  ["--component=src:source.text.dmesg", f'--params=path="{test.empty}"',
                   "--connect=src:sink"])
        command = (["babeltrace2", f"--plugin-path={PLUGINS}", "run", *source[:2],
                    "--component=sink:sink.blkin.zipkin", "--params=" + ",".join(params)] + source[2:])
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, **options)

    def end(self):
        self.said = " ".join(self.process.communicate(timeout=60)[1].split())  # without line breaks
        self.status = self.process.returncode
        return self

    @property
    def counts(self):
        with open(self.stats) as file:
            return collections.Counter(json.load(file)["counters"])


def text(span):
    return json.dumps(span, sort_keys=True)


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, "checkpoint")
        self.empty = os.path.join(self.folder, "empty")
        open(self.empty, "w").close()
        self.outputs = 0

    def trace(self, name, streams):
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        write_trace(folder, streams)
        return folder

    def run_to_file(self, folder, name, *more, status=0, **options):
        """Its spans, as texts, and what it has counted."""
        self.outputs += 1
        path = os.path.join(self.folder, f"spans-{self.outputs}.json")
        run = Run(self, folder, name, "file:" + path, *more, **options).end()
        self.assertEqual(run.status, status, run.said)
        with open(path) as file:
            return [text(span) for span in json.load(file)], run

    def whole(self, events):
        """The spans of a trace of all of them, without a checkpoint."""
        file, self.file = self.file, None
        spans, run = self.run_to_file(self.trace("whole", [(events, None)]), None)
        self.file = file
        return spans, run.counts

    def refuses(self, run, status, *words):
        self.assertEqual(run.status, status, run.said)
        for word in words:
            self.assertIn(word, run.said)

    # ---- one recording ----

    def test_gaps_and_doubles_across_traces(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        first = [thread.begin(10 * S, 7), thread.detail(10 * S + MS, "end", 7)]
        thread.sequence += 1
        double = thread.span(11 * S, 7, flags=STREAMED)
        thread.streamed += 5
        second = [double, thread.begin(11 * S + MS, 8), thread.detail(11 * S + 2 * MS, "end", 8)]
        spans, run = self.run_to_file(self.trace("a", [(first, 10 * S + 500 * MS)]), "a")
        self.assertEqual((len(spans), run.counts["events_missing"]), (1, 0))
        spans, run = self.run_to_file(self.trace("b", [(second, 12 * S)]), "b")
        self.assertEqual(len(spans), 1)
        self.assertEqual(run.counts["events_missing"], 5)
        self.assertEqual(run.counts["spans_duplicate"], 1)

    def test_gaps_of_a_trace_that_is_read_again(self):
        """Those that finish the trace count what is missing in it, and no other run does."""
        thread = Thread(0x70, context=context(1, 2, "osd"))
        events = [thread.span(10 * S, 1)]
        thread.sequence += 40
        events.append(thread.span(11 * S, 2))
        folder = self.trace("a", [(events, 12 * S)])
        with Collector(default=faulty_collector.status(503)) as collector:
            run = Run(self, folder, "a", collector.url).end()
        self.refuses(run, 1)
        self.assertEqual((run.counts["spans_undelivered"], run.counts["events_missing"]), (2, 0))
        spans, run = self.run_to_file(folder, "a")
        self.assertEqual((len(spans), run.counts["events_missing"]), (2, 40))

    def test_time_out_in_a_later_trace(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        begun = [thread.begin(10 * S, 7)]
        spans, run = self.run_to_file(self.trace("a", [(begun, 12 * S)]), "a")
        self.assertEqual((spans, run.counts["spans_open"]), ([], 1))
        # nothing but the end of a packet tells that time goes on
        spans, run = self.run_to_file(self.trace("b", [([], 20 * S)]), "b")
        self.assertEqual(len(spans), 1)
        self.assertIn("its end was not seen", spans[0])
        self.assertEqual(run.counts["spans_taken_over"], 1)

    def test_time_out_by_the_clock_of_the_caller(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        self.run_to_file(self.trace("a", [([thread.begin(10 * S, 7)], None)]), "a")
        until = "checkpoint-until=%d" % (1700000000 + 14)
        spans, _ = self.run_to_file(None, "b", until)
        self.assertEqual(spans, [])
        until = "checkpoint-until=%d" % (1700000000 + 16)
        spans, _ = self.run_to_file(None, "c", until)
        self.assertEqual(len(spans), 1)

    def test_flush_without_a_trace(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        begun = [thread.begin(10 * S, 7), thread.span(10 * S + 1, 8)]
        spans, run = self.run_to_file(self.trace("a", [(begun, None)]), "a")
        self.assertEqual((spans, run.counts["events_held"]), ([], 2))
        spans, run = self.run_to_file(None, "the end", "checkpoint-flush=yes")
        self.assertEqual((len(spans), run.counts["events"]), (2, 2))
        spans, run = self.run_to_file(None, "the very end", "checkpoint-flush=yes")
        self.assertEqual(spans, [])

    # ---- what is not done ----

    def test_a_trace_that_is_done_is_not_read_again(self):
        trace = self.trace("a", [(recording(1, 5), 20 * S)])
        self.run_to_file(trace, "a")
        with Collector() as collector:
            run = Run(self, trace, "a", collector.url).end()
            self.assertEqual((run.status, collector.requests), (0, []))

    def test_one_trace_after_the_other(self):
        trace = self.trace("a", [(recording(1, 50), 20 * S)])
        with Collector(default=faulty_collector.status(503)) as collector:
            run = Run(self, trace, "a", collector.url).end()
            self.refuses(run, 1, "cannot deliver" if "cannot deliver" in run.said else "not delivered")
        with Collector() as collector:
            run = Run(self, trace, "b", collector.url).end()
            self.refuses(run, 1, 'trace "a" is not delivered', 'read that trace before "b"')
            self.assertEqual(Run(self, trace, "a", collector.url).end().status, 0)
            self.assertEqual(len(collector.accepted), len(set(collector.accepted)))

    def test_a_trace_that_is_given_up(self):
        trace = self.trace("a", [(recording(1, 50), 20 * S)])
        faults = [faulty_collector.ok()] * 2
        with Collector(faults, default=faulty_collector.status(503)) as collector:
            self.assertEqual(Run(self, trace, "a", collector.url).end().status, 1)
        self.assertEqual(self.run_to_file(None, "a")[0], [])
        self.run_to_file(trace, "b")

    def test_collector_that_is_away_for_a_while(self):
        events = recording(3, 400)
        trace = self.trace("a", [(events, None)])
        expected, _ = self.whole(events)
        faults = [faulty_collector.ok()] * 5
        with Collector(faults, default=faulty_collector.status(503)) as collector:
            self.assertEqual(Run(self, trace, "a", collector.url).end().status, 1)
            sent = list(collector.accepted)
            self.assertEqual(len(sent), 5 * BATCH)
        with Collector() as collector:
            run = Run(self, trace, "a", collector.url, "checkpoint-flush=yes").end()
            self.assertEqual(run.status, 0, run.said)
            self.assertEqual(run.counts["spans_skipped"], len(sent))
            sent += collector.accepted
        self.assertEqual(sorted(sent), sorted(int(json.loads(span)["id"], 16) for span in expected))

    def test_an_interrupted_run_sends_nothing_that_is_open(self):
        trace = self.trace("a", [(recording(4, 3000), None)])
        with Collector(default=faulty_collector.slow(0.05)) as collector:
            run = Run(self, trace, "a", collector.url, f"queue-bytes={8192}", "batch-bytes=4096")
            wait_until(lambda: collector.accepted, "the first spans")
            run.process.send_signal(signal.SIGTERM)
            run.end()
            self.assertNotEqual(run.status, 0)
            self.assertGreater(run.counts["spans_open"], 0)
            first = list(collector.accepted)
        with Collector() as collector:
            run = Run(self, trace, "a", collector.url).end()
            self.assertEqual((run.status, run.counts["spans_skipped"]), (0, len(first)))

    def test_refused_spans_do_not_stand_in_the_way(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        events = [thread.span(10 * S, 1), thread.span(10 * S + 1, 2, "bad")]
        trace = self.trace("a", [(events, 20 * S)])
        fault = faulty_collector.judge(faulty_collector.has_bad_span)
        with Collector(default=fault) as collector:
            run = Run(self, trace, "a", collector.url).end()
            self.refuses(run, 1, "1 of 2 spans were not delivered")
            self.assertEqual(run.counts["spans_invalid"], 1)
            self.assertEqual(Run(self, trace, "a", collector.url).end().status, 0)
            self.assertEqual(collector.accepted, [1])

    def test_other_spans_than_before(self):
        with Collector([faulty_collector.ok()] * 2, default=faulty_collector.status(503)) as collector:
            trace = self.trace("a", [(recording(5, 100), None)])
            self.assertEqual(Run(self, trace, "a", collector.url).end().status, 1)
        other = self.trace("other", [(recording(6, 100), None)])
        run = Run(self, other, "a", "file:" + os.path.join(self.folder, "x")).end()
        self.refuses(run, 1, 'of trace "a" are not those that an earlier run sent')
        spans, run = self.run_to_file(other, "a")
        self.assertEqual((len(spans), run.counts["spans_skipped"]), (run.counts["spans_finished"], 0))

    # ---- SIGKILL ----

    def test_sigkill(self):
        events = recording(7, 2500)
        expected, _ = self.whole(events)
        parts = list(cut(events, 5, 7, 50 * MS))
        chance = random.Random()
        kills, length = 0, 0.2
        while kills < KILLS:
            file, self.file = self.file, os.path.join(self.folder, f"checkpoint-{kills}")
            with Collector(default=faulty_collector.slow(0.001)) as collector:
                before = kills
                for i, streams in enumerate(parts):
                    folder = os.path.join(self.folder, f"part-{i}")
                    if not os.path.exists(folder):
                        write_trace(folder, streams)
                    last = ["checkpoint-flush=yes"] if i == len(parts) - 1 else []
                    while True:
                        run = Run(self, folder, f"part-{i}", collector.url, *last)
                        begin = time.monotonic()
                        if chance.random() < 0.8:
                            try:
                                run.process.wait(chance.uniform(0, 1.1 * length))
                            except subprocess.TimeoutExpired:
                                run.process.kill()
                                kills += 1
                        run.end()
                        if run.status == 0:
                            length = time.monotonic() - begin
                            break
                        self.assertEqual(run.status, -signal.SIGKILL, run.said)
                got = collections.Counter(collector.accepted)
            wanted = collections.Counter(int(json.loads(span)["id"], 16) for span in expected)
            self.assertEqual(wanted - got, collections.Counter(), "lost")
            doubles = sum((got - wanted).values())
            self.assertLessEqual(doubles, BATCH * (kills - before))
            print(f"{kills - before} SIGKILLs in {len(parts)} traces: {sum(wanted.values())} spans, "
                  f"0 lost, {doubles} sent twice")
            self.file = file

    # ---- the file ----

    def damaged(self, change):
        """A run with a file that was changed so, in a folder of its own."""
        self.setUp()
        self.run_to_file(self.trace("a", [(recording(1, 20), 20 * S)]), "a")
        with open(self.file, "r+b") as file:
            data = bytearray(file.read())
            changed = change(data)
            data = data if changed is None else changed
            file.seek(0)
            file.write(data)
            file.truncate()
        thread = Thread(0x70, context=context(1, 2, "osd"))
        trace = self.trace("b", [([thread.span(30 * S, 1)], 31 * S)])
        return Run(self, trace, "b", "file:" + os.path.join(self.folder, "out")).end()

    def test_damaged(self):
        """It is put aside."""
        def flip(data, at):
            data[at] ^= 1
        for change, why in ((lambda data: flip(data, 1800), "its checksum is wrong"),
                            (lambda data: flip(data, 20), "its head is not whole"),
                            (lambda data: data[:512] + bytes(1024) + data[1536:], "it has no valid progress"),
                            (lambda data: data[:-1], "its length is not the one in its head"), (lambda data: bytearray(), "it is empty")):
            with self.subTest(why):
                run = self.damaged(change)
                self.assertEqual(run.status, 0, run.said)
                self.assertIn(f'checkpoint "{self.file}" is damaged: {why}', run.said)
                self.assertIn(f'it is now "{self.file}.damaged"', run.said)
                self.assertEqual((run.counts["checkpoint_errors"], run.counts["spans_accepted"]), (1, 1))

    def test_file_of_something_else(self):
        """It is not replaced."""
        def other_version(data):
            data[16:20] = struct.pack("<I", 99)

        def nonsense(data):
            data[1536:1544] = struct.pack("<Q", 7)
        for change, why in ((lambda data: b"\x7fELF" + data[4:], "is no checkpoint, and is not replaced"),
                            (other_version, "expected version 4, got 99"), (nonsense, "has impossible contents")):
            def change_and_sum(data):
                data = bytearray(change(data) or data)
                data[40:44] = struct.pack("<I", zlib.crc32(data[1536:]))
                data[44:48] = struct.pack("<I", zlib.crc32(data[:44]))
                return data
            with self.subTest(why):
                self.refuses(self.damaged(change_and_sum), 1, why)
                if change is nonsense:  # the next run begins with nothing
                    self.run_to_file(os.path.join(self.folder, "b"), "b")

    def test_file_of_the_other_kind(self):
        trace = self.trace("a", [(recording(1, 5), 20 * S)])
        self.run_to_file(trace, "a")
        run = Run(self, trace, None, "file:" + os.path.join(self.folder, "x")).end()
        self.refuses(run, 1, "expected one of a live session", "got one of recorded traces")

    def test_file_in_use(self):
        trace = self.trace("a", [(recording(1, 50), 20 * S)])
        with Collector(default=faulty_collector.hang()) as collector:
            first = Run(self, trace, "a", collector.url)
            wait_until(lambda: collector.requests, "the first request")
            second = Run(self, trace, "a", collector.url, f'stats-file="{self.folder}/other"').end()
            self.refuses(second, 1, "another sink uses it")
            first.process.kill()
            first.end()

    def test_no_such_folder_and_no_file(self):
        for path in ("/no/such/folder/x", self.folder, ""):
            self.file = path
            params = [f'checkpoint="{path}"'] if not path else []
            run = Run(self, None, "a", "file:" + os.path.join(self.folder, "x"), *params).end()
            self.refuses(run, 1, "checkpoint")

    def test_mode_and_what_is_left(self):
        self.run_to_file(self.trace("a", [(recording(1, 5), 20 * S)]), "a")
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if "checkpoint" in name),
                         ["checkpoint"])

    def test_disk_full(self):
        """The file's end is beyond what may be written: nothing is marked as done, and nothing lost."""
        trace = self.trace("a", [(recording(8, 400), None)])
        with Collector() as collector:
            # what is small finds room: the file of a new one, statistics
            run = Run(self, trace, "a", collector.url, restore_signals=False,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))).end()
            self.refuses(run, 1, "cannot be written: File too large")
            sent = len(collector.accepted)
            run = Run(self, trace, "a", collector.url).end()
            self.assertEqual((run.status, run.counts["spans_skipped"]), (0, sent))
            self.assertEqual(len(collector.accepted), sent)

    # ---- a live session ----

    def test_live_keeps_sequence_numbers(self):
        thread = Thread(0x70, context=context(1, 2, "osd"))
        first = [thread.span(10 * S, 1), thread.begin(10 * S + 1, 2)]
        thread.sequence += 40
        second = [thread.span(60 * S, 3)]
        spans, run = self.run_to_file(self.trace("a", [(first, None)]), None)
        self.assertEqual((len(spans), run.counts["events_missing"]), (2, 0))
        spans, run = self.run_to_file(self.trace("b", [(second, None)]), None)
        self.assertEqual((len(spans), run.counts["events_missing"]), (1, 40))
        self.assertRegex(run.said, r"nobody has read for \d+\.\d s")
        self.assertEqual(run.counts["spans_taken_over"], 0)


if __name__ == "__main__":
    unittest.main()
