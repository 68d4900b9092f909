/*
 * The messages of services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "messages.h"

#include <stddef.h>

static const struct message {
    enum message_id id;
    bt_logging_level level;
} messages[] = {
#define M(number, level, subject, text) {BK##number, BT_LOGGING_LEVEL_##level},
#include "messages.def"
#undef M
};

bt_logging_level message_level(enum message_id id)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        if (messages[i].id == id)
            return messages[i].level;
    }
    return BT_LOGGING_LEVEL_ERROR;
}
