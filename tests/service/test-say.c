// `blkin status` shows a service's messages: lines that differ only in numbers are one.
//
// SPDX-License-Identifier: BSD-2-Clause
#include "check.h"
#include "tools/base/say.h"

#include <string.h>

static const char *text_at(const json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "text"));
}

static json_int_t count_at(const json_t *list, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(list, i), "count"));
}

TEST(test_alike)
{
    json_t *list;

    say(BK2022, "the session is active");
    for (int i = 0; i < 1000; i++)
        say(BK4042, "trace %032x is found whole: %d spans", i, i % 7);
    say(BK2036, "the collector answers again");
    say(BK4042, "trace %032x is found whole: %d spans", 1000, 3);
    list = say_last();
    CHECK(json_array_size(list) == 3);
    CHECK_TEXT(text_at(list, 0), "the session is active");
    CHECK(count_at(list, 0) == 1);
    CHECK_TEXT(text_at(list, 1), "the collector answers again");
    CHECK_TEXT(text_at(list, 2), "trace 000000000000000000000000000003e8 is found whole: 3 spans");
    CHECK(count_at(list, 2) == 1001);
    json_decref(list);
}

/* The list has room for 16 messages: the oldest ones are dropped. */
TEST(test_many)
{
    json_t *list;
    char word[] = "a";

    for (word[0] = 'a'; word[0] <= 'z'; word[0]++)
        say(BK2036, "%s", word);
    list = say_last();
    CHECK(json_array_size(list) == 16);
    CHECK_TEXT(text_at(list, 0), "k");
    CHECK_TEXT(text_at(list, 15), "z");
    json_decref(list);
}

static const char *id_at(const json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "id"));
}

/* A child's line keeps its own id, and its prefix is shown once. */
TEST(test_lines)
{
    json_t *list;

    say_line("chunk", "BK3023 test-say: cannot read x");
    say_line("chunk", "blkin: BK8001 spans refused");
    say_line("chunk", "test-say: BK12345 is no id");
    say_line("chunk", "\x1b[2J");
    list = say_last();
    CHECK_TEXT(id_at(list, 12), "BK3023");
    CHECK_TEXT(text_at(list, 12), "chunk: cannot read x");
    CHECK_TEXT(id_at(list, 13), "BK8001");
    CHECK_TEXT(text_at(list, 13), "chunk: spans refused");
    CHECK_TEXT(id_at(list, 14), "BK1001");
    CHECK_TEXT(text_at(list, 14), "chunk: BK12345 is no id");
    CHECK_TEXT(text_at(list, 15), "chunk: ?[2J");
    json_decref(list);
}

/* The levels of the table. */
TEST(test_levels)
{
    CHECK(message_level(BK1001) == BT_LOGGING_LEVEL_WARNING);
    CHECK(message_level(BK1003) == BT_LOGGING_LEVEL_ERROR);
    CHECK(message_level(BK2022) == BT_LOGGING_LEVEL_INFO);
}

CHECK_MAIN_WITH(say_open("test-say", "error"), (void)0)
