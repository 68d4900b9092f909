/*
 * Fuzzes messages between agents with any JSON. A message that passes the check has the form that
 * agents rely on; a refused message has a reason of one line.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/cluster/cluster_parts.h"

#include <string.h>

/* ---- messages that the input makes: most members are right ----------------------------------- */

static json_t *wrong_value(struct fuzz *input)
{
    switch (take(input, 1) % 10) {
    case 0:
        return NULL; /* the member is missing */
    case 1:
        return json_null();
    case 2:
        return json_integer((json_int_t)take(input, 8));
    case 3:
        return json_real(1e300);
    case 4:
        return json_array();
    case 5:
        return json_object();
    case 6:
        return json_string("");
    case 7:
        return json_true();
    case 8: {
        static char text[2000];

        memset(text, 'a' + (char)(take(input, 1) % 26), sizeof(text) - 1);
        return json_stringn(text, take(input, 2) % sizeof(text));
    }
    default: {
        const struct text text = take_bytes(input, take(input, 1) % 40);

        /* NULL if it is no UTF-8; the reader refuses a NUL as well */
        return memchr(text.data, '\0', text.length) ? NULL : json_stringn(text.data, text.length);
    }
    }
}

/* Adds a member; takes the ownership of the value. */
static void put(struct fuzz *input, json_t *object, const char *name, json_t *right)
{
    json_t *value = take(input, 1) % 32 == 31 ? wrong_value(input) : json_incref(right);

    json_decref(right);
    if (value)
        (void)json_object_set_new(object, name, value);
}

static json_t *hex_of(struct fuzz *input, const char *format)
{
    char text[40];

    (void)snprintf(text, sizeof(text), format, (unsigned)take(input, 1));
    return json_string(text);
}

static json_t *span_ids(struct fuzz *input)
{
    json_t *ids = json_array();

    for (uint64_t count = take(input, 1) % 4; count; count--) {
        json_t *holder = json_object();

        put(input, holder, "id", hex_of(input, "%016x"));
        (void)json_array_append(ids, json_object_get(holder, "id"));
        json_decref(holder);
    }
    return ids;
}

static json_t *make_halves(struct fuzz *input)
{
    json_t *halves = json_array();

    for (uint64_t count = take(input, 1) % 4; count; count--) {
        const char kind = "cs-"[take(input, 1) % 3];
        char text[160];

        (void)snprintf(text, sizeof(text), "%c%0144x", kind, (unsigned)take(input, 4));
        (void)json_array_append_new(halves, json_string(text));
    }
    return halves;
}

static json_t *make_traces(struct fuzz *input, bool is_answer)
{
    json_t *traces = json_array();

    for (uint64_t count = take(input, 1) % 5; count; count--) {
        json_t *trace = json_object();

        put(input, trace, "id", hex_of(input, "%032x"));
        if (is_answer) {
            put(input, trace, "begin", json_integer((json_int_t)take(input, 8)));
            put(input, trace, "spans", json_integer((json_int_t)take(input, 1)));
            put(input, trace, "have", span_ids(input));
            put(input, trace, "want", span_ids(input));
        } else {
            put(input, trace, "why", json_string("*>1ms"));
            put(input, trace, "halves", make_halves(input));
        }
        (void)json_array_append_new(traces, trace);
    }
    return traces;
}

static json_t *make_message(struct fuzz *input)
{
    static const char *const hosts[] = {"a", "b", "c", "-a", "store_1.x"};
    const uint64_t kind = take(input, 1);
    const bool is_answer = kind % 2;
    json_t *message = json_object();

    put(input, message, "type", json_string(is_answer ? "found" : "keep"));
    put(input, message, "id", json_string("a:1:1"));
    put(input, message, "number", hex_of(input, "a:%x"));
    put(input, message, "host", json_string("a"));
    if (is_answer) {
        put(input, message, "to", json_string(hosts[take(input, 1) % 5]));
        put(input, message, "held_from", json_integer(1));
        if (kind % 8 == 1)
            put(input, message, "error", json_string("x"));
    } else {
        put(input, message, "at", json_integer(1));
        if (kind % 8 == 0) {
            put(input, message, "last_ms", json_integer((json_int_t)take(input, 4) + 1));
            put(input, message, "service", json_string("osd"));
        }
    }
    if (kind % 8 < 3)
        put(input, message, "settled", span_ids(input));
    if (kind % 8)
        put(input, message, "traces", make_traces(input, is_answer));
    return message;
}

static bool are_ids(const json_t *ids)
{
    const json_t *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        if (!json_is_string(id) || strlen(json_string_value(id)) != 16)
            return false;
    }
    return json_is_array(ids);
}

/* Requires the form of a message that its users rely on. */
static void check_form(const json_t *message)
{
    const json_t *traces = json_object_get(message, "traces"), *trace;
    const bool is_answer = strcmp(text_in(message, "type"), "found") == 0;
    size_t i;

    REQUIRE(message_is_host(text_in(message, "host")));
    REQUIRE(*text_in(message, "id") && *text_in(message, "number"));
    REQUIRE(strlen(text_in(message, "number")) <= MESSAGE_NUMBER_MAX);
    REQUIRE(is_answer || strcmp(text_in(message, "type"), "keep") == 0);
    REQUIRE(!is_answer || message_is_host(text_in(message, "to")));
    if (!is_answer && json_object_get(message, "last_ms")) {
        REQUIRE(json_integer_value(json_object_get(message, "last_ms")) > 0);
        return;
    }
    REQUIRE(json_is_array(traces));
    json_array_foreach(traces, i, trace)
    {
        REQUIRE(strlen(text_in(trace, "id")) == 32);
        REQUIRE(!is_answer || are_ids(json_object_get(trace, "have")));
        REQUIRE(!is_answer || are_ids(json_object_get(trace, "want")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz input = {data, data + size};
    json_t *messages = json_array(), *message;
    size_t i;

    while (input.at < input.end)
        (void)json_array_append_new(messages, make_message(&input));
    json_array_foreach(messages, i, message)
    {
        struct error error = {""};

        if (message_check(message, &error))
            check_form(message);
        else
            REQUIRE(error.text[0] && !strchr(error.text, '\n'));
    }
    json_decref(messages);
    return 0;
}
