/*
 * Reads Zipkin v2 spans: a list, a list of lists, or several documents in a row. Another program
 * wrote them, so only the ids are required.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "load.h"

#include "babeltrace-plugin/base/array.h"
#include "read.h"
#include "tools/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void complain(const char *source, const struct buffer *bytes, size_t before,
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
            complain(source, bytes, position, &error);
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
