/* The table of operations: a row for each service and span name, the most self time first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/trace/figures.h"

#include <stdlib.h>

#define ROWS_MAX 50

/* Writes all columns but the first. The longest self time has the longest bar. */
static void put_cells(const struct report_page *page, const struct statistics_row *row,
                      double longest_ns)
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

static void operation_put_row(const struct report_page *page, const struct statistics_row *row,
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

/* Writes the operations beyond the limit as one row. */
static bool put_rest(const struct report_page *page, const struct operation *rows, size_t count,
                     double longest_ns)
{
    struct statistics_row rest = {.service = NAMES_OTHER, .name = NAMES_OTHER};
    const bool is_done = operations_sum(rows, count, &rest);

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

bool put_operations(const struct report_page *page)
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
    struct operation *rows =
        operations(page->statistics, STATISTICS_ROWS, OPERATIONS_BY_SELF, NULL, &count);
    const double longest_ns = rows && count ? rows[0].row->self.sum : 0;
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
        operation_put_row(page, rows[i].row, longest_ns);
    if (shown < count)
        is_done = put_rest(page, rows + shown, count - shown, longest_ns);
    fputs("</tbody></table></section>\n", page->file);
    free(rows);
    return is_done;
}
