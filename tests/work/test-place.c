/*
 * The place of a worker: from the text of a commit, and after the log has lost messages.
 * test-partition.c writes the text of a place, and reads it back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/work/partition.h"

#include <stdbool.h>

static bool is_place(struct place place, int64_t watermark, int64_t read_back, int64_t read_to,
                     int64_t time_ms)
{
    return place.watermark == watermark && place.read_back == read_back &&
           place.read_to == read_to && place.time_ms == time_ms;
}

TEST(test_other_texts)
{
    static const struct {
        const char *text;
        struct place place; /* at the watermark 10 */
    } cases[] = {
        {"", {10, 10, 10, 0}},
        {"blkin1", {10, 10, 10, 0}},
        {"blkin1 3", {10, 10, 10, 0}},
        {"blkin1 3 12", {10, 3, 12, 0}}, /* as written by versions without times */
        {"blkin1 3 12 77", {10, 3, 12, 77}},
        {"blkin1 3 12 -77", {10, 3, 12, 0}},
        {"blkin1 0 10", {10, 0, 10, 0}},
        {"blkin1 10 10", {10, 10, 10, 0}},
        {"blkin1 -1 12", {10, 10, 10, 0}},
        {"blkin1 11 12", {10, 10, 10, 0}},
        {"blkin1 3 9", {10, 10, 10, 0}},
        {"blkin2 3 12", {10, 10, 10, 0}},
        {"somebody else's", {10, 10, 10, 0}},
    };
    char text[PLACE_TEXT_MAX + 1];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct place *place = &cases[i].place;

        CHECK(is_place(place_read(10, text_of(cases[i].text)), place->watermark, place->read_back,
                       place->read_to, place->time_ms));
    }
    /* a text that fills the room, and one that is longer than any of ours */
    (void)snprintf(text, sizeof(text), "blkin1 3 12%*s", PLACE_TEXT_MAX - 1 - 11, "");
    CHECK(is_place(place_read(10, text_of(text)), 10, 3, 12, 0));
    (void)snprintf(text, sizeof(text), "blkin1 3 12%*s", PLACE_TEXT_MAX - 11, "");
    CHECK(is_place(place_read(10, text_of(text)), 10, 10, 10, 0));
}

TEST(test_cut)
{
    const struct place place = {.watermark = 20, .read_back = 10, .read_to = 30, .time_ms = 5};

    CHECK(is_place(place_cut(&place, 0, 25), 20, 10, 25, 5));
    CHECK(is_place(place_cut(&place, 0, 15), 15, 10, 15, 5));
    CHECK(is_place(place_cut(&place, 0, 5), 5, 5, 5, 5));
    CHECK(is_place(place_cut(&place, 12, 25), 20, 12, 25, 5));
    CHECK(is_place(place_cut(&place, 22, 25), 22, 22, 25, 5));
    CHECK(is_place(place_cut(&place, 10, 20), 20, 10, 20, 5));
    CHECK(is_place(place_cut(&place, 0, 0), 0, 0, 0, 5)); /* the topic was made again */
}

CHECK_MAIN
