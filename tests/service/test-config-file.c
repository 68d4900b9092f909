/*
 * The lines of a configuration file: valid and invalid ones, and their positions.
 * config/test-config.sh tests files that cannot be read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/config/config_parts.h"

#include <stdlib.h>

static char out[1 << 16];

static void entry(void *context, unsigned line, const char *section, const char *name,
                  const char *value)
{
    const size_t length = strlen(out);

    (void)context;
    (void)snprintf(out + length, sizeof(out) - length, "%u[%s]%s=%s;", line, section, name, value);
}

static void bad(void *context, unsigned line, const char *why)
{
    const size_t length = strlen(out);

    (void)context;
    (void)snprintf(out + length, sizeof(out) - length, "%u! %s;", line, why);
}

static void parse(const char *bytes, size_t size)
{
    char *copy = malloc(size + !size); /* without slack, for AddressSanitizer */

    out[0] = '\0';
    memcpy(copy, bytes, size);
    config_file_parse(copy, size, &(struct config_lines){.entry = entry, .bad = bad});
    free(copy);
}

TEST(test_lines)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"a = b", "1[]a=b;"}, /* the last line has no newline */
        {"a = b\n", "1[]a=b;"},
        {"\na=b\n\n[live]\nc=d", "2[]a=b;5[live]c=d;"},
        {"\xef\xbb\xbf"
         "a=b\n",
         "1[]a=b;"},
        {"  a = b \r\n\tc = d", "1[]a=b;2[]c=d;"},
        {"# a\n; b\na=b", "3[]a=b;"},
        {"a = \" b \"\nc=\"d\nd = x\"y\"", "1[]a= b ;2[]c=\"d;3[]d=x\"y\";"},
        {"a = \"\"\nb=\"", "1[]a=;2[]b=\";"},
        {"a = \"b\"c\"", "1[]a=\"b\"c\";"},
        {"alone\nb=c", "1! expected KEY = VALUE;2[]b=c;"},
        {"b=c\nalone", "1[]b=c;2! expected KEY = VALUE;"},
        {"[live\na=b", "1! expected [SECTION];2[]a=b;"},
        {"a=b=c", "1[]a=b=c;"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse(cases[i][0], strlen(cases[i][0]));
        CHECK_TEXT(out, cases[i][1]);
    }
    parse("a=b\0c\nd=e", 9);
    CHECK_TEXT(out, "1! the line has a byte of zero: is this a text file?;2[]d=e;");
}

TEST(test_long_line)
{
    static char line[60000];

    memset(line, 'v', sizeof(line));
    memcpy(line, "a=", 2);
    parse(line, sizeof(line));
    CHECK(strlen(out) == sizeof(line) + strlen("1[];"));
}

CHECK_MAIN
