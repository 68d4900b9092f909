/*
 * Metrics of hosts, added up: by one, and by several whose deltas are added up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/hosts/fleet_page.h"
#include "babeltrace-plugin/hosts/host_board.h"
#include "check.h"
#include "seed.h"
#include "tools/points/otlp_names.h"
#include "tools/points/otlp_points.h"
#include "tools/merged/fleet_deltas.h"
#include "tools/merged/merged.h"

#include <math.h>
#include <stdlib.h>

#define SECOND  INT64_C(1000000000)
#define BEGIN   (INT64_C(1790000000) * SECOND) /* of a window */
#define HOSTS   9
#define METRICS 4
#define WORKERS 3

static struct fleet *new_fleet(const char *groups)
{
    struct error error;
    struct fleet *fleet = fleet_new(groups, &error);

    if (!fleet) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return fleet;
}

static struct fleet_point point_of(const char *host, const char *metric, bool is_counter,
                                   uint64_t value, double start_s, double end_s)
{
    return (struct fleet_point){
        .host = text_of(host),
        .metric = text_of(metric),
        .unit = text_of("By"),
        .instance = {"", 0},
        .is_counter = is_counter,
        .value = value,
        .start_ns = BEGIN + (int64_t)(start_s * 1e9),
        .end_ns = BEGIN + (int64_t)(end_s * 1e9),
    };
}

static const struct fleet_row *row_of(struct fleet *fleet, const char *hosts, const char *metric)
{
    return fleet_row_of(fleet, text_of(hosts), text_of(metric), (struct text){"", 0});
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void test_windows(void)
{
    struct fleet *fleet = new_fleet("all=*;db=db-*");
    struct fleet_point point = point_of("db-1", "c", true, 2500, -5, 20);
    const struct fleet_row *row;
    const struct fleet_window *window;

    CHECK(fleet_add(fleet, &point, BEGIN + 20 * SECOND));
    point = point_of("web-1", "c", true, 500, 0, 10);
    CHECK(fleet_add(fleet, &point, BEGIN + 11 * SECOND));
    row = row_of(fleet, "all", "c");
    CHECK(row->samples == 2 && row->increase == 3000);
    /* 25 s are the longest time that anything has taken to come */
    CHECK(!fleet_shown(row, BEGIN + 24 * SECOND));
    window = fleet_shown(row, BEGIN + 36 * SECOND);
    CHECK(window && window->number == BEGIN / FLEET_WINDOW_NS);
    CHECK(window && window->hosts == 2 && window->elapsed_ns == 20 * (uint64_t)SECOND &&
          window->increase == 1500 && is_near(fleet_average(row, window), 75));
    CHECK(window && window->min == 50 && window->max == 100);
    window = fleet_shown(row, BEGIN + 46 * SECOND);
    CHECK(window && window->number == BEGIN / FLEET_WINDOW_NS + 1 && window->hosts == 1 &&
          window->increase == 1000);
    CHECK(fleet_shown(row, BEGIN + 69 * SECOND));
    CHECK(!fleet_shown(row, BEGIN + 90 * SECOND)); /* nothing has come since */
    row = row_of(fleet, "db", "c");
    CHECK(row->samples == 1 && row->increase == 2500);
    fleet_free(fleet);
}

/* A gauge is what it was until the next sample. */
static void test_gauges(void)
{
    struct fleet *fleet = new_fleet(NULL);
    struct fleet_point point = point_of("a", "g", false, 10, 0, 9);
    const struct fleet_window *window;
    const struct fleet_row *row;

    CHECK(fleet_add(fleet, &point, BEGIN + 9 * SECOND));
    point = point_of("a", "g", false, 110, 9, 10);
    CHECK(fleet_add(fleet, &point, BEGIN + 10 * SECOND));
    row = row_of(fleet, "all", "g");
    window = fleet_shown(row, BEGIN + 20 * SECOND);
    CHECK(window && is_near(fleet_average(row, window), 20) && window->max == 110);
    fleet_free(fleet);
}

static void test_hostile_points(void)
{
    static const int64_t times[] = {INT64_MIN,     -1,       0, 1, BEGIN, BEGIN + 1,
                                    INT64_MAX - 1, INT64_MAX};
    struct fleet *fleet = new_fleet("=*;x=[;y=*");
    char name[2000];

    memset(name, 'x', sizeof(name));
    for (size_t i = 0; i < 8 * 8 * 2; i++) {
        const struct fleet_point point = {
            .host = {name, i * 15},
            .metric = {name, i % 3 * 800},
            .unit = {"\xff\0", 2},
            .instance = text_of(i % 2 ? "a[1]" : "]"),
            .is_counter = i / 64,
            .value = UINT64_MAX,
            .start_ns = times[i % 8],
            .end_ns = times[i / 8 % 8],
        };

        CHECK(fleet_add(fleet, &point, BEGIN));
    }
    CHECK(fleet_counts(fleet)->points == 128);
    for (int i = 0; i < 2 * FLEET_ROWS_MAX; i++) {
        struct fleet_point point;

        (void)snprintf(name, sizeof(name), "m%d", i);
        point = point_of("h", name, true, 1, 0, 1);
        CHECK(fleet_add(fleet, &point, BEGIN + SECOND));
    }
    CHECK(fleet_rows(fleet) <= FLEET_ROWS_MAX);
    fleet_free(fleet);
}

static void test_groups(void)
{
    static const char *const wrong[] = {"x", "x=", ";", "a=b;=", "=,"};
    struct error error;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(!fleet_new(wrong[i], &error));
        CHECK(error.text[0]);
    }
}

/* ---- several workers, and one ---------------------------------------------------------------- */

struct told {
    struct fleet *root;
    struct merged *merged;
};

static bool take_message(void *context, const char *data, size_t length)
{
    const struct told *told = context;
    struct error error;

    CHECK(fleet_deltas_read(data, length, told->root, BEGIN + 3600 * SECOND));
    CHECK(merged_add_message(told->merged, data, length, BEGIN + 3600 * SECOND, &error));
    CHECK(!error.text[0]);
    /* damaged ones are refused as a whole, or are something else: never out of bounds */
    for (size_t cut = 0; cut < length; cut += 1 + length / 7) {
        char *copy = malloc(cut + 1);
        struct fleet *other = new_fleet(NULL);

        memcpy(copy, data, cut);
        (void)fleet_deltas_read(copy, cut, other, BEGIN);
        free(copy);
        fleet_free(other);
    }
    return true;
}

static void check_same(struct fleet *root, const struct fleet *whole)
{
    const struct names *names = fleet_names(whole);

    CHECK(fleet_rows(root) == fleet_rows(whole));
    for (size_t i = 0; i < fleet_rows(whole); i++) {
        const struct fleet_row *row = fleet_row(whole, i);
        const struct fleet_row *other =
            fleet_row_of(root, names_text(names, row->hosts), names_text(names, row->metric),
                         names_text(names, row->instance));

        CHECK(row->samples == other->samples && row->increase == other->increase &&
              row->is_counter == other->is_counter);
        for (size_t k = 0; k < FLEET_WINDOWS; k++) {
            const struct fleet_window *a = &row->windows[k], *b = &other->windows[k];

            CHECK(a->is_there == b->is_there && a->number == b->number && a->hosts == b->hosts &&
                  a->elapsed_ns == b->elapsed_ns && a->increase == b->increase);
            CHECK(!a->is_there || (is_near(a->integral, b->integral) && a->min == b->min &&
                                   a->max == b->max && a->delay_ns == b->delay_ns));
        }
    }
}

static void write_deltas(struct fleet *worker, struct told *told)
{
    const struct deltas_head head = {
        .instance = "worker", .group = "g", .start_ns = BEGIN, .end_ns = BEGIN + SECOND};
    struct buffer buffer = {0};

    CHECK(fleet_deltas_write(&head, worker, &buffer, take_message, told));
    fleet_begin_period(worker);
    buffer_free(&buffer);
}

static void test_deltas(void)
{
    static const char groups[] = "all=*; even=*0,*2,*4,*6,*8; one=host-1";
    struct fleet *workers[WORKERS], *whole = new_fleet(groups);
    struct told told = {new_fleet(NULL), merged_new()};
    double times[HOSTS] = {0};
    char *document, *page;
    struct merged *again = merged_new();
    struct printer printer = {.has_failed = false};
    struct page of_hosts = {.count = 0};
    struct error error;
    json_t *json;

    for (int i = 0; i < WORKERS; i++)
        workers[i] = new_fleet(groups);
    for (int i = 0; i < 3000; i++) {
        const size_t host = dice(HOSTS);
        const double end = times[host] + 0.1 + (double)dice(500) / 100;
        const int metric = (int)dice(METRICS);
        char name[32], what[32];
        struct fleet_point point;

        (void)snprintf(name, sizeof(name), "host-%zu", host);
        (void)snprintf(what, sizeof(what), "metric \"%d\" \\\xc3\xa9", metric);
        point = point_of(name, what, metric % 2, dice(1 << 30), times[host], end);
        times[host] = end;
        CHECK(fleet_add(whole, &point, point.end_ns));
        CHECK(fleet_add(workers[dice(WORKERS)], &point, point.end_ns));
        if (dice(30) == 0)
            write_deltas(workers[dice(WORKERS)], &told);
    }
    for (int i = 0; i < WORKERS; i++)
        write_deltas(workers[i], &told);
    check_same(told.root, whole);
    check_same(told.merged->fleet, whole);
    /* its document says the same, and is read again */
    document = merged_document(told.merged, BEGIN + 3600 * SECOND);
    json = json_loads(document, 0, NULL);
    CHECK(json && merged_add_document(again, json, &error));
    CHECK(fleet_rows(again->fleet) == fleet_rows(whole));
    for (size_t i = 0; i < fleet_rows(whole); i++)
        CHECK(fleet_row(again->fleet, i)->samples == fleet_row(told.merged->fleet, i)->samples);
    fleet_page(&of_hosts, whole, (int64_t)(times[0] * 1e9) + BEGIN);
    page_print(&of_hosts, &printer);
    page = print_end(&printer);
    CHECK(page && strstr(page, "blkin_hosts_samples_total{hosts=\"all\"} 3000\n"));
    free(page);
    json_decref(json);
    free(document);
    for (int i = 0; i < WORKERS; i++)
        fleet_free(workers[i]);
    fleet_free(whole);
    fleet_free(told.root);
    merged_free(told.merged);
    merged_free(again);
}

/* Views of which a host sends only the first metric. */
static void test_page_of_parts(void)
{
    struct fleet *fleet = new_fleet("all=*");
    struct page page = {.count = 0};
    struct printer printer = {.has_failed = false};
    uint32_t before;
    size_t count;
    const struct host_view *views = host_views(&count);

    for (size_t i = 0; i < count; i++) {
        char metric[FLEET_NAME_MAX];
        struct fleet_point point;

        (void)snprintf(metric, sizeof(metric), "%.*s", (int)strcspn(views[i].metrics, " "),
                       views[i].metrics);
        point = point_of("a", metric, true, 1000, 0, 20);
        CHECK(fleet_add(fleet, &point, point.end_ns));
    }
    before = names_count(fleet_names(fleet));
    fleet_page(&page, fleet, BEGIN + 36 * SECOND);
    CHECK(names_count(fleet_names(fleet)) == before); /* groups are printed by their numbers */
    page_print(&page, &printer);
    free(print_end(&printer));
    fleet_free(fleet);
}

/* In some days the idle time of a thousand hosts passes what JSON has: the root can go on. */
static void test_long_sum(void)
{
    const uint64_t much = UINT64_C(1) << 62;
    struct told told = {new_fleet(NULL), merged_new()};
    struct merged *again = merged_new();
    struct fleet *worker = new_fleet(NULL);
    struct error error = {""};
    json_t *json = NULL;
    char *document;

    for (int i = 0; i < 3; i++) {
        const struct fleet_point point = point_of("a", "c", true, much, i, i + 1);

        CHECK(fleet_add(worker, &point, point.end_ns));
        write_deltas(worker, &told);
    }
    document = merged_document(told.merged, BEGIN + SECOND);
    json = json_loads(document, 0, NULL);
    CHECK(json && merged_add_document(again, json, &error));
    CHECK(row_of(told.merged->fleet, "all", "c")->increase == much); /* 3 x 2^62 - 2^63 */
    CHECK(row_of(again->fleet, "all", "c")->increase == much);
    json_decref(json);
    free(document);
    fleet_free(worker);
    fleet_free(told.root);
    merged_free(told.merged);
    merged_free(again);
}

/* ---- points as messages ---------------------------------------------------------------------- */

static uint64_t read_value, read_points;

static void add_value(void *context, const struct fleet_point *point)
{
    (void)context;
    read_value += point->value;
    read_points++;
    CHECK(point->metric.length && point->end_ns > point->start_ns);
}

static void ignore(void *context, const struct fleet_point *point)
{
    (void)context;
    (void)point;
}

static void test_points(void)
{
    static struct fleet_point points[40000];
    struct buffer buffer = {0};
    uint64_t value = 0;
    size_t written = 0;
    char names[10][32];

    for (size_t i = 0; i < 10; i++)
        (void)snprintf(names[i], sizeof(names[i]), "metric.%zu", i);
    for (size_t i = 0; i < 40000; i++) {
        points[i] = point_of("host", names[dice(10)], true, dice(1000), (double)i, (double)i + 1);
        points[i].instance = text_of(dice(2) ? "vda" : "");
        value += points[i].value;
    }
    while (written < 40000) {
        const size_t count =
            otlp_points_write(text_of("host"), points + written, 40000 - written, &buffer);
        const struct text message = {buffer.data, buffer.length};
        const struct otlp_points_read told = otlp_points_read(message, add_value, NULL);

        CHECK(count && told.points == count && !told.is_broken && !told.refused);
        CHECK(buffer.length <= OTLP_POINTS_BYTES);
        if (!count)
            break;
        written += count;
    }
    CHECK(read_points == 40000 && read_value == value);
    (void)otlp_points_write(text_of("host"), points, 50, &buffer);
    for (int i = 0; i < 20000; i++) {
        char *copy = malloc(buffer.length);

        memcpy(copy, buffer.data, buffer.length);
        for (uint64_t k = 1 + dice(4); k; k--)
            copy[dice(buffer.length)] = (char)dice(256);
        (void)otlp_points_read((struct text){copy, 1 + dice(buffer.length)}, ignore, NULL);
        free(copy);
    }
    buffer_free(&buffer);
}

static struct fleet_point expected_point, other_point;
static unsigned same_points;

static void expect_point(void *context, const struct fleet_point *point)
{
    const struct fleet_point *expected = context;

    CHECK(text_equal(point->metric, expected->metric));
    CHECK(text_equal(point->unit, expected->unit));
    CHECK(text_equal(point->instance, expected->instance));
    CHECK(point->value == expected->value && point->is_counter == expected->is_counter);
    same_points++;
}

/* As OTLP, and back. */
static void check_point(const char *key, const char *unit, const char *instance, uint64_t value)
{
    struct buffer buffer = {0};
    struct otlp_points_read told;

    expected_point = point_of("host", key, value % 2, value, 0, 1);
    expected_point.unit = text_of(unit);
    expected_point.instance = text_of(instance);
    other_point = expected_point;
    CHECK(otlp_points_write(text_of("host"), &other_point, 1, &buffer) == 1);
    told =
        otlp_points_read((struct text){buffer.data, buffer.length}, expect_point, &expected_point);
    CHECK(told.points == 1 && !told.is_broken && !told.refused);
    buffer_free(&buffer);
}

/* Of a key of ours that is as long as may be nothing is cut, though it is longer outside. */
static void test_long_keys(void)
{
    char key[FLEET_NAME_MAX + 1] = "";

    same_points = 0;
    for (size_t length = FLEET_NAME_MAX - 20; length <= FLEET_NAME_MAX; length++) {
        memset(key, 'k', length);
        check_point(key, "1", "vda", 7);
    }
    CHECK(same_points == 21);
}

/* What is OpenTelemetry's outside has our keys inside, to the last ns. */
static void test_names(void)
{
    static const char *const instances[] = {"",
                                            "vda",
                                            "cpu7",
                                            "cpu07",
                                            "cpu",
                                            "redis-server[123]",
                                            "a[5][6]",
                                            "[1]",
                                            "x[]",
                                            "x[01]",
                                            "system.slice/a[1].service"};
    size_t count, called;
    const struct otlp_name *names = otlp_names(&count);

    same_points = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || strcmp(names[i - 1].key, names[i].key) < 0);
        CHECK(otlp_name_of(text_of(names[i].key)) == &names[i]);
        CHECK(otlp_names_called(text_of(names[i].name), text_of(names[i].unit), &called) && called);
        for (size_t k = 0; k < sizeof(instances) / sizeof(instances[0]); k++) {
            check_point(names[i].key, names[i].key_unit, instances[k], dice(1000));
            check_point(names[i].key, names[i].key_unit, instances[k],
                        dice(UINT64_C(1) << 31) * 1000001);
        }
    }
    CHECK(same_points == 2 * count * sizeof(instances) / sizeof(instances[0]));
    check_point("system.disk.weighted_io_time", "ns", "vda", 123456789012345);
    check_point("cgroup.cpu.time.user", "ns", "a/b", 1);
    check_point("of.anybody", "ns", "a", 3);
    check_point("of.anybody", "{thing}", "a", 4);
    check_point("system.disk.io_time", "ms", "vda", 5); /* another one of this name */
    CHECK(!otlp_names_called(text_of("system.disk.io_time"), text_of("ns"), &called));
}

/* ---- samples, and the page of hosts ---------------------------------------------------------- */

static void take_event(struct host_board *board, const char *host, const char *names,
                       const char *values, double time_s)
{
    const struct event event = {
        .kind = EVENT_METRIC,
        .origin = {.host = text_of(host)},
        .group = text_of("disk"),
        .instance = text_of("vda"),
        .names = text_of(names),
        .values = text_of(values),
    };

    host_board_take_event(board, &event, BEGIN + (int64_t)(time_s * 1e9));
}

static bool has(const char *page, const char *line)
{
    const bool found = page && strstr(page, line);

    if (!found)
        fprintf(stderr, "there is no line %s", line);
    return found;
}

static void test_board(void)
{
    static const char names[] = "system.disk.io_time:ns:c system.disk.io.read:By:c "
                                "system.disk.pending_operations:{operation}:g";
    struct error error;
    struct host_board *board = host_board_new(true, "all=*", &error);
    char *page;

    take_event(board, "a", "", "1 2 3", 0); /* its names are not known */
    for (int i = 0; i <= 30; i++) {
        char values[64];

        (void)snprintf(values, sizeof(values), "%d000000 %d 7", i * 500, 4096 * i);
        take_event(board, "a", i ? "" : names, values, i);
        take_event(board, "b", names, i == 20 ? "0 0 9" : values, i);
    }
    take_event(board, "a", "x", "1 2 3", 31);
    take_event(board, "a", "x:y:z", "99999999999999999999999", 31);
    take_event(board, "a", "::", "", 31);
    take_event(board, "a", "", "1 2", 31);
    page = host_board_page(board);
    CHECK(
        has(page, "\nblkin_host_system_disk_io_time_seconds_total{host=\"a\",name=\"vda\"} 15\n"));
    CHECK(has(page, "\nblkin_host_disk_busy_percent{host=\"a\",name=\"vda\"} 50\n"));
    CHECK(has(page, "\nblkin_host_disk_read_bytes_per_second{host=\"b\",name=\"vda\"} 4096\n"));
    CHECK(has(page, "\nblkin_host_system_disk_pending_operations{host=\"a\",name=\"vda\"} 7\n"));
    CHECK(has(page, "\nblkin_hosts_reporting{hosts=\"all\"} 2\n"));
    CHECK(
        has(page, "\nblkin_hosts_disk_busy_percent{hosts=\"all\",name=\"vda\",stat=\"average\"}"));
    /* of b's begin anew two metrics are not known at one sample */
    CHECK(has(page, "\nblkin_hosts_samples_total{hosts=\"all\"} 178\n"));
    free(page);
    host_board_free(board);
}

int main(void)
{
    test_windows();
    test_gauges();
    test_hostile_points();
    test_groups();
    test_deltas();
    test_page_of_parts();
    test_long_sum();
    test_points();
    test_long_keys();
    test_names();
    test_board();
    return check_status();
}
