/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_names.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define NONE            {{NULL, NULL}}
#define ONE(key, value) {{key, value}}
#define MODE(value)     ONE("cpu.mode", value)
#define DISK(value)     ONE("disk.io.direction", value)
#define NETWORK(value)  ONE("network.io.direction", value)
#define MEMORY(value)   ONE("system.memory.state", value)
#define SWAP(value)     ONE("system.paging.state", value)
#define FAULT(value)    ONE("system.paging.fault.type", value)
#define SWAPPED(value)  {{"system.paging.direction", value}, {"system.paging.fault.type", "major"}}
/* clang-format on */

/* key, its unit, name, unit, attributes; sorted by key */
static const struct otlp_name names[] = {
    {"process.cpu.time.system", "ns", "process.cpu.time", "s", MODE("system")},
    {"process.cpu.time.user", "ns", "process.cpu.time", "s", MODE("user")},
    {"process.disk.io.read", "By", "process.disk.io", "By", DISK("read")},
    {"process.disk.io.write", "By", "process.disk.io", "By", DISK("write")},
    {"process.memory.usage", "By", "process.memory.usage", "By", NONE},
    {"process.memory.virtual", "By", "process.memory.virtual", "By", NONE},
    {"process.paging.faults.major", "{fault}", "process.paging.faults", "{fault}", FAULT("major")},
    {"process.paging.faults.minor", "{fault}", "process.paging.faults", "{fault}", FAULT("minor")},
    {"process.thread.count", "{thread}", "process.thread.count", "{thread}", NONE},
    {"process.unix.file_descriptor.count", "{file_descriptor}",
     "process.unix.file_descriptor.count", "{file_descriptor}", NONE},
    {"system.cpu.time.idle", "ns", "system.cpu.time", "s", MODE("idle")},
    {"system.cpu.time.interrupt", "ns", "system.cpu.time", "s", MODE("interrupt")},
    {"system.cpu.time.iowait", "ns", "system.cpu.time", "s", MODE("iowait")},
    {"system.cpu.time.nice", "ns", "system.cpu.time", "s", MODE("nice")},
    /* not one of their values, but all modes are all of the time; their collector has it, too */
    {"system.cpu.time.softirq", "ns", "system.cpu.time", "s", MODE("softirq")},
    {"system.cpu.time.steal", "ns", "system.cpu.time", "s", MODE("steal")},
    {"system.cpu.time.system", "ns", "system.cpu.time", "s", MODE("system")},
    {"system.cpu.time.user", "ns", "system.cpu.time", "s", MODE("user")},
    {"system.disk.io.read", "By", "system.disk.io", "By", DISK("read")},
    {"system.disk.io.write", "By", "system.disk.io", "By", DISK("write")},
    {"system.disk.io_time", "ns", "system.disk.io_time", "s", NONE},
    {"system.disk.merged.read", "{operation}", "system.disk.merged", "{operation}", DISK("read")},
    {"system.disk.merged.write", "{operation}", "system.disk.merged", "{operation}", DISK("write")},
    /* discards and flushes are ours: these have but two directions */
    {"system.disk.operation_time.read", "ns", "system.disk.operation_time", "s", DISK("read")},
    {"system.disk.operation_time.write", "ns", "system.disk.operation_time", "s", DISK("write")},
    {"system.disk.operations.read", "{operation}", "system.disk.operations", "{operation}",
     DISK("read")},
    {"system.disk.operations.write", "{operation}", "system.disk.operations", "{operation}",
     DISK("write")},
    {"system.linux.memory.available", "By", "system.memory.linux.available", "By", NONE},
    {"system.memory.limit", "By", "system.memory.limit", "By", NONE},
    {"system.memory.usage.buffers", "By", "system.memory.usage", "By", MEMORY("buffers")},
    {"system.memory.usage.cached", "By", "system.memory.usage", "By", MEMORY("cached")},
    {"system.memory.usage.free", "By", "system.memory.usage", "By", MEMORY("free")},
    {"system.network.errors.receive", "{error}", "system.network.errors", "{error}",
     NETWORK("receive")},
    {"system.network.errors.transmit", "{error}", "system.network.errors", "{error}",
     NETWORK("transmit")},
    {"system.network.io.receive", "By", "system.network.io", "By", NETWORK("receive")},
    {"system.network.io.transmit", "By", "system.network.io", "By", NETWORK("transmit")},
    {"system.network.packet.count.receive", "{packet}", "system.network.packet.count", "{packet}",
     NETWORK("receive")},
    {"system.network.packet.count.transmit", "{packet}", "system.network.packet.count", "{packet}",
     NETWORK("transmit")},
    {"system.network.packet.dropped.receive", "{packet}", "system.network.packet.dropped",
     "{packet}", NETWORK("receive")},
    {"system.network.packet.dropped.transmit", "{packet}", "system.network.packet.dropped",
     "{packet}", NETWORK("transmit")},
    {"system.paging.faults.major", "{fault}", "system.paging.faults", "{fault}", FAULT("major")},
    {"system.paging.operations.in", "{page}", "system.paging.operations", "{operation}",
     SWAPPED("in")},
    {"system.paging.operations.out", "{page}", "system.paging.operations", "{operation}",
     SWAPPED("out")},
    {"system.paging.usage.free", "By", "system.paging.usage", "By", SWAP("free")},
    {"system.paging.usage.used", "By", "system.paging.usage", "By", SWAP("used")},
    {"system.process.created", "{process}", "system.process.created", "{process}", NONE},
};
#define NAMES (sizeof(names) / sizeof(names[0]))

const struct otlp_name *otlp_names(size_t *count)
{
    *count = NAMES;
    return names;
}

static int by_key(const void *key, const void *name)
{
    return text_compare(*(const struct text *)key, text_of(((const struct otlp_name *)name)->key));
}

const struct otlp_name *otlp_name_of(struct text key)
{
    return bsearch(&key, names, NAMES, sizeof(names[0]), by_key);
}

const struct otlp_name *otlp_names_called(struct text name, struct text unit, size_t *count)
{
    size_t first = 0;

    *count = 0;
    while (first < NAMES && !text_is(name, names[first].name))
        first++;
    if (first == NAMES || !text_is(unit, names[first].unit))
        return NULL;
    while (first + *count < NAMES && text_is(name, names[first + *count].name))
        ++*count;
    return &names[first];
}

enum otlp_instance otlp_instance_of(struct text key)
{
    static const struct {
        const char *begin;
        enum otlp_instance instance;
    } kinds[] = {
        {"system.cpu.time.", OTLP_INSTANCE_CPU},
        {"system.disk.", OTLP_INSTANCE_DEVICE},
        {"system.network.packet.count.", OTLP_INSTANCE_DEVICE}, /* so they have it */
        {"system.network.", OTLP_INSTANCE_INTERFACE},
        {"process.", OTLP_INSTANCE_PROCESS},
        {"cgroup.", OTLP_INSTANCE_CGROUP},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (text_begins(key, kinds[i].begin))
            return kinds[i].instance;
    }
    return OTLP_INSTANCE_OTHER;
}

const char *otlp_instance_key(enum otlp_instance instance)
{
    static const char *const keys[] = {
        [OTLP_INSTANCE_CPU] = NULL,
        [OTLP_INSTANCE_DEVICE] = "system.device",
        [OTLP_INSTANCE_INTERFACE] = "network.interface.name",
        [OTLP_INSTANCE_PROCESS] = "process.executable.name",
        [OTLP_INSTANCE_CGROUP] = "blkin.cgroup",
        [OTLP_INSTANCE_OTHER] = "blkin.instance",
    };

    return keys[instance];
}
