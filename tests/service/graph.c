/*
 * Runs graph_run() alone: graph ENDPOINT URL
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/reader/graph.h"

int main(int argc, char *argv[])
{
    json_t *params = json_object();
    enum graph_status status;

    if (argc != 3)
        return 99;
    (void)json_object_set_new(params, "endpoint", json_string(argv[1]));
    status = graph_run(&(struct graph_spec){.live_url = argv[2],
                                            .sink_params = params,
                                            .retry_us = 50000,
                                            .level = BT_LOGGING_LEVEL_WARNING});
    json_decref(params);
    return (int)status;
}
