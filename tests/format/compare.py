"""Two readers must make the same spans and counts of the same events: reader.py, and the C code, through babeltrace2
and the sink spans.c.

    compare.py made SEED COUNT   events that made.py makes
    compare.py trace FOLDER      the events of a trace, as babeltrace2 prints them
    compare.py example FILE      the example of doc/format.md

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import math
import os
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.environ["SRC"], "tests/plugin"))
import ctf
import made
import make_traces
import reader

PLUGINS = os.path.join(os.environ["BUILD"], "tests/format")
OFFSET = 1700000000 * 10**9 + 123456789
ENDPOINT_TEXT_MAX = 1100  # of babeltrace-plugin/spans/span.h: damage may make a name longer than libblkin's limit
CHUNK = 10000
SHOWN = 10


# ---- a span as a line, as spans.c prints it ----

def shown(text):
    return "".join(chr(byte) if 0x21 <= byte < 0x7f and byte != 0x25 else f"%{byte:02x}" for byte in text)


def real(value):
    """Returns the shortest text that reads back as the same number."""
    if math.isnan(value):
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    return next(text for text in (f"{value:.{digits}g}" for digits in (15, 16, 17)) if float(text) == value)


def value_of(kind, value):
    if kind == "I" or kind == "U" and value < 1 << 63:
        return f"#{value}"
    if kind == "D":
        return real(value)
    return {"U": str, "B": lambda value: str(value).lower(), "s": shown}[kind](value)


def entry(what, *values):
    if what == "note":
        severity, text, time = values
        return f" at {time} [{'' if severity == b'info' else severity.decode()}] {shown(text)}"
    if what == "link":
        return " link {:016x}{:016x} {:016x}".format(*values)
    kind, key, value = values
    return f" tag {shown(key)} {value_of(kind, value)}"


def endpoint(what, service, address, port):
    return f" {what} {shown(service[:ENDPOINT_TEXT_MAX])} {address} {port}"


def line(span):
    said = list(span.said)
    if span.dropped:
        said.append(("tag", "s", b"blkin.dropped", b"%d" % span.dropped))
    if span.left_open or span.has_no_end:
        said.append(("tag", "s", b"blkin.incomplete",
                     b"it ended only with its span" if span.left_open else b"its end was not seen"))
    return (f"{span.trace_id_high:016x}{span.trace_id:016x} {span.id:016x} {span.parent_id:016x} {span.kind}"
            f"{'!' if span.debug else ''} {shown(span.name)}" + endpoint("of", *span.endpoint) +
            (endpoint("remote", *span.remote) if span.remote else "") + f" from {span.begin} to {span.end}" +
            "".join(entry(*one) for one in said))


def counts_line(read):
    incomplete = sum(span.left_open or span.has_no_end for span in read.spans)
    return (f"counts: {read.unreadable} unreadable, {read.newer} newer, {read.invalid} invalid, "
            f"{read.late} late, {read.lost} lost, {len(read.spans)} spans, {incomplete} incomplete")


# ---- the two readers ----

def python_lines(events, offset):
    read = reader.Reader(offset)
    for stamp, name, fields in events:
        read.read(name, fields, stamp)
    read.finish()
    return sorted(map(line, read.spans)), counts_line(read), read


def c_lines(folder):
    done = subprocess.run(["babeltrace2", f"--plugin-path={PLUGINS}", folder, "--component=sink.spans.print"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        sys.exit(f"babeltrace2: status {done.returncode}: {done.stderr}")
    return sorted(lines[:-1]), re.sub(r"\d+ events, ", "", lines[-1])


def compare_readers(folder, events, offset):
    lines, counts, read = python_lines(events, offset)
    others, other_counts = c_lines(folder)
    if lines == others and counts == other_counts:
        return read
    mine, theirs = collections.Counter(lines), collections.Counter(others)
    for name, only in (("reader.py", mine - theirs), ("C", theirs - mine)):
        print(f"{name} alone: {only.total()} spans")
        print("\n".join(sorted(only)[:SHOWN]))
    print(f"reader.py: {counts}\nC:         {other_counts}")
    sys.exit(1)


# ---- events that are made ----

def write_trace(folder, events):
    trace = ctf.Trace(offset_s=OFFSET // 10**9, offset=OFFSET % 10**9)
    make_traces.add_blkin(trace)
    trace.stream().packet(events)
    trace.write(folder)


def compare_made(seed, count):
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), "made")
    totals = collections.Counter()
    for first in range(0, count, CHUNK):
        chance = random.Random(f"{seed} {first}")
        # near an overflow of the moments' 48 bits
        some = made.Made(chance, (1 << 48) * chance.randrange(1, 6) - chance.randrange(20 * 10**9))
        some.make(min(CHUNK, count - first))
        write_trace(folder, made.checked(some.events))
        read = compare_readers(folder, [(stamp, name, reader.fields_of(name, payload)) for stamp, name, payload in some.events],
                         OFFSET)
        shutil.rmtree(folder)
        totals.update(events=read.events, spans=len(read.spans), unreadable=read.unreadable, newer=read.newer, late=read.late,
                      lost=read.lost)
    print("agreed: " + ", ".join(f"{value} {name}" for name, value in totals.items()))


# ---- a trace as babeltrace2 prints it ----

FIELD = re.compile(rb'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(\w+))')
ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"e": b"\x1b"}


def unescaped(text):
    def one(match):
        if match[1].startswith(b"x"):
            return bytes([int(match[1][1:], 16)])
        return ESCAPES.get(match[1], match[1])
    return re.sub(rb"\\(x[0-9a-fA-F]+|.)", one, text)


def printed(folder, *options):
    with subprocess.Popen(["babeltrace2", "--no-delta", *options, folder], stdout=subprocess.PIPE) as process:
        yield from process.stdout


def events_of(folder):
    for text in printed(folder, "--clock-cycles"):
        found = re.match(rb"\[(\d+)\] .*?(blkin:\w+): ", text)
        name = found and found[2].decode()
        if name not in reader.LAYOUTS:
            continue
        fields = {key.decode(): int(word, 0) if word else unescaped(string)
                  for key, string, word in FIELD.findall(text[found.end():])}
        yield int(found[1]), name, fields


def offset_of(folder):
    """Returns the difference of a stamp and the time since 1970."""
    cycles, seconds = (next(printed(folder, option))[1:].split(b"]")[0].split(b".")
                       for option in ("--clock-cycles", "--clock-seconds"))
    return int(seconds[0]) * 10**9 + int(seconds[1]) - int(cycles[0])


def compare_trace(folder):
    read = compare_readers(folder, events_of(folder), offset_of(folder))
    print(f"agreed: {read.events} events, {counts_line(read)}")


# ---- the example of the page ----

def compare_example(path):
    """Checks the page's example: both readers read the hex as the page describes it."""
    with open(path) as file:
        page = file.read()
    example = page[page.index("## Example"):]
    dump, told = re.findall(r"```\n(.*?)```", example, re.S)
    payload = bytes.fromhex("".join(re.sub(r"^ *[0-9a-f]{4}: |  .*$", "", row) for row in dump.splitlines()))
    events = [(5000000000, "blkin:span", payload)]
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), "example")
    write_trace(folder, events)
    read = compare_readers(folder, [(5000000000, "blkin:span", reader.fields_of("blkin:span", payload))], OFFSET)
    shutil.rmtree(folder)
    lines = "\n".join(line(span) for span in read.spans)
    expected = re.sub(r"\n {4}", " ", told.strip())
    if lines != expected:
        sys.exit(f"the example's spans are\n{lines}\nand the page has\n{expected}")


if __name__ == "__main__":
    {"made": lambda seed, count: compare_made(seed, int(count)), "trace": compare_trace,
     "example": compare_example}[sys.argv[1]](*sys.argv[2:])
