/* SPDX-License-Identifier: BSD-2-Clause */
#include "tail.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/duration.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#define TAIL_FILE_MAX  (1U << 20)
#define TAIL_RULES_MAX 1000U
#define WORDS_MAX      4
#define OWN_NAME_MAX   1024

/* No duration is unusual before the operation had this number of spans in earlier periods. */
#define PAST_MIN 1000U

enum condition { ERROR, LONGER_THAN, UNUSUAL, RARE, TAIL_TAG, INCOMPLETE, ONE_OF };

/* The names that a glob fits, by name id. */
struct glob {
    char *pattern;  /* NULL: fits all names */
    uint8_t *known; /* enum known */
    size_t count;
};

enum known { UNKNOWN, FITS, FITS_NOT };

/* The duration above which a row's spans are unusual. */
struct limit {
    uint64_t period; /* the period in which ns was computed, plus 1; 0: not computed */
    int64_t ns;
};

struct tail_rule {
    char *text;
    bool has_spans; /* false: any span, or the whole trace */
    struct glob service;
    struct glob name;
    enum condition condition;
    int64_t number; /* ns, or a count */
    double quantile;
    char *key;
    char *value; /* a glob; NULL: any */
    struct limit *limits;
    size_t limits_count;
};

struct tail_rules {
    struct tail_rule *list;
    size_t count, room;
    /* the owners of the cached values */
    const struct names *names;
    const struct statistics *statistics;
};

/* ---- reading */

struct words {
    char *word[WORDS_MAX];
    int count;
};

/* Splits a line in place, and removes quotes. Returns false for too many words or an open quote. */
static bool tail_split(char *line, struct words *words)
{
    char *to = line;

    words->count = 0;
    while (*line) {
        bool is_quoted = false;

        while (text_is_blank(*line))
            line++;
        if (!*line)
            break;
        if (words->count == WORDS_MAX)
            return false;
        words->word[words->count++] = to;
        for (; *line && (is_quoted || !text_is_blank(*line)); line++) {
            if (*line == '"')
                is_quoted = !is_quoted;
            else
                *to++ = *line;
        }
        if (is_quoted)
            return false;
        line += *line != '\0';
        *to++ = '\0';
    }
    return true;
}

static bool read_count(const char *text, int64_t *count)
{
    char *end;

    errno = 0;
    *count = strtoll(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *count > 0;
}

static bool read_percentile(const char *text, double *quantile)
{
    char *end;
    const double number = text[0] == 'p' ? real_read(text + 1, &end) : 0;

    if (!(number > 0 && number < 100) || text[1] < '0' || text[1] > '9' || *end)
        return false;
    *quantile = number / 100;
    return true;
}

static bool rule_read_tag(struct tail_rule *rule, char *text)
{
    char *equals = strchr(text, '=');

    if (equals) {
        *equals = '\0';
        rule->value = equals + 1;
    }
    rule->key = text;
    return text[0] != '\0';
}

/* Parses a condition of `count` words. */
static bool read_condition(struct tail_rule *rule, char *const *word, int count)
{
    const char *argument = count == 2 ? word[1] : "";

    if (count == 1 && strcmp(word[0], "error") == 0)
        rule->condition = ERROR;
    else if (count == 1 && strcmp(word[0], "incomplete") == 0 && !rule->has_spans)
        rule->condition = INCOMPLETE;
    else if (count == 1 && strncmp(word[0], "1/", 2) == 0 && read_count(word[0] + 2, &rule->number))
        rule->condition = ONE_OF;
    else if (count == 2 && strcmp(word[0], "rare") == 0 && read_count(argument, &rule->number))
        rule->condition = RARE;
    else if (count == 2 && strcmp(word[0], ">") == 0 &&
             (rule->number = duration_read(argument)) >= 0)
        rule->condition = LONGER_THAN;
    else if (count == 2 && strcmp(word[0], ">") == 0 && rule->has_spans &&
             read_percentile(argument, &rule->quantile))
        rule->condition = UNUSUAL;
    else if (count == 2 && strcmp(word[0], "tag") == 0 && rule_read_tag(rule, word[1]))
        rule->condition = TAIL_TAG;
    else
        return false;
    return true;
}

static void read_spans(struct tail_rule *rule, char *text)
{
    char *colon = strchr(text, ':');

    if (colon) {
        *colon = '\0';
        rule->name.pattern = colon + 1;
    }
    rule->service.pattern = text[0] ? text : NULL;
    rule->has_spans = true;
}

/* Parses a rule. One allocation has the rule's text, then its words. Returns false with error
 * set. */
static bool read_rule(struct tail_rule *rule, struct text line, const char *path, unsigned number,
                      struct error *error)
{
    struct words words;
    char *copy;

    rule->text = malloc(2 * (line.length + 1));
    if (!rule->text)
        return error_set(error, "out of memory");
    *text_copy(rule->text, line) = '\0';
    copy = memcpy(rule->text + line.length + 1, rule->text, line.length + 1);
    if (memchr(line.data, '\0', line.length) == NULL && tail_split(copy, &words)) {
        if (read_condition(rule, words.word, words.count))
            return true;
        if (words.count > 1) {
            read_spans(rule, words.word[0]);
            if (read_condition(rule, &words.word[1], words.count - 1))
                return true;
        }
    }
    return error_set(
        error,
        "\"%.300s\", line %u: \"%.200s\": expected [SERVICE[:NAME]] and one of error, \"> "
        "20ms\", \"rare 100\", \"tag KEY[=VALUE]\" or 1/1000; or SERVICE[:NAME] > p99; or "
        "incomplete",
        path, number, rule->text);
}

static bool add_rule(struct tail_rules *rules, struct text line, const char *path, unsigned number,
                     struct error *error)
{
    struct tail_rule *rule;

    if (line.length == 0)
        return true;
    if (rules->count == TAIL_RULES_MAX)
        return error_set(error, "\"%.300s\", line %u: expected at most %u rules", path, number,
                         TAIL_RULES_MAX);
    if (!ARRAY_FITS(rules->list, rules->room, rules->count))
        return error_set(error, "out of memory");
    rule = &rules->list[rules->count++];
    *rule = (struct tail_rule){.text = NULL};
    return read_rule(rule, line, path, number, error);
}

struct tail_rules *tail_rules_parse(struct text text, const char *path, struct error *error)
{
    struct tail_rules *rules = calloc(1, sizeof(*rules));
    bool done = rules != NULL;

    if (!rules)
        error_set(error, "out of memory");
    for (unsigned number = 1; done && text.length; number++)
        done = add_rule(rules, text_without_comment(text_take(&text, '\n')), path, number, error);
    if (done)
        return rules;
    tail_rules_free(rules);
    return NULL;
}

struct tail_rules *tail_rules_read(const char *path, struct error *error)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(TAIL_FILE_MAX) : NULL;
    struct tail_rules *rules = NULL;
    size_t length = 0;

    if (text)
        length = fread(text, 1, TAIL_FILE_MAX, file);
    if (!text || ferror(file))
        error_set(error, "cannot read the rules of tail sampling in \"%.300s\": %s", path,
                  strerror(errno));
    else if (length == TAIL_FILE_MAX)
        error_set(error, "\"%.300s\": expected rules of tail sampling of less than %u bytes", path,
                  TAIL_FILE_MAX);
    else
        rules = tail_rules_parse((struct text){text, length}, path, error);
    free(text);
    if (file)
        fclose(file);
    return rules;
}

void tail_rules_free(struct tail_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->list[i].text);
        free(rules->list[i].service.known);
        free(rules->list[i].name.known);
        free(rules->list[i].limits);
    }
    free(rules->list);
    free(rules);
}

/* ---- cached values */

/* Clears the cached values if they belong to other names or statistics. */
static void tail_set_owners(struct tail_rules *rules, const struct statistics *statistics)
{
    const struct names *names = statistics_names(statistics);

    if (rules->statistics == statistics && rules->names == names)
        return;
    for (size_t i = 0; i < rules->count; i++)
        rules->list[i].service.count = rules->list[i].name.count = rules->list[i].limits_count = 0;
    rules->statistics = statistics;
    rules->names = names;
}

/* Grows an array with zeros to at least `wanted` elements. Returns NULL when out of memory. */
static void *tail_grow(void *array, size_t *count, size_t wanted, size_t size)
{
    const size_t room = wanted < 64 ? 64 : wanted + wanted / 2;
    char *grown = reallocarray(array, room, size);

    if (!grown)
        return NULL;
    memset(grown + *count * size, 0, (room - *count) * size);
    *count = room;
    return grown;
}

static bool glob_fits(struct glob *glob, const struct names *names, uint32_t id)
{
    enum known known;

    if (!glob->pattern)
        return true;
    if (id < glob->count && glob->known[id] != UNKNOWN)
        return glob->known[id] == FITS;
    known = fnmatch(glob->pattern, names_text(names, id).data, 0) == 0 ? FITS : FITS_NOT;
    if (id >= glob->count && id < names_count(names)) {
        uint8_t *grown = tail_grow(glob->known, &glob->count, names_count(names), sizeof(*grown));

        glob->known = grown ? grown : glob->known;
    }
    if (id < glob->count)
        glob->known[id] = known;
    return known == FITS;
}

/* fnmatch(3) needs a C string: a name without room in the table is copied, and cut. */
static bool glob_fits_own(const struct glob *glob, const struct tail_trace *trace,
                          const struct trace_span *span, bool is_service)
{
    const struct text own = trace->own_name ? trace->own_name(span, is_service) : text_of("");
    char text[OWN_NAME_MAX];

    (void)snprintf(text, sizeof(text), "%.*s", (int)own.length, own.data);
    return !glob->pattern || fnmatch(glob->pattern, text, 0) == 0;
}

static int64_t usual_limit(const struct tail_rule *rule, const struct statistics_row *row)
{
    return row->past.count < PAST_MIN ? INT64_MAX : histogram_quantile(&row->past, rule->quantile);
}

/* ---- evaluating */

static bool is_unusual(struct tail_rule *rule, const struct statistics *statistics,
                       const struct trace_span *span)
{
    const struct statistics_row *row = statistics_find_row(statistics, span->service, span->name);
    const uint64_t period = statistics_period(statistics) + 1;
    struct limit *limit;

    if (!row)
        return false;
    if (row->index >= rule->limits_count) {
        limit = tail_grow(rule->limits, &rule->limits_count, row->index + 1, sizeof(*limit));
        if (!limit)
            return span->duration_ns > usual_limit(rule, row);
        rule->limits = limit;
    }
    limit = &rule->limits[row->index];
    if (limit->period != period)
        *limit = (struct limit){period, usual_limit(rule, row)};
    return span->duration_ns > limit->ns;
}

static bool rule_is_rare(const struct tail_rule *rule, const struct statistics *statistics,
                         const struct trace_span *span)
{
    const struct statistics_row *row = statistics_find_row(statistics, span->service, span->name);

    return !row || row->ever < (uint64_t)rule->number;
}

static bool rule_is_of(const struct tail_rules *rules, struct tail_rule *rule,
                       const struct tail_trace *trace, const struct trace_span *span)
{
    if (!rule->has_spans)
        return true;
    return (span->service == NAMES_OTHER
                ? glob_fits_own(&rule->service, trace, span, true)
                : glob_fits(&rule->service, rules->names, span->service)) &&
           (span->name == NAMES_OTHER ? glob_fits_own(&rule->name, trace, span, false)
                                      : glob_fits(&rule->name, rules->names, span->name));
}

static bool span_fits(const struct tail_rules *rules, struct tail_rule *rule,
                      const struct tail_trace *trace, const struct trace_span *span)
{
    switch (rule->condition) {
    case ERROR:
        return span->is_error && rule_is_of(rules, rule, trace, span);
    case LONGER_THAN:
        return span->duration_ns > rule->number && rule_is_of(rules, rule, trace, span);
    case UNUSUAL:
        return rule_is_of(rules, rule, trace, span) && is_unusual(rule, rules->statistics, span);
    case RARE:
        return rule_is_of(rules, rule, trace, span) && rule_is_rare(rule, rules->statistics, span);
    case TAIL_TAG:
        return rule_is_of(rules, rule, trace, span) && trace->has_tag &&
               trace->has_tag(trace->context, span, text_of(rule->key), rule->value);
    default:
        return false;
    }
}

static bool some_span_fits(const struct tail_rules *rules, struct tail_rule *rule,
                           const struct tail_trace *trace)
{
    for (uint32_t i = 0; i < trace->model->count; i++) {
        if (span_fits(rules, rule, trace, &trace->model->spans[i]))
            return true;
    }
    return false;
}

static bool rule_fits(const struct tail_rules *rules, struct tail_rule *rule,
                      const struct tail_trace *trace)
{
    const struct trace_model *model = trace->model;

    switch (rule->condition) {
    case ERROR:
        return model->errors && some_span_fits(rules, rule, trace);
    case LONGER_THAN:
        return rule->has_spans
                   ? some_span_fits(rules, rule, trace)
                   : (uint64_t)model->end_ns - (uint64_t)model->start_ns > (uint64_t)rule->number;
    case INCOMPLETE:
        return !trace_model_is_whole(model);
    case ONE_OF:
        /* The hash is the same for each N, so the traces of 1/1000 are among those of 1/100. */
        return hash_mix(trace->trace_id) <= UINT64_MAX / (uint64_t)rule->number && model->count &&
               rule_is_of(rules, rule, trace, &model->spans[model->first_top]);
    default:
        return some_span_fits(rules, rule, trace);
    }
}

const char *tail_rules_fit(struct tail_rules *rules, const struct tail_trace *trace,
                           const struct statistics *statistics)
{
    tail_set_owners(rules, statistics);
    for (size_t i = 0; i < rules->count; i++) {
        if (rule_fits(rules, &rules->list[i], trace))
            return rules->list[i].text;
    }
    return NULL;
}
