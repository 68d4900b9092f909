#!/usr/bin/env python3
# blkin work --advise: what a rule says of recorded curves, and of pages.
# SPDX-License-Identifier: BSD-2-Clause
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from server import Server  # noqa: E402

BLKIN = os.path.join(os.environ["BUILD"], "bin/blkin")
LIMIT_S = 30


def look(*workers, behind=0.0):
    return json.dumps({"workers": [{"busy_ratio": busy, "behind_seconds": behind} for busy in workers]})


class Advise(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, name, lines):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return path

    def advise(self, *args, status=0):
        run = subprocess.run([BLKIN, "work", "--advise", f"--runtime-dir={self.folder}", *args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stdout if status == 0 else run.stderr

    def wanted(self, looks, *args):
        return [json.loads(line)["wanted"] for line in self.advise("--json", *args, self.write("looks", looks)).splitlines()]

    def test_up(self):
        # once is an accident
        self.assertEqual(self.wanted([look(0.6), look(0.4), look(0.6), look(0.4)]), [1, 1, 1, 1])
        self.assertEqual(self.wanted([look(0.6), look(0.6)]), [1, 2])
        # at once as many as it takes: 3.9 of 4 are 8 of less than 50 %
        self.assertEqual(self.wanted([look(1, 1, 1, 0.9)] * 2), [4, 8])
        # the one that is furthest behind counts, the mean of busy
        self.assertEqual(self.wanted([look(0.9, 0.05, 0.05)] * 3), [3, 3, 3])
        self.assertEqual(self.wanted([look(0.2, 0.2, behind=2.5)] * 2), [2, 3])
        # exactly so much is not above
        self.assertEqual(self.wanted([look(0.5, behind=2)] * 5), [1] * 5)

    def test_what_was_wanted_stays(self):
        # two are on their way: the third look must not call them off
        self.assertEqual(self.wanted([look(0.9)] * 2 + [look(0.3)] * 4), [1, 2, 2, 2, 2, 2])
        # nobody starts them: what is, is
        self.assertEqual(self.wanted([look(0.9)] * 2 + [look(0.3)] * 8)[-1], 1)
        self.assertEqual(self.wanted([look(0.9)] * 2 + [look(0.5, 0.4)] * 8), [1] + [2] * 9)

    def test_down(self):
        self.assertEqual(self.wanted([look(0.1, 0.1)] * 3), [2, 2, 1])
        self.assertEqual(self.wanted([look(0.1, 0.1), look(0.1, 0.1), look(0.2, 0.2), look(0.1, 0.1)]), [2, 2, 2, 2])
        # one at a time, and never fewer than one
        self.assertEqual(self.wanted([look(*[0.01] * 8)] * 3), [8, 8, 7])
        self.assertEqual(self.wanted([look(0.01)] * 6), [1] * 6)
        # not while it catches up
        self.assertEqual(self.wanted([look(0.01, 0.01, behind=5)] * 4), [2, 3, 3, 3])

    def test_rule_file(self):
        rule = self.write("rule", ["# ours", "up when busy > 80% 1 time", "down when busy < 20% 2 times", "",
                                   "at least 2  # always", "at most 3", "up when behind > 1.5s 1 times", "every 500ms"])
        self.assertEqual(self.wanted([look(0.85, 0.9)], f"--rule={rule}"), [3])
        self.assertEqual(self.wanted([look(*[1] * 5)], f"--rule={rule}"), [3])
        self.assertEqual(self.wanted([look(0.1)] * 3, f"--rule={rule}"), [2, 2, 2])
        self.assertEqual(self.wanted([look(0.1, 0.1, behind=1.6)], f"--rule={rule}"), [3])
        for line in ("up when busy > 80%", "up when busy < 80% 1 times", "at least", "every 10ms", "every 1", "many",
                     "up when busy > 180% 1 times", "up when busy > 80% 0 times", "at most 0", "down when busy < x% 2 times"):
            said = self.advise(f"--rule={self.write('wrong', ['at least 1', line])}", self.write("looks", [look(1)]), status=2)
            self.assertIn("wrong:2: expected \"up when busy > 50% 2 times\"", said)
        said = self.advise(f"--rule={self.write('wrong', ['down when busy < 60% 2 times'])}", "/dev/null", status=2)
        self.assertIn("expected a gap between them", said)
        self.assertIn("cannot read it", self.advise("--rule=/none", "/dev/null", status=2))

    def test_a_day(self):
        """10:1, two peaks: no more than the peak takes, enough within two looks, few again at night."""
        wanted, workers = [], 1
        streak = 0
        looks = []
        # the curve is of what it takes; who runs, the advice decides: so it is asked again after each look
        for minute in range(0, 1560, 10):
            hour = minute / 60
            load = 0.3 + 2.7 * max(0, 1 - abs(hour - 12) / 4) + 2.4 * max(0, 1 - abs(hour - 20) / 3)
            busy = min(1, load / workers)
            looks.append(look(*[busy] * workers, behind=0 if busy < 1 else 3))
            workers = self.wanted(looks)[-1]
            wanted.append(workers)
            streak = streak + 1 if load > workers else 0
            self.assertLess(streak, 3)
            self.assertLessEqual(workers, 3 / 0.5 + 1)  # what the peak takes, half busy
        self.assertGreaterEqual(max(wanted), 5)
        self.assertEqual(wanted[0], 1)
        self.assertLessEqual(min(wanted[100:114]), max(wanted[66:80]))
        self.assertLessEqual(wanted[-1], 2)

    def test_pages(self):
        pages = {"/root": 'blkin_work_busy_ratio{worker="a b\\" {"} 0.9\nblkin_work_busy_ratio{worker="c"} 0.7\n'
                          '# blkin_work_busy_ratio 1\n'
                          'blkin_work_behind_seconds{worker="c"} 1.25\nblkin_work_behind_seconds{worker="a b\\" {"} 0.5\n',
                 "/one": "blkin_work_busy_ratio 0.25\nblkin_work_behind_seconds 0.125\n",
                 "/statistics": json.dumps({"workers": [{"is_there": False, "busy_ratio": 1, "behind_seconds": 9},
                                                        {"is_there": True, "busy_ratio": 0.5, "behind_seconds": 0}]}),
                 "/none": "up 1\n"}

        url = self.enterContext(Server(lambda request: (200, pages[request.path].encode()))).url
        rule = self.write("rule", ["every 100ms"])

        def figures(*paths):
            advice = json.loads(self.advise("--json", f"--rule={rule}", *(url + path for path in paths)))
            return advice["workers"], advice["busy_ratio"], advice["behind_seconds"], advice["wanted"]
        self.assertEqual(figures("/root"), (2, 0.8, 1.25, 4))
        self.assertEqual(figures("/one", "/one"), (2, 0.25, 0.125, 2))
        self.assertEqual(figures("/statistics"), (1, 0.5, 0, 1))
        self.assertEqual(self.advise(f"--rule={rule}", url + "/root"), "4 (2 now: 80 % busy, above 50 % for 2 looks)\n")
        # one of two workers is away: it does not count; all are: there is no number
        dead = "http://127.0.0.1:1/metrics"
        run = subprocess.run([BLKIN, "work", "--advise", f"--rule={rule}", url + "/one", dead], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True)
        self.assertEqual(run.stdout, "1 (1 now: 25 % busy, 0.1 s behind)\n")
        self.assertIn("cannot get " + dead, run.stderr)
        self.assertIn("no worker's figures", self.advise(url + "/none", status=1))
        self.assertIn("work-root", self.advise(status=1))

    def test_usage(self):
        self.assertIn("expected pages", self.advise("a", "b", status=2))
        self.assertIn('looks:1: expected {"workers"', self.advise(self.write("looks", ["[]"]), status=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
