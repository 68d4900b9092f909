# The shared functions of the tests of the sampler.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

# host_status KEY: prints a value of the sampler from the agent's status. `blkin status` would give up after 5 s.
host_status() { ask_service agent status 2>/dev/null | jq -r ".host_metrics.$1"; }

host_is() { [ "$(host_status "$1")" = "$2" ]; }

host_counted() { [ "$(host_status "$1")" -ge "$2" ] 2>/dev/null; }

# host_sampled_more PART: waits for 6 more samples. If a period samples at most 3 instances, the sampler has then read all
# files that were written before the call.
host_sampled_more() {
    local before
    before=$(host_status samples)
    wait_for 30 "$1" "more samples" host_counted samples $((before + 6))
}
