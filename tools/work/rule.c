/*
 * How many workers there should be.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rule.h"

#include "babeltrace-plugin/base/real.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX    8
#define WORKERS_MAX  100000
#define SETTLE_LOOKS 6
#define DAY_MS       86400000.0

/* ---- the file -------------------------------------------------------------------------------- */

/* A number from 0 on with its unit: "50%", "2s". */
static bool rule_read_amount(const char *word, const char *unit, double most, double *value)
{
    char *end;

    if (*word < '0' || *word > '9')
        return false;
    *value = real_read(word, &end);
    return strcmp(end, unit) == 0 && *value <= most;
}

static bool rule_read_count(const char *word, unsigned *count)
{
    double value;

    if (strspn(word, "0123456789") != strlen(word) ||
        !rule_read_amount(word, "", WORKERS_MAX, &value))
        return false;
    *count = (unsigned)value;
    return true;
}

/* Returns false unless the words are "FIRST AMOUNT N times"; busy is told as 0 to 1. */
static bool rule_read_when(char **words, int count, const char *const first[4], const char *unit,
                           double most, double *amount, unsigned *times)
{
    for (int i = 0; i < 4; i++) {
        if (count != 7 || strcmp(words[i], first[i]) != 0)
            return false;
    }
    return rule_read_amount(words[4], unit, most, amount) && rule_read_count(words[5], times) &&
           *times > 0 && (strcmp(words[6], "times") == 0 || strcmp(words[6], "time") == 0);
}

static bool rule_read_every(const char *word, int64_t *every_ms)
{
    double value;

    if (rule_read_amount(word, "ms", DAY_MS, &value))
        *every_ms = (int64_t)value;
    else if (rule_read_amount(word, "s", DAY_MS / 1000, &value))
        *every_ms = (int64_t)(value * 1000);
    else
        return false;
    return *every_ms >= 100;
}

static bool rule_read_words(struct rule *rule, char **words, int count)
{
    static const char *const up_busy[] = {"up", "when", "busy", ">"};
    static const char *const up_behind[] = {"up", "when", "behind", ">"};
    static const char *const down[] = {"down", "when", "busy", "<"};
    double percent;

    if (rule_read_when(words, count, up_busy, "%", 100, &percent, &rule->up_busy_times)) {
        rule->up_busy = percent / 100;
        return true;
    }
    if (rule_read_when(words, count, down, "%", 100, &percent, &rule->down_times)) {
        rule->down_busy = percent / 100;
        return true;
    }
    if (rule_read_when(words, count, up_behind, "s", DAY_MS / 1000, &rule->up_behind_s,
                       &rule->up_behind_times))
        return true;
    if (count == 3 && strcmp(words[0], "at") == 0 && strcmp(words[1], "least") == 0)
        return rule_read_count(words[2], &rule->least);
    if (count == 3 && strcmp(words[0], "at") == 0 && strcmp(words[1], "most") == 0)
        return rule_read_count(words[2], &rule->most) && rule->most > 0;
    return count == 2 && strcmp(words[0], "every") == 0 &&
           rule_read_every(words[1], &rule->every_ms);
}

static bool rule_read_line(struct rule *rule, char *line)
{
    char *words[WORDS_MAX], *rest = line;
    int count = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    for (char *word; (word = strsep(&rest, " \t"));) {
        if (*word == '\0')
            continue;
        if (count == WORDS_MAX)
            return false;
        words[count++] = word;
    }
    return count == 0 || rule_read_words(rule, words, count);
}

static bool rule_check(const struct rule *rule, const char *path, struct error *error)
{
    if (rule->least > rule->most)
        error_set(error, "%s: at least %u, but at most %u", path, rule->least, rule->most);
    else if (rule->down_busy >= rule->up_busy)
        error_set(error,
                  "%s: down below %g%% and up above %g%%: expected a gap between them, as the "
                  "number would go up and down for ever",
                  path, rule->down_busy * 100, rule->up_busy * 100);
    else
        return true;
    return false;
}

bool rule_read(struct rule *rule, const char *path, struct error *error)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    unsigned number = 0;
    bool is_right = true;
    char line[1024];

    *rule = (struct rule){.up_busy = 0.5,
                          .up_busy_times = 2,
                          .up_behind_s = 2,
                          .up_behind_times = 2,
                          .down_busy = 0.15,
                          .down_times = 3,
                          .least = 1,
                          .most = 16,
                          .every_ms = 10000};
    if (!path)
        return true;
    if (!file)
        return error_set(error, "%s: cannot read it: %s", path, strerror(errno));
    while (is_right && fgets(line, sizeof(line), file)) {
        number++;
        is_right = (strchr(line, '\n') || feof(file)) && rule_read_line(rule, line);
    }
    if (!is_right)
        error_set(error,
                  "%s:%u: expected \"up when busy > 50%% 2 times\", \"up when behind > 2s 2 "
                  "times\", \"down when busy < 15%% 3 times\", \"at least 1\", \"at most 16\" or "
                  "\"every 10s\"",
                  path, number);
    (void)fclose(file);
    return is_right && rule_check(rule, path, error);
}

/* ---- advice ---------------------------------------------------------------------------------- */

static unsigned rule_most_of(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

unsigned rule_looks(const struct rule *rule)
{
    return rule_most_of(rule_most_of(rule->up_busy_times, rule->up_behind_times), rule->down_times);
}

/* So many would not be above the limit, if the work were spread evenly. */
static unsigned rule_enough_for(const struct rule *rule, const struct look *look)
{
    const double enough = rule->up_busy > 0 ? ceil(look->busy / rule->up_busy - 1e-9) : WORKERS_MAX;

    return enough < 0 || isnan(enough) ? 0 : enough > WORKERS_MAX ? WORKERS_MAX : (unsigned)enough;
}

static void rule_count_streaks(const struct rule *rule, struct streaks *streaks,
                               const struct look *look, double busy)
{
    streaks->busy = busy > rule->up_busy ? streaks->busy + 1 : 0;
    streaks->behind = look->behind_s > rule->up_behind_s ? streaks->behind + 1 : 0;
    streaks->idle = busy < rule->down_busy && streaks->behind == 0 ? streaks->idle + 1 : 0;
}

/* What was wanted is wanted until it is so; or until somebody else has plainly decided. */
static void rule_settle(struct streaks *streaks, const struct look *look)
{
    streaks->other = look->workers == streaks->wanted ? 0 : streaks->other + 1;
    if (streaks->other > SETTLE_LOOKS || streaks->wanted == 0) {
        streaks->wanted = look->workers;
        streaks->other = 0;
    }
}

static void rule_bound(const struct rule *rule, struct advice *advice)
{
    if (advice->wanted < rule->least) {
        advice->wanted = rule->least;
        (void)snprintf(advice->why, sizeof(advice->why), "at least %u", rule->least);
    } else if (advice->wanted > rule->most) {
        const size_t length = strlen(advice->why);

        advice->wanted = rule->most;
        (void)snprintf(advice->why + length, sizeof(advice->why) - length, "; at most %u",
                       rule->most);
    }
}

/* Up at once to what is enough, as what waits grows meanwhile; down by one, as each that goes is
 * some seconds of reading again for the others. After a change it is looked at anew. */
void rule_advise(const struct rule *rule, struct streaks *streaks, const struct look *look,
                 struct advice *advice)
{
    const double busy = look->workers ? look->busy / look->workers : 0;

    rule_count_streaks(rule, streaks, look, busy);
    rule_settle(streaks, look);
    advice->wanted = streaks->wanted;
    if (streaks->busy >= rule->up_busy_times) {
        advice->wanted = rule_most_of(advice->wanted,
                                      rule_most_of(look->workers + 1, rule_enough_for(rule, look)));
        (void)snprintf(advice->why, sizeof(advice->why), "%.0f %% busy, above %g %% for %u looks",
                       busy * 100, rule->up_busy * 100, streaks->busy);
    } else if (streaks->behind >= rule->up_behind_times) {
        advice->wanted = rule_most_of(advice->wanted, look->workers + 1);
        (void)snprintf(advice->why, sizeof(advice->why),
                       "%.1f s behind, more than %g s for %u looks", look->behind_s,
                       rule->up_behind_s, streaks->behind);
    } else if (look->workers > 1 && streaks->idle >= rule->down_times) {
        advice->wanted = look->workers - 1;
        (void)snprintf(advice->why, sizeof(advice->why), "%.0f %% busy, below %g %% for %u looks",
                       busy * 100, rule->down_busy * 100, streaks->idle);
    } else {
        (void)snprintf(advice->why, sizeof(advice->why), "%.0f %% busy, %.1f s behind", busy * 100,
                       look->behind_s);
    }
    rule_bound(rule, advice);
    if (advice->wanted != streaks->wanted)
        *streaks = (struct streaks){.wanted = advice->wanted};
}
