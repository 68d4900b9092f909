/*
 * Scripts of events (scripts/NAME.events, see scripts/README.md) through the assembler: the spans
 * must be those of NAME.spans, and after every line every event must be in a span or in a counter.
 *
 *     test-scripts                     runs all scripts of $SRC/tests/plugin/scripts
 *     test-scripts FILE.events >FILE.spans   writes the spans of this script
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"

#include "check.h"
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "script_log.h"
#include "span_text.h"

#include <glob.h>

struct run {
    struct script_line line;
    struct assembler_options options;
    struct assembler *assembler;
    struct event defaults; /* set by "with" */
    struct event event;
    FILE *out;
    uint64_t spans; /* that the assembler gave out */
    uint64_t pad;   /* bytes that are added to the value */
    uint64_t copies;
    bool hide; /* only count spans */
    uint64_t hidden;
};

/* ---- attributes: key=value ---- */

enum script_type { SCRIPT_TEXT, SCRIPT_NUMBER, SCRIPT_KIND };

static const struct attribute {
    const char *name;
    enum script_type type;
    size_t offset;
} attributes[] = {
    {"trace-high", SCRIPT_NUMBER, offsetof(struct event, trace_id_high)},
    {"trace", SCRIPT_NUMBER, offsetof(struct event, trace_id)},
    {"span", SCRIPT_NUMBER, offsetof(struct event, span_id)},
    {"parent", SCRIPT_NUMBER, offsetof(struct event, parent_id)},
    {"name", SCRIPT_TEXT, offsetof(struct event, span_name)},
    {"service", SCRIPT_TEXT, offsetof(struct event, service)},
    {"ip", SCRIPT_TEXT, offsetof(struct event, ip)},
    {"port", SCRIPT_NUMBER, offsetof(struct event, port)},
    {"duration", SCRIPT_NUMBER, offsetof(struct event, duration_ns)},
    {"age", SCRIPT_NUMBER, offsetof(struct event, age_ns)},
    {"thread", SCRIPT_NUMBER, offsetof(struct event, thread)},
    {"seq", SCRIPT_NUMBER, offsetof(struct event, sequence)},
    {"kind", SCRIPT_KIND, offsetof(struct event, span_kind)},
    {"flags", SCRIPT_NUMBER, offsetof(struct event, flags)},
    {"dropped", SCRIPT_NUMBER, offsetof(struct event, dropped)},
    {"log", SCRIPT_TEXT, offsetof(struct event, log)},
    {"realtime", SCRIPT_NUMBER, offsetof(struct event, realtime)},
    {"host", SCRIPT_TEXT, offsetof(struct event, origin.host)},
    {"process", SCRIPT_TEXT, offsetof(struct event, origin.process)},
    {"pid", SCRIPT_NUMBER, offsetof(struct event, origin.pid)},
    {"pid-ns", SCRIPT_NUMBER, offsetof(struct event, origin.pid_namespace)},
    {"clock", SCRIPT_NUMBER, offsetof(struct event, origin.clock)},
    {"tid", SCRIPT_NUMBER, offsetof(struct event, origin.tid)},
};

static bool set_attribute(struct run *run, struct event *event, const struct script_word *word)
{
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        char *member = (char *)event + attributes[i].offset;
        const char *value = word->value.data;
        uint64_t number;

        if (strcmp(word->key, attributes[i].name) != 0)
            continue;
        if (attributes[i].type == SCRIPT_TEXT) {
            memcpy(member, &word->value, sizeof(word->value));
            return true;
        }
        number = attributes[i].type == SCRIPT_KIND ? kind_number(&run->line, value)
                                                   : script_number(&run->line, value);
        memcpy(member, &number, sizeof(number));
        return true;
    }
    return false;
}

/* ---- lines ---- */

static const char *word_of(struct run *run, unsigned i)
{
    if (i >= run->line.count || run->line.words[i].key)
        script_fail(&run->line, "too few words", i ? run->line.words[0].value.data : "");
    return run->line.words[i].value.data;
}

static void take_span(void *context, struct span *span)
{
    struct run *run = context;

    run->spans++;
    CHECK(span->start_ns <= span->end_ns);
    CHECK(span->log_length <= SPAN_LOG_MAX);
    if (run->hide)
        run->hidden++;
    else
        print_span(run->out, span);
}

static void check_account(struct run *run)
{
    const struct assembler_counts *counts = assembler_counts(run->assembler);

    if (counts->events == counts->events_in_span + counts->events_invalid + counts->events_no_room +
                              counts->events_late + counts->events_duplicate +
                              counts->events_process + counts->events_metric &&
        counts->spans_finished == run->spans &&
        counts->open_bytes <= run->options.max_open_bytes + 2 * SPAN_LOG_MAX)
        return;
    fprintf(stderr, "%s:%u: the account does not hold from here on:\n", run->line.file,
            run->line.number);
    print_counts(stderr, counts);
    check_failures++;
}

/* The word for an event, and its number of values (without a key). */
static const struct {
    const char *name;
    enum event_kind kind;
    unsigned values;
} event_names[] = {
    {"timestamp", EVENT_TIMESTAMP, 1},
    {"string", EVENT_KEYVAL_TEXT, 2},
    {"integer", EVENT_KEYVAL_INTEGER, 2},
    {"span", EVENT_SPAN, 0},
    {"begin", EVENT_BEGIN, 0},
    {"annotation", EVENT_ANNOTATION, 1},
    {"tag", EVENT_TAG, 0},
    {"end", EVENT_END, 0},
    {"process", EVENT_PROCESS, 0},
    {"metric", EVENT_METRIC, 0},
};

/* Sets a value, a word without a key: TEXT, or KEY and VALUE. */
static void set_value(struct run *run, unsigned value, unsigned count, struct text text)
{
    struct event *event = &run->event;

    if (value >= count)
        script_fail(&run->line, "one word too many", text.data);
    if (value + 1 < count) {
        event->key = text;
        return;
    }
    event->value = text;
    if (event->kind == EVENT_KEYVAL_INTEGER)
        event->integer = (int64_t)script_number(&run->line, text.data);
}

static void set_event(struct run *run, FILE *log)
{
    const char *name = word_of(run, 1);
    unsigned values = 0, value = 0;
    bool known = false;

    run->event = run->defaults;
    run->pad = 0;
    run->copies = 1;
    run->event.time_ns = (int64_t)script_number(&run->line, word_of(run, 0));
    for (size_t i = 0; i < sizeof(event_names) / sizeof(event_names[0]); i++) {
        if (strcmp(name, event_names[i].name) == 0) {
            run->event.kind = event_names[i].kind;
            values = event_names[i].values;
            known = true;
        }
    }
    if (!known)
        script_fail(&run->line, "no such event", name);
    for (unsigned i = 2; i < run->line.count; i++) {
        const struct script_word *word = &run->line.words[i];

        if (!word->key)
            set_value(run, value++, values, word->value);
        else if (strcmp(word->key, "pad") == 0)
            run->pad = script_number(&run->line, word->value.data);
        else if (strcmp(word->key, "copies") == 0)
            run->copies = script_number(&run->line, word->value.data);
        else if (!set_attribute(run, &run->event, word) && !write_log_record(log, &run->line, word))
            script_fail(&run->line, "no such attribute", word->key);
    }
    if (value < values)
        script_fail(&run->line, "a value is missing after", name);
}

/* Returns copies of the text, and pad bytes after them. The caller frees the result. */
static char *repeated(struct text text, uint64_t copies, uint64_t pad)
{
    char *made = malloc(text.length * copies + pad + 1);

    for (uint64_t i = 0; text.length && i < copies; i++)
        memcpy(made + i * text.length, text.data, text.length);
    memset(made + text.length * copies, 'x', pad);
    return made;
}

static void add_event(struct run *run)
{
    char *log = NULL;
    size_t log_length = 0;
    FILE *stream = open_memstream(&log, &log_length);
    char *value, *copied;

    set_event(run, stream);
    fclose(stream);
    value = repeated(run->event.value, 1, run->pad);
    copied = repeated((struct text){log, log_length}, run->copies, 0);
    run->event.value = (struct text){value, run->event.value.length + run->pad};
    if (log_length)
        run->event.log = (struct text){copied, log_length * run->copies};
    assembler_add(run->assembler, &run->event);
    free(value);
    free(copied);
    free(log);
}

/* Sets the attributes that all later events have. The texts stay in an array of the last 64. */
static void set_defaults(struct run *run)
{
    for (unsigned i = 1; i < run->line.count; i++) {
        const struct script_word *word = &run->line.words[i];
        struct script_word copy = {word->key, word->value};
        static char kept[64][64];
        static unsigned next;

        if (!word->key)
            script_fail(&run->line, "expected KEY=VALUE", word->value.data);
        if (word->value.length >= sizeof(kept[0]))
            script_fail(&run->line, "too long", word->value.data);
        copy.value.data = memcpy(kept[next], word->value.data, word->value.length + 1);
        next = (next + 1) % (sizeof(kept) / sizeof(kept[0]));
        if (!set_attribute(run, &run->defaults, &copy))
            script_fail(&run->line, "no such attribute", word->key);
    }
}

static void set_option(struct run *run, const struct script_word *word)
{
    const char *key = word->key ? word->key : "";
    uint64_t corrects_clocks = run->options.correct_clocks;
    const struct {
        const char *name;
        uint64_t *number;
    } options[] = {{"clocks", &corrects_clocks},
                   {"idle", (uint64_t *)&run->options.idle_timeout_ns},
                   {"end", (uint64_t *)&run->options.end_timeout_ns},
                   {"open", (uint64_t *)&run->options.open_timeout_ns},
                   {"resumed", (uint64_t *)&run->options.resumed_ns},
                   {"max-spans", &run->options.max_open_spans},
                   {"max-bytes", &run->options.max_open_bytes}};

    if (strcmp(key, "closing") == 0) {
        if (!closing_add(&run->options.closing, word->value))
            script_fail(&run->line, "not a closing annotation", word->value.data);
        return;
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(key, options[i].name) == 0) {
            *options[i].number = script_number(&run->line, word->value.data);
            run->options.correct_clocks = corrects_clocks;
            return;
        }
    }
    script_fail(&run->line, "no such option", key);
}

/* "loss [from=TIME to=TIME] [events=N] [packets=N] [ATTRIBUTE=VALUE...]" */
static void note_loss(struct run *run)
{
    struct event where = run->defaults;
    struct loss loss = {.has_times = false};

    for (unsigned i = 1; i < run->line.count; i++) {
        const struct script_word *word = &run->line.words[i];
        const char *key = word->key ? word->key : "";
        int64_t *time = strcmp(key, "from") == 0 ? &loss.begin_ns
                        : strcmp(key, "to") == 0 ? &loss.end_ns
                                                 : NULL;
        uint64_t *count = strcmp(key, "events") == 0    ? &loss.events
                          : strcmp(key, "packets") == 0 ? &loss.packets
                                                        : NULL;

        if (time)
            *time = (int64_t)script_number(&run->line, word->value.data);
        else if (count)
            *count = script_number(&run->line, word->value.data);
        else if (!word->key || !set_attribute(run, &where, word))
            script_fail(&run->line, "no such attribute", word->value.data);
        loss.has_times |= time != NULL;
    }
    loss.origin = where.origin;
    assembler_note_loss(run->assembler, &loss);
}

static void run_line(struct run *run)
{
    const char *first = word_of(run, 0);

    if (strcmp(first, "option") == 0) {
        if (run->assembler)
            script_fail(&run->line, "options come before events", first);
        for (unsigned i = 1; i < run->line.count; i++)
            set_option(run, &run->line.words[i]);
        return;
    }
    if (!run->assembler)
        run->assembler = assembler_new(&run->options, take_span, run);
    if (strcmp(first, "with") == 0) {
        set_defaults(run);
    } else if (strcmp(first, "advance") == 0) {
        fprintf(run->out, "-- advance %s\n", word_of(run, 1));
        assembler_advance(run->assembler, (int64_t)script_number(&run->line, word_of(run, 1)));
    } else if (strcmp(first, "flush") == 0) {
        fputs("-- flush\n", run->out);
        while (assembler_flush_some(run->assembler, UINT32_MAX))
            ;
    } else if (strcmp(first, "loss") == 0) {
        note_loss(run);
    } else if (strcmp(first, "counts") == 0) {
        print_counts(run->out, assembler_counts(run->assembler));
    } else if (strcmp(first, "hide") == 0) {
        run->hide = true;
    } else if (strcmp(first, "show") == 0) {
        fprintf(run->out, "(%" PRIu64 " spans)\n", run->hidden);
        run->hide = false;
    } else {
        add_event(run);
    }
    check_account(run);
}

/* ---- files ---- */

/* Writes source to line with each $i replaced by a number. */
static void fill_in(char *line, size_t size, const char *source, uint64_t number)
{
    size_t length = 0;

    for (; *source && length < size - 24; source++) {
        if (source[0] == '$' && source[1] == 'i') {
            length += (size_t)sprintf(line + length, "%" PRIu64, number);
            source++;
        } else {
            line[length++] = *source;
        }
    }
    line[length] = '\0';
}

/* "repeat N LINE" is LINE N times, with $i from 1 to N in it. */
static void run_source(struct run *run, const char *source)
{
    static char line[16384];
    uint64_t times = 1;
    int skip = 0;

    if (sscanf(source, "repeat %" SCNu64 " %n", &times, &skip) != 1)
        times = 1;
    for (uint64_t i = 1; i <= times; i++) {
        fill_in(line, sizeof(line), source + skip, i);
        script_read_line(&run->line, line);
        if (run->line.count)
            run_line(run);
    }
}

static void run_script(const char *path, FILE *out)
{
    struct run run = {
        .line = {.file = path},
        .options = {.idle_timeout_ns = INT64_C(10000000000),
                    .end_timeout_ns = 1000000000,
                    .open_timeout_ns = INT64_C(60000000000),
                    .max_open_spans = 1000,
                    .max_open_bytes = 1 << 24},
        .out = out,
    };
    const struct assembler_counts *counts;
    FILE *file = fopen(path, "r");
    static char source[8192];

    if (!file)
        script_fail(&run.line, "cannot open", path);
    while (fgets(source, sizeof(source), file)) {
        run.line.number++;
        run_source(&run, source);
    }
    fclose(file);
    if (!run.assembler)
        script_fail(&run.line, "no events in", path);
    fputs("-- end\n", out);
    while (assembler_flush_some(run.assembler, UINT32_MAX))
        ;
    check_account(&run);
    counts = assembler_counts(run.assembler);
    CHECK(counts->spans_open == 0 && counts->open_bytes == 0);
    print_counts(out, counts);
    assembler_free(run.assembler);
}

/* diff prints the differences; its exit status is 1 if there are any. */
static void test_script(const char *path)
{
    const int stem = (int)(strlen(path) - strlen(".events"));
    char command[4096];
    FILE *diff;

    snprintf(command, sizeof(command), "diff -u --label expected --label actual '%.*s.spans' -",
             stem, path);
    diff = popen(command, "w");
    if (!diff)
        script_fail(&(struct script_line){.file = path}, "cannot run", command);
    run_script(path, diff);
    if (pclose(diff) != 0) {
        fprintf(stderr, "%s: other spans than expected\n", path);
        check_failures++;
    }
}

static void test_all(void)
{
    const char *root = getenv("SRC");
    char pattern[4096];
    glob_t files;

    snprintf(pattern, sizeof(pattern), "%s/tests/plugin/scripts/*.events", root ? root : ".");
    if (glob(pattern, 0, NULL, &files) != 0)
        script_fail(&(struct script_line){.file = pattern}, "no scripts", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++)
        test_script(files.gl_pathv[i]);
    printf("%zu scripts\n", files.gl_pathc);
    globfree(&files);
}

int main(int argc, char **argv)
{
    if (argc == 1)
        test_all();
    for (int i = 1; i < argc; i++)
        run_script(argv[i], stdout);
    return check_status();
}
