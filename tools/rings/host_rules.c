/*
 * The text of the rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_rules.h"

#include "libblkin/policy/slow_rules.h"

#include <string.h>

static char text_in_force[BLKIN_POLICY_TEXT_MAX];
static bool has_text, has_changed;

/* What no program could take keeps the text of before in force. */
static const char *rules_take(const char *text)
{
    static struct blkin_slow_rules rules;
    const char *wrong = blkin_slow_parse(&rules, text);

    if (wrong)
        return wrong;
    has_changed |= !has_text || strcmp(text, text_in_force) != 0;
    has_text = true;
    strcpy(text_in_force, text); /* NOLINT(clang-analyzer-security*): it was parsed, so it fits */
    return NULL;
}

static struct blkin_policy_source source = {
    .variable = "BLKIN_SLOW",
    .file_variable = "BLKIN_SLOW_FILE",
    .default_file = "/run/blkin/slow",
    .expected = BLKIN_SLOW_EXPECTED,
    .take = rules_take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

bool host_rules_refresh(void)
{
    static bool is_open;

    has_changed = false;
    if (is_open)
        blkin_policy_refresh(&source);
    else
        blkin_policy_init(&source);
    is_open = true;
    return has_changed;
}

const char *host_rules(void)
{
    return has_text ? text_in_force : NULL;
}
