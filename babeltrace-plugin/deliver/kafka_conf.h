/*
 * The configuration of librdkafka, for all that use it: what a program sets, then the URL's
 * options, then the lines of a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_KAFKA_CONF_H
#define BLKIN_OUTPUT_KAFKA_CONF_H

#ifdef HAS_KAFKA

#include "kafka_url.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>

/* All return false with error set. name is what a message calls the URL, and the file. */

bool kafka_conf_set(rd_kafka_conf_t *conf, const char *const table[][2], size_t count,
                    const char *name, struct error *error);

/*
 * The brokers, and the options. Those that are secret are refused, as all users of this machine see
 * them, and those that would break what the program promises (reserved, ends in NULL).
 */
bool kafka_conf_set_url(rd_kafka_conf_t *conf, const struct kafka_url *url, const char *name,
                        const char *file_name, const char *const reserved[], struct error *error);

/*
 * Lines `key=value` of the file at path, as of librdkafka's own tools; it may hold passwords, so
 * nobody but its owner may read it. NULL or "": there is none.
 */
bool kafka_conf_set_file(rd_kafka_conf_t *conf, const char *path, const char *name,
                         const char *const reserved[], struct error *error);

/*
 * A message about an error of a broker, a topic or a connection: where it was, librdkafka's own
 * words, and what helps, if we know of anything. file_name as above.
 */
void kafka_describe(struct error *error, const char *where, rd_kafka_resp_err_t code,
                    const char *reason, const char *file_name);

#endif

#endif
