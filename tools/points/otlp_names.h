/*
 * The names of host metrics in OTLP: one table, which the encoder and the decoder use.
 *
 * Inside, and in filters, a metric has a key ("system.disk.io.read"). OpenTelemetry's semantic
 * conventions have one name for several of these, with attributes, and seconds as the unit of time.
 * Where they have a metric, it goes out as theirs; all others are ours: "blkin.host." and the key.
 * Names, units and attributes are those of version 1.44.0.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_NAMES_H
#define BLKIN_OUTPUT_OTLP_NAMES_H

#include "babeltrace-plugin/base/text.h"

#include <stdbool.h>
#include <stddef.h>

#define OTLP_OURS "blkin.host."

struct otlp_name_attribute {
    const char *key; /* NULL: there is no more */
    const char *value;
};

/* One that is theirs. */
struct otlp_name {
    const char *key;
    const char *key_unit;
    const char *name;
    const char *unit; /* "s" of "ns": a double; else the integer that it is */
    struct otlp_name_attribute attributes[2];
};

/* Which attribute an instance is in. */
enum otlp_instance {
    OTLP_INSTANCE_CPU,       /* cpu.logical_number, an integer: 3 of "cpu3" */
    OTLP_INSTANCE_DEVICE,    /* system.device */
    OTLP_INSTANCE_INTERFACE, /* network.interface.name */
    OTLP_INSTANCE_PROCESS,   /* process.executable.name and process.pid: of "redis-server[123]" */
    OTLP_INSTANCE_CGROUP,    /* blkin.cgroup */
    OTLP_INSTANCE_OTHER,     /* blkin.instance */
};

/* By key; those of one name are beside each other. */
const struct otlp_name *otlp_names(size_t *count);

/* NULL: it is ours. */
const struct otlp_name *otlp_name_of(struct text key);

/* The first of this name and unit, and how many there are. NULL: it is not theirs. */
const struct otlp_name *otlp_names_called(struct text name, struct text unit, size_t *count);

enum otlp_instance otlp_instance_of(struct text key);

/* NULL: of OTLP_INSTANCE_CPU, which is no text. */
const char *otlp_instance_key(enum otlp_instance instance);

/* Is time, in the unit of a key or of OTLP? */
static inline bool otlp_is_ns(struct text unit)
{
    return text_is(unit, "ns");
}

#endif
