/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster_parts.h"

#include <ctype.h>
#include <string.h>

#define MESSAGE_TEXT_MAX 1023 /* bytes of a reason or a name */
#define ID_MAX           511
#define LAST_MAX_MS      86400000
#define HALF_LENGTH      145  /* characters of a half */
#define HALVES_MAX       1024 /* halves of a trace */

static bool message_has_host_form(const char *name, size_t length)
{
    if (length == 0 || length > MESSAGE_HOST_MAX || *name == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    }
    return true;
}

bool message_is_host(const char *name)
{
    return message_has_host_form(name, strlen(name));
}

/* ---- members: the functions return false with error set -------------------------------------- */

static bool message_refuse(const char *name, const char *expected, struct error *error)
{
    return error_set(error, "\"%s\": expected %s", name, expected);
}

static bool message_check_text(const json_t *object, const char *name, bool is_needed,
                               struct error *error)
{
    const json_t *value = json_object_get(object, name);

    if ((!value && !is_needed) ||
        (json_is_string(value) && json_string_length(value) <= MESSAGE_TEXT_MAX))
        return true;
    return message_refuse(name, "a text of at most 1023 bytes", error);
}

static bool message_check_host(const json_t *object, const char *name, struct error *error)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_string(value) &&
        message_has_host_form(json_string_value(value), json_string_length(value)))
        return true;
    return message_refuse(name, "a host's name: letters, digits, '.', '-' and '_', at most 253",
                          error);
}

/* Checks a text of 1 to max printable ASCII characters without blanks. */
static bool message_check_token(const json_t *object, const char *name, size_t max,
                                struct error *error)
{
    const char *text = text_in(object, name);
    const size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (!isgraph((unsigned char)text[i]))
            return message_refuse(name, "printable ASCII characters without blanks", error);
    }
    return (length > 0 && length <= max) ||
           error_set(error, "\"%s\": expected a text of 1 to %zu characters", name, max);
}

static bool message_check_integer(const json_t *object, const char *name, json_int_t min,
                                  json_int_t max, struct error *error)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_integer(value) && json_integer_value(value) >= min &&
        json_integer_value(value) <= max)
        return true;
    return error_set(error, "\"%s\": expected a number, %lld to %lld", name, (long long)min,
                     (long long)max);
}

/* Checks a member that may be missing. */
static bool message_check_time(const json_t *object, const char *name, struct error *error)
{
    return !json_object_get(object, name) ||
           message_check_integer(object, name, 0, INT64_MAX, error);
}

static bool message_is_hex(const json_t *value, size_t digits)
{
    const char *text = json_string_value(value);

    return text && json_string_length(value) == digits &&
           strspn(text, "0123456789abcdef") == digits;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static bool message_check_span_ids(const json_t *trace, const char *name, struct error *error)
{
    const json_t *ids = json_object_get(trace, name);
    const json_t *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        if (!message_is_hex(id, 16))
            return message_refuse(name, "ids of spans, 16 hex digits each", error);
    }
    return json_is_array(ids) || message_refuse(name, "an array of ids", error);
}

/* Checks the halves of a trace: "c" or "s", and nine numbers of 16 hex digits. */
static bool message_check_halves(const json_t *trace, struct error *error)
{
    const json_t *halves = json_object_get(trace, "halves"), *half;
    size_t i;

    json_array_foreach(halves, i, half)
    {
        const char *text = json_string_value(half);

        if (!text || (*text != 'c' && *text != 's') || json_string_length(half) != HALF_LENGTH ||
            strspn(text + 1, "0123456789abcdef") != HALF_LENGTH - 1)
            return message_refuse("halves", "\"c\" or \"s\" and 144 hex digits each", error);
    }
    return !halves || (json_is_array(halves) && json_array_size(halves) <= HALVES_MAX) ||
           message_refuse("halves", "an array of at most 1024", error);
}

static bool message_check_wanted(const json_t *trace, struct error *error)
{
    return message_check_text(trace, "why", true, error) &&
           message_check_time(trace, "begin", error) && message_check_halves(trace, error);
}

static bool message_check_settled(const json_t *message, struct error *error)
{
    const json_t *settled = json_object_get(message, "settled"), *id;
    size_t i;

    json_array_foreach(settled, i, id)
    {
        if (!message_is_hex(id, 64))
            return message_refuse("settled", "two ids of traces, 64 hex digits each", error);
    }
    return !settled || (json_is_array(settled) && json_array_size(settled) <= MESSAGE_TRACES_MAX) ||
           message_refuse("settled", "an array of at most 10000", error);
}

/* Checks "held_from" and "held_us", which may be missing. The limit of "held_us" keeps times in ns
 * from overflowing. */
static bool message_check_held(const json_t *object, struct error *error)
{
    return message_check_time(object, "held_from", error) &&
           (!json_object_get(object, "held_us") ||
            message_check_integer(object, "held_us", 0, INT64_MAX / 2000, error));
}

static bool message_check_found(const json_t *trace, struct error *error)
{
    return message_check_time(trace, "begin", error) && message_check_held(trace, error) &&
           message_check_integer(trace, "spans", 0, INT64_MAX, error) &&
           message_check_span_ids(trace, "have", error) &&
           message_check_span_ids(trace, "want", error);
}

static bool message_check_traces(const json_t *message,
                                 bool (*check)(const json_t *trace, struct error *error),
                                 struct error *error)
{
    const json_t *traces = json_object_get(message, "traces");
    const json_t *trace;
    size_t i;

    if (!json_is_array(traces) || json_array_size(traces) > MESSAGE_TRACES_MAX)
        return message_refuse("traces", "an array of at most 10000", error);
    json_array_foreach(traces, i, trace)
    {
        if (!message_is_hex(json_object_get(trace, "id"), 32))
            return message_refuse("traces", "each with \"id\", 32 hex digits in lower case", error);
        if (!check(trace, error))
            return false;
    }
    return true;
}

/* ---- the two types of messages --------------------------------------------------------------- */

static bool message_check_keep(const json_t *message, struct error *error)
{
    if (!message_check_integer(message, "at", 1, INT64_MAX, error))
        return false;
    if (json_object_get(message, "last_ms"))
        return message_check_integer(message, "last_ms", 1, LAST_MAX_MS, error) &&
               message_check_text(message, "service", false, error);
    return message_check_settled(message, error) &&
           message_check_traces(message, message_check_wanted, error);
}

static bool message_check_answer(const json_t *message, struct error *error)
{
    return message_check_host(message, "to", error) &&
           message_check_integer(message, "held_from", 0, INT64_MAX, error) &&
           message_check_held(message, error) && message_check_time(message, "reach_ms", error) &&
           message_check_text(message, "error", false, error) &&
           message_check_traces(message, message_check_found, error);
}

bool message_check(const json_t *message, struct error *error)
{
    const char *type = text_in(message, "type");

    if (!json_is_object(message))
        return error_set(error, "expected a JSON object");
    if (!message_check_token(message, "id", ID_MAX, error) ||
        !message_check_token(message, "number", MESSAGE_NUMBER_MAX, error) ||
        !message_check_host(message, "host", error))
        return false;
    if (strcmp(type, "keep") == 0)
        return message_check_keep(message, error);
    if (strcmp(type, "found") == 0)
        return message_check_answer(message, error);
    return message_refuse("type", "\"keep\" or \"found\"", error);
}
