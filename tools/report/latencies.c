/* The durations of operations: histograms with one common logarithmic axis of time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lengths are in pixels of the SVG's viewBox. */
#define SHOWN_MAX 9 /* histograms of operations */
#define WIDTH     320
#define HEIGHT    96 /* of the bars */
#define AXIS      20 /* the height of the axis with its texts */
#define TEXT_GAP  44 /* the least distance of two texts at the axis */
#define TEXT_HALF 16 /* half of the width of a text */
#define BARS_MIN  24
#define BARS_MAX  72
#define SCALE_MAX 2 /* four bars for each doubling of the time */

/* The axis of all histograms. */
struct axis {
    int scale;
    int32_t first; /* indexes of buckets at this scale */
    int32_t count;
};

/* ---- the axis */

static void note_range(const struct histogram *histogram, int scale, int32_t *low, int32_t *high)
{
    struct histogram_bucket bucket = {0};

    while (histogram_next(histogram, scale, &bucket)) {
        *low = bucket.index < *low ? bucket.index : *low;
        *high = bucket.index > *high ? bucket.index : *high;
    }
}

/* Returns the finest axis with at most BARS_MAX bars. */
static struct axis make_axis(const struct report_page *page, const struct operation *rows,
                             size_t count)
{
    struct axis axis = {.scale = SCALE_MAX + 1};
    int32_t low, high;

    do {
        low = INT32_MAX;
        high = INT32_MIN;
        axis.scale--;
        note_range(&page->traces, axis.scale, &low, &high);
        for (size_t i = 0; i < count; i++) {
            note_range(&rows[i].row->duration, axis.scale, &low, &high);
            note_range(&rows[i].row->self, axis.scale, &low, &high);
        }
    } while (low <= high && high - low + 3 > BARS_MAX && axis.scale > -5);
    if (low > high)
        low = high = 0;
    axis.count = high - low + 3 > BARS_MIN ? high - low + 3 : BARS_MIN;
    axis.first = low - (axis.count - (high - low + 1)) / 2;
    return axis;
}

/* Writes ticks at powers of ten, from 1 ns on. */
static void put_ticks(FILE *file, const struct axis *axis)
{
    static const char *const units[] = {"ns", "µs", "ms", "s", "000 s", "000,000 s", "·10⁹ s"};
    double last = -100;

    for (int power = 0; power <= 18; power++) {
        static const int figures[] = {1, 10, 100};
        const double position = power * log2(10) * exp2(axis->scale) - axis->first;
        const double x = position * WIDTH / axis->count;
        const bool has_text = x - last > TEXT_GAP && x > TEXT_HALF && x < WIDTH - TEXT_HALF;

        if (x < 0 || x > WIDTH)
            continue;
        fprintf(file, "<path class=\"g\" d=\"M%.1f 0V%d\"/>", x, HEIGHT + 3);
        if (!has_text)
            continue;
        fprintf(file, "<text x=\"%.1f\" y=\"%d\">%d%s%s</text>", x, HEIGHT + 15, figures[power % 3],
                power < 12 ? " " : "", units[power / 3]);
        last = x;
    }
}

/* ---- one histogram */

static void fill(const struct axis *axis, const struct histogram *histogram, uint64_t *bars)
{
    struct histogram_bucket bucket = {0};

    memset(bars, 0, (size_t)axis->count * sizeof(*bars));
    bars[0] += histogram->zeros;
    while (histogram_next(histogram, axis->scale, &bucket))
        bars[bucket.index - axis->first] += bucket.count;
}

static uint64_t highest(const uint64_t *bars, int32_t count)
{
    uint64_t most = 1;

    for (int32_t i = 0; i < count; i++)
        most = bars[i] > most ? bars[i] : most;
    return most;
}

/* Returns the height of a bar, which is visible also for the smallest count. */
static double height_of(uint64_t count, uint64_t most)
{
    const double height = (double)count * (HEIGHT - 4) / (double)most;

    return count && height < 1.5 ? 1.5 : height;
}

static void put_bars(FILE *file, const struct axis *axis, const uint64_t *bars, uint64_t most,
                     unsigned colour)
{
    const double step = (double)WIDTH / axis->count;

    for (int32_t i = 0; i < axis->count; i++) {
        const double height = height_of(bars[i], most);

        if (bars[i])
            fprintf(file,
                    "<rect class=\"c%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                    colour, i * step, HEIGHT - height, step - (step > 3 ? 0.7 : 0), height);
    }
}

/* Draws the outline of a histogram. */
static void put_outline(FILE *file, const struct axis *axis, const uint64_t *bars, uint64_t most)
{
    const double step = (double)WIDTH / axis->count;
    double last = 0;

    fprintf(file, "<path class=\"sl\" d=\"M0 %d", HEIGHT);
    for (int32_t i = 0; i < axis->count; i++) {
        const double height = height_of(bars[i], most);

        if (height != last)
            fprintf(file, "H%.1fV%.1f", i * step, HEIGHT - height);
        last = height;
    }
    fprintf(file, "H%dV%d\"/>", WIDTH, HEIGHT);
}

static void put_mark(FILE *file, const struct axis *axis, const struct histogram *histogram,
                     double q)
{
    const int64_t value = histogram_quantile(histogram, q);
    const double position = log2((double)value) * exp2(axis->scale) - axis->first;

    if (value > 0)
        fprintf(file, "<path class=\"q\" d=\"M%.1f 0V%d\"/>",
                fmin(fmax(position * WIDTH / axis->count, 0), WIDTH), HEIGHT);
}

static void put_histogram(const struct report_page *page, const struct axis *axis,
                          const struct histogram *duration, const struct histogram *self,
                          unsigned colour)
{
    uint64_t bars[BARS_MAX + 8], self_bars[BARS_MAX + 8];
    uint64_t most;
    FILE *file = page->file;

    fill(axis, duration, bars);
    most = highest(bars, axis->count);
    fprintf(file,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"histogram: p50 %s, p99 %s, "
            "longest %s\">",
            WIDTH, HEIGHT + AXIS, figure_quantile(duration, 0.5, FIGURE_PAGE).text,
            figure_quantile(duration, 0.99, FIGURE_PAGE).text,
            figure_quantile(duration, 1, FIGURE_PAGE).text);
    put_ticks(file, axis);
    put_bars(file, axis, bars, most, colour);
    if (self) {
        fill(axis, self, self_bars);
        put_outline(file, axis, self_bars, highest(self_bars, axis->count));
    }
    put_mark(file, axis, duration, 0.5);
    put_mark(file, axis, duration, 0.99);
    fprintf(file, "<path class=\"ax\" d=\"M0 %dH%d\"/></svg>", HEIGHT, WIDTH);
}

static void put_caption(const struct report_page *page, const struct histogram *duration,
                        const char *what)
{
    fprintf(page->file, "<span class=\"fg\">%s %s%s · p50 %s · p99 %s · max %s</span></figcaption>",
            figure_count(duration->count).text, what, duration->count == 1 ? "" : "s",
            figure_quantile(duration, 0.5, FIGURE_PAGE).text,
            figure_quantile(duration, 0.99, FIGURE_PAGE).text,
            figure_quantile(duration, 1, FIGURE_PAGE).text);
}

static void latency_put_row(const struct report_page *page, const struct axis *axis,
                            const struct statistics_row *row)
{
    const unsigned colour = landscape_colour_of_name(&page->landscape, row->service);

    fprintf(page->file, "<figure><figcaption><i class=\"sw c%u\"></i><b>", colour);
    put_name(page, row->service);
    fputs("</b> ", page->file);
    put_name(page, row->name);
    put_caption(page, &row->duration, "span");
    put_histogram(page, axis, &row->duration, &row->self, colour);
    fputs("</figure>\n", page->file);
}

bool put_latencies(const struct report_page *page)
{
    size_t count, shown = 0;
    struct operation *rows =
        operations(page->statistics, STATISTICS_ROWS, OPERATIONS_BY_SELF, NULL, &count);
    struct axis axis;

    if (!rows)
        return false;
    for (size_t i = 0; i < count && shown < SHOWN_MAX; i++) {
        if (rows[i].row->duration.count)
            rows[shown++] = rows[i];
    }
    axis = make_axis(page, rows, shown);
    fputs("<section id=\"latency\"><h2>How long it takes</h2><p>Bars: duration. Line: self time. "
          "Dashed: p50 and p99. All histograms have the same axis of time. The spans with the most "
          "self time come first. The highest bar of each histogram has the full height.</p>\n"
          "<div class=\"hs\">\n",
          page->file);
    if (page->traces.count) {
        fputs("<figure><figcaption><b>whole traces</b>", page->file);
        put_caption(page, &page->traces, "trace");
        put_histogram(page, &axis, &page->traces, NULL, LANDSCAPE_COLOURS - 1);
        fputs("</figure>\n", page->file);
    }
    for (size_t i = 0; i < shown; i++)
        latency_put_row(page, &axis, rows[i].row);
    fputs("</div></section>\n", page->file);
    free(rows);
    return true;
}
