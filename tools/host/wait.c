/*
 * How long a span waits for its tags.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wait.h"

#include "babeltrace-plugin/hosts/host_tags.h"
#include "babeltrace-plugin/params.h"
#include "settings.h"
#include "tools/config/sink_params.h"

#include <inttypes.h>

#define WAITED_MAX_MS (HOST_WAIT_PERIOD_NS / 1000000)
#define PERIODS       2 /* that a span waits for a sample, at most */

static bool is_told_of(enum host_kind kind)
{
    return kind <= HOST_TCP && kind != HOST_NETWORK;
}

/* The slowest group that is waited for; 0: there is none. */
static uint32_t longest_period_ms(const struct host_config *host, enum host_kind *slowest)
{
    uint32_t longest = 0;

    for (int kind = 0; kind < HOST_KINDS; kind++) {
        const uint32_t ms = host->wanted[kind].period_ms;

        if (is_told_of((enum host_kind)kind) && ms <= WAITED_MAX_MS && ms > longest) {
            longest = ms;
            *slowest = (enum host_kind)kind;
        }
    }
    return longest;
}

bool host_wait_is_short_enough(const struct config *service, const struct config *host,
                               struct error *why)
{
    struct host_config wanted;
    struct params params;
    struct error ignored;
    enum host_kind slowest = HOST_KINDS;
    bool is = true;

    if (config_sink_params(service, &params, &ignored) && params.tail_sampling &&
        params.host_min_ms >= 0 && host_settings_read(host, &wanted, &ignored)) {
        const int64_t needed_ms = (int64_t)PERIODS * longest_period_ms(&wanted, &slowest);

        is = params.tail_wait_ms >= needed_ms;
        if (!is)
            error_set(why,
                      "tail-wait-ms = %" PRId64 ", and a span may wait %" PRId64
                      " ms for its host's tags (%s is sampled each %" PRId64
                      " ms): tail sampling may decide on its trace before it comes",
                      params.tail_wait_ms, needed_ms, host_definition(slowest)->name,
                      needed_ms / PERIODS);
    }
    return is;
}
