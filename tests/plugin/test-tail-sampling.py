#!/usr/bin/env python3
# tail-sampling="FILE": of 1000 traces exactly those that the rules name are delivered, each of them whole; and every
# span is in the account.
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import os
import signal
import tempfile
import unittest

from conversion import Conversion
from make_traces import CONTEXT, MS, S, Thread, Trace, add_blkin, context, tag
from scenarios import wait_until

TRACES = 1000
HIGH = 0x7D5C0E9BF1A3C4D2
MASK = 2**64 - 1


def low(request):
    return 0xA1B2C3D4_00000000 + request


def one_of(request, number):
    """Chooses by a hash of the trace id, as model/tail.c does."""
    x = low(request)
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31 <= MASK // number


class Recording:
    """A trace of two programs. Events may be added in any order."""

    def __init__(self, folder):
        self.folder = folder
        self.trace = Trace(1, hostname="node1", context=CONTEXT)
        add_blkin(self.trace)
        self.gateway = Thread(2, "gateway", context=context(100, 101, "gateway"))
        self.osd = Thread(4, "osd", context=context(200, 201, "osd"))
        self.todo = []

    def request(self, number, duration=5 * MS, log="", root=True):
        """Adds a client's span, its child of a server, and the child's child. The innermost span ends first."""
        at = 10 * S + number * 3 * MS
        span, ids = 10 * number, {"trace_id": low(number), "high": HIGH}
        self.todo += [(at + 3 * MS, self.osd, (span + 3, "flush", span + 2, MS, 0, ""), ids),
                      (at + 4 * MS, self.osd, (span + 2, "write", span + 1, 3 * MS, 2, log), ids)]
        if root:
            self.todo.append((at + duration, self.gateway, (span + 1, "read", 0, duration, 1, ""), ids))

    def write(self):
        stream = self.trace.stream()
        events = []
        for time, thread, (span, name, parent, duration, kind, log), ids in sorted(self.todo, key=lambda todo: todo[0]):
            events.append(thread.span(time, span, name, parent=parent, duration=duration, kind=kind, log=log, **ids))
        for first in range(0, len(events), 100):
            stream.packet(events[first:first + 100])
        self.trace.write(os.path.join(self.folder, "trace"))


class Tail(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.recording = Recording(self.folder)
        self.rules = os.path.join(self.folder, "rules")

    def write_rules(self, text):
        with open(self.rules + ".new", "w") as file:
            file.write(text)
        os.rename(self.rules + ".new", self.rules)

    def start(self, *parameters, endpoint=None):
        self.conversion = Conversion(self.folder, self.folder + "/trace", parameters=parameters, endpoint=endpoint)
        return self.conversion

    def counters(self):
        counters = self.conversion.counters()
        parts = ("accepted", "refused", "invalid", "too_large", "undelivered", "dropped", "no_memory", "skipped",
                 "sampled_out", "held", "spooled", "waiting")
        self.assertEqual(counters["spans_finished"], sum(counters["spans_" + part] for part in parts))
        return counters

    def delivered(self):
        """Returns for each trace the number of its spans, and the reason of the decision, which one span has as a tag."""
        traces = collections.defaultdict(list)
        for span in self.conversion.spans():
            traces[int(span["traceId"][-16:], 16) - low(0)].append(span)
        reasons = {}
        for number, spans in traces.items():
            tagged = [span for span in spans if "blkin.sampled" in span["tags"]]
            self.assertEqual(len(tagged), 1, spans)
            self.assertTrue("parentId" not in tagged[0] or tagged[0]["name"] == "write", tagged)
            reasons[number] = tagged[0]["tags"]["blkin.sampled"]
        return {number: len(spans) for number, spans in traces.items()}, reasons

    def test_exactly_those(self):
        """The first rule that fits is the reason. All spans of these traces are delivered, and none of other traces."""
        expected, sizes = {}, {}
        for i in range(TRACES):
            more, reason = {}, None
            if one_of(i, 50):
                reason = "1/50"
            if i % 101 == 7:
                more, reason = {"root": False}, "incomplete"
            elif i % 97 == 3:
                more, reason = {"log": tag("pool", "gold-7")}, "tag pool=gold*"
            elif i % 89 == 5:
                more, reason = {"duration": 25 * MS}, "gateway:read > 20ms"
            elif i % 83 == 11:
                more, reason = {"log": tag("error", "EIO")}, "osd error"
            elif i % 79 == 13:
                more = {"log": tag("pool", "silver")}
            self.recording.request(i, **more)
            if reason:
                expected[i] = reason
                sizes[i] = 2 if "root" in more else 3
        self.recording.write()
        self.write_rules('# what is wrong\nosd error\ngateway error\n\ngateway:read > 20ms  # slow\n"osd:wr*" > 1s\n'
                         'tag pool=gold*\nincomplete\n1/50\n')
        said = self.start(f'tail-sampling="{self.rules}"').end().said
        delivered, reasons = self.delivered()
        self.assertEqual(reasons, expected)
        self.assertEqual(delivered, sizes)
        self.assertEqual({reason for reason in reasons.values()},
                         {"osd error", "gateway:read > 20ms", "tag pool=gold*", "incomplete", "1/50"})
        counters = self.counters()
        all_spans = 3 * TRACES - sum(i % 101 == 7 for i in range(TRACES))
        kept = sum(sizes.values())
        self.assertEqual((counters["spans_finished"], counters["spans_accepted"], counters["spans_sampled_out"]),
                         (all_spans, kept, all_spans - kept))
        self.assertEqual((counters["traces_kept"], counters["traces_sampled_out"]), (len(expected), TRACES - len(expected)))
        self.assertEqual((counters["spans_held"], counters["traces_early"], counters["spans_late"]), (0, 0, 0))
        self.assertIn(f"{all_spans - kept} sampled out", said)

    def test_interrupted(self):
        """A signal ends the conversion: the stage decides about the traces that it holds."""
        for i in range(3000):
            self.recording.request(i, log=tag("error", "EIO") if i % 2 else "")
        self.recording.write()
        fifo = self.folder + "/fifo"
        os.mkfifo(fifo)
        self.write_rules("error\n")
        run = self.start(f'tail-sampling="{self.rules}"', "queue-bytes=8192", "batch-bytes=4096", "on-full=block",
                         "flush-timeout-ms=60000", endpoint="file:" + fifo)
        with open(fifo) as file:
            first = file.read(1)  # the first delivered byte
            run.process.send_signal(signal.SIGTERM)
            spans = json.loads(first + file.read())
        run.end(2)  # the status of an interrupted babeltrace2
        counters = self.counters()
        self.assertEqual(counters["spans_accepted"], len(spans))
        self.assertEqual(counters["spans_held"], 0)
        self.assertTrue(all(int(span["traceId"], 16) % 2 for span in spans))

    def test_changed_rules(self):
        """The file is read again when it changes; a wrong file has a message, and changes nothing."""
        for i in range(4000):
            self.recording.request(i)
        self.recording.write()
        fifo = self.folder + "/fifo"
        os.mkfifo(fifo)
        self.write_rules("1/1\n")
        run = self.start(f'tail-sampling="{self.rules}"', "tail-wait-ms=10", "queue-bytes=8192", "batch-bytes=4096",
                         "on-full=block", endpoint="file:" + fifo)
        parts = []

        def read_until(file, word):
            """Reads a little at a time, so that the conversion lasts until a message has the word."""
            wait_until(lambda: parts.append(file.read(2000)) or word in run.said,
                       lambda: f"no message has {word}: {run.said}", every_s=0.05)

        with open(fifo) as file:
            parts.append(file.read(1))
            self.write_rules("what is this\n")
            read_until(file, "the old rules still apply")
            self.write_rules("")
            read_until(file, "have changed")
            parts.append(file.read())
        run.end()
        counters = self.counters()
        self.assertEqual(len(json.loads("".join(parts))), counters["spans_accepted"])
        self.assertGreater(counters["spans_sampled_out"], 0)
        self.assertGreater(counters["spans_accepted"], 0)

    def test_refused(self):
        self.recording.request(1)
        self.recording.write()
        for rules, message in (("error\ngateway > fast\n", 'rules", line 2: "gateway > fast": expected'),
                               ("rare 0\n", "line 1"), ("1/0\n", "line 1"), ("p99\n", "line 1"), ('"osd error\n', "line 1"),
                               ("error " * 5, "line 1"), ("osd incomplete\n", "line 1"), ("> 5\n", "line 1"),
                               ("* > p100\n", "line 1"), ("tag\n", "line 1"), ("error\n" * 1001, "at most 1000 rules"),
                               ("#" * 2**20, "less than")):
            self.write_rules(rules)
            said = self.start(f'tail-sampling="{self.rules}"').end(1).said
            self.assertIn(message, said)
        self.assertIn("No such file", self.start('tail-sampling="/nowhere"').end(1).said)


if __name__ == "__main__":
    unittest.main()
