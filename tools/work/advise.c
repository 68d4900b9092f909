/*
 * blkin work --advise: how many workers there should be, by their own figures and a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include "rule.h"
#include "babeltrace-plugin/base/real.h"
#include "tools/base/control.h"
#include "tools/config/config.h"
#include "tools/merged/merged.h"
#include "tools/trace/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
#include "tools/work/advise.txt.inc"
    ;

/* ---- figures of workers ---------------------------------------------------------------------- */

static void advise_add_worker(struct look *look, double busy, double behind_s)
{
    if (!(busy >= 0) || !(behind_s >= 0)) /* nor what is no number */
        return;
    look->workers++;
    look->busy += busy < 1 ? busy : 1;
    if (behind_s > look->behind_s)
        look->behind_s = behind_s;
}

static double advise_number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Of a document of the root's, or of one look that was recorded. Returns false if it is none. */
static bool advise_add_json(struct look *look, const json_t *json)
{
    const json_t *workers = json_object_get(json, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (!json_is_false(json_object_get(worker, "is_there")))
            advise_add_worker(look, advise_number_at(worker, "busy_ratio"),
                              advise_number_at(worker, "behind_seconds"));
    }
    return json_is_array(workers);
}

/* "NAME VALUE" or "NAME{LABELS} VALUE" at a line's beginning: where the labels begin and end, and
 * the value. In labels there may be any text. */
static bool advise_read_sample(const char *line, const char *name, struct text *labels,
                               double *value)
{
    const size_t length = strlen(name);
    const char *at = line + length;
    bool is_quoted = false;
    char *end;

    if (strncmp(line, name, length) != 0 || (*at != '{' && *at != ' '))
        return false;
    labels->data = at;
    for (; *at && *at != '\n' && (is_quoted || *at != ' '); at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '"')
            is_quoted = !is_quoted;
    }
    labels->length = (size_t)(at - labels->data);
    *value = real_read(at, &end);
    return end != at;
}

static const char *advise_next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : NULL;
}

static const char behind_name[] = "blkin_work_behind_seconds";

/* Where a page tells how far behind they are: a line of each, one after the other. */
static const char *advise_find_behind(const char *page)
{
    const char *line = page;

    while (line && strncmp(line, behind_name, strlen(behind_name)) != 0)
        line = advise_next_line(line);
    return line;
}

/* How far behind is it that has the same labels? */
static double advise_behind_of(const char *line, struct text labels)
{
    struct text found;
    double value;

    for (; line && advise_read_sample(line, behind_name, &found, &value);
         line = advise_next_line(line)) {
        if (text_equal(found, labels))
            return value;
    }
    return 0;
}

/* Of a page for Prometheus: a worker's, or the root's, which has all. */
static void advise_add_page(struct look *look, const char *page)
{
    const char *behind = advise_find_behind(page);
    struct text labels;
    double busy;

    for (const char *line = page; line; line = advise_next_line(line)) {
        if (advise_read_sample(line, "blkin_work_busy_ratio", &labels, &busy))
            advise_add_worker(look, busy, advise_behind_of(behind, labels));
    }
}

/* Returns false after it has said why. */
static bool advise_add_url(struct look *look, const char *url)
{
    struct buffer bytes;
    const bool is_read = read_source(url, &bytes);
    char *page = is_read ? strndup(bytes.data ? bytes.data : "", bytes.length) : NULL;
    json_t *json = page && *page == '{' ? json_loads(page, 0, NULL) : NULL;

    if (json)
        (void)advise_add_json(look, json);
    else if (page)
        advise_add_page(look, page);
    json_decref(json);
    free(page);
    free(bytes.data);
    return is_read;
}

static bool advise_ask_root(struct look *look, const char *folder)
{
    struct error error;
    json_t *status = control_ask(folder, ROOT_SERVICE, "workers", &error);
    const bool is_right = status && advise_add_json(look, status);

    if (!is_right)
        fprintf(stderr, "blkin work --advise: %s: give the URL of a page\n",
                status ? "the root gives an unexpected answer" : error.text);
    json_decref(status);
    return is_right;
}

/* ---- looks ----------------------------------------------------------------------------------- */

struct advising {
    struct rule rule;
    struct streaks streaks;
    const struct config *config;
    bool is_json;
};

/* One source that does not answer is a worker that is not there. */
static bool advise_look_at(const struct config *config, struct look *look)
{
    *look = (struct look){0};
    for (int i = 0; i < config_operands(config); i++)
        (void)advise_add_url(look, config_operand(config, i));
    if (config_operands(config) == 0)
        (void)advise_ask_root(look, config_text(config, "runtime-dir"));
    return look->workers > 0;
}

static void advise_print(const struct advising *advising, const struct look *look,
                         const struct advice *advice)
{
    const double busy = look->workers ? look->busy / look->workers : 0;
    json_t *json;

    if (!advising->is_json) {
        printf("%u (%u now: %s)\n", advice->wanted, look->workers, advice->why);
        (void)fflush(stdout);
        return;
    }
    json = json_pack("{si, si, sf, sf, ss}", "wanted", (int)advice->wanted, "workers",
                     (int)look->workers, "busy_ratio", round(busy * 1000) / 1000, "behind_seconds",
                     round(look->behind_s * 1000) / 1000, "why", advice->why);
    if (json && json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0)
        putchar('\n');
    json_decref(json);
    (void)fflush(stdout);
}

static void advise_wait_for_next(const struct advising *advising)
{
    const struct timespec pause = {(time_t)(advising->rule.every_ms / 1000),
                                   (long)(advising->rule.every_ms % 1000) * 1000000};

    (void)nanosleep(&pause, NULL);
}

/* Until it is other than it is, or the rule has seen enough; or for ever. */
static int advise_now(struct advising *advising, bool is_endless)
{
    const unsigned needed = rule_looks(&advising->rule);
    struct advice advice = {0};
    struct look look = {0};

    for (unsigned looks = 0; is_endless || looks < needed; looks++) {
        if (looks)
            advise_wait_for_next(advising);
        if (!advise_look_at(advising->config, &look)) {
            fputs("blkin work --advise: no worker's figures: check that a worker runs\n", stderr);
            if (!is_endless)
                return 1;
            continue;
        }
        rule_advise(&advising->rule, &advising->streaks, &look, &advice);
        if (is_endless)
            advise_print(advising, &look, &advice);
        else if (advice.wanted != look.workers)
            break;
    }
    advise_print(advising, &look, &advice);
    return 0;
}

/* All looks of a file at once. */
static int advise_recorded(struct advising *advising, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    unsigned number = 0;
    char *line = NULL;
    size_t room = 0;
    int status = 0;

    if (!file) {
        perror(path);
        return 1;
    }
    while (status == 0 && getline(&line, &room, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);
        struct look look = {0};
        struct advice advice;

        number++;
        if (!advise_add_json(&look, json)) {
            fprintf(stderr, "blkin work --advise: %s:%u: expected {\"workers\": [...]}\n", path,
                    number);
            status = 2;
        } else {
            rule_advise(&advising->rule, &advising->streaks, &look, &advice);
            advise_print(advising, &look, &advice);
        }
        json_decref(json);
    }
    free(line);
    if (file != stdin)
        (void)fclose(file);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_advise, is_watch, is_json;
static const char *rule_path;
static const struct config_flag flags[] = {{"advise", &is_advise, NULL},
                                           {"watch", &is_watch, NULL},
                                           {"json", &is_json, NULL},
                                           {"rule", NULL, &rule_path},
                                           {NULL, NULL, NULL}};

static bool advise_are_urls(const struct config *config)
{
    for (int i = 0; i < config_operands(config); i++) {
        if (!is_url(config_operand(config, i)))
            return false;
    }
    return true;
}

int advise_command(int argc, char *argv[])
{
    const struct config_request request = {"work", usage, flags};
    struct advising advising = {.streaks = {0}};
    struct config *config;
    struct error error;
    int status;

    config = config_read(&request, argc, argv, &status);
    if (!config)
        return status;
    advising.config = config;
    advising.is_json = is_json;
    if (!rule_read(&advising.rule, rule_path, &error)) {
        fprintf(stderr, "blkin work --advise: %s\n", error.text);
        status = 2;
    } else if (advise_are_urls(config)) {
        status = advise_now(&advising, is_watch);
    } else if (config_operands(config) == 1) {
        status = advise_recorded(&advising, config_operand(config, 0));
    } else {
        fprintf(stderr, "%s: expected pages, http://HOST:PORT/metrics, or one file\n%s", argv[0],
                usage);
        status = 2;
    }
    config_free(config);
    return status;
}
