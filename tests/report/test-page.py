#!/usr/bin/env python3
# blkin report: its figures, and the page in a real browser, wide and narrow, light and dark, with hostile names.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 240
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from made import BASE, Trace, document, stack

try:
    from page import Balance, Browser
except ImportError:
    print("no selenium (python3-selenium)")
    sys.exit(77)
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    print("no chromium and chromedriver on PATH")
    sys.exit(77)

BLKIN = os.path.join(os.environ["BUILD"], "bin", "blkin")
SECTIONS = ["self", "graph", "latency", "traces"]
EVIL = ["</script><script>alert(1)</script>", "\u202eevil\u202c", "\" onmouseover=\"alert(2)\" x=\"", "']]><!--",
        "שלום עולם", "a" * 5000, "\x01\x1b[2J", "</title></svg></style></details>", "\ufffe\uffff\U0001f600", "&lt;b&gt;",
        "\u2028x", "%s%n${x}`", "<img src=x onerror=alert(3)>", "漢字" * 60]


def blkin(*args, text=None):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    return subprocess.run([BLKIN, *args], input=text, env=env, timeout=120, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")


def hostile():
    spans = []
    for i, text in enumerate(EVIL):
        spans.append({"traceId": "aa", "id": f"{i + 1:x}", "name": text, "timestamp": BASE + i, "duration": 1000 - i,
                      "kind": ("CLIENT", "SERVER")[i % 2], "localEndpoint": {"serviceName": text, "ipv4": text},
                      "remoteEndpoint": {"serviceName": EVIL[(i + 1) % len(EVIL)]}, "tags": {text: text, "error": text},
                      "annotations": [{"timestamp": BASE + i, "value": text}], **({"parentId": f"{i:x}"} if i else {})})
    return [spans]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser(os.path.join(cls.folder.name, "profile"))

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def page(self, traces, *args):
        """Writes a page; returns its path and its checked text."""
        path = os.path.join(self.folder.name, "page.html")
        result = blkin("report", "-", "-o", path, *args, text=json.dumps(traces))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        parsed = Balance(text)
        self.assertNotIn("script", parsed.tags)
        self.assertFalse([a for attrs in parsed.tags.values() for a in attrs for name, value in a.items()
                          if name in ("src", "srcset", "data") or name.startswith("on")
                          or name == "href" and not value.startswith("#")])
        self.assertIn("default-src 'none'", text)
        return path, text

    def look(self, path, sections=None):
        """In all widths and colours: no request is made, no element is too wide, all texts have contrast."""
        for width, scheme in ((1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")):
            with self.subTest(width=width, scheme=scheme):
                asked = self.browser.open(path, width, scheme)
                self.assertEqual(asked, [f"file://{path}"])
                self.browser.open_all()
                self.assertEqual(self.browser.too_wide(), [])
                self.assertEqual(self.browser.pale(), [])
                shown = self.browser.run("return [...document.querySelectorAll('section')].filter(s => "
                                         "s.getBoundingClientRect().height > 40).map(s => s.id)")
                self.assertEqual(shown, sections or SECTIONS)
                self.assertEqual(self.browser.run("return document.querySelectorAll('svg:not([role=img])').length"), 0)

    def test_figures(self):
        """The table has the figures of `blkin stat`, and the tiles have the numbers of the traces."""
        traces = stack(400)
        path, _ = self.page(traces)
        rows = {(r["service"], r["name"]): r
                for r in json.loads(blkin("stat", "-j", "-", text=json.dumps(traces)).stdout)["rows"]}
        self.browser.open(path, 1400)
        shown = self.browser.run("""return [...document.querySelectorAll('#self tbody tr')].map(r =>
            [...r.querySelectorAll('th bdi')].map(e => e.textContent).concat([...r.querySelectorAll('td')]
            .map(e => e.textContent)))""")
        whole = sum(r["self"]["sum"] for r in rows.values())
        self.assertEqual([r[0:2] for r in shown],
                         [list(k) for k in sorted(rows, key=lambda k: (-rows[k]["self"]["sum"], -rows[k]["spans"], k))])
        for service, name, share, self50, self99, spans, errors, p50, p99, top in shown:
            row = rows[service, name]
            self.assertEqual((int(spans.replace(",", "")), int(errors)), (row["spans"], row["errors"]))
            self.assertAlmostEqual(float(share.strip("<% ")), row["self"]["sum"] * 100 / whole, delta=0.5)
            for text, part, key in ((self50, "self", "p50"), (self99, "self", "p99"), (p50, "duration", "p50"),
                                    (p99, "duration", "p99"), (top, "duration", "max")):
                value, unit = text.split()
                us = float(value) * {"µs": 1, "ms": 1000, "s": 1e6}[unit]
                self.assertAlmostEqual(us, row[part][key], delta=max(0.006 * us, 0.5), msg=(name, key))
        tiles = dict(self.browser.run("return [...document.querySelectorAll('.ti div')].map(d => "
                                      "[d.children[0].textContent, d.children[1].childNodes[0].data])"))
        errors = sum("error" in s.get("tags", {}) for t in traces for s in t)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#graph svg .node').length"), 7)
        self.assertEqual((tiles["traces"], tiles["spans"], tiles["failed spans"], tiles["services"]),
                         ("400", f"{sum(map(len, traces)):,}", str(errors), "7"))

    def test_looks(self):
        path, _ = self.page(stack(400))
        self.look(path, SECTIONS + ["failed"])

    def test_slowest(self):
        """The slowest traces, each with its spans; the first one is open, and a click opens others."""
        traces = stack(200)
        path, _ = self.page(traces, "--traces=4", "--title=a <b> title")
        self.browser.open(path, 400)
        self.assertEqual(self.browser.driver.title, "BlkKin: a <b> title")

        def took(trace):
            return max(s["timestamp"] + s["duration"] for s in trace) - min(s["timestamp"] for s in trace)
        ids = self.browser.run("return [...document.querySelectorAll('#traces .tr code')].map(e => e.textContent)")
        self.assertEqual(ids, [t[0]["traceId"].removeprefix("0" * 16) for t in sorted(traces, key=took, reverse=True)[:4]])
        lines = "return [...document.querySelectorAll('#traces .tr')].map(t => t.querySelectorAll('details.r').length)"
        by_id = {t[0]["traceId"].removeprefix("0" * 16): t for t in traces}
        self.assertEqual(self.browser.run(lines), [len(by_id[i]) for i in ids])
        is_open = "return [...document.querySelectorAll('#traces .tr')].map(t => t.open)"
        self.assertEqual(self.browser.run(is_open), [True, False, False, False])
        self.browser.driver.find_elements("css selector", "#traces .tr > summary")[2].click()
        self.assertEqual(self.browser.run(is_open), [True, False, True, False])
        # bars lie where the spans do
        first = by_id[ids[0]]
        begin, total = min(s["timestamp"] for s in first), took(first)
        bars = self.browser.run("""return [...document.querySelectorAll('#traces .tr:first-of-type .r')].map(r => {
            const b = r.querySelector('.br'), i = b && b.querySelector('i'), w = b && b.getBoundingClientRect(),
            x = i && i.getBoundingClientRect(); return i && [(x.left - w.left) / w.width, x.width / w.width]; })
            .filter(Boolean)""")
        wanted = [((s["timestamp"] - begin) / total, s["duration"] / total) for s in first]
        for (left, width), (at, share) in zip(sorted(bars), sorted(wanted), strict=True):
            self.assertAlmostEqual(left, at, delta=0.01)
            self.assertAlmostEqual(width, share, delta=0.01)

    def test_usage_of_threads(self):
        """If spans have their threads' usage, there are columns for it, and the line about the longest span has
        it."""
        def trace(number, run_delay):
            made = Trace(number, BASE, None)
            extra = {"usage.run_delay_us": 300} if run_delay else {}
            root = made.span(None, "gate", "write", 0, 2000, **{"usage.cpu_us": 150, "usage.off_cpu_us": 1000, **extra})
            made.span(root, "gate", "step", 100, 90)
            made.span(root, "gate", "odd", 200, 60, **{"usage.cpu_us": "1e3", "usage.off_cpu_us": 7})
            return made.spans
        cells = "return [...document.querySelectorAll('#traces .r > summary')].map(r => [...r.querySelectorAll('.us > span')]" \
                ".map(c => c.lastChild.data))"
        heads = "return [...document.querySelectorAll('#traces .ah .us > span')].map(e => e.textContent)"
        words = "return document.querySelector('#traces .cu').textContent"
        for run_delay, titles, texts, told in (
                (True, ["on CPU", "waiting", "blocked"], ["150 µs", "300 µs", "700 µs"],
                 ": blocked 700 µs, no thread worked for it 700 µs, waiting for a CPU 300 µs, on CPU 150 µs"),
                (False, ["on CPU", "off CPU"], ["150 µs", "1.00 ms"],
                 ": off CPU 1.00 ms, no thread worked for it 700 µs, on CPU 150 µs")):
            path, _ = self.page([trace(1, run_delay)])
            self.look(path)
            self.browser.open(path, 1400)
            self.assertEqual(self.browser.run(heads), titles)
            none = ["–"] * len(titles)
            self.assertEqual(self.browser.run(cells), [texts, none, none])
            self.assertEqual(self.browser.run(words), "Longest self time: gate write, 1.85 ms of 2.00 ms" + told)
        path, text = self.page(stack(3))
        self.assertNotIn('class="us"', text)

    def test_hostile_names(self):
        path, text = self.page(hostile(), "--title=" + EVIL[0])
        self.look(path)
        shown = self.browser.run("return document.body.textContent")
        for part in ("</script><script>alert(1)</script>", "\\u{202e}evil\\u{202c}", "\" onmouseover=\"alert(2)\" x=\"",
                     "']]><!--", "שלום עולם", "\\x01\\x1b[2J", "\\u{fffe}\\u{ffff}\U0001f600", "&lt;b&gt;", "\\u{2028}x",
                     "%s%n${x}`", "<img src=x onerror=alert(3)>", "a" * 79 + "…"):
            self.assertIn(part, shown)
        self.assertNotIn("a" * 300, text)
        self.assertFalse([c for c in text if c != "\n" and not c.isprintable()])
        # Hebrew does not reverse the text beside it
        self.assertTrue(self.browser.run("return [...document.querySelectorAll('*')].filter(e => e.children.length === 0 "
                                         "&& /[\\u0590-\\u05ff]/.test(e.textContent)).every(e => getComputedStyle(e)"
                                         ".unicodeBidi.startsWith('isolate') || e.closest('title'))"))

    def test_large(self):
        """A trace of 10^5 spans, and 20,000 operations of as many services: the page opens fast."""
        trace = Trace(1, BASE, None)
        for i in range(100000):
            span = trace.span(trace.spans[i // 2] if i else None, f"osd.{i % 20000}", f"op {i % 20000}", i, 200000 - i,
                              error="no" if i == 77777 else None)
            span["annotations"] = [{"timestamp": BASE + i, "value": "x" * 400}] * (40 if i < 400 else 1)
        path, text = self.page([trace.spans])
        self.assertLess(len(text), 4000000)
        self.assertIn("Shown are 200 of 100,000 spans", text)
        self.assertRegex(text, r"[\d,]+ tags and annotations are left out")
        self.assertEqual(text.count('class="x">failed</b>'), 1)
        self.browser.open(path, 1400)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#traces details.r').length"), 200)

    def test_odd_traces(self):
        self.page([[{"traceId": "aa", "id": "1"}]])
        self.page([[{"traceId": "aa", "id": "1", "timestamp": BASE, "parentId": "7", "annotations": [{}, 5]}]])
        self.page([[{"traceId": "aa", "id": "1", "timestamp": BASE, "duration": 2**53, "parentId": "2", "tags": 7},
                    {"traceId": "aa", "id": "2", "timestamp": BASE + 5, "duration": 1, "parentId": "1"}]])

    def test_document_of_a_root(self):
        """Statistics alone: no traces, and no part of the page that needs them."""
        path, _ = self.page(document())
        self.look(path, SECTIONS[:3])
        shown = self.browser.run("return document.body.innerText")
        self.assertNotIn("trace", re.sub(r"(?s)made by blkin report.*", "", shown.lower()).replace("not traced itself", ""))
        for part in ("2026-11-21 11:00:00.000 to 2026-11-21 11:00:10.000, 10.0 s", "300", "30.0 a second", "1.00 ms",
                     "(other names)"):
            self.assertIn(part, shown)

    def test_same_page_again(self):
        traces = stack(50)
        self.assertEqual(self.page(traces)[1], self.page(traces)[1])

    def test_usage(self):
        for args, message in ((("-n", "51", "x"), "expected a number of 0 to 50"), ((), "expected one FILE"),
                              (("a", "b"), "expected one FILE")):
            result = blkin("report", *args)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
        old = os.path.join(self.folder.name, "old.html")
        with open(old, "w", encoding="utf-8") as file:
            file.write("old")
        os.chmod(old, 0o600)
        self.assertEqual(blkin("report", "-", "-o", old, text=json.dumps(stack(1))).returncode, 0)
        self.assertEqual(os.stat(old).st_mode & 0o777, 0o600)  # only its owner reads it now
        with open(old, "w", encoding="utf-8") as file:
            file.write("old")
        result = blkin("report", "-", "-o", old, text="{")
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard input: not JSON", result.stderr)
        with open(old, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old", "a page that failed leaves the old one")
        result = blkin("report", "-", "-o", "/nowhere/x.html", text=json.dumps(stack(1)))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, re.escape("cannot write /nowhere/x.html: No such file or directory"))
        self.assertEqual([n for n in os.listdir(self.folder.name) if n.startswith("old.html.")], [])


unittest.main()
