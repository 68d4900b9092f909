/*
 * The messages of services: ids that never change their meaning, see messages.def.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_MESSAGES_H
#define BLKIN_TOOLS_MESSAGES_H

#include <babeltrace2/babeltrace.h>

/* BK1001, ...: a number that is given twice, or that is not in the table, does not compile. */
enum message_id {
#define M(number, level, subject, text) BK##number = (number),
#include "messages.def"
#undef M
};

bt_logging_level message_level(enum message_id id);

#endif
