/*
 * A trace id as people paste it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pasted.h"

#include "tools/trace/load.h"

#include <string.h>

#define PART_MAX 40 /* longer than any id */

/* The next part, up to a '-' or the end; false if it is no part of an id. */
static bool next_part(const char **text, char part[PART_MAX])
{
    const size_t length = strcspn(*text, "-");

    if (length == 0 || length >= PART_MAX)
        return false;
    memcpy(part, *text, length);
    part[length] = '\0';
    *text += length + ((*text)[length] == '-');
    return true;
}

/* "00-TRACE-SPAN-01" of W3C, "TRACE-SPAN[-1[-PARENT]]" of B3. */
static bool header_id(const char *text, char id[33])
{
    char first[PART_MAX], second[PART_MAX];

    if (!next_part(&text, first) || !next_part(&text, second))
        return false;
    if (strlen(first) == 2)
        return strlen(second) == 32 && id_parse(second, id);
    return (strlen(first) == 16 || strlen(first) == 32) && strlen(second) == 16 &&
           id_parse(first, id);
}

/* The last part of a URL's path; all of what is no URL. */
static const char *last_part(const char *text, size_t *length)
{
    const char *slash;

    *length = strlen(text);
    if (!strstr(text, "://"))
        return text;
    *length = strcspn(text, "?#");
    while (*length && text[*length - 1] == '/')
        --*length;
    slash = memrchr(text, '/', *length);
    *length -= slash ? (size_t)(slash + 1 - text) : 0;
    return slash ? slash + 1 : text;
}

bool pasted_id(const char *text, char id[33])
{
    char part[128];
    size_t length;

    text = last_part(text, &length);
    if (length >= sizeof(part))
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return (strchr(part, '-') ? header_id(part, id) : id_parse(part, id)) &&
           strspn(id, "0") != strlen(id);
}
