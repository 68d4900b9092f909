/*
 * Foreign text in HTML and SVG.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "babeltrace-plugin/base/utf8.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Returns true for control characters, changes of direction, zero width, and characters that XML
 * forbids. */
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

/* Converts the first character. Returns the place of the next one. */
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
