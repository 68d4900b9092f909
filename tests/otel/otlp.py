"""Reads OTLP requests and makes answers with Google's protobuf library, as a receiver may.

The messages are those of opentelemetry-proto 1.x, made here from a table, as far as the tests need them.

SPDX-License-Identifier: BSD-2-Clause
"""
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# message: "name=number:type", with [] for repeated; a type with a capital letter is a message
MESSAGES = {
    "ExportTraceServiceRequest": "resource_spans[]=1:ResourceSpans",
    "ResourceSpans": "resource=1:Resource scope_spans[]=2:ScopeSpans schema_url=3:string",
    "Resource": "attributes[]=1:KeyValue dropped_attributes_count=2:uint32",
    "ScopeSpans": "scope=1:InstrumentationScope spans[]=2:Span schema_url=3:string",
    "InstrumentationScope": "name=1:string version=2:string attributes[]=3:KeyValue",
    "Span": "trace_id=1:bytes span_id=2:bytes trace_state=3:string parent_span_id=4:bytes name=5:string "
            "kind=6:int32 start_time_unix_nano=7:fixed64 end_time_unix_nano=8:fixed64 "
            "attributes[]=9:KeyValue dropped_attributes_count=10:uint32 events[]=11:Event "
            "dropped_events_count=12:uint32 links[]=13:Link dropped_links_count=14:uint32 "
            "status=15:Status flags=16:fixed32",
    "Event": "time_unix_nano=1:fixed64 name=2:string attributes[]=3:KeyValue",
    "Link": "trace_id=1:bytes span_id=2:bytes trace_state=3:string attributes[]=4:KeyValue flags=6:fixed32",
    "Status": "message=2:string code=3:int32",
    "KeyValue": "key=1:string value=2:AnyValue",
    "AnyValue": "string_value=1:string bool_value=2:bool int_value=3:int64 double_value=4:double "
                "array_value=5:ArrayValue kvlist_value=6:KeyValueList bytes_value=7:bytes",
    "ArrayValue": "values[]=1:AnyValue",
    "KeyValueList": "values[]=1:KeyValue",
    "ExportTraceServiceResponse": "partial_success=1:PartialSuccess",
    "PartialSuccess": "rejected_spans=1:int64 error_message=2:string",
    "RpcStatus": "code=1:int32 message=2:string",
}


def make_classes():
    file = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        is_any = name == "AnyValue"
        if is_any:
            message.oneof_decl.add(name="value")
        for text in fields.split():
            label, rest = text.split("=")
            number, kind = rest.split(":")
            field = message.field.add(name=label.rstrip("[]"), number=int(number))
            field.label = 3 if label.endswith("[]") else 1
            if kind[0].isupper():
                field.type, field.type_name = 11, ".otlp." + kind
            else:
                field.type = getattr(field, "TYPE_" + kind.upper())
            if is_any:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    get = getattr(message_factory, "GetMessageClass", None) or \
        message_factory.MessageFactory(pool).GetPrototype
    return {name: get(pool.FindMessageTypeByName("otlp." + name)) for name in MESSAGES}


CLASSES = make_classes()


def field(number, data):
    """Returns a field of a message as bytes."""
    length, head = len(data), bytes([number << 3 | 2])
    while length >= 128:
        head, length = head + bytes([length % 128 + 128]), length // 128
    return head + bytes([length]) + data


def request(body):
    """Returns the request of these bytes; raises an error for invalid bytes or texts."""
    return CLASSES["ExportTraceServiceRequest"].FromString(bytes(body))


def response(rejected=0, message=""):
    answer = CLASSES["ExportTraceServiceResponse"]()
    answer.partial_success.rejected_spans = rejected
    answer.partial_success.error_message = message
    return answer.SerializeToString()


def rpc_status(code, message):
    return CLASSES["RpcStatus"](code=code, message=message).SerializeToString()


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(element) for element in any_value.array_value.values]
    return getattr(any_value, kind) if kind else None


def attributes(pairs):
    """Returns a dict; no key may come twice."""
    result = {pair.key: value(pair.value) for pair in pairs}
    assert len(result) == len(pairs), "a key twice: %s" % [pair.key for pair in pairs]
    return result


def spans(body):
    """Yields each span with its resource's attributes, in the order of the request."""
    for group in request(body).resource_spans:
        resource = attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield resource, scope.scope, span
