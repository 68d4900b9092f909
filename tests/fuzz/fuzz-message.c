/*
 * Any bytes as a message between recorders: what the check lets pass has the form that recorders
 * rely on, and what does not pass is said in one line. And the hub's board takes them, whatever
 * they are: its account adds up, and each is given to whom it is for, once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "hub/board.h"
#include "record/message.h"

#include <string.h>

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

/* the board's, of service/say.c */
int64_t wall_clock_ns(void)
{
    return 1;
}

/* An input is made of these words and of what else there is in it. */
static size_t expand(char *text, size_t room, const uint8_t *data, size_t size)
{
    static const char *const words[] = {
        "{\"type\":\"keep\",\"id\":\"a:1:2\",\"post\":\"p1\",\"host\":\"a\",\"at\":1,\"traces\":[",
        "{\"type\":\"found\",\"id\":\"a:1:2\",\"post\":\"p2\",\"host\":\"a\",\"to\":\"b\",\"held_"
        "from\":0,\"traces\":[",
        "{\"id\":\"0123456789abcdef0123456789abcdef\",\"why\":\"x\"}",
        "{\"id\":\"0123456789abcdef0123456789abcdee\",\"spans\":1,\"have\":[\"0123456789abcdef\"],"
        "\"want\":[]}",
        "{\"id\":\"0123456789abcdef0123456789abcded\"",
        ",\"spans\":1",
        ",\"have\":[]",
        ",\"want\":[]",
        "\"0123456789abcdef\"",
        "{",
        "}",
        "[",
        "]",
        "]}",
        ",",
        "\"id\":",
        "\"post\":",
        "\"host\":",
        "\"to\":",
        "\"type\":",
        "\"traces\":",
        "\"why\":",
        "\"have\":",
        "\"want\":",
        "\"spans\":",
        "\"held_from\":",
        "\"last_ms\":",
        "\"service\":",
        "\"error\":",
        "\"at\":",
        "\"keep\"",
        "\"found\"",
        "\"b\"",
        "\"a\"",
        "-1",
        "99999999999999999999",
        "1e300",
        "null",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\xc3\xbc\"",
    };
    size_t length = 0;

    for (size_t i = 0; i < size && length + 128 < room; i++) {
        const char *word = data[i] < sizeof(words) / sizeof(words[0]) ? words[data[i]] : NULL;

        if (word) {
            memcpy(text + length, word, strlen(word));
            length += strlen(word);
        } else {
            text[length++] = (char)data[i];
        }
    }
    return length;
}

/* What those who work with a message rely on. */
static void check_form(const json_t *message)
{
    const json_t *traces = json_object_get(message, "traces"), *trace;
    const bool is_answer = strcmp(message_text(message, "type"), "found") == 0;
    size_t i;

    REQUIRE(message_is_host(message_text(message, "host")));
    REQUIRE(*message_text(message, "id") && *message_text(message, "post"));
    REQUIRE(strlen(message_text(message, "post")) <= POST_MAX);
    REQUIRE(is_answer || strcmp(message_text(message, "type"), "keep") == 0);
    REQUIRE(!is_answer || message_is_host(message_text(message, "to")));
    if (!is_answer && json_object_get(message, "last_ms")) {
        REQUIRE(json_integer_value(json_object_get(message, "last_ms")) > 0);
        return;
    }
    REQUIRE(json_is_array(traces));
    json_array_foreach(traces, i, trace)
    {
        REQUIRE(strlen(message_text(trace, "id")) == 32);
        REQUIRE(!is_answer || json_is_array(json_object_get(trace, "have")));
    }
}

static void told(void *context, struct host *to)
{
    (void)context;
    REQUIRE(message_is_host(to->name));
}

/* All that `host` is given, as it would be sent. */
static size_t given(struct board *board, struct host *host)
{
    struct printer printer = {.has_failed = false};
    uint64_t has;
    json_t *messages, *message;
    size_t i, count;

    print_string(&printer, "[");
    has = board_print(board, host, 1 << 20, &printer);
    print_text(&printer, "]", 2);
    messages = json_loads(printer.buffer.data, 0, NULL);
    REQUIRE(json_is_array(messages));
    json_array_foreach(messages, i, message) check_form(message);
    count = json_array_size(messages);
    json_decref(messages);
    free(printer.buffer.data);
    board_has(board, host, has);
    REQUIRE(!board_has_news(board, host) && host->counts.delivered == count);
    return count;
}

static void check_counts(const struct host_counts *counts)
{
    REQUIRE(counts->posted ==
            counts->accepted + counts->doubles + counts->refused + counts->capped);
}

/* Each is given to two, an answer to one. */
static size_t requests_in(const json_t *messages)
{
    const json_t *message;
    size_t i, count = 0;

    json_array_foreach(messages, i, message) count +=
        strcmp(message_text(message, "type"), "keep") == 0;
    return count;
}

static void post_all(const json_t *messages)
{
    static struct board board;
    struct posted posted = {.refused = json_array(), .dropped = json_array()};
    struct host *a, *b, *c;
    const json_t *message;
    size_t i;

    REQUIRE(board_open(&board, 2, 1000));
    a = board_host(&board, "a", 1000);
    b = board_host(&board, "b", 1000);
    c = board_host(&board, "c", 1000);
    json_array_foreach(messages, i, message)
        board_post(&board, a, message, 1000, &posted, told, NULL);
    check_counts(&a->counts);
    REQUIRE(a->counts.posted == json_array_size(messages));
    REQUIRE(posted.accepted == a->counts.accepted && posted.doubles == a->counts.doubles);
    REQUIRE(given(&board, a) + given(&board, b) + given(&board, c) <=
            a->counts.accepted + requests_in(messages));
    board_tick(&board, 1000 + BOARD_AGE_MS + 1);
    REQUIRE(board.oldest == board.next && board.bytes == 0);
    board_close(&board);
    json_decref(posted.refused);
    json_decref(posted.dropped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[16384];
    const size_t length = expand(text, sizeof(text), data, size);
    json_t *json = json_loadb(text, length, 0, NULL);
    json_t *several;
    struct error error = {""};

    if (message_check(json, &error))
        check_form(json);
    else
        REQUIRE(error.text[0] && !strchr(error.text, '\n'));
    several = json_is_array(json) ? json_incref(json) : json_pack("[O, O]", json, json);
    if (several)
        post_all(several);
    json_decref(several);
    json_decref(json);
    return 0;
}

#pragma clang attribute pop
