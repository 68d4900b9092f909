/*
 * Keeps a trace again and again as the recorder does, and says so: keeping STATE-FOLDER
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/lttng/session.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/record/fetch.h"
#include "ring.h"

#include <stdio.h>
#include <string.h>

static const uint64_t id = 0x1122334455667788;

/* A packet with the trace. */
bool __wrap_session_snapshot(const char *name, const char *folder, uint64_t max_bytes,
                             struct error *error);
bool __wrap_session_snapshot(const char *name, const char *folder, uint64_t max_bytes,
                             struct error *error)
{
    const uint64_t now = (uint64_t)clock_ns();

    (void)name;
    (void)folder;
    (void)max_bytes;
    (void)error;
    ring_append("snapshot/trace/metadata", "metadata", 8);
    ring_add(
        "snapshot/trace/blkin_0",
        &(struct ring_packet){.begin = now - 1, .end = now, .content = &id, .length = sizeof(id)});
    return true;
}

int main(int argc, char **argv)
{
    struct request *request = request_new("a:1:1", "a");

    if (argc != 2 || !request || !request_add(request, (struct trace_id){0, id}, 0, "why"))
        return 2;
    (void)snprintf(ring_folder, sizeof(ring_folder), "%s", argv[1]);
    for (uint64_t number = 1;; number++) {
        struct fetch_result result = {.is_kept = false};
        struct fetched *fetched = fetched_new();
        const struct fetch_order order = {.session = "record",
                                          .folder = argv[1],
                                          .number = number,
                                          .requests = request,
                                          .fetched = fetched};

        fetch(&order, &result);
        if (!result.is_kept) {
            fprintf(stderr, "not kept: %s\n", result.error.text);
            return 1;
        }
        fetched_free(fetched);
        printf("safe %llu\n", (unsigned long long)number);
        if (fflush(stdout) != 0)
            return 2;
    }
}
