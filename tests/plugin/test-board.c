/*
 * The page of a host: what it shows after the host's clock was set back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/hosts/host_board.h"
#include "babeltrace-plugin/hosts/page.h"
#include "check.h"

#include <stdlib.h>

#define S   INT64_C(1000000000)
#define NOW (1700000000 * S)

static void take(struct host_board *board, int64_t time_ns, uint64_t value)
{
    const struct sample_metric metric = {{"a.b", 3}, {"1", 1}, true};
    const struct sample sample = {
        .host = {"h", 1},
        .group = {"g", 1},
        .time_ns = time_ns,
        .count = 1,
        .metrics = &metric,
        .values = &value,
        .present = 1,
    };

    host_board_take(board, &sample);
}

static void shows(struct host_board *board, const char *value)
{
    char *page = host_board_page(board);

    CHECK(page && strstr(page, value));
    if (page && !strstr(page, value))
        fprintf(stderr, "no \"%s\" in: %s\n", value, page);
    free(page);
}

/* Prometheus knows no comma. */
static void test_fraction(void)
{
    struct page page = {0};
    struct printer to = {.has_failed = false};
    char *text;

    page_begin(&page, PAGE_GAUGE, "CPU busy.", "blkin_host_cpu", "_ratio");
    page_label(&page, "host", text_of("a"));
    page_end(&page, 0.25);
    page_print(&page, &to);
    text = print_end(&to);
    CHECK(text && strstr(text, "{host=\"a\"} 0.25\n"));
    free(text);
}

int main(void)
{
    struct error error;
    struct host_board *board = host_board_new(false, NULL, &error);

    CHECK(board != NULL);
    if (!board)
        return check_status();
    take(board, NOW, 1000);
    shows(board, "} 1000\n");
    take(board, NOW + S, 1010);
    shows(board, "} 1010\n");
    take(board, NOW + S - 1000, 1009); /* by another session */
    shows(board, "} 1010\n");
    take(board, NOW - 86400 * S, 1020); /* NTP has set the clock */
    shows(board, "} 1020\n");
    take(board, NOW - 86399 * S, 1030);
    shows(board, "} 1030\n");
    take(board, -S, 7); /* nonsense */
    shows(board, "} 1030\n");
    host_board_free(board);
    test_fraction();
    return check_status();
}
