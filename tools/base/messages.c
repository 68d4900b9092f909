/*
 * The messages of services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "messages.h"

#include <stdio.h>

static const struct message {
    enum message_id id;
    bt_logging_level level;
    const char *subject, *text;
} messages[] = {
#define M(number, level, subject, text) {BK##number, BT_LOGGING_LEVEL_##level, subject, text},
#include "messages.def"
#undef M
};

#define COUNT (sizeof(messages) / sizeof(messages[0]))

bt_logging_level message_level(enum message_id id)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (messages[i].id == id)
            return messages[i].level;
    }
    return BT_LOGGING_LEVEL_ERROR;
}

static const char *messages_level_name(bt_logging_level level)
{
    return level == BT_LOGGING_LEVEL_ERROR     ? "error"
           : level == BT_LOGGING_LEVEL_WARNING ? "warning"
                                               : "info";
}

/* \\& keeps a line from being a request; \\- is a minus that can be copied. */
static void messages_print_text(const char *text)
{
    fputs("\\&", stdout);
    for (; *text; text++)
        (void)printf(*text == '-' ? "\\-" : *text == '\\' ? "\\e" : "%c", *text);
}

void messages_print(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        (void)printf(".TP\n\\fBBK%d\\fR (%s) ", (int)messages[i].id,
                     messages_level_name(messages[i].level));
        messages_print_text(messages[i].subject);
        (void)putchar('\n');
        messages_print_text(messages[i].text);
        (void)putchar('\n');
    }
}
