/* SPDX-License-Identifier: BSD-2-Clause */
#include "export_file.h"

#include "tools/base/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define EXPORT_FILES_MAX 10000 /* names */

static const char export_file_scheme[] = "file:";

bool export_file_is(const char *endpoint)
{
    return strncasecmp(endpoint, export_file_scheme, strlen(export_file_scheme)) == 0;
}

static bool export_file_has_content(const char *endpoint)
{
    struct stat status;

    return stat(endpoint + strlen(export_file_scheme), &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size > 0;
}

bool export_file_choose(const char *endpoint, const char *format, const json_t *last,
                        char chosen[EXPORT_FILE_ROOM])
{
    const bool is_of_format = strcmp(text_in(last, "format"), format) == 0;

    (void)snprintf(chosen, EXPORT_FILE_ROOM, "%s", endpoint);
    for (unsigned n = 2; n <= EXPORT_FILES_MAX; n++) {
        if (!export_file_has_content(chosen))
            return false;
        if (is_of_format && strcmp(text_in(last, "endpoint"), chosen) == 0)
            return true;
        (void)snprintf(chosen, EXPORT_FILE_ROOM, "%.4000s.%u", endpoint, n);
    }
    (void)snprintf(chosen, EXPORT_FILE_ROOM, "%s", endpoint);
    return false;
}

json_t *export_file_json(const char *endpoint, const char *format)
{
    return json_pack("{ss, ss}", "endpoint", endpoint, "format", format);
}
