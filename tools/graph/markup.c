/*
 * Foreign text in HTML and SVG.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "markup.h"

#include "babeltrace-plugin/base/utf8.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

struct markup_glyph {
    char text[16];
    size_t columns;
};

/* Returns true for control characters, changes of direction, zero width, and characters that XML
 * forbids. */
static bool is_hidden(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || text_changes_direction(code) ||
           (code >= 0x200b && code <= 0x200d) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

static bool is_wide(uint32_t code)
{
    return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
           (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
           (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
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

static const char *next_glyph(const char *text, struct markup_glyph *glyph)
{
    uint32_t code;
    const size_t length = utf8_decode(text, &code);
    const char *entity = entity_of(code);

    glyph->columns = 1;
    if (length == 0) {
        memcpy(glyph->text, UTF8_REPLACEMENT, sizeof(UTF8_REPLACEMENT));
        return text + 1;
    }
    if (entity) {
        snprintf(glyph->text, sizeof(glyph->text), "%s", entity);
    } else if (is_hidden(code)) {
        glyph->columns = (size_t)snprintf(glyph->text, sizeof(glyph->text),
                                          code < 0x80 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", code);
    } else {
        memcpy(glyph->text, text, length);
        glyph->text[length] = '\0';
        glyph->columns = is_wide(code) ? 2 : 1;
    }
    return text + length;
}

/* Counts the columns of the text. Returns the place of the cut if there are more than max. */
static const char *cut_at(const char *text, size_t max, size_t *columns)
{
    const char *cut = text;
    struct markup_glyph glyph;

    *columns = 0;
    while (*text) {
        text = next_glyph(text, &glyph);
        *columns += glyph.columns;
        if (*columns > max)
            return cut;
        if (*columns < max)
            cut = text;
    }
    return text;
}

void markup_put(FILE *file, const char *text, size_t max)
{
    size_t columns;
    const char *const end = cut_at(text, max, &columns);
    struct markup_glyph glyph;

    while (text < end) {
        text = next_glyph(text, &glyph);
        fputs(glyph.text, file);
    }
    if (columns > max)
        fputs("…", file);
}
