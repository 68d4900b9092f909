/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster_parts.h"

#include <ctype.h>
#include <string.h>

#define MESSAGE_TEXT_MAX 1023 /* bytes of a reason or a name */
#define ID_MAX           511
#define LAST_MAX_MS      86400000           /* the longest window of last_ms: a day */
#define HALF_LENGTH      145                /* characters of a half */
#define HALVES_MAX       1024               /* halves of a trace */
#define HELD_MAX_US      (INT64_MAX / 2000) /* keeps times in ns from overflowing */

/* The form of a value. FORM_HALF: "c" or "s", and then digits as in FORM_HEX. */
enum form { FORM_INTEGER, FORM_TEXT, FORM_TOKEN, FORM_HOST, FORM_HEX, FORM_HALF };

enum presence { NEEDED, OPTIONAL };

struct member {
    const char *name;
    enum form form;
    json_int_t min, max; /* of an integer, or of the length of a text in bytes */
    enum presence presence;
    size_t elements_max; /* > 0: the member is an array of values with this form */
};

/* ---- the checked members of each object (cluster.h) ------------------------------------------ */

static const struct member of_message[] = {
    {"id", FORM_TOKEN, 1, ID_MAX, NEEDED, 0},
    {"number", FORM_TOKEN, 1, MESSAGE_NUMBER_MAX, NEEDED, 0},
    {"host", FORM_HOST, 1, MESSAGE_HOST_MAX, NEEDED, 0},
    {"settled", FORM_HEX, 64, 64, OPTIONAL, MESSAGE_TRACES_MAX},
};
static const struct member of_keep[] = {{"at", FORM_INTEGER, 1, INT64_MAX, NEEDED, 0}};
static const struct member of_window[] = {
    {"last_ms", FORM_INTEGER, 1, LAST_MAX_MS, NEEDED, 0},
    {"service", FORM_TEXT, 0, MESSAGE_TEXT_MAX, OPTIONAL, 0},
};
static const struct member of_wanted_trace[] = {
    {"id", FORM_HEX, 32, 32, NEEDED, 0},
    {"why", FORM_TEXT, 0, MESSAGE_TEXT_MAX, NEEDED, 0},
    {"begin", FORM_INTEGER, 0, INT64_MAX, OPTIONAL, 0},
    {"halves", FORM_HALF, HALF_LENGTH, HALF_LENGTH, OPTIONAL, HALVES_MAX},
};
static const struct member of_found[] = {
    {"to", FORM_HOST, 1, MESSAGE_HOST_MAX, NEEDED, 0},
    {"held_from", FORM_INTEGER, 0, INT64_MAX, NEEDED, 0},
    {"held_us", FORM_INTEGER, 0, HELD_MAX_US, OPTIONAL, 0},
    {"reach_ms", FORM_INTEGER, 0, INT64_MAX, OPTIONAL, 0},
    {"took_us", FORM_INTEGER, 0, HELD_MAX_US, OPTIONAL, 0},
    {"error", FORM_TEXT, 0, MESSAGE_TEXT_MAX, OPTIONAL, 0},
};
static const struct member of_found_trace[] = {
    {"id", FORM_HEX, 32, 32, NEEDED, 0},
    {"begin", FORM_INTEGER, 0, INT64_MAX, OPTIONAL, 0},
    {"held_from", FORM_INTEGER, 0, INT64_MAX, OPTIONAL, 0},
    {"held_us", FORM_INTEGER, 0, HELD_MAX_US, OPTIONAL, 0},
    {"spans", FORM_INTEGER, 0, INT64_MAX, NEEDED, 0},
    {"have", FORM_HEX, 16, 16, NEEDED, SIZE_MAX},
    {"want", FORM_HEX, 16, 16, NEEDED, SIZE_MAX},
};

/* ---- checks ---------------------------------------------------------------------------------- */

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

static bool message_is_token(const char *text)
{
    while (isgraph((unsigned char)*text))
        text++;
    return *text == '\0';
}

static bool message_is_hex(const char *text, json_int_t length)
{
    return strspn(text, "0123456789abcdef") == (size_t)length;
}

static bool message_fits(const struct member *member, const json_t *value)
{
    const bool is_integer = member->form == FORM_INTEGER;
    const char *text = json_string_value(value);
    const json_int_t size =
        is_integer ? json_integer_value(value) : (json_int_t)json_string_length(value);

    if ((is_integer ? !json_is_integer(value) : !text) || size < member->min || size > member->max)
        return false;
    switch (member->form) {
    case FORM_TOKEN:
        return message_is_token(text);
    case FORM_HOST:
        return message_has_host_form(text, (size_t)size);
    case FORM_HEX:
        return message_is_hex(text, size);
    case FORM_HALF:
        return strchr("cs", *text) && message_is_hex(text + 1, size - 1);
    default:
        return true;
    }
}

static bool message_check_member(const json_t *object, const struct member *member,
                                 struct error *error)
{
    /* the texts before and after the range */
    static const char *const forms[][2] = {
        [FORM_INTEGER] = {"a number of ", ""},
        [FORM_TEXT] = {"a text of ", " bytes"},
        [FORM_TOKEN] = {"", " printable ASCII characters without blanks"},
        [FORM_HOST] = {"a host's name of ", " letters, digits, '.', '-' and '_'"},
        [FORM_HEX] = {"", " hex digits in lower case"},
        [FORM_HALF] = {"\"c\" or \"s\" and hex digits in lower case, ", " characters in all"}};
    const json_t *value = json_object_get(object, member->name), *element;
    bool fits = member->elements_max
                    ? json_is_array(value) && json_array_size(value) <= member->elements_max
                    : message_fits(member, value);
    size_t i;

    json_array_foreach(value, i, element) fits = fits && message_fits(member, element);
    return fits || (!value && member->presence == OPTIONAL) ||
           error_set(error, "\"%s\": expected %s%s%lld to %lld%s", member->name,
                     member->elements_max ? "an array of elements: " : "", forms[member->form][0],
                     (long long)member->min, (long long)member->max, forms[member->form][1]);
}

static bool message_check_members(const json_t *object, const struct member *members, size_t count,
                                  struct error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!message_check_member(object, &members[i], error))
            return false;
    return true;
}

static bool message_check_traces(const json_t *message, const struct member *members, size_t count,
                                 struct error *error)
{
    const json_t *traces = json_object_get(message, "traces"), *trace;
    size_t i;

    if (!json_is_array(traces) || json_array_size(traces) > MESSAGE_TRACES_MAX)
        return error_set(error, "\"traces\": expected an array of at most 10000 traces");
    json_array_foreach(traces, i, trace)
    {
        if (!message_check_members(trace, members, count, error))
            return false;
    }
    return true;
}

#define MEMBERS(members) members, sizeof(members) / sizeof((members)[0])

bool message_check(const json_t *message, struct error *error)
{
    const char *type = text_in(message, "type");

    if (!json_is_object(message))
        return error_set(error, "expected a JSON object");
    if (!message_check_members(message, MEMBERS(of_message), error))
        return false;
    if (strcmp(type, "found") == 0)
        return message_check_members(message, MEMBERS(of_found), error) &&
               message_check_traces(message, MEMBERS(of_found_trace), error);
    if (strcmp(type, "keep") != 0)
        return error_set(error, "\"type\": expected \"keep\" or \"found\"");
    if (!message_check_members(message, MEMBERS(of_keep), error))
        return false;
    if (json_object_get(message, "last_ms") && json_object_get(message, "traces"))
        return error_set(error, "\"traces\": not expected beside \"last_ms\"");
    if (json_object_get(message, "last_ms"))
        return message_check_members(message, MEMBERS(of_window), error);
    return message_check_traces(message, MEMBERS(of_wanted_trace), error);
}
