#!/usr/bin/env python3
"""Requests of tests to a broker: librdkafka through ctypes.

    kafka.py BROKERS create TOPIC PARTITIONS [NAME=VALUE]...

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import ctypes
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import cpu_s, wait_until  # noqa: E402,F401

ASK_MS = 60000
BEGINNING, END = -2, -1  # as an offset
PARTITION_EOF = -191

Message = collections.namedtuple("Message", "topic partition offset time_ms value")


class Failed(Exception):
    """A failure with a message for the user."""


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


class RdTopic(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("partition_count", ctypes.c_int), ("partitions", ctypes.c_void_p),
                ("err", ctypes.c_int)]


class RdMetadata(ctypes.Structure):
    _fields_ = [("broker_count", ctypes.c_int), ("brokers", ctypes.c_void_p), ("topic_count", ctypes.c_int),
                ("topics", ctypes.POINTER(RdTopic))]


def library():
    rd = ctypes.CDLL("librdkafka.so.1")
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    size, place = ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64)
    partitions, message = ctypes.POINTER(RdPartitions), ctypes.POINTER(RdMessage)
    metadata, pointers = ctypes.POINTER(RdMetadata), ctypes.POINTER(ctypes.c_void_p)
    count, ask = ctypes.POINTER(size), (None, pointer, pointers, size, pointer, pointer)
    for name, result, *arguments in (
            ("conf_new", pointer),
            ("conf_set", number, pointer, text, text, pointer, size),
            ("new", pointer, number, pointer, pointer, size),
            ("destroy", None, pointer),
            ("consumer_close", number, pointer),
            ("err2str", text, number),
            ("topic_name", text, pointer),
            ("topic_new", pointer, pointer, text, pointer),
            ("topic_destroy", None, pointer),
            ("metadata", number, pointer, number, pointer, ctypes.POINTER(metadata), number),
            ("metadata_destroy", None, metadata),
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
            ("message_destroy", None, message),
            ("queue_new", pointer, pointer),
            ("queue_poll", pointer, pointer, number),
            ("queue_destroy", None, pointer),
            ("event_error", number, pointer),
            ("event_destroy", None, pointer),
            ("NewTopic_new", pointer, text, number, number, pointer, size),
            ("NewTopic_set_config", number, pointer, text, text),
            ("NewTopic_destroy", None, pointer),
            ("NewPartitions_new", pointer, text, size, pointer, size),
            ("NewPartitions_destroy", None, pointer),
            ("DeleteTopic_new", pointer, text),
            ("DeleteTopic_destroy", None, pointer),
            ("DeleteRecords_new", pointer, partitions),
            ("DeleteRecords_destroy", None, pointer),
            ("CreateTopics", *ask), ("CreatePartitions", *ask), ("DeleteTopics", *ask), ("DeleteRecords", *ask),
            ("CreateTopics_result_topics", pointers, pointer, count),
            ("CreatePartitions_result_topics", pointers, pointer, count),
            ("DeleteTopics_result_topics", pointers, pointer, count),
            ("topic_result_error", number, pointer)):
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


def list_of(topics, offset):
    """topics: name -> number of partitions"""
    wanted = RD.topic_partition_list_new(sum(topics.values()))
    for topic, partitions in topics.items():
        for partition in range(partitions):
            RD.topic_partition_list_add(wanted, topic.encode(), partition)
    for one in wanted.contents.elements[:wanted.contents.count]:
        one.offset = offset
    return wanted


class Client:
    """A consumer of librdkafka, which names a group without joining the group."""

    def __init__(self, broker, group="check", **settings):
        self.client = client_new(CONSUMER, broker, group_id=group, enable_auto_commit="false",
                                 auto_offset_reset="earliest", fetch_wait_max_ms="100", **settings)

    def close(self):
        RD.consumer_close(self.client)
        RD.destroy(self.client)

    def partitions(self, topic):
        """Returns the number of partitions."""
        one, found = RD.topic_new(self.client, topic.encode(), None), ctypes.POINTER(RdMetadata)()
        code = RD.metadata(self.client, 0, one, ctypes.byref(found), ASK_MS)
        RD.topic_destroy(one)
        check(code, topic)
        about = found.contents.topics[0]
        count, code = about.partition_count, about.err
        RD.metadata_destroy(found)
        check(code, topic)
        return count

    def ends(self, topic, partitions):
        """Returns the offsets of the next messages."""
        found = []
        for partition in range(partitions):
            low, high = ctypes.c_int64(), ctypes.c_int64()
            check(RD.query_watermark_offsets(self.client, topic.encode(), partition, ctypes.byref(low),
                                             ctypes.byref(high), ASK_MS), f"the end of {topic}")
            found.append(high.value)
        return found

    def committed(self, topic, partitions):
        """Returns the group's committed offset and metadata, by partition."""
        wanted = list_of({topic: partitions}, END)
        try:
            check(RD.committed(self.client, wanted, ASK_MS), f"the offsets of {topic}")
            return [(one.offset, ctypes.string_at(one.metadata, one.metadata_size) if one.metadata else b"")
                    for one in wanted.contents.elements[:partitions]]
        finally:
            RD.topic_partition_list_destroy(wanted)


class Reader(Client):
    """Reads committed messages of topics from their beginning."""

    def __init__(self, broker, topics):
        """topics: name -> number of partitions"""
        super().__init__(broker, isolation_level="read_committed", enable_partition_eof="true")
        wanted = list_of(topics, BEGINNING)
        self.ends_ahead = wanted.contents.count  # partitions whose end was not reached
        check(RD.assign(self.client, wanted), "assign")
        RD.topic_partition_list_destroy(wanted)

    def poll(self, timeout_ms=100):
        """Returns the next message, or None."""
        message = RD.consumer_poll(self.client, timeout_ms)
        if not message:
            return None
        try:
            one = message.contents
            if one.err:  # the end of a partition; or the broker is away, and librdkafka connects again
                self.ends_ahead -= one.err == PARTITION_EOF
                return None
            return Message(RD.topic_name(one.topic).decode(), one.partition, one.offset,
                           RD.message_timestamp(message, None), ctypes.string_at(one.payload, one.length))
        finally:
            RD.message_destroy(message)

    def all(self, limit_s):
        """Yields all messages; to be called once, when no process writes any more."""
        deadline = time.monotonic() + limit_s
        while self.ends_ahead:
            if time.monotonic() > deadline:
                raise Failed(f"the ends of topics were not reached within {limit_s} s")
            message = self.poll()
            if message:
                yield message


class Writer:
    """Writes messages that no program of ours writes."""

    def __init__(self, broker, topic):
        self.client = client_new(PRODUCER, broker, acks="all", compression_codec="lz4", linger_ms="20",
                                 queue_buffering_max_kbytes="65536")
        self.topic = RD.topic_new(self.client, topic.encode(), None)

    def write(self, partition, value, key=b""):
        while RD.produce(self.topic, partition, COPY, value, len(value), key or None, len(key), None) == -1:
            if RD.last_error() != QUEUE_FULL:
                check(RD.last_error(), "produce")
            RD.poll(self.client, 10)
        RD.poll(self.client, 0)

    def close(self):
        check(RD.flush(self.client, 60000), "flush")
        RD.topic_destroy(self.topic)
        RD.destroy(self.client)


# ---- topics

def administer(broker, what, made, of):
    """Sends one request, such as CreateTopics, with its argument of this kind."""
    client = client_new(PRODUCER, broker)
    queue = RD.queue_new(client)
    getattr(RD, what)(client, ctypes.byref(ctypes.c_void_p(made)), 1, None, queue)
    event = RD.queue_poll(queue, ASK_MS)
    if not event:
        raise Failed(f"{what}: no answer")
    code, count = RD.event_error(event), ctypes.c_size_t()
    if not code and what != "DeleteRecords":
        code = RD.topic_result_error(getattr(RD, what + "_result_topics")(event, ctypes.byref(count))[0])
    RD.event_destroy(event)
    getattr(RD, of + "_destroy")(made)
    RD.queue_destroy(queue)
    RD.destroy(client)
    check(code, what)


def await_partitions(broker, topic, partitions):
    """Waits until the broker reports the partitions, which it may do later than it makes them."""
    asker = Client(broker)

    def are_there():
        try:
            return asker.partitions(topic) == partitions and asker.ends(topic, partitions)
        except Failed:
            return False
    try:
        wait_until(are_there, f"{topic}: made, and not known", ASK_MS / 1000, every_s=0.02, fails=Failed)
    finally:
        asker.close()


def create(broker, topic, partitions=1, **settings):
    problems = []

    def is_made():
        made = RD.NewTopic_new(topic.encode(), partitions, 1, None, 0)
        for name, value in settings.items():
            check(RD.NewTopic_set_config(made, name.replace("_", ".").encode(), str(value).encode()), name)
        try:
            administer(broker, "CreateTopics", made, "NewTopic")
        except Failed as failed:
            problems.append(str(failed))
            if "already exists" in problems[-1] and len(problems) > 1:
                return True  # an earlier request did it, without an answer in time
            if not any(words in problems[-1] for words in ("replication factor", "Timed out", "no answer")):
                raise
            return False  # the broker has just started, or stands still
        return True
    wait_until(is_made, lambda: f"{topic} is made: {problems[-1]}", every_s=0.2, fails=Failed)
    await_partitions(broker, topic, partitions)


def grow(broker, topic, partitions):
    administer(broker, "CreatePartitions", RD.NewPartitions_new(topic.encode(), partitions, None, 0), "NewPartitions")
    await_partitions(broker, topic, partitions)


def delete(broker, topic):
    administer(broker, "DeleteTopics", RD.DeleteTopic_new(topic.encode()), "DeleteTopic")


def trim(broker, topic):
    """Deletes the messages, as retention does."""
    asker = Client(broker)
    wanted = list_of({topic: asker.partitions(topic)}, END)
    asker.close()
    administer(broker, "DeleteRecords", RD.DeleteRecords_new(wanted), "DeleteRecords")
    RD.topic_partition_list_destroy(wanted)


def read(broker, topic):
    """Returns all messages of the topic: (partition, offset, bytes)."""
    asker = Client(broker)
    reader = Reader(broker, {topic: asker.partitions(topic)})
    asker.close()
    messages = [(message.partition, message.offset, message.value) for message in reader.all(60)]
    reader.close()
    return messages


def produce(broker, topic, partition, value, key=b""):
    writer = Writer(broker, topic)
    writer.write(partition, value, key)
    writer.close()


if __name__ == "__main__":
    brokers, _, name, count, *given = sys.argv[1:]
    create(collections.namedtuple("Brokers", "address")(brokers), name, int(count), **dict(one.split("=", 1) for one in given))
