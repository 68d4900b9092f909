/*
 * Where the time goes: a row for each service and span name, that of most self time first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/trace/figures.h"
#include "tools/graph/markup.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 50

/* The same spans give the same order, in whatever order they come. */
static int by_self(const void *a, const void *b, void *context)
{
    const struct statistics_row *left = *(const struct statistics_row *const *)a;
    const struct statistics_row *right = *(const struct statistics_row *const *)b;
    const struct names *names = context;
    int order;

    if (left->self.sum != right->self.sum)
        return left->self.sum > right->self.sum ? -1 : 1;
    if (left->spans != right->spans)
        return left->spans > right->spans ? -1 : 1;
    order = strcmp(names_text(names, left->service).data, names_text(names, right->service).data);
    return order ? order
                 : strcmp(names_text(names, left->name).data, names_text(names, right->name).data);
}

const struct statistics_row **operations(const struct statistics *statistics, size_t *count)
{
    const size_t all = statistics_rows(statistics);
    const struct statistics_row **rows = calloc(all + 1, sizeof(*rows));

    *count = 0;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        if (statistics_row(statistics, i)->spans)
            rows[(*count)++] = statistics_row(statistics, i);
    }
    qsort_r(rows, *count, sizeof(*rows), by_self, (void *)(uintptr_t)statistics_names(statistics));
    return rows;
}

/* What stands in all columns but the first one. The longest self time has the longest bar. */
static void put_cells(const struct page *page, const struct statistics_row *row, double longest_ns)
{
    const double share = longest_ns > 0 ? row->self.sum / longest_ns : 0;
    FILE *file = page->file;

    fprintf(file,
            "<td role=\"cell\" data-l=\"share of all self time\" class=\"sh\">"
            "<span class=\"bar\"><i class=\"c%u\" style=\"width:%.2f%%\"></i></span>%s</td>",
            row->service == NAMES_OTHER ? LANDSCAPE_COLOURS - 1
                                        : landscape_colour_of_name(&page->landscape, row->service),
            share * 100, figure_share(row->self.sum, page->landscape.self_ns).text);
    put_cell(page, "self p50", figure_quantile(&row->self, 0.5, FIGURE_PAGE), false);
    put_cell(page, "self p99", figure_quantile(&row->self, 0.99, FIGURE_PAGE), false);
    put_cell(page, "spans", figure_count(row->spans), false);
    put_cell(page, "errors", figure_count(row->errors), row->errors > 0);
    put_cell(page, "p50", figure_quantile(&row->duration, 0.5, FIGURE_PAGE), false);
    put_cell(page, "p99", figure_quantile(&row->duration, 0.99, FIGURE_PAGE), false);
    put_cell(page, "max", figure_quantile(&row->duration, 1, FIGURE_PAGE), false);
    fputs("</tr>\n", file);
}

static void operation_put_row(const struct page *page, const struct statistics_row *row,
                              double longest_ns)
{
    fprintf(page->file,
            "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><i class=\"sw c%u\"></i>"
            "<span class=\"sv\">",
            landscape_colour_of_name(&page->landscape, row->service));
    put_name(page, row->service);
    fputs("</span> ", page->file);
    put_name(page, row->name);
    fputs("</th>", page->file);
    put_cells(page, row, longest_ns);
}

/* Those that there are too many of, as one. */
static bool put_rest(const struct page *page, const struct statistics_row **rows, size_t count,
                     double longest_ns)
{
    struct statistics_row rest = {.service = NAMES_OTHER, .name = NAMES_OTHER};
    bool is_done = true;

    for (size_t i = 0; is_done && i < count; i++) {
        rest.spans += rows[i]->spans;
        rest.errors += rows[i]->errors;
        is_done = histogram_merge(&rest.duration, &rows[i]->duration) &&
                  histogram_merge(&rest.self, &rows[i]->self);
    }
    if (is_done) {
        fprintf(page->file,
                "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><i class=\"sw c%d\"></i>"
                "%s more</th>",
                LANDSCAPE_COLOURS - 1, figure_count(count).text);
        put_cells(page, &rest, rest.self.sum > longest_ns ? rest.self.sum : longest_ns);
    }
    histogram_clear(&rest.duration);
    histogram_clear(&rest.self);
    return is_done;
}

bool put_operations(const struct page *page)
{
    static const char *const titles[] = {"service and span",
                                         "share of all self time",
                                         "self p50",
                                         "self p99",
                                         "spans",
                                         "errors",
                                         "p50",
                                         "p99",
                                         "max"};
    size_t count, shown;
    const struct statistics_row **rows = operations(page->statistics, &count);
    const double longest_ns = rows && count ? rows[0]->self.sum : 0;
    bool is_done = rows != NULL;

    if (!is_done)
        return false;
    fputs("<section id=\"self\"><h2>Where the time goes</h2>"
          "<p>Self time is the duration of a span without the times in which a child was under "
          "way. Of a span that calls another service it is the time on the network and in that "
          "service's queues.</p>\n",
          page->file);
    put_table(page, "ops", titles, sizeof(titles) / sizeof(titles[0]));
    shown = count > ROWS_MAX + 1 ? ROWS_MAX : count;
    for (size_t i = 0; i < shown; i++)
        operation_put_row(page, rows[i], longest_ns);
    if (shown < count)
        is_done = put_rest(page, rows + shown, count - shown, longest_ns);
    fputs("</tbody></table></section>\n", page->file);
    free(rows);
    return is_done;
}
