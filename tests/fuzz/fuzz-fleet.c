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

/* As a host sends it, and then perhaps with a byte that is another one. */
static struct text make_message(struct input *source, struct buffer *buffer)
{
    static const char *const metrics[] = {"system.disk.io.read", "system.cpu.time.user", "own"};
    static const char *const units[] = {"By", "ns", "1"};
    static const char *const instances[] = {"", "vda", "cpu3", "redis-server[123]"};
    struct fleet_point points[8];
    const size_t count = 1 + take(source, 1) % 8;

    for (size_t i = 0; i < count; i++) {
        const uint64_t choice = take(source, 1);

        points[i] = (struct fleet_point){
            .host = text_of("a1"),
            .metric = text_of(metrics[choice % 3]),
            .unit = text_of(units[choice % 3]),
            .instance = text_of(instances[choice / 3 % 4]),
            .is_counter = choice < 200,
            .value = take(source, choice % 16 ? 2 : 8),
            .start_ns = NOW - (int64_t)(choice % 5) * INT64_C(1000000000),
            .end_ns = NOW + (int64_t)(choice % 7) * INT64_C(100000000),
        };
    }
    REQUIRE(otlp_points_write(text_of("a1"), points, count, buffer) == count);
    if (take(source, 1) % 2)
        buffer->data[take(source, 2) % buffer->length] = (char)take(source, 1);
    return (struct text){buffer->data, buffer->length};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer buffer = {.limit = OTLP_POINTS_BYTES};
    struct input source = {data, data + size};
    const struct text text = take(&source, 1) & 1 ? make_message(&source, &buffer)
                                                  : (struct text){(const char *)data, size};
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
    buffer_free(&buffer);
    host_board_free(board);
    fleet_free(fleet);
    return 0;
}
