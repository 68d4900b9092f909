/*
 * The service graph as SVG.
 *
 * A box for each service: how much of all self time it has fills its lower edge. An arrow for each
 * call, the thicker the more calls. Colours follow the viewer's choice of dark or light.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"
#include "layout.h"
#include "markup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOX_WIDTH        176.0
#define BOX_HEIGHT       72.0
#define GAP_X            28.0
#define GAP_Y            92.0
#define WAY              14.0
#define MARGIN           14.0
#define PORTS            (BOX_WIDTH / 2 - 20) /* calls leave and enter this far from the middle at most */
#define ARROW            9.0
#define CHARACTER        5.8 /* of a label, on average */
#define LABEL_LINE       15.0
#define LABEL_MAX        96
#define NAME_MAX_COLUMNS 17
#define APART            7.0 /* a call upwards from one downwards between the same two */

struct point {
    double x, y;
};

struct area {
    double left, top, right, bottom;
};

struct picture {
    FILE *file;
    const struct landscape *landscape;
    struct layout layout;
    uint64_t most_calls;
    struct area *labels; /* by call; without a width: there is no room for it */
};

const char graph_style[] =
#include "tools/graph/graph.css.inc"
    ;

/* ---- figures */

static void svg_put_errors(FILE *file, uint64_t errors)
{
    if (errors)
        fprintf(file, "<tspan class=\"x\"> · %s error%s</tspan>", figure_count(errors).text,
                errors == 1 ? "" : "s");
}

static struct figure svg_quantile(const struct histogram *histogram, double q)
{
    return figure_quantile(histogram, q, FIGURE_PAGE);
}

/* For a title: ": 120 calls, 3 with an error; p50 1.20 ms, p99 3.40 ms, longest 5.60 ms" */
static void put_figures(FILE *file, uint64_t count, const char *what, uint64_t errors,
                        const struct histogram *duration)
{
    fprintf(file, ": %s %s, %s with an error", figure_count(count).text, what,
            figure_count(errors).text);
    if (duration->count)
        fprintf(file, "; p50 %s, p99 %s, longest %s", svg_quantile(duration, 0.5).text,
                svg_quantile(duration, 0.99).text, svg_quantile(duration, 1).text);
}

/* ---- calls */

static double top_of(size_t layer)
{
    return MARGIN + (double)layer * (BOX_HEIGHT + GAP_Y);
}

static double clamp(double value, double limit)
{
    return value < -limit ? -limit : value > limit ? limit : value;
}

/* Calls leave and enter a box on the side where the other end is. */
static double port(double x, double other)
{
    return MARGIN + x + clamp((other - x) * 0.2, PORTS);
}

/* The points of a call from top to bottom: two in each layer that it passes. Returns how many. */
static size_t route(const struct picture *picture, size_t i, struct point *points)
{
    const struct layout *layout = &picture->layout;
    const struct layout_place *upper = &layout->places[layout_upper(layout, picture->landscape, i)];
    const struct layout_place *lower = &layout->places[layout_lower(layout, picture->landscape, i)];
    const size_t first = layout->ways[i], end = layout->ways[i + 1];
    const double apart = layout->is_upwards[i] ? APART : 0;
    size_t count = 0;

    points[count++] =
        (struct point){apart + port(upper->x, first < end ? layout->places[first].x : lower->x),
                       top_of(upper->layer) + BOX_HEIGHT};
    for (size_t way = first; way < end; way++) {
        const double x = MARGIN + layout->places[way].x;

        points[count++] = (struct point){x, top_of(layout->places[way].layer)};
        points[count++] = (struct point){x, top_of(layout->places[way].layer) + BOX_HEIGHT};
    }
    points[count++] =
        (struct point){apart + port(lower->x, first < end ? layout->places[end - 1].x : upper->x),
                       top_of(lower->layer)};
    return count;
}

static void put_arrow(const struct picture *picture, const struct point *tip, bool is_upwards,
                      bool is_error)
{
    const double back = is_upwards ? ARROW : -ARROW;

    fprintf(picture->file, "<path class=\"%s\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>",
            is_error ? "ae" : "a", tip->x, tip->y, -ARROW / 2, back, ARROW);
}

static void put_call_title(const struct picture *picture, const struct landscape_call *call)
{
    const struct landscape *landscape = picture->landscape;
    FILE *file = picture->file;

    fputs("<title>", file);
    markup_put(file, landscape->services[call->from].name, 100);
    fputs(" calls ", file);
    markup_put(file, landscape->services[call->to].name, 100);
    put_figures(file, call->calls, "calls", call->errors, &call->duration);
    fputs("</title>", file);
}

static void put_way(const struct picture *picture, size_t i, const struct point *points,
                    size_t count)
{
    const struct landscape_call *call = &picture->landscape->calls[i];
    const bool is_upwards = picture->layout.is_upwards[i];
    const double width = 1.2 + 3.3 * sqrt((double)call->calls /
                                          (double)(picture->most_calls + !picture->most_calls));
    FILE *file = picture->file;

    fprintf(file, "<g>");
    put_call_title(picture, call);
    fprintf(file, "<path class=\"%s%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1f",
            graph_is_bad(call->calls, call->errors) ? "ee" : "e", is_upwards ? " u" : "", width,
            points[0].x, points[0].y + (is_upwards ? ARROW - 1 : 0));
    for (size_t k = 1; k < count; k++) {
        const bool is_last = k + 1 == count;
        const double y = points[k].y - (is_last && !is_upwards ? ARROW - 1 : 0);
        const double middle = (points[k - 1].y + points[k].y) / 2;

        if (k % 2 == 0)
            fprintf(file, "V%.1f", y);
        else
            fprintf(file, "C%.1f %.1f %.1f %.1f %.1f %.1f", points[k - 1].x, middle, points[k].x,
                    middle, points[k].x, y);
    }
    fputs("\"/>", file);
    put_arrow(picture, &points[is_upwards ? 0 : count - 1], is_upwards,
              graph_is_bad(call->calls, call->errors));
    fputs("</g>\n", file);
}

/* On the curve between two points, t from 0 to 1. */
static struct point on_curve(const struct point *from, const struct point *to, double t)
{
    const double s = 1 - t;
    const double share = t * t * (3 * s + t); /* of the end, in x */
    const double middle = (from->y + to->y) / 2;

    return (struct point){from->x + (to->x - from->x) * share,
                          from->y * s * s * s + middle * 3 * s * t + to->y * t * t * t};
}

/* Of the labels before this one. */
static bool is_free(const struct picture *picture, size_t call, const struct area *area)
{
    for (size_t i = 0; i < call; i++) {
        const struct area *other = &picture->labels[i];

        if (area->left < other->right && other->left < area->right && area->top < other->bottom &&
            other->top < area->bottom)
            return false;
    }
    return true;
}

/* Where the call's label meets no other one: between layers, on its line. */
static void find_room(struct picture *picture, size_t call, const struct point *points,
                      size_t count, double width)
{
    static const double shares[] = {0.5, 0.36, 0.64, 0.24, 0.76};

    for (size_t gap = count - 1; gap < count; gap -= 2) {
        for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
            const struct point middle = on_curve(&points[gap - 1], &points[gap], shares[i]);
            const struct area area = {middle.x - width / 2, middle.y - LABEL_LINE / 2,
                                      middle.x + width / 2, middle.y + LABEL_LINE / 2};

            if (!is_free(picture, call, &area))
                continue;
            picture->labels[call] = area;
            return;
        }
    }
}

struct label {
    char text[LABEL_MAX];
    char errors[LABEL_MAX / 2];
};

static struct label label_of(const struct picture *picture, const struct landscape_call *call)
{
    struct label label = {.errors = ""};
    size_t length;

    length = (size_t)snprintf(label.text, sizeof(label.text), "%s",
                              graph_rate(picture->landscape, call->calls, "").text);
    if (call->duration.count)
        snprintf(label.text + length, sizeof(label.text) - length, " · p99 %s",
                 svg_quantile(&call->duration, 0.99).text);
    if (call->errors)
        snprintf(label.errors, sizeof(label.errors), " · %s error%s",
                 figure_count(call->errors).text, call->errors == 1 ? "" : "s");
    return label;
}

/* In bytes, which is near enough: the points between figures have two, and are wide. */
static double label_width(const struct label *label)
{
    return CHARACTER * (double)strlen(label->text) +
           1.1 * CHARACTER * (double)strlen(label->errors);
}

static void place_label(struct picture *picture, size_t i, const struct point *points, size_t count)
{
    const struct label label = label_of(picture, &picture->landscape->calls[i]);

    find_room(picture, i, points, count, label_width(&label));
}

static void put_label(const struct picture *picture, size_t i)
{
    const struct label label = label_of(picture, &picture->landscape->calls[i]);
    const struct area *area = &picture->labels[i];
    FILE *file = picture->file;

    if (area->right <= area->left)
        return;
    fprintf(file,
            "<rect class=\"p\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"4\"/>"
            "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">%s",
            area->left, area->top, area->right - area->left, LABEL_LINE,
            (area->left + area->right) / 2, area->bottom - 3.5, label.text);
    if (label.errors[0])
        fprintf(file, "<tspan class=\"x\">%s</tspan>", label.errors);
    fputs("</text>\n", file);
}

static bool has_way(const struct landscape_call *call)
{
    return call->from != call->to;
}

/* ---- services */

static const struct landscape_call *call_to_itself(const struct landscape *landscape,
                                                   size_t service)
{
    const struct landscape_service *caller = &landscape->services[service];

    for (size_t i = caller->first_call; i < caller->end_call; i++) {
        if (landscape->calls[i].to == service)
            return &landscape->calls[i];
    }
    return NULL;
}

static void put_service_title(const struct picture *picture, size_t i)
{
    const struct landscape_service *service = &picture->landscape->services[i];
    const struct landscape_call *own = call_to_itself(picture->landscape, i);
    FILE *file = picture->file;

    fputs("<title>", file);
    markup_put(file, service->name, 200);
    put_figures(file, service->spans, "spans", service->errors, &service->duration);
    if (service->duration.count)
        fprintf(file, "; %s of all self time",
                figure_share(service->self_ns, picture->landscape->self_ns).text);
    if (own)
        fprintf(file, "; calls itself: %s calls, %s with an error, p99 %s",
                figure_count(own->calls).text, figure_count(own->errors).text,
                svg_quantile(&own->duration, 0.99).text);
    fputs("</title>", file);
}

static void put_lines(const struct picture *picture, size_t i, double x, double y)
{
    const struct landscape_service *service = &picture->landscape->services[i];
    const struct landscape_call *own = call_to_itself(picture->landscape, i);
    FILE *file = picture->file;

    fprintf(file, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" unicode-bidi=\"isolate\">", x, y + 20);
    markup_put(file, service->name, NAME_MAX_COLUMNS);
    fputs("</text>", file);
    if (service->spans == 0) {
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">not traced itself</text>", x, y + 38);
        return;
    }
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">%s", x, y + 38,
            graph_rate(picture->landscape, service->spans, " spans").text);
    svg_put_errors(file, service->errors);
    fprintf(file, "</text><text x=\"%.1f\" y=\"%.1f\">%s self", x, y + 55,
            figure_share(service->self_ns, picture->landscape->self_ns).text);
    if (own)
        fprintf(file, " · ↻ %s", graph_rate(picture->landscape, own->calls, "").text);
    fputs("</text>", file);
}

static void svg_put_service(const struct picture *picture, size_t i)
{
    const struct landscape *landscape = picture->landscape;
    const struct layout_place *place = &picture->layout.places[i];
    const struct landscape_service *service = &landscape->services[i];
    const double left = MARGIN + place->x - BOX_WIDTH / 2, top = top_of(place->layer);
    const double share = landscape->self_ns > 0 ? service->self_ns / landscape->self_ns : 0;
    const double width = BOX_WIDTH - 22;
    FILE *file = picture->file;

    fputs("<g>", file);
    put_service_title(picture, i);
    fprintf(file,
            "<rect class=\"o%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"7\"/>"
            "<rect class=\"c%u\" x=\"%.1f\" y=\"%.1f\" width=\"4\" height=\"%.0f\" rx=\"2\"/>",
            graph_is_bad(service->spans, service->errors) ? " oe" : "", left, top, BOX_WIDTH,
            BOX_HEIGHT, landscape_colour(landscape, i), left + 4, top + 8, BOX_HEIGHT - 16);
    put_lines(picture, i, left + 15, top);
    if (service->spans)
        fprintf(file,
                "<rect class=\"t\" x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"4\" rx=\"2\"/>"
                "<rect class=\"c%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"4\" rx=\"2\"/>",
                left + 15, top + BOX_HEIGHT - 11, width, landscape_colour(landscape, i), left + 15,
                top + BOX_HEIGHT - 11, width * share);
    fputs("</g>\n", file);
}

/* ---- all of it */

/* Labels may be wider than the boxes. */
static struct area whole_area(const struct picture *picture)
{
    const struct layout *layout = &picture->layout;
    struct area area = {0, 0, layout->width + 2 * MARGIN,
                        layout->layers ? top_of(layout->layers) - GAP_Y + MARGIN : 2 * MARGIN};

    for (size_t i = 0; i < picture->landscape->calls_count; i++) {
        const struct area *label = &picture->labels[i];

        area.left = label->left - 2 < area.left ? label->left - 2 : area.left;
        area.right = label->right + 2 > area.right ? label->right + 2 : area.right;
    }
    return area;
}

static void begin(const struct picture *picture, bool is_page)
{
    const struct landscape *landscape = picture->landscape;
    const struct area area = whole_area(picture);
    const double width = area.right - area.left;

    fprintf(picture->file,
            "<svg%s class=\"bg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"%.0f 0 %.0f %.0f\" "
            "role=\"img\" aria-labelledby=\"bg-t\">\n"
            "<title id=\"bg-t\">Service graph: %zu service%s, %zu way%s of calls</title>\n",
            is_page ? "" : " xmlns=\"http://www.w3.org/2000/svg\"", width, area.bottom, area.left,
            width, area.bottom, landscape->services_count,
            landscape->services_count == 1 ? "" : "s", landscape->calls_count,
            landscape->calls_count == 1 ? "" : "s");
    if (is_page)
        return;
    fputs("<style>", picture->file);
    fputs(graph_style, picture->file);
    fputs("svg{background:#fff}@media (prefers-color-scheme:dark){svg{background:#14181d}}"
          "</style>\n",
          picture->file);
}

static void put_all(struct picture *picture, struct point *points, bool is_page)
{
    const struct landscape *landscape = picture->landscape;

    for (size_t i = 0; i < landscape->calls_count; i++) {
        if (has_way(&landscape->calls[i]))
            place_label(picture, i, points, route(picture, i, points));
    }
    begin(picture, is_page);
    for (size_t i = 0; i < landscape->calls_count; i++) {
        if (has_way(&landscape->calls[i]))
            put_way(picture, i, points, route(picture, i, points));
    }
    for (size_t i = 0; i < landscape->services_count; i++)
        svg_put_service(picture, i);
    for (size_t i = 0; i < landscape->calls_count; i++)
        put_label(picture, i);
    fputs("</svg>\n", picture->file);
}

bool graph_svg(FILE *file, const struct landscape *landscape, bool is_page)
{
    static const struct layout_sizes sizes = {BOX_WIDTH, GAP_X, WAY};
    struct picture picture = {
        .file = file,
        .landscape = landscape,
        .labels = calloc(landscape->calls_count + 1, sizeof(*picture.labels)),
    };
    struct point *points = calloc(2 * landscape->services_count + 2, sizeof(*points));
    const bool is_done =
        layout_make(&picture.layout, landscape, &sizes) && points && picture.labels;

    for (size_t i = 0; i < landscape->calls_count; i++) {
        if (landscape->calls[i].calls > picture.most_calls)
            picture.most_calls = landscape->calls[i].calls;
    }
    if (is_done)
        put_all(&picture, points, is_page);
    layout_destroy(&picture.layout);
    free(points);
    free(picture.labels);
    return is_done;
}
