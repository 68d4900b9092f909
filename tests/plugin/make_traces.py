"""Writes traces for tests into a folder: make_traces.py FOLDER

Some traces are such as LTTng-UST could record: of old and new programs, of several hosts, with losses. No tracer
writes the remaining traces. Times are in ns after 1700000000 s (2023-11-14) unless a case has other times.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

sys.dont_write_bytecode = True
from trace_events import *  # noqa: E402,F401,F403 (the cases use most of its names)


def blkin_trace(*args, **options):
    """Returns a trace that may have events of provider blkin."""
    trace = Trace(*args, **options)
    add_blkin(trace)
    return trace


def one_stream(trace, events):
    """Adds a stream of these events to the trace. Returns a case of this trace."""
    trace.stream().packet(events)
    return {"": trace}


# ---- the cases: each returns its traces by the names of their folders ----

def original():
    """As the original's library writes events: no contexts, a port wrapped by its int16_t."""
    trace = Trace()
    add_zipkin(trace, port=I16)
    return one_stream(trace, [
        (10 * S, "zipkin:timestamp", zipkin(2, "client", ip="10.0.0.9", port=0, event="cs")),
        (10 * S + MS, "zipkin:timestamp", zipkin(2, "osd", port=-15536, event="sr")),
        (10 * S + 2 * MS, "zipkin:keyval_string", zipkin(2, "osd", port=-15536, key="object",
                                                         val="rbd.1")),
        (10 * S + 3 * MS, "zipkin:keyval_integer", zipkin(2, "osd", port=-15536, key="offset",
                                                          val=-4096)),
        (10 * S + 4 * MS, "zipkin:timestamp", zipkin(2, "osd", port=-15536, event="ss")),
        (10 * S + 5 * MS, "zipkin:timestamp", zipkin(2, "client", ip="10.0.0.9", port=0,
                                                     event="cr")),
        (16 * S, "zipkin:timestamp", zipkin(-3, "osd", trace_id=-1, parent=-2, event="x")),
    ])


def original_late():
    """Events of a server under its client's id after its half has ended."""
    trace = Trace(hostname="node1")
    add_zipkin(trace)
    gateway = {"service": "gateway", "ip": "10.0.0.9", "port": 0, "trace_id": 77}
    osd = {"service": "osd", "trace_id": 77}
    store = {"service": "store", "ip": "10.0.0.2", "trace_id": 77}
    return one_stream(trace, [
        (10 * S, "zipkin:timestamp", zipkin(77, event="sr", **gateway)),
        (10 * S + MS, "zipkin:timestamp", zipkin(78, parent=77, event="cs", **gateway)),
        (10 * S + 2 * MS, "zipkin:timestamp", zipkin(78, parent=77, event="sr", **osd)),
        (10 * S + 2 * MS, "zipkin:timestamp", zipkin(79, parent=78, event="cs", **osd)),
        (10 * S + 3 * MS, "zipkin:timestamp", zipkin(79, parent=78, event="sr", **store)),
        (10 * S + 3 * MS, "zipkin:timestamp", zipkin(79, parent=78, event="ss", **store)),
        (10 * S + 3 * MS, "zipkin:timestamp", zipkin(79, parent=78, event="cr", **osd)),
        (10 * S + 4 * MS, "zipkin:timestamp", zipkin(78, parent=77, event="ss", **osd)),
        (10 * S + 5 * MS, "zipkin:timestamp", zipkin(78, parent=77, event="cr", **gateway)),
        (10 * S + 6 * MS, "zipkin:timestamp", zipkin(77, event="ss", **gateway)),
        (11 * S, "zipkin:keyval_integer", zipkin(78, parent=77, key="bytes", val=4096, **osd)),
        (30 * S, "zipkin:timestamp", zipkin(78, parent=77, event="committed", **osd)),
    ])


def original_keyval():
    """The oldest library: one keyval event, ids of 32 bits; and contexts."""
    trace = Trace(hostname="node1", context=CONTEXT)
    common = zipkin_common(number=I32)
    trace.event_class("zipkin:timestamp", {**common, "event": TEXT})
    trace.event_class("zipkin:keyval", {**common, "key": TEXT, "val": TEXT})
    osd = context(100, 101, "ceph-osd")
    return one_stream(trace, [
        (10 * S, "zipkin:timestamp", zipkin(-2, "osd", event="sr"), osd),
        (10 * S + MS, "zipkin:keyval", zipkin(-2, "osd", key="who", val="v0"), osd),
        (10 * S + 2 * MS, "zipkin:timestamp", zipkin(-2, "osd", event="ss"), osd),
    ])


def packed():
    """Every event of provider blkin except slow and metric, with contexts; two events are missing."""
    trace = blkin_trace(hostname="node1", context=CONTEXT)
    thread = Thread(2**60 - 2, ip="2001:db8::1", port=65535, context=context(100, 101, "osd"))
    process = Thread(thread.thread, context=thread.context).process(9 * S)
    thread.sequence = 1
    events = [
        process,
        thread.span(10 * S, 2**64 - 1, parent=1, high=2**64 - 2, trace_id=0, flags=1, age=MS,
                    log=annotation(MS, "queued") + annotation(-MS, "before", 0) + tag("pool", "rbd")),
        thread.begin(11 * S, 3, parent=2, kind=1, age=MS),
    ]
    for i, severity in enumerate(SEVERITIES):
        events.append(thread.annotation(11 * S + (i + 1) * MS, 3, severity, severity))
    thread.streamed += 2
    events += [
        thread.detail(11 * S + 10 * MS, "tag", 3, number_tag("I", "offset", -4096 % 2**64)),
        thread.detail(11 * S + 10 * MS, "tag", 3, "n40open"),
        thread.detail(11 * S + 10 * MS, "tag", 3, "e" + digits(6789) + "80" + "30" + "10.0.0.9" + "mon"),
        thread.detail(11 * S + 10 * MS, "tag", 3, "t" + digits(MS)),
        thread.detail(11 * S + 10 * MS, "tag", 3, "l" + digits(0xABC) + digits(1) + digits(2)),
        thread.end(11 * S + 11 * MS, 3, age=MS),
        thread.span(12 * S, 4, dropped=4095, duration=0, log="".join((
            number_tag("I", "int64", 2**63), number_tag("U", "uint64", 2**64 - 1),
            number_tag("D", "half", 0x3FE0000000000000), number_tag("B", "yes", 1),
            number_tag("B", "no", 0)))),
        Thread(6, service="", ip="", port=0).span(13 * S, 5, name="")[:3] + (thread.context,),
    ]
    return one_stream(trace, events)


def packed_clock_other():
    """Another clock than LTTng's own: spans have the times of stamps, because moments have no meaning."""
    trace = blkin_trace(clock="tai")
    return one_stream(trace, [Thread(2).span(10 * S, 2, age=MS, log=step(MS, "step", end=2 * MS))])


def packed_other_types():
    """Readable all the same: other types and orders, more fields, big-endian. The values of packed texts count."""
    trace = Trace(big_endian=True)
    kinds = {"local": 0, "server": 512, "client error": 260}
    trace.event_class("blkin:span", dict(reversed({**BLKIN["blkin:span"], "packed": Sequence(), "duration": I64,
                                                   "flags": Enum(32, True, kinds)}.items())))
    trace.event_class("blkin:begin", {"port": U16, "span_id": HEX, **BLKIN["blkin:begin"], "ip": TEXT})
    thread = Thread(2)
    more = thread.begin(11 * S, 5, name="more")
    more[2].update(port=1, span_id=6, ip="10.9.9.9")
    return one_stream(trace, [thread.span(10 * S, 2, name="reversed", high=1, trace_id=2**63, log=tag("k", "v")),
                              thread.span(10 * S, 3, name="all flags", flags=-1),
                              thread.span(10 * S, 4, name="negative duration", duration=-1), more])


def steps():
    """Steps in every way: in the log, nested, with all possible records; left open; spilled; streamed."""
    trace = blkin_trace(hostname="node1", context=CONTEXT)
    thread = Thread(0x78, context=context(100, 101, "osd"))
    far = "r" + digits(6789) + number(8, 2) + number(3, 2) + "10.0.0.9mon"
    link = "l" + digits(0xABC) + digits(1) + digits(2)
    three = step_id(10, 3)
    one, two = step_id(20, 1), step_id(20, 2)
    events = [
        thread.span(10 * S, 2, parent=1, high=0xABC, flags=ERROR | 1, duration=100 * MS, age=MS, log="".join((
            tag("own", "before"),
            step(10 * MS, "look up", annotation(11 * MS, "inside", 4), tag("object", "rbd.1"),
                 step(12 * MS, "read", far, tag("error", "EIO"), end=20 * MS, kind=1),
                 link, end=30 * MS),
            annotation(35 * MS, "between"),
            step(40 * MS, "reply", end=99 * MS, kind=3),
        ))),
        thread.span(11 * S, 3, name="left open", duration=100 * MS,
                    log=step(10 * MS, "outer", step(20 * MS, "inner", annotation(30 * MS, "last")))),
        thread.span(12 * S, 4, name="moved", duration=2 * S,
                    log=counted_from(S) + step(MS, "step", annotation(2 * MS, "inside"), end=3 * MS)),
        # the third step had no room in the log of its span: it is an event of its own, whose log has the fourth
        thread.span(13 * S - 50 * MS, three, name="spilled", parent=10, duration=10 * MS, kind=1, flags=STEP,
                    log=step_number(3) + counted_from(-40 * MS) + annotation(42 * MS, "inside") +
                    step(44 * MS, "in it", end=45 * MS)),
        thread.span(13 * S, 10, name="whole", duration=100 * MS, dropped=2,
                    log=step(MS, "one", step(2 * MS, "two", end=3 * MS), end=4 * MS) +
                    step_number(5) + step(60 * MS, "five", end=61 * MS)),
        thread.span(14 * S, step_id(11, 1), name="spilled, left open", parent=11, duration=10 * MS, kind=0,
                    flags=STEP | ERROR, log=step_number(1) + counted_from(-MS) + "o" + tag("error", "EIO")),
        # in both forms, one left open
        thread.begin(20 * S, 20),
        thread.begin(20 * S + 10 * MS, one, name="streamed", parent=20, kind=0),
        thread.begin(20 * S + 20 * MS, two, name="in it", parent=one, kind=1),
        thread.detail(20 * S + 21 * MS, "tag", two, tag("pool", "rbd")),
        thread.detail(20 * S + 30 * MS, "end", two),
        thread.detail(20 * S + 40 * MS, "tag", one, "o"),
        thread.detail(20 * S + 40 * MS, "end", one),
        thread.span(20 * S + 40 * MS, 20, duration=40 * MS, flags=STREAMED,
                    log=step(10 * MS, "streamed", step(20 * MS, "in it", tag("pool", "rbd"), end=30 * MS,
                                                       kind=1))),
        thread.detail(20 * S + 40 * MS, "end", 20),
    ]
    return one_stream(trace, events)


def packed_newer():
    """A newer format: refused, with one message. Possible additions to the present one: records of unknown kinds are
    counted and skipped, unknown flags too."""
    trace = blkin_trace(hostname="node1", context=CONTEXT)
    thread = Thread(2, context=context(100, 101, "osd"))
    after = tag("after", "it")
    events = [thread.span(10 * S, 2), thread.begin(10 * S, 3), thread.annotation(10 * S, 3, "x"), thread.end(10 * S, 3),
              thread.span(10 * S, 4)]
    for version, event in zip((2, 2, 63, 2, 64), events):
        event[2]["packed"] = number(version, 1) if version < 64 else "p"
        event[2]["packed"] += head(2, 1, 2, 10 * S)[1:] + thread.tail
    later = "x" + number(5, 2) + ")0(T#"
    events += [
        thread.span(11 * S, 5, name="later", flags=0xE0, log=later + after + step(0, "step", later, after, end=MS)),
        thread.span(11 * S, 6, name="longer than the log", log="x" + number(5, 2) + "1234"),
        thread.span(11 * S, 7, name="no letter", log="8" + number(0, 2) + after),
        thread.begin(12 * S, 8, name="streamed"), thread.detail(12 * S, "tag", 8, later), thread.end(12 * S, 8),
    ]
    return one_stream(trace, events)


def two_hosts():
    """Two traces of two hosts whose clocks have different offsets: one request over both."""
    near = Trace(1, hostname="near", context=CONTEXT)
    far = Trace(2, hostname="far", offset_s=1699999990, offset=500 * MS)
    add_zipkin(near)
    add_blkin(far)
    client = context(100, 100, "client")
    thread = Thread(6, service="osd", ip="10.0.0.2")
    near.stream().packet([
        (10 * S, "zipkin:timestamp", zipkin(2, "client", event="cs"), client),
        (10 * S + 9 * MS, "zipkin:timestamp", zipkin(2, "client", event="cr"), client),
    ])
    at = 19 * S + 500 * MS  # 10 s by the clock of "near"
    far.stream().packet([
        thread.begin(at + MS, 3, parent=2), thread.annotation(at + 2 * MS, 3, "queued"),
        thread.span(at + 4 * MS, 4, parent=3, duration=MS, kind=0), thread.end(at + 5 * MS, 3),
    ])
    return {"near": near, "far": far}


def contexts_missing():
    """Each context alone; a trace without a host name."""
    traces = {}
    for number, (name, value) in enumerate((("vpid", 100), ("vtid", 101), ("procname", "osd"))):
        trace = Trace(number + 1, context={name: CONTEXT[name]})
        add_blkin(trace)
        trace.stream().packet([Thread(2 * number + 2, context={name: value}).span(
            (10 + number) * S, 2 + number, name=f"only {name}")])
        traces[name] = trace
    return traces


def contexts_odd():
    """Contexts of other types than LTTng's are ignored; a name of 17 bytes has no end."""
    odd = Trace(1, hostname="", context={"vpid": TEXT, "vtid": U32, "procname": U64, "ip": TEXT})
    full = Trace(2, hostname="h" * 300, context=CONTEXT)
    for trace in (odd, full):
        add_blkin(trace)
    odd.stream().packet([Thread(2, context={"vpid": "1", "vtid": 2, "procname": 3, "ip": "4"})
                         .span(10 * S, 2, name="odd")])
    full.stream().packet([Thread(4, context=context(-1, -2147483648, "seventeen bytes!!")).span(
        11 * S, 3, name="full")])
    return {"odd": odd, "full": full}


def discarded():
    """LTTng lost 2, then 5 events, then two packets. babeltrace2 does not report the size of the loss before the end of
    the first packet: the loss counts as one event. Since version 2.1 babeltrace2 does not report the loss at all."""
    trace = blkin_trace()
    thread = Thread(2)
    stream = trace.stream()
    stream.packet([thread.span(10 * S, 2)], discarded=2)
    stream.packet([thread.span(11 * S, 3)], discarded=7)
    stream.packet([thread.span(12 * S, 4)], discarded=7)
    stream.packet([thread.span(13 * S, 5)], discarded=7, skipped=2)
    return {"": trace}


def discarded_elsewhere():
    """A channel of other events of the same session lost 5 events: no span is marked."""
    ours = Trace(1, hostname="node1", context=CONTEXT)
    others = Trace(2, hostname="node1")
    add_blkin(ours)
    others.event_class("some:other", {"number": I32})
    thread = Thread(2, context=context(100, 101, "osd"))
    ours.stream().packet([thread.begin(10 * S, 2), thread.span(11 * S, 3, duration=S),
                          thread.end(14 * S, 2)])
    stream = others.stream()
    stream.packet([(10 * S, "some:other", {"number": 1}), (11 * S, "some:other", {"number": 2})])
    stream.packet([(13 * S, "some:other", {"number": 3})], discarded=5)
    return {"ours": ours, "others": others}


def foreign():
    """Events of other providers, some with names much like ours, and ours among them."""
    trace = blkin_trace(hostname="node1")
    number = {"number": I32}
    others = ["lttng_ust_statedump:start", "zipkin:other", "zipkin:timestamps", "zipkin:timestam",
              "zipkin_timestamp", "blkin:spans", "blkin:", "timestamp", "x:zipkin:timestamp"]
    for name in others:
        trace.event_class(name, number)
    trace.event_class("nothing:at_all", None)
    thread = Thread(2)
    events = [(10 * S, name, {"number": 1}) for name in others]
    events.insert(3, thread.span(10 * S, 2))
    events += [(10 * S, "nothing:at_all", {}), thread.span(10 * S, 3)]
    return one_stream(trace, events)


def unreadable():
    """Events with our names, but with a missing field or a field of another type; among them a good event."""
    packed_end = detail_head(2, 1, 3, 10 * S)
    broken = {
        "zipkin:timestamp": ({**zipkin_common(), "event": U64}, zipkin(2, "osd", event=1)),
        "zipkin:keyval_string": ({"trace_id": I64}, {"trace_id": 1}),
        "zipkin:keyval_integer": ({**zipkin_common(), "key": TEXT, "val": TEXT},
                                  zipkin(2, "osd", key="k", val="v")),
        "zipkin:keyval": (None, {}),
        "blkin:begin": ({}, {}),
        "blkin:tag": ({"trace_id": TEXT, "packed": TEXT}, {"trace_id": "1", "packed": packed_end}),
        "blkin:end": ({"trace_id": Float(), "packed": TEXT}, {"trace_id": 0.5, "packed": packed_end}),
        "blkin:annotation_err": ({"trace_id": HEX, "text": TEXT}, {"trace_id": 1, "text": "x"}),
        "blkin:annotation_crit": ({"trace_id": HEX, "packed": U64, "text": TEXT},
                                  {"trace_id": 1, "packed": 1, "text": "x"}),
        "blkin:annotation_info": ({"trace_id": HEX, "packed": TEXT, "text": Structure({"text": TEXT})},
                                  {"trace_id": 1, "packed": packed_end, "text": {"text": "x"}}),
    }
    trace = Trace()
    for name, (fields, _) in broken.items():
        trace.event_class(name, fields)
    trace.event_class("blkin:span", BLKIN["blkin:span"])
    thread = Thread(2)
    return one_stream(trace, [(10 * S, name, values) for name, (_, values) in broken.items()] +
                      [thread.span(10 * S, 2)] +
                      [(11 * S, name, values) for name, (_, values) in broken.items()])


def any_bytes():
    """Texts that are no UTF-8, and control characters: the sent texts are valid."""
    trace = blkin_trace(hostname="node1")
    add_zipkin(trace)
    return one_stream(trace, [
        Thread(2, service=b"\xff\xfe", ip=b"\x80").span(
            10 * S, 2, name=b"\xc3\x28\x01\"\\", high=0xABC),
        (10 * S, "zipkin:keyval_string", zipkin(3, "osd", name="", key=b"\n\xe2\x82", val=b"\x7f|")),
        (10 * S, "zipkin:timestamp", zipkin(3, "osd", name="", event="bAnnotations\"yAnnotations")),
    ])


def empty():
    """A packet without events, a stream file without packets, a trace without streams."""
    trace = blkin_trace(1)
    trace.stream().packet([], begin=9 * S, end=10 * S)
    trace.stream()
    thread = Thread(2)
    last = trace.stream()
    last.packet([], begin=9 * S, end=9 * S)
    last.packet([thread.span(10 * S, 2)])
    last.packet([], begin=11 * S, end=12 * S)
    bare = Trace(2)
    add_blkin(bare)
    bare.stream()
    return {"some": trace, "none": bare}


def clock_ticks():
    """A clock of 1000 ticks per second, whose offset is in ticks too."""
    trace = blkin_trace(freq=1000, offset_s=1700000000, offset=250)
    thread = Thread(2)
    return one_stream(trace, [thread.begin(10000, 2), thread.end(10007, 2)])


def clock_before_epoch():
    """A span before 1970 is sent without a time, because Zipkin has no such times. The next span has a time."""
    trace = Trace(offset_s=-20)
    add_zipkin(trace)
    return one_stream(trace, [
        (19 * S, "zipkin:timestamp", zipkin(2, "osd", event="before")),
        (21 * S, "zipkin:timestamp", zipkin(3, "osd", event="after")),
    ])


def clock_none():
    """Without a clock no event has a time, and the sink can read no event."""
    trace = blkin_trace(has_clock=False)
    return one_stream(trace, [Thread(2).span(10 * S, 2)])


def corrupt():
    """The reader fails in the second packet: earlier events are delivered, and the run fails."""
    trace = blkin_trace()
    thread = Thread(2)
    stream = trace.stream()
    stream.packet([thread.span(10 * S, 2), thread.begin(10 * S, 3)])
    stream.packet([thread.span(11 * S, 4)])
    stream.unknown_event(12 * S)
    stream.packet([thread.end(13 * S, 3)])
    return {"": trace}


def cut_off():
    """The last packet of a stream is not whole: the reader refuses such a trace with a message."""
    trace = blkin_trace()
    thread = Thread(2)
    stream = trace.stream()
    stream.packet([thread.span(10 * S, 2), thread.begin(10 * S, 3)])
    stream.packet([thread.end(11 * S, 3), thread.span(11 * S, 4)])
    stream.packets[1] = stream.packets[1][:-20]
    return {"": trace}


CASES = (original, original_late, original_keyval, packed, packed_clock_other, packed_other_types, packed_newer,
         steps, two_hosts, contexts_missing, contexts_odd, discarded, discarded_elsewhere, foreign, unreadable, any_bytes, empty,
         clock_ticks, clock_before_epoch, clock_none, corrupt, cut_off)


def many_streams():
    """Only for the test of memory: 900 streams at a time. The event classes have the largest ids of 16 bits."""
    trace = Trace()
    trace.event_class("blkin:span", BLKIN["blkin:span"], 65534)
    trace.event_class("some:other", {"number": I32}, 65533)
    for number in range(900):
        trace.stream().packet([
            Thread(2 * number + 2).span(10 * S + number, number + 2, name="w"),
            (20 * S + number, "some:other", {"number": 1})])
    return trace


def make(folder):
    for case in CASES:
        for name, trace in case().items():
            trace.write(os.path.join(folder, case.__name__.replace("_", "-"), name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    make(sys.argv[1])
