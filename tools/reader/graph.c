/* SPDX-License-Identifier: BSD-2-Clause */
#include "graph.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---------------------------------------------------------------------------------- */

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

/* Prints the error of this thread: the first cause, then its consequences. input: may be "". */
static void graph_print_error(const char *what, const char *input)
{
    const bt_error *error = bt_current_thread_take_error();
    const uint64_t count = error ? bt_error_get_cause_count(error) : 0;
    const char *separator = ": ";

    fprintf(stderr, "blkin: %s%s", what, input);
    for (uint64_t i = 0; i < count; i++) {
        const bt_error_cause *cause = bt_error_borrow_cause_by_index(error, i);
        const char *message;

        /* a later cause of the library itself only names a function */
        if (i > 0 && bt_error_cause_get_actor_type(cause) == BT_ERROR_CAUSE_ACTOR_TYPE_UNKNOWN &&
            strcmp(bt_error_cause_get_module_name(cause), "libbabeltrace2") == 0)
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

/* ---- plugins, each searched until it is found ------------------------------------------------ */

const bt_plugin *graph_ctf(void)
{
    static const bt_plugin *ctf;

    if (!ctf)
        (void)bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, &ctf);
    return ctf;
}

const bt_plugin *graph_blkin(void)
{
    static const bt_plugin *blkin;
    const bt_plugin_set *installed = NULL;

    if (!blkin)
        (void)bt_plugin_find("blkin", BT_TRUE, BT_FALSE, BT_FALSE, BT_FALSE, BT_FALSE, &blkin);
    if (!blkin &&
        bt_plugin_find_all_from_file(PLUGIN_DIR "/babeltrace-plugin-blkin.so", BT_FALSE,
                                     &installed) == BT_PLUGIN_FIND_ALL_FROM_FILE_STATUS_OK) {
        blkin = bt_plugin_set_borrow_plugin_by_index_const(installed, 0);
        bt_plugin_get_ref(blkin);
        bt_plugin_set_put_ref(installed);
    }
    return blkin;
}

bool graph_can_run(void)
{
    if (!graph_ctf())
        graph_print_error("babeltrace2's own plugin ctf is not found: apt install --reinstall "
                          "libbabeltrace2-0",
                          "");
    else if (!graph_blkin())
        graph_print_error("BlkKin's plugin for babeltrace2 is not found, neither in " PLUGIN_DIR
                          " nor in $BABELTRACE_PLUGIN_PATH: install it, or name its folder there",
                          "");
    else
        return true;
    return false;
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

static const bt_component_sink *graph_add_sink(bt_graph *graph, const struct graph_spec *spec)
{
    const bt_component_class_sink *class =
        bt_plugin_borrow_sink_component_class_by_name_const(graph_blkin(), "zipkin");
    bt_value *params = graph_sink_params(spec->sink_params);
    const bt_component_sink *sink = NULL;

    if (class && params)
        (void)bt_graph_add_sink_component(graph, class, "sink", params, spec->level, &sink);
    bt_value_put_ref(params);
    return sink;
}

static const bt_component_source *graph_add_source(bt_graph *graph, const struct graph_spec *spec)
{
    const bt_component_class_source *class =
        bt_plugin_borrow_source_component_class_by_name_const(graph_ctf(), "lttng-live");
    const bt_component_source *source = NULL;
    bt_value *params = bt_value_map_create(), *inputs;

    if (class && params &&
        bt_value_map_insert_empty_array_entry(params, "inputs", &inputs) ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK &&
        bt_value_array_append_string_element(inputs, spec->live_url) ==
            BT_VALUE_ARRAY_APPEND_ELEMENT_STATUS_OK &&
        bt_value_map_insert_string_entry(params, "session-not-found-action", "continue") ==
            BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        /* without debugging, the source logs nothing but fatal errors, because the causes of an
         * error contain the same text */
        (void)bt_graph_add_source_component(
            graph, class, "live", params,
            spec->level <= BT_LOGGING_LEVEL_DEBUG ? spec->level : BT_LOGGING_LEVEL_FATAL, &source);
    bt_value_put_ref(params);
    return source;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Adds the sink before the source, because only the sink handles an interruption of a blocking
 * call. */
static bool graph_build(bt_graph *graph, const struct graph_spec *spec)
{
    const bt_component_sink *sink;
    const bt_component_source *source;

    if (!graph ||
        bt_graph_add_interrupter(graph, interrupter) != BT_GRAPH_ADD_INTERRUPTER_STATUS_OK) {
        graph_print_error("cannot make babeltrace2's graph", "");
        return false;
    }
    if (!graph_can_run())
        return false;
    sink = graph_add_sink(graph, spec);
    if (!sink) {
        graph_print_error("cannot start the sink", "");
        return false;
    }
    source = graph_add_source(graph, spec);
    if (source && bt_graph_connect_ports(
                      graph, bt_component_source_borrow_output_port_by_index_const(source, 0),
                      bt_component_sink_borrow_input_port_by_index_const(sink, 0),
                      NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK)
        return true;
    graph_print_error("cannot read ", spec->live_url);
    return false;
}

static enum graph_status graph_loop(bt_graph *graph, const struct graph_spec *spec)
{
    const struct timespec pause = {spec->retry_us / 1000000, spec->retry_us % 1000000 * 1000};
    bt_graph_run_status status;

    while ((status = bt_graph_run(graph)) == BT_GRAPH_RUN_STATUS_AGAIN &&
           !bt_interrupter_is_set(interrupter))
        (void)nanosleep(&pause, NULL); /* a signal ends the pause */
    if (status == BT_GRAPH_RUN_STATUS_OK)
        return GRAPH_ENDED;
    if (bt_interrupter_is_set(interrupter))
        return GRAPH_INTERRUPTED;
    graph_print_error("reading ended: ", spec->live_url);
    return GRAPH_FAILED;
}

enum graph_status graph_run(const struct graph_spec *spec)
{
    enum graph_status status = GRAPH_FAILED;
    bt_graph *graph;

    if (!graph_take_signals()) {
        graph_print_error("cannot make babeltrace2's interrupter", "");
        return GRAPH_FAILED;
    }
    graph = bt_graph_create(0);
    if (graph_build(graph, spec))
        status = graph_loop(graph, spec);
    else if (bt_interrupter_is_set(interrupter))
        status = GRAPH_INTERRUPTED;
    bt_graph_put_ref(graph); /* here the sink delivers its last spans */
    bt_current_thread_clear_error();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    BT_INTERRUPTER_PUT_REF_AND_RESET(interrupter);
    return status;
}

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
    (void)json_object_set_new(params, "stats-period-ms", json_integer(READER_STATS_MS));
    return params;
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
    (void)unlink(text_in(json_object_get(order, "params"), "sent-file"));
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
