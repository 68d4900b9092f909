/*
 * Rules of Zipkin's own decoder and of the Go decoders (OpenTelemetry collector, Jaeger, Tempo).
 * Every encoded span must obey the rules, because a span that breaks one costs a whole batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_ZIPKIN_RULES_H
#define TESTS_PLUGIN_ZIPKIN_RULES_H

#include <arpa/inet.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static inline bool rule_is_id(const json_t *value)
{
    const char *id = json_string_value(value);

    return id && json_string_length(value) == 16 && strspn(id, "0123456789abcdef") == 16 &&
           strcmp(id, "0000000000000000") != 0;
}

/* Microseconds whose nanoseconds fit 64 bits: the Go decoders multiply. */
static inline bool rule_is_time(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) > 0 &&
           json_integer_value(value) <= INT64_MAX / 1000;
}

static inline bool rule_is_duration(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 1;
}

static inline const char *endpoint_fault(json_t *endpoint)
{
    const char *key;
    json_t *value;
    unsigned char address[16];

    if (!json_is_object(endpoint))
        return "no localEndpoint";
    json_object_foreach(endpoint, key, value)
    {
        if (strcmp(key, "serviceName") == 0) {
            if (json_string_length(value) == 0)
                return "empty service name";
        } else if (strcmp(key, "ipv4") == 0) {
            if (!json_is_string(value) ||
                inet_pton(AF_INET, json_string_value(value), address) != 1)
                return "ipv4 is no address";
        } else if (strcmp(key, "ipv6") == 0) {
            if (!json_is_string(value) ||
                inet_pton(AF_INET6, json_string_value(value), address) != 1)
                return "ipv6 is no address";
        } else if (strcmp(key, "port") == 0) {
            if (!json_is_integer(value) || json_integer_value(value) < 1 ||
                json_integer_value(value) > 65535)
                return "port out of range";
        } else {
            return "unknown member of the endpoint";
        }
    }
    return NULL;
}

static inline const char *annotations_fault(json_t *annotations)
{
    size_t i;
    json_t *annotation;

    if (!json_is_array(annotations) || json_array_size(annotations) == 0)
        return "annotations are not an array, or are empty";
    json_array_foreach(annotations, i, annotation)
    {
        const json_t *value = json_object_get(annotation, "value");

        if (json_object_size(annotation) != 2 ||
            !rule_is_time(json_object_get(annotation, "timestamp")) || !json_is_string(value))
            return "not an annotation";
        if (memchr(json_string_value(value), '|', json_string_length(value)))
            return "'|' in an annotation";
    }
    return NULL;
}

/* A link as a collector reads it: trace id, span id, no state, no attributes, none lost. */
static inline bool rule_is_link(const json_t *value)
{
    const char *text = json_string_value(value);

    return strspn(text, "0123456789abcdef") == 32 && text[32] == '|' &&
           strspn(text + 33, "0123456789abcdef") == 16 && strcmp(text + 49, "||{}|0") == 0;
}

/* Does the OpenTelemetry collector's receiver give a tag of this name another meaning? */
static inline bool rule_is_reserved_key(const char *key)
{
    static const char *const prefixes[] = {"aws.",     "cloud.",   "container.", "deployment.",
                                           "device.",  "faas.",    "host.",      "k8s.",
                                           "os.",      "otel.",    "otlp.",      "opencensus.",
                                           "process.", "service.", "telemetry.", "webengine."};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return strcmp(key, "span.kind") == 0 || strcmp(key, "w3c.tracestate") == 0;
}

static inline const char *tags_fault(json_t *tags)
{
    const char *key;
    json_t *value;

    if (!json_is_object(tags) || json_object_size(tags) == 0)
        return "tags are not an object, or are empty";
    json_object_foreach(tags, key, value)
    {
        if (!json_is_string(value))
            return "a tag that is not a string";
        if (strncmp(key, "otlp.link.", 10) == 0) {
            if (!rule_is_link(value))
                return "a malformed link";
            continue;
        }
        if (rule_is_reserved_key(key))
            return "a tag with a key that a receiver gives another meaning";
    }
    return NULL;
}

/* 16 digits, or 32 of which the first 16 are not all zeros. */
static inline bool rule_is_trace_id(const json_t *value)
{
    const char *digits = json_string_value(value);

    if (json_string_length(value) != 32)
        return rule_is_id(value);
    return strspn(digits, "0123456789abcdef") == 32 && strspn(digits, "0") < 16;
}

static inline bool rule_is_kind(const json_t *value)
{
    static const char *const kinds[] = {"CLIENT", "SERVER", "PRODUCER", "CONSUMER"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), kinds[i]) == 0)
            return true;
    }
    return false;
}

static inline const char *member_fault(json_t *span, const char *key, json_t *value)
{
    if (strcmp(key, "traceId") == 0)
        return rule_is_trace_id(value) ? NULL : "bad trace id";
    if (strcmp(key, "id") == 0)
        return rule_is_id(value) ? NULL : "bad id";
    if (strcmp(key, "parentId") == 0)
        return rule_is_id(value) && !json_equal(value, json_object_get(span, "id"))
                   ? NULL
                   : "bad parent id";
    if (strcmp(key, "name") == 0)
        return json_string_length(value) > 0 ? NULL : "empty name";
    if (strcmp(key, "kind") == 0)
        return rule_is_kind(value) ? NULL : "bad kind";
    if (strcmp(key, "timestamp") == 0)
        return rule_is_time(value) ? NULL : "bad timestamp";
    if (strcmp(key, "duration") == 0)
        return rule_is_duration(value) && json_object_get(span, "timestamp") ? NULL
                                                                             : "bad duration";
    if (strcmp(key, "debug") == 0)
        return json_is_true(value) ? NULL : "debug is not true";
    if (strcmp(key, "shared") == 0)
        return json_is_true(value) ? NULL : "shared is not true";
    if (strcmp(key, "localEndpoint") == 0 || strcmp(key, "remoteEndpoint") == 0)
        return endpoint_fault(value);
    if (strcmp(key, "annotations") == 0)
        return annotations_fault(value);
    if (strcmp(key, "tags") == 0)
        return tags_fault(value);
    return "unknown member";
}

/* Returns the rule that the span breaks; NULL: none. */
static inline const char *span_fault(json_t *span)
{
    const char *key;
    json_t *value;

    if (!json_is_object(span) || !json_object_get(span, "traceId") ||
        !json_object_get(span, "id") || !json_object_get(span, "localEndpoint"))
        return "not an object, or without traceId, id or localEndpoint";
    json_object_foreach(span, key, value)
    {
        const char *fault = member_fault(span, key, value);

        if (fault)
            return fault;
    }
    return NULL;
}

/* Returns the first fault of the text before parsing; NULL: none. */
static inline const char *text_fault(const char *text, size_t length)
{
    static const char v1_marker[] = "yAnnotations\"";

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < 0x20)
            return "raw control character";
    }
    if (memmem(text, length, v1_marker, sizeof(v1_marker) - 1))
        return "Zipkin would take it for its format v1";
    return NULL;
}

/* Loads JSON as strictly as any decoder does: no key twice, no NUL. The caller frees. */
static inline json_t *span_load(const char *text, size_t length, json_error_t *error)
{
    return json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
}

#endif
