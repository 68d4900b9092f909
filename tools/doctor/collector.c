/* Checks the sink that babeltrace2 loads, and the collector.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "babeltrace-plugin/params.h"
#include "tools/reader/graph.h"

#include <babeltrace2/babeltrace.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_FILE "babeltrace-plugin-blkin.so"

/* ---- the plugin ------------------------------------------------------------------------------ */

/* Looks in $BABELTRACE_PLUGIN_PATH and PLUGIN_DIR. babeltrace2 reports no error for a file that it
 * cannot load: it skips the file. */
static bool find_file(char *path, size_t size)
{
    const char *given = getenv("BABELTRACE_PLUGIN_PATH");
    char *folders = strdup(given ? given : ""), *rest = folders, *folder;
    bool is_there = false;

    while (folders && !is_there && (folder = strsep(&rest, ":"))) {
        (void)snprintf(path, size, "%s/" PLUGIN_FILE, folder);
        is_there = *folder && access(path, F_OK) == 0;
    }
    free(folders);
    if (is_there)
        return true;
    (void)snprintf(path, size, "%s/" PLUGIN_FILE, PLUGIN_DIR);
    return access(path, F_OK) == 0;
}

static void explain_missing(void)
{
    char path[1024];
    const char *why;

    if (!find_file(path, sizeof(path))) {
        saw(LEVEL_BAD, "plugin.found",
            "babeltrace2 has no sink.blkin.zipkin: no %s" MEND
            "install package babeltrace2-plugin-blkin, or set BABELTRACE_PLUGIN_PATH",
            path);
        return;
    }
    (void)dlerror();
    why = dlopen(path, RTLD_NOW | RTLD_LOCAL) ? NULL : dlerror();
    saw(LEVEL_BAD, "plugin.found",
        "babeltrace2 has no sink.blkin.zipkin: %s%s" MEND
        "install the package for this release of the system, and what it depends on",
        why ? "it cannot be loaded: " : "", why ? why : path);
}

static void check_version(const bt_plugin *plugin)
{
    unsigned major = 0, minor = 0, patch = 0;
    const char *extra;
    char version[48];

    (void)bt_plugin_get_version(plugin, &major, &minor, &patch, &extra);
    (void)snprintf(version, sizeof(version), "%u.%u.%u", major, minor, patch);
    if (strcmp(version, BLKIN_RELEASE) == 0)
        saw(LEVEL_OK, "plugin.version", "%s has the version of this command",
            bt_plugin_get_path(plugin));
    else
        saw(LEVEL_BAD, "plugin.version",
            "%s has version %s, this command has %s" MEND "install both from one release",
            bt_plugin_get_path(plugin), version, BLKIN_RELEASE);
}

void check_plugin(const struct doctor *doctor)
{
    const bt_plugin *plugin = graph_blkin(), *source = graph_ctf();

    (void)doctor;
    if (!plugin || !bt_plugin_borrow_sink_component_class_by_name_const(plugin, "zipkin")) {
        explain_missing();
    } else {
        saw(LEVEL_OK, "plugin.found", "babeltrace2 has sink.blkin.zipkin");
        check_version(plugin);
    }
    if (source && bt_plugin_borrow_source_component_class_by_name_const(source, "lttng-live"))
        saw(LEVEL_OK, "plugin.source", "babeltrace2 reads LTTng's traces");
    else
        saw(LEVEL_BAD, "plugin.source",
            "babeltrace2 has no src.ctf.lttng-live" MEND
            "apt install --reinstall libbabeltrace2-0");
}

/* ---- the collector --------------------------------------------------------------------------- */

static void check_file(const char *path)
{
    char folder[4096];
    struct stat status;

    (void)snprintf(folder, sizeof(folder), "%s", path);
    if (strrchr(folder, '/'))
        strrchr(folder, '/')[strrchr(folder, '/') == folder] = '\0';
    else
        (void)snprintf(folder, sizeof(folder), ".");
    if (stat(folder, &status) < 0 || access(folder, W_OK) < 0)
        saw(LEVEL_BAD, "collector.answers",
            "cannot make a file in %s: %s" MEND "set another endpoint in blkin.conf", folder,
            strerror(errno));
    else
        saw(LEVEL_OK, "collector.answers", "spans go to the file %s", path);
}

/* shown: the endpoint without secrets */
static void probe(const struct doctor *doctor, struct transport *transport, const char *shown)
{
    const bool is_kafka = is_kafka_url(shown);
    const int64_t start_ms = clock_ms();
    struct transport_reply reply = {.outcome = OUTCOME_ACCEPTED};

    transport->probe(transport, &reply);
    if (reply.outcome != OUTCOME_ACCEPTED) {
        saw(LEVEL_BAD, "collector.answers", "%s" MEND "is a %s %s; endpoint comes from %s",
            reply.error.text,
            is_kafka ? "broker there? kcat -L -b BROKER, of" : "collector there? curl -i", shown,
            config_origin(doctor->config, "endpoint"));
        return;
    }
    if (is_kafka)
        saw(LEVEL_OK, "collector.answers", "%s is there, with %u partitions, after %" PRId64 " ms",
            shown, transport->partitions, clock_ms() - start_ms);
    else
        saw(LEVEL_OK, "collector.answers", "%s takes an empty batch, after %" PRId64 " ms", shown,
            clock_ms() - start_ms);
    if (transport->warning)
        saw(LEVEL_NOTE, "collector.secrecy", "%s" MEND "%s", transport->warning,
            is_kafka ? "set security.protocol=sasl_ssl in the kafka-file"
                     : "set an endpoint with https://");
}

/* The service may run with another endpoint than the configuration has. */
static void use_endpoint_of_service(const struct doctor *doctor, struct transport_options *options)
{
    const char *endpoint = doctor->facts->endpoint;
    char *configured = endpoint_shown(options->endpoint);

    if (*endpoint && configured && strcmp(endpoint, configured) != 0) {
        saw(LEVEL_NOTE, "collector.endpoint",
            "blkin %s sends to %s, and not to %s, which %s names" MEND
            "systemctl restart blkin-%s, or give doctor the same --endpoint",
            doctor->section, endpoint, configured, config_origin(doctor->config, "endpoint"),
            doctor->section);
        options->endpoint = endpoint;
    }
    free(configured);
}

/* Shorter than the time limit of the group. */
#define PROBE_MS 3000

void check_collector(const struct doctor *doctor)
{
    struct transport *transport = NULL;
    struct transport_options *options;
    struct params params;
    struct error error = {""};
    char *shown;

    if (!config_sink_params(doctor->config, &params, &error)) {
        saw(LEVEL_BAD, "collector.settings", "%s", error.text);
        return;
    }
    options = &params.exporter.transport;
    options->endpoint = exporter_endpoint(&params.exporter);
    use_endpoint_of_service(doctor, options);
    options->protocol = exporter_protocol(&params.exporter);
    if (strncmp(options->endpoint, "file:", 5) == 0) {
        check_file(options->endpoint + 5);
        return;
    }
    if (options->request_timeout_ms > PROBE_MS)
        options->request_timeout_ms = PROBE_MS;
    transport = is_kafka_url(options->endpoint) ? kafka_transport_open(options, &error)
                                                : http_transport_open(options, &error);
    if (!transport) {
        saw(LEVEL_BAD, "collector.settings",
            "%s" MEND "blkin config show --section=%s shows where it is set", error.text,
            doctor->section);
        return;
    }
    shown = endpoint_shown(options->endpoint);
    probe(doctor, transport, shown ? shown : "it");
    free(shown);
    transport->free(transport);
}
