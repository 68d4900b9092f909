#!/usr/bin/env python3
"""babeltrace2 and the sink convert the traces of make_traces.py. Status, account, messages and spans are those of
traces/NAME.expected; since babeltrace2 2.1, which reports less, those of NAME.expected-2.1 if this file exists.

test-traces.py           converts all traces
test-traces.py --write   writes traces/*.expected again: read the diff

SPDX-License-Identifier: BSD-2-Clause
"""
import difflib
import json
import os
import re
import subprocess
import sys

import make_traces
from scenarios import PATIENCE

SRC = os.environ["SRC"]
PLUGINS = os.path.join(os.environ["BUILD"], "plugins")
TRACES = os.path.join(os.environ["BUILD"], "tests/plugin/traces")
EXPECTED = os.path.join(SRC, "tests/plugin/traces")


def brief(line):
    """Returns the account without zeros."""
    line = re.sub(r" \+ 0 [a-z ]+?(?= \+|;)", "", line)
    line = line.replace("missing: 0 events, 0 annotations and tags, 0 spans cut short; ", "")
    line = line.replace("; lost by LTTng: 0 events, 0 packets", "")
    return line


def messages(stderr, folder):
    """Yields the sink's messages; of babeltrace2's messages, only the causes of a failure in the sink."""
    for line in stderr.replace(folder, "FOLDER").splitlines():
        if line.startswith("blkin: "):
            yield brief(line)
        elif re.search(r"^(ERROR|CAUSED BY).*sink\.blkin", line):
            yield line


def result(name, *options, parameters=""):
    """Returns the results of the traces in a folder, as text."""
    folder = os.environ.get("TMPDIR", "/tmp")
    output = os.path.join(folder, f"spans-{os.getpid()}.json")
    done = subprocess.run(
        ["babeltrace2", f"--plugin-path={PLUGINS}", "convert", *options, os.path.join(TRACES, name),
         "--component=sink.blkin.zipkin", f'--params=endpoint="file:{output}"{parameters}'],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * PATIENCE)
    lines = [f"status {done.returncode}"] + list(messages(done.stderr, folder))
    if os.path.exists(output):
        with open(output) as file:
            lines += [json.dumps(span) for span in json.load(file)]
        os.remove(output)
    else:
        lines.append("no file")
    if done.returncode not in (0, 1):
        lines += done.stderr.splitlines()
    return "\n".join(lines) + "\n"


def since_2_1():
    version = subprocess.run(["babeltrace2", "--version"], capture_output=True, text=True, check=True).stdout
    return [int(number) for number in re.search(r"(\d+)\.(\d+)", version).groups()] >= [2, 1]


def expected_path(name):
    path = os.path.join(EXPECTED, name + ".expected")
    return path + "-2.1" if os.path.exists(path + "-2.1") and since_2_1() else path


def read(path):
    with open(path) as file:
        return file.read()


def names():
    return [case.__name__.replace("_", "-") for case in make_traces.CASES]


def remove(folder):
    subprocess.run(["rm", "-rf", folder], check=True)


def write():
    for name in names():
        with open(expected_path(name), "w") as file:
            file.write(result(name))


def check(name, *options):
    expected = read(expected_path(name))
    actual = result(name, *options)
    if actual == expected:
        return True
    sys.stdout.writelines(difflib.unified_diff(
        expected.splitlines(True), actual.splitlines(True), f"{name}: expected",
        " ".join((f"{name}: actual", *options))))
    return False


def check_clock_offset():
    """--clock-offset moves all spans by its value. An offset from the first event on is no step of the wall clock."""
    def starts(*options, parameters=""):
        said = result("packed", *options, parameters=parameters)
        return [json.loads(line)["timestamp"] for line in said.splitlines() if line.startswith("{")]

    wrong = [(by, parameters) for by in (3600, -3600) for parameters in ("", ",clock-correction=no")
             if starts(f"--clock-offset={by}", parameters=parameters) != [start + by * 1000000 for start in starts()]]
    if wrong:
        print(f"moved by another time than the clock's offset: {wrong}")
    return not wrong


# The limit of the sink's own memory in KiB, beside babeltrace2's, for a trace of 900 streams.
STREAMS_KIB = 16 * 1024


def peak_kib(folder, *sink):
    """Returns the peak memory of a conversion in KiB; None: it failed."""
    child = subprocess.Popen(["babeltrace2", f"--plugin-path={PLUGINS}", "convert", folder, *sink],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss if child.returncode == 0 else None


def check_memory():
    """Memory depends on the contents of a trace, not on the claims of its metadata."""
    folder = os.path.join(os.environ["TMPDIR"], "streams")
    make_traces.many_streams().write(folder)
    alone = peak_kib(folder, "--component=sink.utils.dummy")
    with_sink = peak_kib(folder, "--component=sink.blkin.zipkin",
                         f'--params=endpoint="file:{folder}.json"')
    remove(folder)
    remove(folder + ".json")
    if alone is None or with_sink is None or with_sink - alone > STREAMS_KIB:
        print(f"900 streams: {alone} KiB without the sink, {with_sink} KiB with it")
        return False
    return True


def main():
    if sys.argv[1:] == ["--write"]:
        write()
        return 0
    results = [check_memory(), check_clock_offset()] + [check(name) for name in names()]
    if since_2_1():  # MIP 1 is the version of babeltrace2's protocol that CTF 2 requires
        results += [check(name, "--allowed-mip-versions=1") for name in names()]
    print(f"{len(results)} cases")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
