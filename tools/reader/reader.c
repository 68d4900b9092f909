/*
 * Shared by the services whose children run the sink.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "reader.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATS_PERIOD_MS 500

/* ---- orders ---------------------------------------------------------------------------------- */

json_t *reader_params(const struct config *config)
{
    json_t *params = config_sink_json(config);

    if (!params)
        return NULL;
    (void)json_object_del(params, "prometheus-listen");
    (void)json_object_del(params, "stats-file");
    /* by default, a reader also starts while the collector is down */
    if (!json_object_get(params, "require-collector"))
        (void)json_object_set_new(params, "require-collector", json_false());
    (void)json_object_set_new(params, "stats-period-ms", json_integer(STATS_PERIOD_MS));
    return params;
}

bool reader_endpoint_fits(const struct config *config, struct error *error)
{
    static const char scheme[] = "file:";
    const char *endpoint = config_text(config, "endpoint");
    struct stat status;

    if (!endpoint || strncasecmp(endpoint, scheme, strlen(scheme)) != 0 ||
        (stat(endpoint + strlen(scheme), &status) == 0 && !S_ISREG(status.st_mode)))
        return true;
    return error_set(error,
                     "endpoint \"%.800s\" is a file, which each delivery here would have to "
                     "overwrite: expected http://, https:// or kafka://",
                     endpoint);
}

/* ---- in the child ---------------------------------------------------------------------------- */

/* Gives up all capabilities and core dumps, and hides the memory (credentials, spans) from other
 * processes of the user. The user stays the same, so a child of root still reads root's files. */
static void reader_drop_privileges(void)
{
    const struct rlimit none = {0, 0};
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct data[2] = {{0}};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)syscall(SYS_capset, &header, data);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0);
}

json_t *reader_begin(const void *bytes, size_t size)
{
    json_t *order = json_loadb(bytes, size, 0, NULL);

    if (!order)
        abort();
    (void)unlink(text_in(json_object_get(order, "params"), "stats-file"));
    reader_drop_privileges();
    return order;
}
