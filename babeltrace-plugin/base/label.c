/*
 * A label of Prometheus' text format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "label.h"

#include "utf8.h"

void print_label(struct printer *page, const char *key, struct text value)
{
    print(page, "%s=\"", key);
    for (size_t i = 0, taken; i < value.length; i += taken) {
        char character[4], *end = character;

        taken = utf8_put(&end, value.data + i, value.length - i);
        if (*character == '\n')
            print_string(page, "\\n");
        else if (*character == '\\' || *character == '"')
            print(page, "\\%c", *character);
        else
            print_text(page, character, (size_t)(end - character));
    }
    print_string(page, "\"");
}
