/*
 * What librdkafka has to say, as what we have to say.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_KAFKA_LOG_H
#define BLKIN_TOOLS_SERVICE_KAFKA_LOG_H

#include "tools/base/say.h"

#include <librdkafka/rdkafka.h>

/* For rd_kafka_conf_set_log_cb(): errors are warnings, as it goes on by itself. */
static inline void kafka_log_line(const rd_kafka_t *handle, int level, const char *facility,
                                  const char *text)
{
    (void)handle;
    say(level <= 3 ? BK1100 : BK1101, "librdkafka: %s: %s", facility, text);
}

#endif
