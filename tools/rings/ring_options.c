/*
 * Reads the holder's options.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_options.h"

#include "ring_event.h"

#include <inttypes.h>

#define RING_ALARM_BYTES RING_BYTES_MIN
#define RING_SHARES      4 /* the number of users that must have room */
#define RING_HOLD_MS     120000

bool ring_options(const struct config *config, uint64_t default_bytes,
                  struct holder_options *options, struct error *error)
{
    const uint32_t cpus = memory_host_cpus();
    const uint64_t all_bytes = (uint64_t)config_integer(config, "rings-max-bytes");
    uint64_t bytes = (uint64_t)config_integer(config, "ring-bytes");

    if (!bytes) {
        bytes = default_bytes;
        while (bytes > RING_BYTES_MIN && bytes > all_bytes / RING_SHARES / cpus)
            bytes /= 2;
    }
    *options = (struct holder_options){
        .path = config_text(config, "ring-socket"),
        .size = {cpus, bytes, RING_ALARM_BYTES},
        .max_users = (unsigned)config_integer(config, "ring-users"),
        .max_bytes = all_bytes,
        .idle_ms = config_integer(config, "ring-idle-ms"),
        .hold_ms = RING_HOLD_MS,
    };
    if (memory_bytes(&options->size))
        return true;
    return error_set(error, "%s: ring-bytes %" PRIu64 ": expected a power of two from %" PRIu64,
                     config_origin(config, "ring-bytes"), bytes, (uint64_t)RING_BYTES_MIN);
}

json_t *ring_memory_json(const struct memory *memory, uint32_t user, bool is_left)
{
    return json_pack("{sI, sI, sI, so, ss, sI, sI}", "user", (json_int_t)user, "bytes",
                     (json_int_t)memory->bytes, "ring_bytes", (json_int_t)memory->size.event_bytes,
                     "made", json_time((int64_t)memory->created_ns + ring_clock_offset()), "state",
                     is_left ? "left" : "on", "written_bytes", (json_int_t)memory_written(memory),
                     "not_written_records", (json_int_t)memory_lost(memory));
}
