#!/usr/bin/env python3
"""Prints how many lines and branches of the product's C the unit tests run, by room.

usage: unit_coverage.py [ROOM]...      with BUILD a build of "make coverage"; ROOM is a folder, such as tools/base

Each unit test runs by itself, so that it is known which test runs which line (scripts/mutate asks for that). Prints a line
for each room, and writes BUILD/coverage.json: file -> line -> the tests that run it.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

PRODUCT = "libblkin/", "tracepoints/", "babeltrace-plugin/", "tools/"


class Coverage:
    """lines: file -> line -> tests that run it; branches: file -> (line, number) -> is it taken?"""

    def __init__(self):
        self.lines = collections.defaultdict(lambda: collections.defaultdict(set))
        self.branches = collections.defaultdict(dict)

    def add(self, test, document, root):
        for file in document["files"]:
            path = os.path.relpath(os.path.join(document["current_working_directory"], file["file"]), root)
            if not path.startswith(PRODUCT):
                continue
            for line in file["lines"]:
                tests = self.lines[path][line["line_number"]]
                if line["count"] and test:
                    tests.add(test)
                for number, branch in enumerate(line["branches"]):
                    if not branch["throw"]:
                        key = line["line_number"], number
                        self.branches[path][key] = self.branches[path].get(key, False) or branch["count"] > 0

    def rooms(self):
        """room -> [lines, of which run, branches, of which taken]"""
        found = collections.defaultdict(lambda: [0, 0, 0, 0])
        for path, lines in self.lines.items():
            counts = found[os.path.dirname(path)]
            for number, count in enumerate((len(lines), sum(map(bool, lines.values())), len(self.branches[path]),
                                            sum(self.branches[path].values()))):
                counts[number] += count
        return dict(sorted(found.items()))


def root_and_build():
    root = pathlib.Path(os.environ.get("SRC") or pathlib.Path(__file__).resolve().parents[1])
    return root, root / os.environ.get("BUILD", "build/coverage")


def unit_tests(root, build):
    return [str(path.relative_to(root)) for path in sorted([*build.glob("tests/*/test-*"), *build.glob("tests/fuzz/fuzz-*")])
            if path.is_file() and os.access(path, os.X_OK) and (root / path.relative_to(build)).with_suffix(".c").exists()]


def run(root, build, tests, data, limit_s=None):
    """Returns the exit status of tests/run, or None: it took too long. gcov's counts go to the folder data."""
    environment = {**os.environ, "SRC": str(root), "BUILD": str(build), "GCOV_PREFIX": str(data), "LANES": "1", "PATIENCE": "2"}
    process = subprocess.Popen([root / "tests/run", *tests], cwd=root, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()  # scripts/isolate ends what runs in its namespaces
        process.wait()
        return None


def gcov(files, folder):
    for begin in range(0, len(files), 200):
        said = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", *files[begin:begin + 200]],
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        yield from map(json.loads, filter(str.strip, said.splitlines()))


def documents(data):
    """Yields gcov's output for all counts in the folder. gcov needs its notes beside the counts: symbolic links do that."""
    counts = sorted(data.rglob("*.gcda"))
    for count in counts:
        note = pathlib.Path("/", count.relative_to(data)).with_suffix(".gcno")
        count.with_suffix(".gcno").symlink_to(note)
    yield from gcov(counts, data)


def measure(root, build):
    coverage = Coverage()
    data = build / "coverage-data"
    tests = unit_tests(root, build)
    data.mkdir(parents=True, exist_ok=True)
    for document in gcov(sorted((build / "obj").rglob("*.gcno")), data):  # also lines that no test runs
        coverage.add("", document, root)
    for number, test in enumerate(tests):
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        status = run(root, build, [test], data)
        print(f"coverage: {number + 1} of {len(tests)}: {test}" + (f", exit status {status}" if status else ""),
              file=sys.stderr)
        for document in documents(data):
            coverage.add(test, document, root)
    shutil.rmtree(data, ignore_errors=True)
    return coverage


def percent(part, whole):
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def print_table(coverage, wanted):
    print(f"{'room':40} {'lines':>7} {'run':>7}  {'branches':>8} {'taken':>7}")
    total = [0, 0, 0, 0]
    for room, counts in coverage.rooms().items():
        if not wanted or room in wanted:
            total = [a + b for a, b in zip(total, counts)]
            print(f"{room:40} {counts[0]:7} {percent(counts[1], counts[0])}  {counts[2]:8} {percent(counts[3], counts[2])}")
    print(f"{'all':40} {total[0]:7} {percent(total[1], total[0])}  {total[2]:8} {percent(total[3], total[2])}")


def main():
    root, build = root_and_build()
    coverage = measure(root, build)
    kept = {path: {line: sorted(tests) for line, tests in lines.items()} for path, lines in coverage.lines.items()}
    (build / "coverage.json").write_text(json.dumps(kept), encoding="utf-8")
    print_table(coverage, sys.argv[1:])


if __name__ == "__main__":
    main()
