/*
 * The keys of the sampler, and the check that their periods fit tail sampling.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sampler.h"

#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/hosts/host_tags.h"
#include "babeltrace-plugin/params.h"
#include "filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SETTING_WORD_MAX 64
#define WAITED_MAX_MS    (HOST_WAIT_PERIOD_NS / 1000000) /* of a group for which spans wait */
#define PERIODS          2 /* the longest wait of a span for a sample, in periods */

static void key_of(enum host_kind kind, char key[SETTING_WORD_MAX])
{
    (void)snprintf(key, SETTING_WORD_MAX, "%s", host_definition(kind)->name);
    for (char *c = key; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* Returns true if the word is a period, or was meant as one: "10 s", "10sec". "7z" is a name. */
static bool looks_like_period(const char *word)
{
    static const char *const units[] = {"", "us", "ms", "s", "sec", "m", "min", "h", "Hz", NULL};
    const size_t digits = strspn(word, "0123456789");

    for (size_t i = 0; digits > 0 && units[i]; i++) {
        if (strcmp(word + digits, units[i]) == 0)
            return true;
    }
    return false;
}

static bool settings_refuse(enum host_kind kind, const char *text, struct error *error)
{
    char key[SETTING_WORD_MAX];

    key_of(kind, key);
    return error_set(
        error, "parameter \"%s\": expected a period from 100ms to 5m, or off%s, got \"%.64s\"", key,
        host_definition(kind)->has_instances ? ", and names of instances" : "", text);
}

/* Sets the period, the names or both, as the text has them. The names point into the text. Returns
 * false with error set. */
static bool read_setting(enum host_kind kind, const char *text, struct host_wanted *wanted,
                         struct error *error)
{
    const size_t length = strcspn(text, " \t");
    const char *names = text + length + strspn(text + length, " \t");
    char word[SETTING_WORD_MAX];

    (void)snprintf(word, sizeof(word), "%.*s", length < SETTING_WORD_MAX ? (int)length : 0, text);
    if (strcmp(word, "off") == 0 && !*names) {
        wanted->period_ms = 0;
        return true;
    }
    if (looks_like_period(word)) {
        const int64_t ms = duration_read_ms(word);

        if (ms < HOST_PERIOD_MIN_MS || ms > HOST_PERIOD_MAX_MS)
            return settings_refuse(kind, text, error);
        wanted->period_ms = (uint32_t)ms;
    } else {
        names = text;
    }
    if (!*names)
        return true;
    if (!host_definition(kind)->has_instances)
        return settings_refuse(kind, text, error);
    wanted->instances = names;
    return true;
}

bool host_settings_check(const char *key, const char *text, struct error *error)
{
    struct host_wanted ignored;
    struct host_rules rules;
    char known[SETTING_WORD_MAX];

    if (strcmp(key, "host-filters") == 0)
        return host_rules_parse(&rules, text, error);

    for (int kind = 0; kind < HOST_KINDS; kind++) {
        key_of(kind, known);
        if (strcmp(known, key) == 0)
            return read_setting(kind, text, &ignored, error);
    }
    return true;
}

bool host_settings_read(const struct config *config, struct host_config *host, struct error *error)
{
    const char *const root = config_text(config, "host-root");

    host_config_default(host);
    host->root = root && *root ? root : NULL;
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        struct error why;
        const char *text;
        char key[SETTING_WORD_MAX];

        key_of(kind, key);
        text = config_text(config, key);
        if (!text || read_setting(kind, text, &host->wanted[kind], &why))
            continue;
        return error_set(error, "%.400s: %.600s", config_origin(config, key), why.text);
    }
    return true;
}

/* ---- the time that a span waits for samples, and the wait of tail sampling ------------------- */

/* Returns the longest period of a group for which spans wait, and sets the group; 0: none. */
static uint32_t longest_period_ms(const struct host_config *host, enum host_kind *slowest)
{
    uint32_t longest = 0;

    for (int kind = 0; kind < HOST_KINDS; kind++) {
        const uint32_t ms = host->wanted[kind].period_ms;

        if (kind <= HOST_TCP && kind != HOST_NETWORK && ms <= WAITED_MAX_MS && ms > longest) {
            longest = ms;
            *slowest = (enum host_kind)kind;
        }
    }
    return longest;
}

bool host_wait_is_short_enough(const struct config *service, const struct config *host,
                               struct error *why)
{
    struct host_config wanted;
    struct params params;
    struct error ignored;
    enum host_kind slowest = HOST_KINDS;
    bool is_enough = true;

    if (config_sink_params(service, &params, &ignored) && params.tail_sampling &&
        params.host_min_ms >= 0 && host_settings_read(host, &wanted, &ignored)) {
        const int64_t needed_ms = (int64_t)PERIODS * longest_period_ms(&wanted, &slowest);

        is_enough = params.tail_wait_ms >= needed_ms;
        if (!is_enough)
            error_set(why,
                      "tail-wait-ms = %" PRId64 " is too short: a span can wait %" PRId64
                      " ms for its host's tags (%s is sampled every %" PRId64
                      " ms), so tail sampling may decide on the trace before the span arrives",
                      params.tail_wait_ms, needed_ms, host_definition(slowest)->name,
                      needed_ms / PERIODS);
    }
    return is_enough;
}
