/*
 * Runs graph_run() alone: graph ENDPOINT URL-or-FOLDER...
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/reader/graph.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char *argv[])
{
    json_t *params = json_object();
    struct graph_spec spec = {
        .sink_params = params, .retry_us = 50000, .level = BT_LOGGING_LEVEL_WARNING};
    enum graph_status status;

    if (argc < 3)
        return 99;
    (void)json_object_set_new(params, "endpoint", json_string(argv[1]));
    if (strncmp(argv[2], "net://", 6) == 0)
        spec.live_url = argv[2];
    else
        spec.traces = (const char *const *)argv + 2;
    status = graph_run(&spec);
    json_decref(params);
    return (int)status;
}
