/*
 * Foreign text on a terminal.
 *
 * Escapes control characters, characters that change the direction of writing, characters that the
 * locale cannot show, and invalid UTF-8.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "text.h"

#include "babeltrace-plugin/base/utf8.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#define DEFAULT_WIDTH 80

struct text_glyph {
    char text[16];
    size_t columns;
};

static bool off;

bool utf8(void)
{
    return !off && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void utf8_off(void)
{
    off = true;
}

bool text_changes_direction(uint32_t code)
{
    return code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Sets the glyph at text and returns the start of the next one. */
static const char *next_glyph(const char *text, struct text_glyph *glyph)
{
    uint32_t code;
    const size_t length = utf8_decode(text, &code);
    const int width = length && (code < 0x80 || utf8()) ? wcwidth((wchar_t)code) : -1;

    if (width >= 0 && !text_changes_direction(code)) {
        memcpy(glyph->text, text, length);
        glyph->text[length] = '\0';
        glyph->columns = (size_t)width;
    } else {
        glyph->columns = (size_t)snprintf(glyph->text, sizeof(glyph->text),
                                          length < 2 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", code);
    }
    return text + (length ? length : 1);
}

size_t columns(const char *text)
{
    size_t taken = 0;
    struct text_glyph glyph;

    while (*text) {
        text = next_glyph(text, &glyph);
        taken += glyph.columns;
    }
    return taken;
}

size_t put(const char *text, size_t room)
{
    const bool whole = columns(text) <= room;
    const size_t limit = whole || room == 0 ? room : room - 1;
    size_t taken = 0;
    struct text_glyph glyph;

    while (*text) {
        text = next_glyph(text, &glyph);
        if (taken + glyph.columns > limit)
            break;
        fputs(glyph.text, stdout);
        taken += glyph.columns;
    }
    if (!whole && room) {
        fputs(utf8() ? "…" : "~", stdout);
        taken++;
    }
    return taken;
}

void put_spaces(size_t count)
{
    printf("%*s", (int)count, "");
}

struct screen screen(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return (struct screen){DEFAULT_WIDTH, 0};
    return (struct screen){size.ws_col < SCREEN_WIDTH_MIN ? SCREEN_WIDTH_MIN : size.ws_col,
                           size.ws_row};
}

struct time_text time_text(int64_t us)
{
    struct time_text time;
    const double value = (double)us;

    if (us < 1000)
        snprintf(time.text, sizeof(time.text), "%" PRId64 " us", us);
    else if (us < 1000000)
        snprintf(time.text, sizeof(time.text), "%.3f ms", value / 1e3);
    else if (us < INT64_C(100000000))
        snprintf(time.text, sizeof(time.text), "%.3f s", value / 1e6);
    else
        snprintf(time.text, sizeof(time.text), "%.0f s", value / 1e6);
    return time;
}

struct date_text date_text(int64_t ns, int digits)
{
    struct date_text date = {"at an unknown time"};
    const time_t seconds = (time_t)(ns / 1000000000);
    const int rest = (int)(ns % 1000000000 / (digits == 3 ? 1000000 : 1000));
    struct tm local;
    size_t length;

    if (ns == 0 || !localtime_r(&seconds, &local))
        return date;
    length = strftime(date.text, sizeof(date.text), "%Y-%m-%d %H:%M:%S", &local);
    (void)snprintf(date.text + length, sizeof(date.text) - length, ".%0*d", digits, rest);
    return date;
}
