#!/usr/bin/env python3
# The rules that come with BlkKin, on events as the newest release of each program records them. Names and types of
# fields are from the sources that each test names. The rules use every event, except where a test gives counters.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 120
import os
import unittest

from ctf import Enum, Integer, String
from recorded import Recorded

RULES = os.path.join(os.environ["SRC"], "rules")
MS = 1000000
U64, U32, I32, HEX, TEXT = Integer(64), Integer(32), Integer(32, True), Integer(64, base=16), String()
COUNTERS = ("keyless", "begins_unmatched", "ends_unmatched", "stages_unmatched", "begun_again", "dropped", "unusable", "no_room")


class Shipped(Recorded):
    tested = set()

    def spans(self, name, classes, events, context=None, **left_over):
        """Converts events: (ms, thread, name, values). left_over: counters of events without a span; the others must be 0.
        Returns for each span: name, start and end in ms, its parent's name."""
        self.tested.add(name)
        folder = self.record(classes, [
            ((1 + ms) * MS, event, values, {"vpid": 10, "vtid": thread, "procname": "daemon" if thread == 10 else f"t{thread}",
                                            **(context or {})})
            for ms, thread, event, values in events])
        made, counters = self.convert(folder, rules=os.path.join(RULES, name + ".rules"))
        self.assertEqual({key: counters["rule_" + key] for key in COUNTERS if "rule_" + key in counters and counters["rule_" + key]},
                         left_over)
        self.made = {span["id"]: span for span in made}
        first = min(span["timestamp"] for span in made)
        return sorted((span["name"], round((span["timestamp"] - first) / 1000),
                       round((span["timestamp"] - first + span["duration"]) / 1000),
                       self.made.get(span.get("parentId"), {}).get("name")) for span in made)

    def tags(self, name):
        """Returns the tags of the spans of this name, in the order of their starts."""
        return [span["tags"] for span in sorted(self.made.values(), key=lambda span: span["timestamp"]) if span["name"] == name]

    def services(self):
        return {span["localEndpoint"]["serviceName"] for span in self.made.values()}

    def test_seastar(self):
        """Seastar of June 2026, include/seastar/core/internal/io_trace_tp.h. Threads have names of their own; the statedump
        has the name of the process."""
        end = {"req_id": HEX}
        classes = {"lttng_ust_statedump:procname": {"procname": TEXT}, "seastar_io:io_queue_queued": {
            "fd": I32, "req_id": HEX, "direction": I32, "pclass": U32, "offset": U64, "length": U64},
            **{"seastar_io:io_queue_" + name: end for name in ("dispatched", "completed", "cancelled")}}

        def queued(request):
            return {"fd": 3, "req_id": request, "direction": 1, "pclass": 0, "offset": 0, "length": 4096}
        events = [(0, 12, "lttng_ust_statedump:procname", {"procname": "scylla"}),
                  (1, 11, "seastar_io:io_queue_queued", queued(1)), (2, 11, "seastar_io:io_queue_queued", queued(2)),
                  (3, 11, "seastar_io:io_queue_dispatched", {"req_id": 1}), (4, 11, "seastar_io:io_queue_cancelled", {"req_id": 2}),
                  (5, 11, "seastar_io:io_queue_completed", {"req_id": 1})]
        self.assertEqual(self.spans("seastar", classes, events), [
            ("disk", 2, 4, "io"), ("io", 0, 4, None), ("io", 1, 3, None), ("wait", 0, 2, "io"), ("wait", 1, 3, "io")])
        self.assertEqual(self.services(), {"scylla"})
        self.assertEqual(self.tags("io")[0]["lttng.procname"], "t11")
        # without the statedump, the service is the first thread's name, until the main thread records an event
        again = [(ms + 10, 10, name, values) for ms, _, name, values in events[1:]]
        last = [(ms + 20, thread, name, values) for ms, thread, name, values in events[1:]]
        self.spans("seastar", classes, events[1:] + again + last)
        self.assertEqual([self.made[span]["localEndpoint"]["serviceName"] for span in sorted(
            self.made, key=lambda span: self.made[span]["timestamp"]) if self.made[span]["name"] == "io"],
            ["t11", "t11", "daemon", "daemon", "daemon", "daemon"])

    def test_nfs_ganesha(self):
        """nfs-ganesha 9.14 with ntirpc's generator of tracepoints. A request is suspended in its READ, and another thread ends it."""
        ops = Enum(32, False, {"NFS4_OP_GETATTR": 9, "NFS4_OP_READ": 25})
        status = Enum(32, False, {"NFS4_OK": 0, "NFS4ERR_IO": 5})
        head = {"format": Enum(32, False, {"file.c:1 | f | ...": 0}), "arg_1": U32, "arg_2": U32}
        classes = {"nfs_rpc:start": {**head, "reqdata": HEX}, "nfs_rpc:end": {**head, "reqdata": HEX},
                   "nfs_rpc:op_start": {**head, "reqdata": HEX, "arg_4": TEXT, "arg_5": I32}, "nfs_rpc:op_end": {**head, "reqdata": HEX},
                   "nfs_rpc:v4op_start": {**head, "arg_3": U32, "arg_4": ops},
                   "nfs_rpc:v4op_end": {**head, "arg_3": U32, "arg_4": ops, "arg_5": status}}

        def event(ms, thread, name, op, **values):
            return ms, thread, "nfs_rpc:" + name, {"format": 0, "arg_1": 0, "arg_2": op, **values}
        self.assertEqual(self.spans("nfs-ganesha", classes, [
            event(0, 11, "start", 0, reqdata=0xa), event(1, 11, "op_start", 70, reqdata=0xa, arg_4="nfs4_Compound", arg_5=1),
            event(2, 11, "v4op_start", 70, arg_3=0, arg_4=25),
            event(3, 11, "start", 0, reqdata=0xb), event(4, 11, "op_start", 71, reqdata=0xb, arg_4="nfs4_Compound", arg_5=1),
            event(5, 11, "v4op_start", 71, arg_3=0, arg_4=9), event(6, 12, "v4op_end", 70, arg_3=0, arg_4=25, arg_5=5),
            event(7, 11, "v4op_end", 71, arg_3=0, arg_4=9, arg_5=0), event(8, 12, "op_end", 70, reqdata=0xa),
            event(9, 12, "end", 0, reqdata=0xa), event(10, 11, "op_end", 71, reqdata=0xb), event(11, 11, "end", 0, reqdata=0xb)]), [
            ("nfs4_Compound", 1, 8, "rpc"), ("nfs4_Compound", 4, 10, "rpc"), ("rpc", 0, 9, None), ("rpc", 3, 11, None),
            ("v4 NFS4_OP_GETATTR", 5, 7, "nfs4_Compound"), ("v4 NFS4_OP_READ", 2, 6, "nfs4_Compound")])
        self.assertEqual(self.tags("v4 NFS4_OP_READ")[0]["error"], "NFS4ERR_IO")
        self.assertNotIn("error", self.tags("v4 NFS4_OP_GETATTR")[0])
        self.assertEqual(self.tags("nfs4_Compound")[0]["export_id"], "1")
        self.assertEqual(self.services(), {"nfs-ganesha"})

    def test_nfs_ganesha_before_6(self):
        """nfs-ganesha 4.3, src/include/gsh_lttng/nfs_rpc.h: NFSv4 operations have no number of their request."""
        op = {"op_num": I32, "op_code": I32, "op_name": TEXT}
        classes = {"nfs_rpc:start": {"req": HEX}, "nfs_rpc:end": {"req": HEX}, "nfs_rpc:op_end": {"req": HEX},
                   "nfs_rpc:op_start": {"req": HEX, "op_name": TEXT, "export_id": I32},
                   "nfs_rpc:v4op_start": op, "nfs_rpc:v4op_end": {**op, "status": TEXT}}
        read = {"op_num": 0, "op_code": 25, "op_name": "OP_READ"}
        getattr_ = {"op_num": 1, "op_code": 9, "op_name": "OP_GETATTR"}
        self.assertEqual(self.spans("nfs-ganesha", classes, [
            (0, 11, "nfs_rpc:start", {"req": 0xa}), (1, 11, "nfs_rpc:op_start", {"req": 0xa, "op_name": "nfs4_Compound", "export_id": 1}),
            (2, 11, "nfs_rpc:v4op_start", getattr_), (3, 11, "nfs_rpc:v4op_end", {**getattr_, "status": "NFS4_OK"}),
            (4, 11, "nfs_rpc:v4op_start", read), (5, 12, "nfs_rpc:v4op_end", {**read, "status": "NFS4_OK"}),
            (6, 12, "nfs_rpc:op_end", {"req": 0xa}), (7, 12, "nfs_rpc:end", {"req": 0xa})], begins_unmatched=1, ends_unmatched=1), [
            ("nfs4_Compound", 1, 6, "rpc"), ("rpc", 0, 7, None), ("v4 OP_GETATTR", 2, 3, None)])

    def test_libcamera(self):
        """libcamera 0.7.2, include/libcamera/internal/tracepoints. LTTng refuses request_complete and request_cancel of
        this version."""
        status = Enum(32, False, {"RequestPending": 0, "RequestComplete": 1, "RequestCancelled": 2})
        request, call = {"request": HEX, "cookie": U64, "status": status}, {"pipeline_name": TEXT, "function_name": TEXT}
        names = ("construct", "reuse", "queue", "device_queue", "complete", "cancel", "destroy")
        classes = {**{"libcamera:request_" + name: request for name in names}, "libcamera:ipa_call_begin": call,
                   "libcamera:ipa_call_end": call, "libcamera:request_complete_buffer": {
                       "request": HEX, "cookie": U64, "status": I32, "buffer": HEX,
                       "buf_status": Enum(32, False, {"FrameSuccess": 0, "FrameError": 1, "FrameCancelled": 2})}}

        def event(ms, name, cookie=7, **values):
            return ms, 10, "libcamera:request_" + name, {"request": 0xc0, "cookie": cookie, "status": 0, **values}
        ipa = {"pipeline_name": "rkisp1", "function_name": "processStats"}
        self.assertEqual(self.spans("libcamera", classes, [
            event(0, "construct"), event(10, "queue"), event(11, "device_queue"),
            (12, 10, "libcamera:ipa_call_begin", ipa), (13, 10, "libcamera:ipa_call_end", ipa),
            event(15, "complete_buffer", request=0xd0, buffer=1, buf_status=0), event(20, "reuse"), event(21, "queue"),
            event(25, "complete_buffer", request=0xd0, buffer=1, buf_status=2), event(30, "destroy")],
            begins_unmatched=1, begun_again=1), [
            ("ipa processStats", 2, 3, None), ("request until a buffer", 0, 5, None), ("request until a buffer", 11, 15, None)])
        self.assertEqual([tags.get("error") for tags in self.tags("request until a buffer")], [None, "FrameCancelled"])
        # an LTTng that accepts both events; requests without cookies
        self.assertEqual(self.spans("libcamera", classes, [
            event(0, "construct", 0), event(10, "queue", 0), event(11, "device_queue", 0), event(15, "complete", 0), event(20, "reuse", 0),
            event(21, "queue", 0), event(25, "cancel", 0), event(30, "destroy", 0)]), [("request", 0, 5, None), ("request", 11, 15, None)])
        self.assertEqual(len([span for span in self.made.values() if span.get("annotations")]), 1)

    def test_libc(self):
        """lttng-ust 2.13, ust_libc.h of the wrapper: all of its events."""
        classes = {"malloc": {"size": U64, "ptr": HEX}, "free": {"ptr": HEX}, "calloc": {"nmemb": U64, "size": U64, "ptr": HEX},
                   "realloc": {"in_ptr": HEX, "size": U64, "ptr": HEX}, "memalign": {"alignment": U64, "size": U64, "ptr": HEX},
                   "posix_memalign": {"out_ptr": HEX, "alignment": U64, "size": U64, "result": I32}}
        events = [(0, "malloc", {"size": 1, "ptr": 0x10}), (1, "calloc", {"nmemb": 2, "size": 2, "ptr": 0x20}),
                  (2, "realloc", {"in_ptr": 0, "size": 3, "ptr": 0x30}), (3, "memalign", {"alignment": 64, "size": 4, "ptr": 0x40}),
                  (4, "posix_memalign", {"out_ptr": 0x50, "alignment": 64, "size": 5, "result": 0}),
                  (5, "posix_memalign", {"out_ptr": 0x50, "alignment": 3, "size": 9, "result": 22}),  # EINVAL: the block stays
                  (6, "realloc", {"in_ptr": 0x10, "size": 6, "ptr": 0x60}),  # moved
                  (7, "realloc", {"in_ptr": 0x60, "size": 7, "ptr": 0x60}),  # where it was
                  (8, "realloc", {"in_ptr": 0x60, "size": 1 << 60, "ptr": 0}),  # no memory: the block stays
                  (9, "realloc", {"in_ptr": 0x30, "size": 0, "ptr": 0}),  # freed
                  (10, "free", {"ptr": 0}), (11, "free", {"ptr": 0x20}), (12, "free", {"ptr": 0x40}), (13, "free", {"ptr": 0x50}),
                  (14, "free", {"ptr": 0x60}), (15, "malloc", {"size": 8, "ptr": 0})]
        self.assertEqual(self.spans("libc", {"lttng_ust_libc:" + name: fields for name, fields in classes.items()},
                                    [(ms, 11, "lttng_ust_libc:" + name, values) for ms, name, values in events]), [
            ("memory 1", 0, 6, None), ("memory 2", 1, 11, None), ("memory 3", 2, 9, None), ("memory 4", 3, 12, None),
            ("memory 5", 4, 13, None), ("memory 6", 6, 7, None), ("memory 7", 7, 14, None)])
        self.assertEqual([self.tags(f"memory {size}")[0]["ptr"] for size in range(1, 8)],
                         ["0x10", "0x20", "0x30", "0x40", "0x50", "0x60", "0x60"])

    def test_dl(self):
        """lttng-ust 2.13, ust_dl.h."""
        more = {"memsz": U64, "flags": Integer(32, base=16), "path": TEXT, "has_build_id": Integer(8), "has_debug_link": Integer(8)}
        values = {"memsz": 4096, "flags": 1, "path": "/lib/x.so", "has_build_id": 0, "has_debug_link": 0}
        self.assertEqual(self.spans("dl", {"lttng_ust_dl:dlopen": {"baddr": HEX, **more}, "lttng_ust_dl:dlclose": {"baddr": HEX},
                                           "lttng_ust_dl:dlmopen": {"baddr": HEX, "nsid": Integer(64, True), **more}}, [
            (0, 11, "lttng_ust_dl:dlopen", {"baddr": 1, **values}), (1, 11, "lttng_ust_dl:dlmopen", {"baddr": 2, "nsid": 1, **values}),
            (2, 12, "lttng_ust_dl:dlclose", {"baddr": 1}), (3, 11, "lttng_ust_dl:dlclose", {"baddr": 2})]), [
            ("library /lib/x.so", 0, 2, None), ("library /lib/x.so", 1, 3, None)])

    def test_pthread(self):
        """lttng-ust 2.13, ust_pthread.h."""
        held = {"mutex": HEX, "status": I32}
        names = ("lock_req", "lock_acq", "trylock", "unlock")
        self.assertEqual(self.spans("pthread", {"lttng_ust_pthread:pthread_mutex_" + name: {"mutex": HEX} if name == "lock_req" else held
                                                for name in names}, [
            (ms, thread, "lttng_ust_pthread:pthread_mutex_" + name, {"mutex": mutex, **({} if name == "lock_req" else {"status": status})})
            for ms, thread, name, mutex, status in (
                (0, 11, "lock_req", 1, 0), (1, 11, "lock_acq", 1, 0), (2, 11, "trylock", 2, 0), (3, 12, "lock_req", 1, 0),
                (4, 11, "unlock", 2, 0), (5, 11, "unlock", 1, 0), (6, 12, "lock_acq", 1, 0), (7, 12, "trylock", 2, 16),
                (8, 12, "unlock", 1, 0))]), [
            ("hold mutex", 1, 5, None), ("hold mutex", 2, 4, "hold mutex"), ("hold mutex", 6, 8, None),
            ("wait for mutex", 0, 1, None), ("wait for mutex", 3, 6, None)])

    def test_cyg_profile(self):
        """lttng-ust 2.13, lttng-ust-cyg-profile.h and -fast.h."""
        call = {"addr": HEX, "call_site": HEX}
        self.assertEqual(self.spans("cyg-profile", {
            "lttng_ust_cyg_profile:func_entry": call, "lttng_ust_cyg_profile:func_exit": call,
            "lttng_ust_cyg_profile_fast:func_entry": {"addr": HEX}, "lttng_ust_cyg_profile_fast:func_exit": {}}, [
            (0, 11, "lttng_ust_cyg_profile:func_entry", {"addr": 0x1, "call_site": 2}),
            (1, 11, "lttng_ust_cyg_profile_fast:func_entry", {"addr": 0x3}), (2, 11, "lttng_ust_cyg_profile_fast:func_exit", {}),
            (3, 11, "lttng_ust_cyg_profile:func_exit", {"addr": 0x1, "call_site": 2})]), [
            ("function 0x1", 0, 3, None), ("function 0x3", 1, 2, "function 0x1")])

    def nbd(self, cookie, chunk):
        """A read that is answered by a chunk, and a write that is answered by a simple reply; both sides on one host."""
        classes = {"nbd_send_request": {"from": U64, "len": U64, cookie: U64, "flags": Integer(16), "type": Integer(16), "name": TEXT},
                   "nbd_receive_simple_reply": {"error": I32, "errname": TEXT, cookie: U64},
                   chunk: {"flags": Integer(16), "type": Integer(16), "name": TEXT, cookie: U64, "length": U32},
                   "nbd_co_receive_request_decode_type": {cookie: U64, "type": Integer(16), "name": TEXT},
                   "nbd_co_receive_request_payload_received": {cookie: U64, "len": U64},
                   "nbd_co_send_simple_reply": {cookie: U64, "error": U32, "errname": TEXT, "len": U64},
                   "nbd_co_send_chunk_done": {cookie: U64}}
        events = [(0, 11, "nbd_send_request", {"from": 0, "len": 512, cookie: 5, "flags": 0, "type": 0, "name": "read"}),
                  (1, 20, "nbd_co_receive_request_decode_type", {cookie: 5, "type": 0, "name": "read"}),
                  (2, 21, "nbd_co_send_chunk_done", {cookie: 5}),
                  (3, 11, chunk, {"flags": 1, "type": 1, "name": "data", cookie: 5, "length": 512}),
                  (4, 11, "nbd_send_request", {"from": 0, "len": 512, cookie: 5, "flags": 0, "type": 1, "name": "write"}),
                  (5, 20, "nbd_co_receive_request_decode_type", {cookie: 5, "type": 1, "name": "write"}),
                  (6, 20, "nbd_co_receive_request_payload_received", {cookie: 5, "len": 512}),
                  (8, 21, "nbd_co_send_simple_reply", {cookie: 5, "error": 5, "errname": "EIO", "len": 0}),
                  (9, 11, "nbd_receive_simple_reply", {"error": 5, "errname": "EIO", cookie: 5})]
        self.assertEqual(self.spans("qemu", {"qemu:" + name: fields for name, fields in classes.items()},
                                    [(ms, thread, "qemu:" + name, values) for ms, thread, name, values in events]), [
            ("read", 0, 3, None), ("serve read", 1, 2, "read"), ("serve write", 5, 8, "write"), ("work", 6, 8, "serve write"),
            ("write", 4, 9, None)])
        self.assertEqual([self.tags("write")[0][key] for key in ("handle", "error")], ["5", "EIO"])

    def test_qemu(self):
        """QEMU 10.2.2, nbd/trace-events; QEMU 7.2, whose recorded trace the rules were made from."""
        self.nbd("cookie", "nbd_receive_reply_chunk_header")
        self.nbd("handle", "nbd_receive_structured_reply_chunk")

    def test_qemu_block(self):
        """QEMU 10.2.2, util/trace-events and block/trace-events; QEMU 7.2."""
        submitted = {"pool": HEX, "req": HEX, "opaque": HEX}
        offset = {"offset": U64, "nbytes": U64, "type": I32}
        for classes in (
                {"thread_pool_submit_aio": submitted, "thread_pool_complete_aio": {**submitted, "ret": I32},
                 "luring_co_submit": {"bs": HEX, "req": HEX, "fd": I32, **offset}, "luring_cqe_handler": {"req": HEX, "ret": I32}},
                {"thread_pool_submit": submitted, "thread_pool_complete": {**submitted, "ret": I32},
                 "luring_co_submit": {"bs": HEX, "s": HEX, "luringcb": HEX, "fd": I32, **offset},
                 "luring_process_completion": {"s": HEX, "aiocb": HEX, "ret": I32}}):
            names, given = list(classes), {"pool": 1, "req": 2, "opaque": 3, "ret": 0, "bs": 4, "s": 5, "luringcb": 6, "aiocb": 6, "fd": 7,
                                           "offset": 512, "nbytes": 4096, "type": 1}
            self.assertEqual(self.spans("qemu-block", {"qemu:" + name: fields for name, fields in classes.items()}, [
                (ms, thread, "qemu:" + names[i], {key: given[key] for key in classes[names[i]]})
                for ms, thread, i in ((0, 10, 0), (1, 10, 2), (2, 11, 3), (3, 10, 1))]), [
                ("io_uring", 1, 2, None), ("worker thread", 0, 3, None)])

    def test_valkey(self):
        """Valkey 9.1.2, src/trace/trace_commands.h."""
        call = {"enum_field": Enum(32, False, {"tcp": 0}), "addr": TEXT, "laddr": TEXT, "name": TEXT, "duration": U64}
        self.assertEqual(self.spans("valkey", {"valkey_commands:command_call": call}, [
            (10, 11, "valkey_commands:command_call", {"enum_field": 0, "addr": "::1:5", "laddr": "::1:6379", "name": "get", "duration": 2000})]),
            [("get", 0, 2, None)])
        self.assertEqual((self.services(), self.tags("get")[0]["laddr"]), ({"valkey"}, "::1:6379"))

    def test_ros2(self):
        """ros2_tracing of ROS 2 Iron and later, tracetools/tp_call.h."""
        self.assertEqual(self.spans("ros2", {
            "ros2:rclcpp_callback_register": {"callback": HEX, "symbol": TEXT},
            "ros2:callback_start": {"callback": HEX, "is_intra_process": I32}, "ros2:callback_end": {"callback": HEX}}, [
            (0, 10, "ros2:rclcpp_callback_register", {"callback": 5, "symbol": "Node::tick()"}),
            (1, 11, "ros2:callback_start", {"callback": 5, "is_intra_process": 0}), (2, 11, "ros2:callback_end", {"callback": 5})]),
            [("Node::tick()", 0, 1, None)])

    def test_mir(self):
        """Mir 2.20.2, src/server/report/lttng/compositor_report_tp.h."""
        frame = {"id": HEX}
        self.assertEqual(self.spans("mir", {"mir_server_compositor:" + name: frame for name in ("began_frame", "rendered_frame", "finished_frame")}, [
            (ms, 11, f"mir_server_compositor:{name}_frame", {"id": 5}) for ms, name in ((0, "began"), (1, "rendered"), (2, "finished"))]),
            [("frame", 0, 2, None)])
        self.assertEqual([len(span["annotations"]) for span in self.made.values()], [1])

    def test_phases(self):
        """rules/phases.rules is a pattern to copy from, not rules for a program."""
        api = {"operation": TEXT, "phase": Enum(8, False, {"ENTER": 0, "EXIT": 1}), "correlation_id": U64}
        self.assertEqual(self.spans("phases", {"gpu:api": api, "gpu:kernel": {"name": TEXT, "begin_ns": U64, "correlation_id": U64}}, [
            (0, 11, "gpu:api", {"operation": "launch", "phase": 0, "correlation_id": 1}),
            (2, 11, "gpu:kernel", {"name": "add", "begin_ns": 2 * MS, "correlation_id": 1}),
            (3, 11, "gpu:api", {"operation": "launch", "phase": 1, "correlation_id": 1})]),
            [("kernel add", 1, 2, "launch"), ("launch", 0, 3, None)])

    @classmethod
    def tearDownClass(cls):
        """Checks that each shipped file was tested."""
        super().tearDownClass()
        missing = {name.removesuffix(".rules") for name in os.listdir(RULES)} - cls.tested
        if missing:
            raise AssertionError(f"rules without a test: {sorted(missing)}")


if __name__ == "__main__":
    unittest.main(verbosity=1)
