/*
 * Sampling policies: their text form, their file, and the decision.
 *
 * The current policy is never overwritten. A new policy is written to another slot and becomes
 * current by a single store, so that the decision needs only plain loads. A slot is reused after
 * seven changes. The file changes the policy at most once a second, so no thread still reads the
 * slot then; a program that calls blkin_set_sampling() more often has no such guarantee.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sampling.h"

#include "blkin.h"
#include "libblkin/base/clock.h"
#include "libblkin/base/text.h"
#include "libblkin/base/periodic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLING_RULES_MAX 32
#define SAMPLING_SLOTS     8
#define SAMPLING_BURST_NS  UINT64_C(100000000)

enum sampling_mode { SAMPLING_ALWAYS, SAMPLING_NEVER, SAMPLING_RATIO, SAMPLING_RATE };

struct sampling_rule {
    char name[64];
    size_t length;
    bool is_prefix; /* the text was NAME* */
    enum sampling_mode mode;
    uint32_t ppm;           /* of RATIO, ALWAYS and NEVER: the sampled share in millionths */
    uint64_t threshold;     /* of RATIO: a trace is sampled if the low 56 bits of its id are less */
    struct blkin_rate rate; /* of RATE; the only member that changes */
};

struct sampling_policy {
    char text[BLKIN_POLICY_TEXT_MAX];
    uint32_t severity; /* the largest enum blkin_severity that is recorded */
    int usage;         /* the usage level; -1: that of blkin_set_usage() */
    unsigned rule_count;
    struct sampling_rule fallback; /* for names without a rule of their own */
    struct sampling_rule rules[SAMPLING_RULES_MAX];
};

static BLKIN_COLD_DATA struct sampling_policy sampling_slots[SAMPLING_SLOTS] = {
    {.text = "always", .usage = -1, .fallback = {.mode = SAMPLING_ALWAYS, .ppm = 1000000}},
};
static struct sampling_policy *sampling_current = &sampling_slots[0];
uint32_t blkin_least_severity = BLKIN_DEBUG;
static unsigned sampling_next_slot = 1;
static int sampling_usage_of_program;

/* ---- the text form ---- */

static bool sampling_parse_number(const char *text, double min, double max, double *number)
{
    const char *end;

    return blkin_policy_number(text, number, &end) && *end == '\0' && *number >= min &&
           *number <= max;
}

/* Parses always, never, ratio=0.01 or rate=100. */
static bool sampling_parse_mode(const char *text, struct sampling_rule *rule)
{
    double number;

    if (strcmp(text, "always") == 0) {
        rule->mode = SAMPLING_ALWAYS;
        rule->ppm = 1000000;
        return true;
    }
    if (strcmp(text, "never") == 0) {
        rule->mode = SAMPLING_NEVER;
        return true;
    }
    if (strncmp(text, "ratio=", 6) == 0 && sampling_parse_number(text + 6, 0, 1, &number)) {
        rule->mode = number == 1 ? SAMPLING_ALWAYS : SAMPLING_RATIO;
        rule->ppm = (uint32_t)(number * 1e6 + 0.5);
        rule->threshold = (uint64_t)(number * (double)(UINT64_C(1) << 56));
        return true;
    }
    if (strncmp(text, "rate=", 5) == 0 && sampling_parse_number(text + 5, 1e-3, 1e9, &number)) {
        rule->mode = SAMPLING_RATE;
        rule->rate.period_ns = (uint64_t)(1e9 / number);
        return true;
    }
    return false;
}

/* Parses name:mode or name*:mode. */
static bool sampling_parse_rule(char *text, struct sampling_rule *rule)
{
    char *colon = strrchr(text, ':');

    if (!colon)
        return false;
    *colon = '\0';
    text = blkin_trimmed(text);
    rule->length = strlen(text);
    rule->is_prefix = rule->length > 0 && text[rule->length - 1] == '*';
    rule->length -= rule->is_prefix;
    if (rule->length >= sizeof(rule->name) || (rule->length == 0 && !rule->is_prefix))
        return false;
    memcpy(rule->name, text, rule->length);
    return sampling_parse_mode(blkin_trimmed(colon + 1), rule);
}

/* Parses the name of a severity, as in syslog.conf(5). */
static bool sampling_parse_severity(const char *text, uint32_t *severity)
{
    static const char names[][8] = {"emerg",   "alert",  "crit", "err",
                                    "warning", "notice", "info", "debug"};

    for (*severity = BLKIN_EMERG; *severity <= BLKIN_DEBUG; ++*severity) {
        if (strcmp(text, names[*severity]) == 0)
            return true;
    }
    return false;
}

static bool sampling_parse_usage(const char *text, int *level)
{
    *level = text[0] - '0';
    return *level >= 0 && *level <= BLKIN_USAGE_LEVEL_MAX && text[1] == '\0';
}

/* Parses a part after the first one. */
static bool sampling_parse_part(char *text, struct sampling_policy *policy)
{
    if (strncmp(text, "severity=", 9) == 0)
        return sampling_parse_severity(text + 9, &policy->severity);
    if (strncmp(text, "usage=", 6) == 0)
        return sampling_parse_usage(text + 6, &policy->usage);
    if (policy->rule_count == SAMPLING_RULES_MAX ||
        !sampling_parse_rule(text, &policy->rules[policy->rule_count]))
        return false;
    policy->rule_count++;
    return true;
}

static bool sampling_parse(const char *text, struct sampling_policy *policy)
{
    char copy[BLKIN_POLICY_TEXT_MAX];
    char *rest = copy;
    char *part;

    memset(policy, 0, sizeof(*policy));
    if (strlen(text) >= sizeof(copy))
        return false;
    strcpy(copy, text);
    strcpy(policy->text, text);
    policy->severity = BLKIN_DEBUG;
    policy->usage = -1;
    part = strsep(&rest, ",");
    if (!sampling_parse_mode(blkin_trimmed(part), &policy->fallback))
        return false;
    while ((part = strsep(&rest, ","))) {
        if (!sampling_parse_part(blkin_trimmed(part), policy))
            return false;
    }
    return true;
}

static void sampling_set_usage(void)
{
    blkin_usage_set((unsigned)(sampling_current->usage >= 0 ? sampling_current->usage
                                                            : sampling_usage_of_program));
}

static const char *sampling_take(const char *text)
{
    struct sampling_policy *policy = &sampling_slots[sampling_next_slot];

    if (!sampling_parse(text, policy))
        return text;
    sampling_next_slot = (sampling_next_slot + 1) % SAMPLING_SLOTS;
    __atomic_store_n(&sampling_current, policy, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_least_severity, policy->severity, __ATOMIC_RELAXED);
    sampling_set_usage();
    return NULL;
}

struct blkin_policy_source blkin_sampling_source = {
    .variable = "BLKIN_SAMPLING",
    .file_variable = "BLKIN_SAMPLING_FILE",
    .default_file = "/run/blkin/sampling",
    .expected = "a sampling policy, expected always, never, ratio=0..1 or rate=traces-per-second, "
                "then rules such as ,name*:never, ,severity=notice and ,usage=0..3",
    .take = sampling_take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

int blkin_set_sampling(const char *text)
{
    return blkin_policy_set(&blkin_sampling_source, text);
}

int blkin_set_usage(int level)
{
    if (level < 0 || level > BLKIN_USAGE_LEVEL_MAX)
        return -EINVAL;
    pthread_mutex_lock(&blkin_sampling_source.lock);
    sampling_usage_of_program = level;
    sampling_set_usage();
    pthread_mutex_unlock(&blkin_sampling_source.lock);
    return 0;
}

uint32_t blkin_root_flags;

void blkin_sampling_init(void)
{
    const char *random = secure_getenv("BLKIN_RANDOM_FLAG");

    blkin_root_flags = random && strcmp(random, "1") == 0 ? BLKIN_CONTEXT_RANDOM : 0;
    blkin_policy_init(&blkin_sampling_source);
}

const char *blkin_sampling_text(void)
{
    return __atomic_load_n(&sampling_current, __ATOMIC_ACQUIRE)->text;
}

/* ---- the decision ---- */

/* noinline, so that blkin_sampling_decide() without rules saves no registers. */
__attribute__((noinline)) static struct sampling_rule *
sampling_rule_for(struct sampling_policy *policy, const char *name, size_t length)
{
    for (unsigned i = 0; i < policy->rule_count; i++) {
        struct sampling_rule *rule = &policy->rules[i];

        if ((rule->is_prefix ? length >= rule->length : length == rule->length) &&
            (rule->length == 0 || memcmp(name, rule->name, rule->length) == 0))
            return rule;
    }
    return &policy->fallback;
}

struct blkin_decision blkin_sampling_decide(const char *name, size_t length, uint64_t trace_id)
{
    struct sampling_policy *policy = __atomic_load_n(&sampling_current, __ATOMIC_ACQUIRE);
    struct sampling_rule *rule =
        policy->rule_count ? sampling_rule_for(policy, name, length) : &policy->fallback;

    switch (rule->mode) {
    case SAMPLING_ALWAYS:
        return (struct blkin_decision){true, rule->ppm};
    case SAMPLING_NEVER:
        break;
    case SAMPLING_RATIO:
        return (struct blkin_decision){(trace_id & ((UINT64_C(1) << 56) - 1)) < rule->threshold,
                                       rule->ppm};
    case SAMPLING_RATE:
        return (struct blkin_decision){
            blkin_within_rate(&rule->rate, SAMPLING_BURST_NS, blkin_monotonic_ns()), 0};
    }
    return (struct blkin_decision){false, 0};
}
