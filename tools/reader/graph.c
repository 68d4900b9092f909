/*
 * Builds and runs babeltrace2's graph.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "tools/base/child.h"

#include <babeltrace2/babeltrace.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct graph {
    const struct graph_spec *spec;
    bt_graph *graph;
    const bt_component_filter *muxer;
    const bt_component_sink *sink;
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Returns true for a cause of the library itself, which only names a function. */
static bool graph_is_of_library(const bt_error_cause *cause)
{
    return bt_error_cause_get_actor_type(cause) == BT_ERROR_CAUSE_ACTOR_TYPE_UNKNOWN &&
           strcmp(bt_error_cause_get_module_name(cause), "libbabeltrace2") == 0;
}

/* Returns the length without ": iter-addr=0x..., ...", which only helps to debug babeltrace2. */
static size_t graph_useful_length(const char *message)
{
    static const char *const noise[] = {"-addr=0x", "-status="};
    size_t length = strlen(message);

    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
        const char *at = strstr(message, noise[i]);

        while (at && at > message && *at != ':')
            at--;
        if (at && (size_t)(at - message) < length)
            length = (size_t)(at - message);
    }
    while (length && strchr(".\n", message[length - 1]))
        length--;
    return length;
}

/* Prints the error of this thread: the first cause, then its consequences. */
static void graph_print_error(const char *what)
{
    const bt_error *error = bt_current_thread_take_error();
    const uint64_t count = error ? bt_error_get_cause_count(error) : 0;
    const char *separator = ": ";

    fprintf(stderr, "blkin: %s", what);
    for (uint64_t i = 0; i < count; i++) {
        const bt_error_cause *cause = bt_error_borrow_cause_by_index(error, i);
        const char *message;

        if (graph_is_of_library(cause) && i > 0)
            continue;
        message = bt_error_cause_get_message(cause);
        fputs(separator, stderr);
        for (size_t at = 0, length = graph_useful_length(message); at < length; at++)
            fputc(message[at] == '\n' ? ' ' : message[at], stderr);
        separator = "; ";
    }
    fputc('\n', stderr);
    if (error)
        bt_error_release(error);
}

/* ---- signals --------------------------------------------------------------------------------- */

static bt_interrupter *interrupter;

static void graph_on_interrupt(int number)
{
    (void)number;
    bt_interrupter_set(interrupter);
}

/* Handles SIGTERM as SIGINT, whose handler the sink extends: see sink.c of the plugin. */
static void graph_on_terminate(int number)
{
    (void)number;
    (void)raise(SIGINT);
}

static bool graph_take_signals(void)
{
    struct sigaction action = {.sa_handler = graph_on_interrupt, .sa_flags = (int)SA_RESTART};

    interrupter = bt_interrupter_create();
    if (!interrupter)
        return false;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    action.sa_handler = graph_on_terminate;
    (void)sigaction(SIGTERM, &action, NULL);
    job_unblock_end();
    return true;
}

/* ---- plugins --------------------------------------------------------------------------------- */

static const bt_plugin *graph_find_plugin(const char *name)
{
    const bt_plugin *plugin = NULL;

    (void)bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &plugin);
    return plugin;
}

static const bt_plugin *graph_find_installed(void)
{
    const bt_plugin_set *installed = NULL;
    const bt_plugin *found = NULL;

    if (bt_plugin_find_all_from_dir(PLUGIN_DIR, BT_FALSE, BT_FALSE, &installed) !=
        BT_PLUGIN_FIND_ALL_FROM_DIR_STATUS_OK)
        return NULL;
    for (uint64_t i = 0; !found && i < bt_plugin_set_get_plugin_count(installed); i++) {
        const bt_plugin *plugin = bt_plugin_set_borrow_plugin_by_index_const(installed, i);

        if (strcmp(bt_plugin_get_name(plugin), "blkin") == 0)
            found = plugin;
    }
    if (found)
        bt_plugin_get_ref(found);
    bt_plugin_set_put_ref(installed);
    return found;
}

/* The plugins, each searched until it is found. */
static struct plugins {
    const bt_plugin *ctf, *utils, *blkin;
} plugins;

const bt_plugin *graph_ctf(void)
{
    if (!plugins.ctf)
        plugins.ctf = graph_find_plugin("ctf");
    return plugins.ctf;
}

const bt_plugin *graph_blkin(void)
{
    if (!plugins.blkin)
        (void)bt_plugin_find("blkin", BT_TRUE, BT_FALSE, BT_FALSE, BT_FALSE, BT_FALSE,
                             &plugins.blkin);
    if (!plugins.blkin)
        plugins.blkin = graph_find_installed();
    return plugins.blkin;
}

bool graph_can_run(void)
{
    if (plugins.utils && plugins.blkin)
        return true;
    plugins.utils = graph_find_plugin("utils");
    if (!graph_ctf() || !plugins.utils) {
        graph_print_error("babeltrace2's own plugins ctf and utils are not found: apt install "
                          "--reinstall libbabeltrace2-0");
        return false;
    }
    if (!graph_blkin())
        graph_print_error("BlkKin's plugin for babeltrace2 is not found, neither in " PLUGIN_DIR
                          " nor in $BABELTRACE_PLUGIN_PATH: install it, or name its folder there");
    return plugins.blkin != NULL;
}

/* ---- components ------------------------------------------------------------------------------ */

static bool graph_put_param(bt_value *map, const char *key, const json_t *value)
{
    bt_value_map_insert_entry_status status;

    if (json_is_integer(value))
        status = bt_value_map_insert_signed_integer_entry(map, key, json_integer_value(value));
    else if (json_is_boolean(value))
        status = bt_value_map_insert_bool_entry(map, key, json_is_true(value));
    else
        status = bt_value_map_insert_string_entry(map, key, json_string_value(value));
    return status == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK;
}

/* Returns NULL when out of memory. */
static bt_value *graph_sink_params(const json_t *given)
{
    bt_value *map = bt_value_map_create();
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)given, key, value)
    {
        if (map && !graph_put_param(map, key, value))
            BT_VALUE_PUT_REF_AND_RESET(map);
    }
    return map;
}

/* The sink has to be added before the sources, because only the sink handles an interruption of a
 * blocking call. */
static bool graph_add_sink(struct graph *graph)
{
    const bt_component_class_sink *class =
        bt_plugin_borrow_sink_component_class_by_name_const(plugins.blkin, "zipkin");
    bt_value *params = graph_sink_params(graph->spec->sink_params);
    const bool is_added =
        class && params &&
        bt_graph_add_sink_component(graph->graph, class, "sink", params, graph->spec->level,
                                    &graph->sink) == BT_GRAPH_ADD_COMPONENT_STATUS_OK;

    bt_value_put_ref(params);
    if (!is_added)
        graph_print_error("cannot start the sink");
    return is_added;
}

/* Connects the source's ports to the muxer, which always has one free port, the last. */
static bool graph_connect_source(struct graph *graph, const bt_component_source *source)
{
    for (uint64_t i = 0; i < bt_component_source_get_output_port_count(source); i++) {
        const uint64_t last = bt_component_filter_get_input_port_count(graph->muxer) - 1;

        if (bt_graph_connect_ports(
                graph->graph, bt_component_source_borrow_output_port_by_index_const(source, i),
                bt_component_filter_borrow_input_port_by_index_const(graph->muxer, last),
                NULL) != BT_GRAPH_CONNECT_PORTS_STATUS_OK)
            return false;
    }
    return true;
}

/* Returns {inputs: [input]}; NULL: out of memory. */
static bt_value *graph_source_params(const char *input)
{
    bt_value *params = bt_value_map_create();
    bt_value *inputs;

    if (params &&
        bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
        bt_value_array_append_string_element(inputs, input) ==
            BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK)
        return params;
    bt_value_put_ref(params);
    return NULL;
}

/* Returns the log level of sources. Without debugging, they log nothing but fatal errors, because
 * the causes of an error contain the same text. */
static bt_logging_level graph_level_of_source(const struct graph *graph)
{
    const bt_logging_level level = graph->spec->level;

    return level <= BT_LOGGING_LEVEL_DEBUG ? level : BT_LOGGING_LEVEL_FATAL;
}

/* name: unique in the graph. Returns NULL after a failure. */
static const bt_component_source *graph_add_source(struct graph *graph, const char *class_name,
                                                   const char *name, const bt_value *params)
{
    const bt_component_source *source = NULL;

    (void)bt_graph_add_source_component(
        graph->graph,
        bt_plugin_borrow_source_component_class_by_name_const(plugins.ctf, class_name), name,
        params, graph_level_of_source(graph), &source);
    return source;
}

static void graph_print_input_error(const char *what, const char *input)
{
    char text[4352];

    (void)snprintf(text, sizeof(text), "%s %s", what, input);
    graph_print_error(text);
}

static bool graph_add_live(struct graph *graph)
{
    const char *url = graph->spec->live_url;
    bt_value *params = graph_source_params(url);
    const bt_component_source *source = NULL;
    bool is_connected;

    if (params &&
        bt_value_map_insert_string_entry(params, "session-not-found-action", "continue") ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        source = graph_add_source(graph, "lttng-live", "live", params);
    bt_value_put_ref(params);
    is_connected = source && bt_graph_connect_ports(
                                 graph->graph,
                                 bt_component_source_borrow_output_port_by_index_const(source, 0),
                                 bt_component_sink_borrow_input_port_by_index_const(graph->sink, 0),
                                 NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK;
    if (!is_connected)
        graph_print_input_error("cannot read", url);
    return is_connected;
}

static bool graph_add_trace(struct graph *graph, const char *folder, unsigned number)
{
    bt_value *params = graph_source_params(folder);
    const bt_component_source *source = NULL;
    char name[32];
    bool is_connected;

    (void)snprintf(name, sizeof(name), "trace-%u", number);
    if (params)
        source = graph_add_source(graph, "fs", name, params);
    bt_value_put_ref(params);
    is_connected = source && graph_connect_source(graph, source);
    if (!is_connected)
        graph_print_input_error("cannot read the trace", folder);
    return is_connected;
}

/* Raises the limit of open files, as each stream of a trace is a file. */
static void graph_raise_limit_of_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool graph_add_traces(struct graph *graph)
{
    const bt_component_class_filter *class =
        bt_plugin_borrow_filter_component_class_by_name_const(plugins.utils, "muxer");

    graph_raise_limit_of_files();
    if (!class || bt_graph_add_filter_component(graph->graph, class, "muxer", NULL,
                                                graph_level_of_source(graph), &graph->muxer) !=
                      BT_GRAPH_ADD_COMPONENT_STATUS_OK) {
        graph_print_error("cannot start babeltrace2's muxer");
        return false;
    }
    for (unsigned i = 0; graph->spec->traces[i]; i++) {
        if (!graph_add_trace(graph, graph->spec->traces[i], i))
            return false;
    }
    if (bt_graph_connect_ports(
            graph->graph, bt_component_filter_borrow_output_port_by_index_const(graph->muxer, 0),
            bt_component_sink_borrow_input_port_by_index_const(graph->sink, 0),
            NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK)
        return true;
    graph_print_error("cannot connect the traces with the sink");
    return false;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool graph_build(struct graph *graph)
{
    graph->graph = bt_graph_create(0);
    if (!graph->graph ||
        bt_graph_add_interrupter(graph->graph, interrupter) != BT_GRAPH_ADD_INTERRUPTER_STATUS_OK) {
        graph_print_error("cannot make babeltrace2's graph");
        return false;
    }
    return graph_can_run() && graph_add_sink(graph) &&
           (graph->spec->live_url ? graph_add_live(graph) : graph_add_traces(graph));
}

static enum graph_status graph_loop(struct graph *graph)
{
    const struct timespec pause = {graph->spec->retry_us / 1000000,
                                   graph->spec->retry_us % 1000000 * 1000};
    bt_graph_run_status status;

    do {
        status = bt_graph_run(graph->graph);
        if (status == BT_GRAPH_RUN_STATUS_AGAIN && !bt_interrupter_is_set(interrupter))
            (void)nanosleep(&pause, NULL); /* a signal ends the pause */
    } while (status == BT_GRAPH_RUN_STATUS_AGAIN && !bt_interrupter_is_set(interrupter));
    if (status == BT_GRAPH_RUN_STATUS_OK)
        return GRAPH_ENDED;
    if (bt_interrupter_is_set(interrupter))
        return GRAPH_INTERRUPTED;
    if (graph->spec->live_url)
        graph_print_input_error("reading ended:", graph->spec->live_url);
    else
        graph_print_error("reading failed");
    return GRAPH_FAILED;
}

enum graph_status graph_run(const struct graph_spec *spec)
{
    struct graph graph = {.spec = spec};
    enum graph_status status = GRAPH_FAILED;

    if (!graph_take_signals()) {
        graph_print_error("cannot make babeltrace2's interrupter");
        return GRAPH_FAILED;
    }
    if (graph_build(&graph))
        status = graph_loop(&graph);
    else if (bt_interrupter_is_set(interrupter))
        status = GRAPH_INTERRUPTED;
    bt_graph_put_ref(graph.graph); /* here the sink delivers its last spans */
    bt_current_thread_clear_error();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    BT_INTERRUPTER_PUT_REF_AND_RESET(interrupter);
    return status;
}

/* ---- common parts of children that run the sink ---------------------------------------------- */

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

/* ---- the live sessions of a relay daemon, by babeltrace2's plugin ---------------------------- */

static const char *listing_text(const bt_value *map, const char *key)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(map, key);

    return value && bt_value_is_string(value) ? bt_value_string_get(value) : "";
}

static int64_t listing_integer(const bt_value *map, const char *key)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(map, key);

    if (value && bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value);
    return value && bt_value_is_unsigned_integer(value)
               ? (int64_t)bt_value_integer_unsigned_get(value)
               : 0;
}

static void listing_take(const bt_value *sessions, struct listing *listing)
{
    const uint64_t count = bt_value_array_get_length(sessions);

    for (uint64_t i = 0; i < count && listing->count < LISTED_MAX; i++) {
        const bt_value *map = bt_value_array_borrow_element_by_index_const(sessions, i);
        struct listed_session *session = &listing->sessions[listing->count++];

        (void)snprintf(session->host, sizeof(session->host), "%s",
                       listing_text(map, "target-hostname"));
        (void)snprintf(session->name, sizeof(session->name), "%s",
                       listing_text(map, "session-name"));
        session->viewers = listing_integer(map, "client-count");
        session->streams = listing_integer(map, "stream-count");
    }
    listing->has_more = count > LISTED_MAX;
}

static bt_query_executor *listing_query(const char *url)
{
    const bt_component_class_source *live =
        graph_ctf()
            ? bt_plugin_borrow_source_component_class_by_name_const(graph_ctf(), "lttng-live")
            : NULL;
    bt_value *params = bt_value_map_create();
    bt_query_executor *query = NULL;

    if (live && params &&
        bt_value_map_insert_string_entry(params, "url", url) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        query = bt_query_executor_create(bt_component_class_source_as_component_class_const(live),
                                         "sessions", params);
    bt_value_put_ref(params);
    return query;
}

bool listing_ask(const char *url, struct listing *listing)
{
    const bt_value *sessions = NULL;
    bt_query_executor *query = listing_query(url);
    const bool is_answered =
        query && bt_query_executor_query(query, &sessions) == BT_QUERY_EXECUTOR_QUERY_STATUS_OK;

    if (is_answered)
        listing_take(sessions, listing);
    else
        bt_current_thread_clear_error();
    bt_value_put_ref(sessions);
    bt_query_executor_put_ref(query);
    return is_answered;
}

static bool listing_fill(const void *order, void *result)
{
    return listing_ask(order, result);
}

const struct job listing_job = {.name = "live-sessions",
                                .fill = listing_fill,
                                .result_size = sizeof(struct listing),
                                .stays = true};

bool listing_has(const struct listing *listing, const char *host, const char *session)
{
    for (int i = 0; i < listing->count; i++) {
        if (strcmp(listing->sessions[i].host, host) == 0 &&
            strcmp(listing->sessions[i].name, session) == 0)
            return true;
    }
    return listing->has_more;
}
