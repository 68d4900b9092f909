/* SPDX-License-Identifier: BSD-2-Clause */
#include "traces.h"

#include "babeltrace-plugin/base/array.h"
#include "tools/base/json.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

/* The latest time, in us: in the year 2116. The sum of two in ns fits into an int64_t. */
#define MAX_TIME (INT64_MAX / 2000)

bool id_parse(const char *text, char id[33])
{
    const size_t length = strlen(text);
    const size_t padded = length <= 16 ? 16 : 32;

    if (length == 0 || length > 32 || strspn(text, "0123456789abcdefABCDEF") != length)
        return false;
    memset(id, '0', padded);
    memcpy(id + padded - length, text, length + 1);
    for (size_t i = 0; i < padded; i++)
        id[i] |= id[i] >= 'A' ? 'a' - 'A' : 0;
    if (padded == 32 && strspn(id, "0") >= 16)
        memmove(id, id + 16, 17);
    return true;
}

/* Returns a time in ns. */
static int64_t time_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    int64_t time = json_integer_value(value);

    if (json_is_real(value) && json_real_value(value) < (double)MAX_TIME)
        time = (int64_t)json_real_value(value);
    return time > 0 && time < MAX_TIME ? time * 1000 : 0;
}

static bool span_id(const json_t *object, const char *key, char id[17])
{
    const char *text = text_in(object, key);
    char parsed[33];

    if (strlen(text) > 16 || !id_parse(text, parsed))
        return false;
    memcpy(id, parsed, 17);
    return true;
}

static bool add_span(struct span_list *list, const json_t *object, const char *source)
{
    struct json_span span = {
        .shared = json_is_true(json_object_get(object, "shared")),
        .start_ns = time_member(object, "timestamp"),
        .duration_ns = time_member(object, "duration"),
        .kind = text_in(object, "kind"),
        .name = text_in(object, "name"),
        .service = text_in(json_object_get(object, "localEndpoint"), "serviceName"),
        .remote_service = text_in(json_object_get(object, "remoteEndpoint"), "serviceName"),
        .json = object,
    };
    const json_t *error = json_object_get(json_object_get(object, "tags"), "error");

    if (error)
        span.error = json_is_string(error) ? json_string_value(error) : "";
    if (!id_parse(text_in(object, "traceId"), span.trace_id) || !span_id(object, "id", span.id)) {
        fprintf(stderr,
                "blkin: %s: item %zu is not a Zipkin v2 span: expected an object with a traceId of "
                "at most 32 and an id of at most 16 hexadecimal digits\n",
                source, list->count + 1);
        return false;
    }
    /* A span that is its own parent, or has a parent of zeros, is a root, as in Zipkin. */
    if (!span_id(object, "parentId", span.parent) || strcmp(span.parent, span.id) == 0 ||
        strspn(span.parent, "0") == 16)
        span.parent[0] = '\0';
    if (!ARRAY_FITS(list->spans, list->room, list->count)) {
        fprintf(stderr, "blkin: %s: out of memory\n", source);
        return false;
    }
    list->spans[list->count++] = span;
    return true;
}

static bool load_add_spans(struct span_list *list, const json_t *json, const char *source,
                           int lists)
{
    size_t i;
    const json_t *item;

    if (!json_is_array(json) || lists == 0)
        return add_span(list, json, source);
    json_array_foreach(json, i, item)
    {
        if (!load_add_spans(list, item, source, lists - 1))
            return false;
    }
    return true;
}

/* Prints that the bytes after the first `before` bytes are not JSON. */
static void print_json_error(const char *source, const struct buffer *bytes, size_t before,
                             const json_error_t *error)
{
    int line = error->line;

    for (size_t i = 0; i < before; i++)
        line += bytes->data[i] == '\n';
    if (bytes->data[before] == '<')
        fprintf(stderr,
                "blkin: %s: this is a web page, expected Zipkin v2 JSON: a server has it at "
                "/api/v2/trace/ID and /api/v2/traces\n",
                source);
    else
        fprintf(stderr, "blkin: %s: not JSON, line %d: %s; expected a list of Zipkin v2 spans\n",
                source, line, error->text);
}

/* Skips blanks, and a byte order mark, which some editors and shells write. */
static size_t skip_space(const struct buffer *bytes, size_t position)
{
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
    static const char spaces[] = {' ', '\t', '\r', '\n'};

    for (; position < bytes->length; position++) {
        if (bytes->length - position >= sizeof(mark) &&
            memcmp(bytes->data + position, mark, sizeof(mark)) == 0)
            position += 2;
        else if (!memchr(spaces, bytes->data[position], sizeof(spaces)))
            break;
    }
    return position;
}

bool spans_parse(const struct buffer *bytes, const char *source, struct span_list *list)
{
    size_t position = skip_space(bytes, 0);

    *list = (struct span_list){.documents = json_array()};
    while (position < bytes->length) {
        json_error_t error;
        json_t *json = json_loadb(bytes->data + position, bytes->length - position,
                                  JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error);

        if (!json) {
            print_json_error(source, bytes, position, &error);
            return false;
        }
        json_array_append_new(list->documents, json);
        if (!load_add_spans(list, json, source, 2))
            return false;
        position = skip_space(bytes, position + (size_t)error.position);
    }
    if (list->count == 0) {
        fprintf(stderr, "blkin: %s: no spans in it\n", source);
        if (is_trace(source) && !source_rules_path)
            fprintf(stderr,
                    "blkin: if the trace has events of other programs, --rules=RULES makes spans "
                    "of them: `blkin rules events %s` lists the events\n",
                    source);
        return false;
    }
    return true;
}

void spans_free(struct span_list *list)
{
    json_decref(list->documents);
    free(list->spans);
}

static int by_time(const struct json_span *a, const struct json_span *b)
{
    if (!a->start_ns != !b->start_ns)
        return a->start_ns ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a > b) - (a < b); /* keeps the order of the file */
}

static int by_trace_and_time(const void *a, const void *b)
{
    const struct json_span *left = *(const struct json_span *const *)a;
    const struct json_span *right = *(const struct json_span *const *)b;
    const int order = strcmp(left->trace_id, right->trace_id);

    return order ? order : by_time(left, right);
}

static int by_first_span(const void *a, const void *b)
{
    return by_time(((const struct trace *)a)->spans[0], ((const struct trace *)b)->spans[0]);
}

/* Sets the id, the times and the number of errors. */
static void trace_measure(struct trace *trace)
{
    trace->id = trace->spans[0]->trace_id;
    trace->start_ns = trace->end_ns = trace->spans[0]->start_ns;
    for (size_t i = 0; i < trace->count; i++) {
        const struct json_span *span = trace->spans[i];

        trace->errors += span->error != NULL;
        if (span->start_ns && span->start_ns + span->duration_ns > trace->end_ns)
            trace->end_ns = span->start_ns + span->duration_ns;
    }
}

bool traces_sort(const struct span_list *spans, struct trace_list *list)
{
    struct trace *trace = NULL;

    list->spans = calloc(spans->count, sizeof(*list->spans));
    list->traces = calloc(spans->count, sizeof(*list->traces));
    list->count = 0;
    if (!list->spans || !list->traces)
        return false;
    for (size_t i = 0; i < spans->count; i++)
        list->spans[i] = &spans->spans[i];
    qsort(list->spans, spans->count, sizeof(*list->spans), by_trace_and_time);
    for (size_t i = 0; i < spans->count; i++) {
        if (!trace || strcmp(trace->spans[0]->trace_id, list->spans[i]->trace_id) != 0) {
            trace = &list->traces[list->count++];
            trace->spans = &list->spans[i];
        }
        trace->count++;
    }
    for (size_t i = 0; i < list->count; i++)
        trace_measure(&list->traces[i]);
    qsort(list->traces, list->count, sizeof(*list->traces), by_first_span);
    return true;
}

void traces_free(struct trace_list *list)
{
    free(list->spans);
    free(list->traces);
}

/* ---- for the model */

static enum span_kind kind_of(const char *text)
{
    static const char *const kinds[] = {[SPAN_CLIENT] = "CLIENT",
                                        [SPAN_SERVER] = "SERVER",
                                        [SPAN_PRODUCER] = "PRODUCER",
                                        [SPAN_CONSUMER] = "CONSUMER"};

    for (int i = SPAN_CLIENT; i <= SPAN_CONSUMER; i++) {
        if (strcmp(text, kinds[i]) == 0)
            return (enum span_kind)i;
    }
    return SPAN_LOCAL;
}

/* Returns the span for the model; `of` is the loaded span. */
static struct trace_span span_for_model(const struct json_span *span, struct names *names)
{
    return (struct trace_span){
        .id = strtoull(span->id, NULL, 16),
        .parent_id = strtoull(span->parent, NULL, 16),
        .start_ns = span->start_ns,
        .duration_ns = span->duration_ns,
        .service = names_id(names, text_of(span->service)),
        .name = names_id(names, text_of(span->name)),
        .remote_service = names_id(names, text_of(span->remote_service)),
        .kind = (uint8_t)kind_of(span->kind),
        .is_error = span->error != NULL,
        .is_shared = span->shared,
        .of = span,
    };
}

bool trace_link(const struct trace *trace, struct names *names, struct trace_model *model)
{
    trace_model_clear(model);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_span span = span_for_model(trace->spans[i], names);

        if (!trace_model_add(model, &span))
            return false;
    }
    return trace_model_link(model);
}

/* ---- the other side of a span */

uint32_t trace_other_side(const struct trace_model *model, uint32_t node)
{
    const uint32_t child = model->nodes[node].first_child;

    return child != TRACE_NONE && model->spans[node].kind == SPAN_CLIENT &&
                   model->spans[child].service != model->spans[node].service
               ? child
               : TRACE_NONE;
}

bool trace_endpoint(const struct json_span *span, const char *member, char text[256])
{
    const json_t *endpoint = json_object_get(span->json, member);
    const char *service = json_string_value(json_object_get(endpoint, "serviceName"));
    const char *ipv4 = json_string_value(json_object_get(endpoint, "ipv4"));
    const char *ipv6 = json_string_value(json_object_get(endpoint, "ipv6"));
    const json_int_t port = json_integer_value(json_object_get(endpoint, "port"));
    int length;

    length = snprintf(text, 256,
                      ipv4   ? "%.100s %.60s"
                      : ipv6 ? "%.100s [%.60s]"
                             : "%.100s",
                      service ? service : "?",
                      ipv4   ? ipv4
                      : ipv6 ? ipv6
                             : "");
    if (port)
        snprintf(text + length, 256 - (size_t)length, ":%" JSON_INTEGER_FORMAT, port);
    return json_is_object(endpoint);
}

/* ---- services */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t trace_services(const struct trace *trace)
{
    const char **names = calloc(trace->count, sizeof(char *));
    size_t services = 0;

    if (!names)
        return 0;
    for (size_t i = 0; i < trace->count; i++)
        names[i] = trace->spans[i]->service;
    qsort(names, trace->count, sizeof(char *), by_text);
    for (size_t i = 0; i < trace->count; i++)
        services += names[i][0] && (i == 0 || strcmp(names[i - 1], names[i]) != 0);
    free(names);
    return services;
}

/* ---- the time of a span's thread */

#define US_DIGITS 15

/* Accepts only numbers that cannot overflow a sum, as any program may have made the spans. */
static bool read_us(const struct json_span *span, const char *key, int64_t *us)
{
    const char *text = json_string_value(json_object_get(json_object_get(span->json, "tags"), key));
    const size_t digits = text ? strspn(text, "0123456789") : 0;

    *us = 0;
    if (digits == 0 || digits > US_DIGITS || text[digits])
        return false;
    while (*text)
        *us = *us * 10 + (*text++ - '0');
    return true;
}

struct thread_time thread_time_of(const struct json_span *span)
{
    struct thread_time time = {0};

    time.is_known = read_us(span, "usage.cpu_us", &time.on_cpu_us) &&
                    read_us(span, "usage.off_cpu_us", &time.blocked_us);
    time.is_apart = time.is_known && read_us(span, "usage.run_delay_us", &time.waiting_us);
    if (time.waiting_us > time.blocked_us)
        time.waiting_us = time.blocked_us;
    time.blocked_us -= time.waiting_us;
    return time;
}

/* Returns the node with usage tags: the node itself or its nearest ancestor of the same service. */
static uint32_t thread_time_around(const struct trace_model *model, uint32_t node)
{
    const uint32_t service = model->spans[node].service;

    while (node != TRACE_NONE && model->spans[node].service == service) {
        if (thread_time_of(span_of(model, node)).is_known)
            return node;
        node = model->nodes[node].parent;
    }
    return TRACE_NONE;
}

/* Sorts by length, the longest first; stable. */
static void thread_time_sort(struct thread_time_part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && parts[j].us > parts[j - 1].us; j--) {
            const struct thread_time_part part = parts[j];

            parts[j] = parts[j - 1];
            parts[j - 1] = part;
        }
    }
}

size_t thread_time_split(const struct trace_model *model, uint32_t node, uint32_t *around,
                         struct thread_time_part parts[THREAD_TIME_PARTS])
{
    struct thread_time time;
    int64_t rest;
    size_t count = 1;

    *around = thread_time_around(model, node);
    if (*around == TRACE_NONE)
        return 0;
    time = thread_time_of(span_of(model, *around));
    rest = (*around == node ? model->nodes[node].self_ns / 1000 : 0) - time.on_cpu_us -
           time.waiting_us - time.blocked_us;
    parts[0] = (struct thread_time_part){time.is_apart ? "blocked" : "off CPU", time.blocked_us};
    parts[1] = (struct thread_time_part){"waiting for a CPU", time.waiting_us};
    parts[2] = (struct thread_time_part){"on CPU", time.on_cpu_us};
    parts[3] =
        (struct thread_time_part){"no thread worked for it", rest > 2 ? rest : 0}; /* rounding */
    thread_time_sort(parts, THREAD_TIME_PARTS);
    while (count < THREAD_TIME_PARTS && parts[count].us > 0)
        count++;
    return count;
}
