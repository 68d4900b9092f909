/*
 * Metrics of hosts from anybody: a worker's messages, the root's, and a sink's events; and the page
 * that is made of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/hosts/fleet_page.h"
#include "babeltrace-plugin/hosts/host_board.h"
#include "fuzz.h"
#include "tools/points/otlp_points.h"
#include "tools/merged/fleet_deltas.h"

#define NOW (INT64_C(1790000000) * 1000000000)

static void add(void *context, const struct fleet_point *point)
{
    REQUIRE(fleet_add(context, point, NOW));
}

static void take_events(struct host_board *board, struct text text)
{
    struct event event = {.kind = EVENT_METRIC, .origin = {.host = text_of("h")}};

    for (int i = 0; i < 3; i++) {
        const size_t half = text.length / 2;

        event.group = (struct text){text.data, text.length % 3};
        event.instance = (struct text){text.data, text.length % 7};
        event.names = (struct text){text.data, half};
        event.values = i ? (struct text){text.data + half, text.length - half} : text_of("1 2");
        host_board_take_event(board, &event, NOW + i * INT64_C(1000000000));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text text = {(const char *)data, size};
    struct error error;
    struct fleet *fleet = fleet_new("all=*;=a*", &error);
    struct host_board *board = host_board_new(true, NULL, &error);
    struct printer text_of_page = {.has_failed = false};
    struct page page = {.count = 0};
    const struct otlp_points_read told = otlp_points_read(text, add, fleet);
    char *shown;

    REQUIRE(told.points == fleet_counts(fleet)->points);
    REQUIRE(fleet_deltas_read(text.data, text.length, fleet, NOW));
    take_events(board, text);
    fleet_page(&page, fleet, NOW + FLEET_WINDOW_NS);
    page_print(&page, &text_of_page);
    shown = print_end(&text_of_page);
    REQUIRE(shown);
    free(shown);
    shown = host_board_page(board);
    REQUIRE(shown);
    free(shown);
    host_board_free(board);
    fleet_free(fleet);
    return 0;
}
