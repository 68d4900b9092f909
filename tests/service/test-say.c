// What `blkin status` shows of what a service has said: lines that differ in numbers only are one.
//
// SPDX-License-Identifier: BSD-2-Clause
#include "check.h"
#include "tools/base/say.h"

#include <stdio.h>
#include <string.h>

static const char *text_at(const json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "text"));
}

static json_int_t count_at(const json_t *list, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(list, i), "count"));
}

static void test_alike(void)
{
    json_t *list;

    say(BT_LOGGING_LEVEL_INFO, "the session is active");
    for (int i = 0; i < 1000; i++)
        say(BT_LOGGING_LEVEL_INFO, "trace %032x is found whole: %d spans", i, i % 7);
    say(BT_LOGGING_LEVEL_INFO, "the collector answers again");
    say(BT_LOGGING_LEVEL_INFO, "trace %032x is found whole: %d spans", 1000, 3);
    list = say_last();
    CHECK(json_array_size(list) == 3);
    CHECK_TEXT(text_at(list, 0), "the session is active");
    CHECK(count_at(list, 0) == 1);
    CHECK_TEXT(text_at(list, 1), "the collector answers again");
    CHECK_TEXT(text_at(list, 2), "trace 000000000000000000000000000003e8 is found whole: 3 spans");
    CHECK(count_at(list, 2) == 1001);
    json_decref(list);
}

/* The oldest go. */
static void test_many(void)
{
    json_t *list;
    char word[] = "a";

    for (word[0] = 'a'; word[0] <= 'z'; word[0]++)
        say(BT_LOGGING_LEVEL_INFO, "%s", word);
    list = say_last();
    CHECK(json_array_size(list) == 16);
    CHECK_TEXT(text_at(list, 0), "k");
    CHECK_TEXT(text_at(list, 15), "z");
    json_decref(list);
}

int main(void)
{
    say_open("test-say", "error");
    test_alike();
    test_many();
    return check_status();
}
