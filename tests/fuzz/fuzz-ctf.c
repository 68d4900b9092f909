/*
 * Fuzzes the whole sink with traces on disk: the bytes of events, the times and losses of packets,
 * read by babeltrace2's own source and muxer. The account must add up, and every decoder must
 * accept the written spans.
 *
 * Headers, sizes and ids of events are as a tracer writes them, because babeltrace2 2.0.4 aborts on
 * some others. (tests/plugin/make_traces.py has values of events of other classes.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/sink.h"
#include "zipkin_rules.h"

#include <babeltrace2/babeltrace.h>
#include <inttypes.h>
#include <unistd.h>

#define ZIPKIN "strace_name sservice_name iport_no sip qtrace_id qspan_id qparent_span_id "

/*
 * Type and name of each field: unsigned integers B H I Q, signed ones i q, strings s, packed texts
 * of whole spans p and of streaming events d.
 */
static const struct {
    const char *name;
    const char *fields;
} classes[] = {
    {"blkin:process", "Qrealtime Qmonotonic Qthread Isequence Ipid sservice sversion ssampling "},
    {"zipkin:timestamp", ZIPKIN "sevent "},
    {"zipkin:keyval_string", ZIPKIN "skey sval "},
    {"zipkin:keyval_integer", ZIPKIN "skey qval "},
    {"blkin:span", "Qtrace_id Qparent_id Qduration Hflags sname ppacked sservice "},
    {"blkin:begin", "Qtrace_id Qparent_id Hflags sname ppacked sservice "},
    {"blkin:tag", "Qtrace_id dpacked "},
    {"blkin:end", "Qtrace_id dpacked "},
    {"blkin:annotation_info", "Qtrace_id dpacked stext "},
    {"blkin:annotation_err", "Qtrace_id dpacked stext "},
    {"blkin:tag", "Qtrace_id slog "}, /* no packed text */
    {"some:other", "Inumber "},
    {"blkin:metric", "Qmonotonic Qthread Isequence Iperiod_ms sgroup sinstance snames svalues "},
    {"zipkin:keyval", ZIPKIN "skey sval "},
    {"blkin:slow", "Qmark "},
    /* fields of another type, or none */
    {"blkin:span", "strace_id Qparent_id sduration Hflags Qname ppacked sservice "},
    {"zipkin:keyval_integer", ZIPKIN "skey sval "},
    {"blkin:process", "srealtime Qmonotonic qthread isequence spid Qservice "},
    {"blkin:begin", "Qtrace_id Qparent_id Hflags sname Qpacked "},
    {"zipkin:timestamp", "strace_name sservice_name "},
    {"blkin:end", ""},
};
#define CTF_CLASSES (sizeof(classes) / sizeof(classes[0]))

/* ---- the trace on disk ---- */

static char folder[64], spans_file[96], stats_file[96];

static unsigned size_of(char type)
{
    switch (type) {
    case 'B':
        return 1;
    case 'H':
        return 2;
    case 'I':
    case 'i':
        return 4;
    default:
        return 8;
    }
}

static void put_field_class(FILE *file, const char *field, int length)
{
    if (strchr("spd", field[0]))
        fprintf(file, "string _%.*s; ", length - 1, field + 1);
    else
        fprintf(file, "integer { size = %u; align = 8; signed = %s; } _%.*s; ",
                size_of(field[0]) * 8, field[0] >= 'a' ? "true" : "false", length - 1, field + 1);
}

static void put_metadata(FILE *file)
{
    fputs("/* CTF 1.8 */\n"
          "typealias integer { size = 64; align = 8; } := uint64_t;\n"
          "typealias integer { size = 32; align = 8; } := uint32_t;\n"
          "trace { major = 1; minor = 8; byte_order = le;\n"
          "  packet.header := struct { uint32_t magic; uint32_t stream_id; "
          "uint64_t stream_instance_id; }; };\n"
          "env { hostname = \"node\"; domain = \"ust\"; tracer_name = \"lttng-ust\"; };\n"
          "clock { name = monotonic; freq = 1000000000; offset_s = 1700000000; };\n"
          "typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time_t;\n"
          "stream { id = 0;\n"
          "  event.header := struct { integer { size = 32; align = 8; } id; time_t timestamp; };\n"
          "  packet.context := struct { time_t timestamp_begin; time_t timestamp_end; "
          "uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; "
          "uint64_t events_discarded; };\n"
          "  event.context := struct { integer { size = 32; align = 8; signed = true; } _vpid; "
          "integer { size = 32; align = 8; signed = true; } _vtid; "
          "string _procname; };\n};\n",
          file);
    for (size_t i = 0; i < CTF_CLASSES; i++) {
        const char *field = classes[i].fields;

        fprintf(file, "event { name = \"%s\"; id = %zu; stream_id = 0; fields := struct { ",
                classes[i].name, i);
        for (; *field; field = strchr(field, ' ') + 1)
            put_field_class(file, field, (int)strcspn(field, " "));
        fputs("}; };\n", file);
    }
}

static FILE *open_file(const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/trace/%s", folder, name);
    file = fopen(path, "w");
    REQUIRE(file);
    return file;
}

static void put(FILE *file, uint64_t value, unsigned bytes)
{
    for (; bytes; bytes--, value >>= 8)
        fputc((int)(value & 255), file);
}

static uint64_t take_value(struct fuzz *source, unsigned bytes)
{
    const uint64_t choice = take(source, 1);

    return choice < 192 ? choice % 4 : choice < 240 ? choice : take(source, bytes);
}

static void put_text_alone(FILE *file, struct fuzz *source)
{
    static const char *const texts[] = {"osd",
                                        "cs",
                                        "sr",
                                        "ss",
                                        "cr",
                                        "10.0.0.1",
                                        "::1",
                                        "",
                                        "s1010kv",
                                        "610:0000000x",
                                        "(1000000000x6100000000x)20000000",
                                        "(1000000000x(1000000000y",
                                        "D4000000000000real",
                                        "-",
                                        "disk",
                                        "system.disk.io_time:ns:c system.memory.limit:By:g",
                                        "300000000 18446744073709551615"};
    const uint64_t choice = take(source, 1);
    struct text text = choice < 176 ? text_of(texts[choice % (sizeof(texts) / sizeof(texts[0]))])
                                    : take_bytes(source, choice % 64);

    for (size_t i = 0; i < text.length && text.data[i]; i++)
        fputc(text.data[i], file);
}

static void put_text(FILE *file, struct fuzz *source)
{
    put_text_alone(file, source);
    fputc('\0', file);
}

/* Writes a number of small digits, so that events meet. */
static void put_digits(FILE *file, struct fuzz *source, unsigned count)
{
    fputc((int)('0' + take(source, 1) % 4), file);
    for (; count > 1; count--)
        fputc('0', file);
}

/* Writes each number, then a field of any length, then an address that is cut off. */
static void put_packed(FILE *file, struct fuzz *source, char type)
{
    static const unsigned whole[] = {8, 8, 8, 8, 8, 11, 0}, detail[] = {8, 8, 8, 11, 0};

    for (const unsigned *digits = type == 'p' ? whole : detail; *digits; digits++)
        put_digits(file, source, *digits);
    put_text_alone(file, source);
    fputs(type == 'p' ? "00000" : "", file);
    fputc('\0', file);
}

static void put_event(FILE *file, struct fuzz *source, uint64_t time)
{
    const uint64_t number = take(source, 1) % CTF_CLASSES;
    const char *field = classes[number].fields;

    put(file, number, 4);
    put(file, time, 8);
    put(file, take_value(source, 4), 4);
    put(file, take_value(source, 4), 4);
    put_text(file, source);
    for (; *field; field = strchr(field, ' ') + 1) {
        if (field[0] == 's')
            put_text(file, source);
        else if (field[0] == 'p' || field[0] == 'd')
            put_packed(file, source, field[0]);
        else
            put(file, take_value(source, size_of(field[0])), size_of(field[0]));
    }
}

#define PACKET_HEAD 64

/* The begin of the next packet of a stream, and its numbers unless packets or events are lost. */
struct position {
    uint64_t time;
    uint64_t sequence;
    uint64_t discarded;
};

static void put_packet(FILE *file, struct fuzz *source, struct position *position, unsigned stream)
{
    char *content = NULL;
    size_t length = 0;
    FILE *events = open_memstream(&content, &length);
    const uint64_t begin = position->time;

    position->sequence += take(source, 1) >= 240 ? take(source, 1) : 0;
    position->discarded += take(source, 1) >= 224 ? take(source, 1) : 0;
    for (uint64_t count = take(source, 1) % 8; count; count--) {
        position->time += take(source, 1) * (take(source, 1) < 224 ? 1000 : 100000000);
        put_event(events, source, position->time);
    }
    fclose(events);
    put(file, 0xC1FC1FC1, 4);
    put(file, 0, 4);
    put(file, stream, 8);
    put(file, begin, 8);
    put(file, position->time, 8);
    put(file, (PACKET_HEAD + length) * 8, 8);
    put(file, (PACKET_HEAD + length) * 8, 8);
    put(file, position->sequence++, 8);
    put(file, position->discarded, 8);
    fwrite(content, 1, length, file);
    free(content);
}

static void write_trace(struct fuzz *source)
{
    struct position positions[2] = {{1000, 0, 0}, {1000, 0, 0}};
    FILE *files[2] = {open_file("c0"), open_file("c1")};

    do {
        const unsigned stream = take(source, 1) & 1;

        put_packet(files[stream], source, &positions[stream], stream);
    } while (source->at < source->end);
    fclose(files[0]);
    fclose(files[1]);
}

static void remove_folder(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    (void)!system(command);
}

static void make_folder(void)
{
    char path[96];
    FILE *file;

    snprintf(folder, sizeof(folder), "%s/fuzz-ctf-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(folder));
    atexit(remove_folder);
    snprintf(path, sizeof(path), "mkdir %s/trace", folder);
    REQUIRE(system(path) == 0);
    snprintf(spans_file, sizeof(spans_file), "%s/spans.json", folder);
    snprintf(stats_file, sizeof(stats_file), "%s/stats.json", folder);
    file = open_file("metadata");
    put_metadata(file);
    fclose(file);
}

/* ---- the graph ---- */

static const bt_plugin *ctf, *utils;
static bt_component_class_sink *sink_class;

static void make_classes(void)
{
    REQUIRE(bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, BT_FALSE, &ctf) ==
            BT_PLUGIN_FIND_STATUS_OK);
    REQUIRE(bt_plugin_find("utils", BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, BT_FALSE, &utils) ==
            BT_PLUGIN_FIND_STATUS_OK);
    sink_class = bt_component_class_sink_create("zipkin", sink_consume);
    (void)bt_component_class_sink_set_initialize_method(sink_class, sink_initialize);
    (void)bt_component_class_sink_set_graph_is_configured_method(sink_class,
                                                                 sink_graph_is_configured);
    (void)bt_component_class_sink_set_finalize_method(sink_class, sink_finalize);
}

static const bt_component_source *add_source(bt_graph *graph)
{
    const bt_component_source *source;
    bt_value *params = bt_value_map_create(), *inputs;
    char path[96];

    snprintf(path, sizeof(path), "%s/trace", folder);
    (void)bt_value_map_insert_empty_array_entry(params, "inputs", &inputs);
    (void)bt_value_array_append_string_element(inputs, path);
    REQUIRE(bt_graph_add_source_component(
                graph, bt_plugin_borrow_source_component_class_by_name_const(ctf, "fs"), "source",
                params, BT_LOGGING_LEVEL_NONE, &source) == BT_GRAPH_ADD_COMPONENT_STATUS_OK);
    bt_value_put_ref(params);
    return source;
}

static const bt_component_sink *add_sink(bt_graph *graph)
{
    const bt_component_sink *sink;
    bt_value *params = bt_value_map_create();
    char endpoint[128];

    snprintf(endpoint, sizeof(endpoint), "file:%s", spans_file);
    (void)bt_value_map_insert_string_entry(params, "endpoint", endpoint);
    (void)bt_value_map_insert_string_entry(params, "stats-file", stats_file);
    REQUIRE(bt_graph_add_sink_component(graph, sink_class, "sink", params, BT_LOGGING_LEVEL_NONE,
                                        &sink) == BT_GRAPH_ADD_COMPONENT_STATUS_OK);
    bt_value_put_ref(params);
    return sink;
}

static void run_graph(void)
{
    bt_graph *graph = bt_graph_create(0);
    const bt_component_source *source = add_source(graph);
    const bt_component_sink *sink = add_sink(graph);
    const bt_component_filter *muxer;
    const uint64_t ports = bt_component_source_get_output_port_count(source);

    REQUIRE(bt_graph_add_filter_component(
                graph, bt_plugin_borrow_filter_component_class_by_name_const(utils, "muxer"),
                "muxer", NULL, BT_LOGGING_LEVEL_NONE, &muxer) == BT_GRAPH_ADD_COMPONENT_STATUS_OK);
    for (uint64_t i = 0; i < ports; i++)
        REQUIRE(bt_graph_connect_ports(
                    graph, bt_component_source_borrow_output_port_by_index_const(source, i),
                    bt_component_filter_borrow_input_port_by_index_const(muxer, i),
                    NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK);
    REQUIRE(bt_graph_connect_ports(graph,
                                   bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
                                   bt_component_sink_borrow_input_port_by_index_const(sink, 0),
                                   NULL) == BT_GRAPH_CONNECT_PORTS_STATUS_OK);
    REQUIRE(bt_graph_run(graph) == BT_GRAPH_RUN_STATUS_OK);
    bt_graph_put_ref(graph);
}

/* ---- the results ---- */

static char content[4 << 20];

static size_t read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t length;

    REQUIRE(file);
    length = fread(content, 1, sizeof(content), file);
    REQUIRE(length < sizeof(content));
    fclose(file);
    return length;
}

static uint64_t counter(json_t *counters, const char *name)
{
    json_t *value = json_object_get(counters, name);

    REQUIRE(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static void check_account(size_t spans)
{
    static const char *const outcomes[] = {"in_spans",     "foreign",  "unreadable", "newer",
                                           "invalid",      "no_room",  "duplicate",  "late",
                                           "of_processes", "of_hosts", "of_alarms"};
    json_t *stats = json_loadb(content, read_file(stats_file), 0, NULL);
    json_t *counters = json_object_get(stats, "counters");
    uint64_t events = 0;

    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        char name[32];

        snprintf(name, sizeof(name), "events_%s", outcomes[i]);
        events += counter(counters, name);
    }
    REQUIRE(counter(counters, "events") == events);
    REQUIRE(counter(counters, "spans_finished") == spans);
    REQUIRE(counter(counters, "spans_accepted") == spans);
    REQUIRE(counter(counters, "spans_open") == 0 && counter(counters, "open_bytes") == 0);
    json_decref(stats);
}

static size_t check_spans(void)
{
    json_t *spans = json_loadb(content, read_file(spans_file), JSON_ALLOW_NUL, NULL), *span;
    size_t count, i;

    REQUIRE(json_is_array(spans));
    count = json_array_size(spans);
    json_array_foreach(spans, i, span) REQUIRE(!span_fault(span));
    json_decref(spans);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};

    if (!folder[0]) {
        make_folder();
        make_classes();
    }
    random_number = hash_of(data, size);
    write_trace(&source);
    (void)unlink(spans_file);
    run_graph();
    check_account(check_spans());
    return 0;
}
