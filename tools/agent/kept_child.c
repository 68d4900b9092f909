/*
 * What the children do that read kept folders.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "kept.h"
#include "records.h"
#include "service_traces.h"
#include "tools/base/folders.h"
#include "tools/base/say.h"
#include "tools/reader/reader.h"

/* One whose order names a service, or "", sends nothing. */
static int kept_run(const void *bytes, size_t size)
{
    json_t *order = reader_begin(bytes, size);
    const bool is_looker = json_object_get(order, "service") != NULL;
    struct service_traces traces = {.service = text_in(order, "service")};
    char path[PATH_ROOM], foreign[PATH_ROOM];
    struct error error;
    int status;

    path_set(path, "%s/records", text_in(order, "path"));
    path_set(foreign, "%s/foreign", text_in(order, "path"));
    status = records_read(path, foreign, order, is_looker ? service_traces_note : NULL, &traces);
    if (status == 0 && *traces.service &&
        !service_traces_write(&traces, text_in(order, "found"), &error)) {
        say(BK4056, "%s", error.text);
        status = 1;
    }
    service_traces_free(&traces);
    json_decref(order);
    return status;
}

const struct job kept_job = {.name = "agent-reader", .run = kept_run, .ends_in_order = true};
