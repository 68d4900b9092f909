"""What the checks ask of a broker: librdkafka through ctypes.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import ctypes
import os
import pathlib
import time

ASK_MS = 20000
BEGINNING = -2  # as an offset
PARTITION_EOF = -191

Message = collections.namedtuple("Message", "topic partition offset time_ms value")


class Failed(Exception):
    """Said to the user."""


def cpu_s(pid):
    """What a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- librdkafka ------------------------------------------------------------------------------------

class RdMessage(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("topic", ctypes.c_void_p), ("partition", ctypes.c_int32),
                ("payload", ctypes.c_void_p), ("length", ctypes.c_size_t), ("key", ctypes.c_void_p),
                ("key_length", ctypes.c_size_t), ("offset", ctypes.c_int64), ("private", ctypes.c_void_p)]


class RdPartition(ctypes.Structure):
    _fields_ = [("topic", ctypes.c_char_p), ("partition", ctypes.c_int32), ("offset", ctypes.c_int64),
                ("metadata", ctypes.c_void_p), ("metadata_size", ctypes.c_size_t), ("opaque", ctypes.c_void_p),
                ("err", ctypes.c_int), ("private", ctypes.c_void_p)]


class RdPartitions(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int), ("size", ctypes.c_int), ("elements", ctypes.POINTER(RdPartition))]


def library():
    rd = ctypes.CDLL("librdkafka.so.1")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    size, place = ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64)
    partitions, message = ctypes.POINTER(RdPartitions), ctypes.POINTER(RdMessage)
    for name, result, *arguments in (
            ("conf_new", pointer),
            ("conf_set", number, pointer, text, text, pointer, size),
            ("new", pointer, number, pointer, pointer, size),
            ("destroy", None, pointer),
            ("consumer_close", number, pointer),
            ("err2str", text, number),
            ("topic_name", text, pointer),
            ("topic_new", pointer, pointer, text, pointer),
            ("produce", number, pointer, ctypes.c_int32, number, text, size, pointer, size, pointer),
            ("poll", number, pointer, number),
            ("flush", number, pointer, number),
            ("last_error", number),
            ("topic_partition_list_new", partitions, number),
            ("topic_partition_list_add", pointer, partitions, text, ctypes.c_int32),
            ("topic_partition_list_destroy", None, partitions),
            ("assign", number, pointer, partitions),
            ("committed", number, pointer, partitions, number),
            ("query_watermark_offsets", number, pointer, text, ctypes.c_int32, place, place, number),
            ("consumer_poll", message, pointer, number),
            ("message_timestamp", ctypes.c_int64, message, pointer),
            ("message_destroy", None, message)):
        function = getattr(rd, "rd_kafka_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(rd, name, function)
    return rd


RD = library()
PRODUCER, CONSUMER = 0, 1
COPY = 2
QUEUE_FULL = -184


def check(code, what):
    if code:
        raise Failed(f"{what}: {RD.err2str(code).decode()}")


def client_new(kind, broker, **settings):
    conf = RD.conf_new()
    said = ctypes.create_string_buffer(512)
    settings = {"bootstrap.servers": broker.address, "log_level": "1",
                **{key.replace("_", "."): value for key, value in settings.items()}}
    for key, value in settings.items():
        if RD.conf_set(conf, key.encode(), value.encode(), said, 512):
            raise Failed(said.value.decode())
    client = RD.new(kind, conf, said, 512)
    if not client:
        raise Failed(said.value.decode())
    return client


class Client:
    """A consumer of librdkafka's, of a group only in name: it never joins."""

    def __init__(self, broker, group="check", **settings):
        self.client = client_new(CONSUMER, broker, group_id=group, enable_auto_commit="false",
                                 auto_offset_reset="earliest", fetch_wait_max_ms="100", **settings)

    def close(self):
        RD.consumer_close(self.client)
        RD.destroy(self.client)

    def ends(self, topic, partitions):
        """The offsets of what comes next."""
        found = []
        for partition in range(partitions):
            low, high = ctypes.c_int64(), ctypes.c_int64()
            check(RD.query_watermark_offsets(self.client, topic.encode(), partition, ctypes.byref(low),
                                             ctypes.byref(high), ASK_MS), f"the end of {topic}")
            found.append(high.value)
        return found

    def committed(self, topic, partitions):
        """What the group has committed: offset and metadata, by partition."""
        wanted = RD.topic_partition_list_new(partitions)
        for partition in range(partitions):
            RD.topic_partition_list_add(wanted, topic.encode(), partition)
        try:
            check(RD.committed(self.client, wanted, ASK_MS), f"the offsets of {topic}")
            return [(one.offset, ctypes.string_at(one.metadata, one.metadata_size) if one.metadata else b"")
                    for one in wanted.contents.elements[:partitions]]
        finally:
            RD.topic_partition_list_destroy(wanted)


class Reader(Client):
    """Reads topics from their beginning, what is committed of them only."""

    def __init__(self, broker, topics):
        """topics: name -> number of partitions"""
        super().__init__(broker, isolation_level="read_committed", enable_partition_eof="true")
        wanted = RD.topic_partition_list_new(4)
        for topic, partitions in topics.items():
            for partition in range(partitions):
                RD.topic_partition_list_add(wanted, topic.encode(), partition)
        for one in wanted.contents.elements[:wanted.contents.count]:
            one.offset = BEGINNING
        self.ends_ahead = wanted.contents.count  # partitions whose end was not reached
        check(RD.assign(self.client, wanted), "assign")
        RD.topic_partition_list_destroy(wanted)

    def poll(self, timeout_ms=100):
        """The next message, or None."""
        message = RD.consumer_poll(self.client, timeout_ms)
        if not message:
            return None
        try:
            one = message.contents
            if one.err:  # a broker that is away: librdkafka connects again
                self.ends_ahead -= one.err == PARTITION_EOF
                return None
            return Message(RD.topic_name(one.topic).decode(), one.partition, one.offset,
                           RD.message_timestamp(message, None), ctypes.string_at(one.payload, one.length))
        finally:
            RD.message_destroy(message)

    def all(self, limit_s):
        """What there is; to be called once, when nobody writes any more."""
        deadline = time.monotonic() + limit_s
        while self.ends_ahead:
            if time.monotonic() > deadline:
                raise Failed(f"the ends of topics were not reached within {limit_s} s")
            message = self.poll()
            if message:
                yield message


class Writer:
    """For what the generator does not make."""

    def __init__(self, broker, topic):
        self.client = client_new(PRODUCER, broker, acks="all", compression_codec="lz4", linger_ms="20",
                                 queue_buffering_max_kbytes="65536")
        self.topic = RD.topic_new(self.client, topic.encode(), None)

    def write(self, partition, value):
        while RD.produce(self.topic, partition, COPY, value, len(value), None, 0, None) == -1:
            if RD.last_error() != QUEUE_FULL:
                check(RD.last_error(), "produce")
            RD.poll(self.client, 10)
        RD.poll(self.client, 0)

    def close(self):
        check(RD.flush(self.client, 60000), "flush")
        RD.destroy(self.client)
