/*
 * The service graph for dot(1) of graphviz, as SVG and as JSON; foreign text in HTML and SVG.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "babeltrace-plugin/base/utf8.h"
#include "tools/base/text.h"
#include "tools/trace/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jansson.h>

/* Runs dot with two files as its standard input and output. Returns 0 or an errno. */
static int dot_run(FILE *input, FILE *output, int *status)
{
    static const char *const arguments[] = {"dot", "-Tsvg", NULL};
    pid_t child;
    int error = read_spawn(arguments, (const int[]){fileno(input), fileno(output), -1}, &child);

    while (!error && waitpid(child, status, 0) < 0)
        error = errno == EINTR ? 0 : errno;
    return error;
}

/* Copies the picture. Leaves out titles, which are dot's internal names. If is_page, leaves out the
 * XML declaration, too. Returns whether the file has a picture. */
static bool svg_copy(FILE *from, FILE *to, bool is_page)
{
    static const char tag[] = "<svg ";
    bool is_svg = false;
    char *line = NULL;
    size_t size = 0;

    rewind(from);
    while (getline(&line, &size, from) > 0) {
        const bool is_first = strncmp(line, tag, sizeof(tag) - 1) == 0;

        is_svg |= is_first;
        if ((!is_svg && is_page) || strncmp(line, "<title>", strlen("<title>")) == 0)
            continue;
        if (is_first)
            fprintf(to, "<svg role=\"img\" aria-label=\"service graph\" %s",
                    line + sizeof(tag) - 1);
        else
            fputs(line, to);
    }
    free(line);
    return is_svg;
}

enum graph_drawn graph_draw(FILE *file, const struct landscape *landscape, bool is_page)
{
    FILE *input = tmpfile(), *output = tmpfile(); /* dot and this process share the file offsets */
    enum graph_drawn drawn = GRAPH_NOT_DRAWN;
    int status = -1, error;

    if (input && output && graph_dot(input, landscape) && fflush(input) == 0 &&
        lseek(fileno(input), 0, SEEK_SET) == 0) {
        error = dot_run(input, output, &status);
        if (error == ENOENT)
            drawn = GRAPH_WITHOUT_DOT;
        else if (!error && status == 0 && svg_copy(output, file, is_page))
            drawn = GRAPH_DRAWN;
    }
    if (input)
        fclose(input);
    if (output)
        fclose(output);
    return drawn;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *service_json(const struct landscape_service *service)
{
    return json_pack("{s:s, s:I, s:I, s:f, s:o}", "name", service->name, "spans",
                     (json_int_t)service->spans, "errors", (json_int_t)service->errors, "self",
                     service->self_ns / 1000, "duration", figure_json(&service->duration, false));
}

static json_t *call_json(const struct landscape *landscape, const struct landscape_call *call)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "parent", landscape->services[call->from].name,
                     "child", landscape->services[call->to].name, "callCount",
                     (json_int_t)call->calls, "errorCount", (json_int_t)call->errors, "duration",
                     figure_json(&call->duration, false));
}

bool graph_json(const struct landscape *landscape)
{
    json_t *services = json_array(), *calls = json_array(), *json;
    bool is_done = services && calls;

    for (size_t i = 0; is_done && i < landscape->services_count; i++)
        is_done = json_array_append_new(services, service_json(&landscape->services[i])) == 0;
    for (size_t i = 0; is_done && i < landscape->calls_count; i++)
        is_done = json_array_append_new(calls, call_json(landscape, &landscape->calls[i])) == 0;
    json = json_pack("{s:f, s:I, s:I, s:o, s:o}", "seconds", landscape->seconds, "spans",
                     (json_int_t)landscape->spans, "traces", (json_int_t)landscape->traces,
                     "services", services, "calls", calls);
    is_done =
        is_done && json && json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;
    json_decref(json);
    putchar('\n');
    return is_done;
}

/* ---- for graphviz ---------------------------------------------------------------------------- */

#define GRAPH_NAME_COLUMNS 100
#define BAD                ", color=\"#c62828\", class=bad"

/* Writes a name for double quotes. dot interprets HTML entities and escapes with a backslash. */
static bool dot_put_name(FILE *file, const char *name)
{
    char *safe = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&safe, &size);
    bool is_done;

    if (!memory)
        return false;
    markup_put(memory, name, GRAPH_NAME_COLUMNS);
    is_done = fclose(memory) == 0;
    for (const char *at = safe; is_done && *at; at++)
        fprintf(file, *at == '\\' ? "\\\\" : "%c", *at);
    free(safe);
    return is_done;
}

static void dot_put_times(FILE *file, const struct histogram *duration)
{
    if (duration->count)
        fprintf(file, "\\np50 %s, p99 %s", figure_quantile(duration, 0.5, FIGURE_TEXT).text,
                figure_quantile(duration, 0.99, FIGURE_TEXT).text);
}

static void dot_put_errors(FILE *file, uint64_t errors)
{
    if (errors)
        fprintf(file, ", %s error%s", figure_count(errors).text, errors == 1 ? "" : "s");
}

static bool dot_put_service(FILE *file, const struct landscape *landscape, size_t i)
{
    const struct landscape_service *service = &landscape->services[i];

    fprintf(file, "  s%zu [label=\"", i + 1);
    if (!dot_put_name(file, service->name))
        return false;
    if (service->spans == 0) {
        fputs("\\nnot traced itself\"];\n", file);
        return true;
    }
    fprintf(file, "\\n%s", graph_rate(landscape, service->spans, " spans").text);
    dot_put_errors(file, service->errors);
    dot_put_times(file, &service->duration);
    fprintf(file, "\\nself %s\"%s];\n", figure_share(service->self_ns, landscape->self_ns).text,
            graph_is_bad(service->spans, service->errors) ? BAD : "");
    return true;
}

bool graph_dot(FILE *file, const struct landscape *landscape)
{
    fputs("digraph blkin {\n"
          "  bgcolor=transparent;\n"
          "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
          "  edge [fontname=\"sans-serif\", fontsize=9];\n",
          file);
    for (size_t i = 0; i < landscape->services_count; i++) {
        if (!dot_put_service(file, landscape, i))
            return false;
    }
    for (size_t i = 0; i < landscape->calls_count; i++) {
        const struct landscape_call *call = &landscape->calls[i];

        fprintf(file, "  s%zu -> s%zu [label=\"%s", call->from + 1, call->to + 1,
                graph_rate(landscape, call->calls, "").text);
        dot_put_errors(file, call->errors);
        dot_put_times(file, &call->duration);
        fprintf(file, "\"%s];\n", graph_is_bad(call->calls, call->errors) ? BAD : "");
    }
    fputs("}\n", file);
    return ferror(file) == 0;
}

/* ---- foreign text ---------------------------------------------------------------------------- */

/* Returns true for control characters, separators of lines, changes of direction, characters
 * without width, and noncharacters, some of which XML forbids. */
static bool is_hidden(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || text_changes_direction(code) ||
           (code >= 0x200b && code <= 0x200d) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

static const char *entity_of(uint32_t code)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Converts the first character. Returns the text after it. */
static const char *markup_character(const char *text, char shown[16])
{
    uint32_t code;
    const size_t length = utf8_decode(text, &code);
    const char *entity = entity_of(code);

    if (length == 0) {
        memcpy(shown, UTF8_REPLACEMENT, sizeof(UTF8_REPLACEMENT));
        return text + 1;
    }
    if (entity)
        snprintf(shown, 16, "%s", entity);
    else if (is_hidden(code))
        snprintf(shown, 16, code < 0x80 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", code);
    else
        snprintf(shown, 16, "%.*s", (int)length, text);
    return text + length;
}

void markup_put(FILE *file, const char *text, size_t max)
{
    size_t count = 0;
    char shown[16];

    for (const char *at = text; *at; count++)
        at = markup_character(at, shown);
    for (size_t i = 0; *text && (count <= max || i < max - 1); i++) {
        text = markup_character(text, shown);
        fputs(shown, file);
    }
    if (count > max)
        fputs("…", file);
}
