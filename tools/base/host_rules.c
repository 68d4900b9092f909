/* SPDX-License-Identifier: BSD-2-Clause */
#include "host_rules.h"

#include "libblkin/policy/slow_rules.h"

#include <stdio.h>
#include <string.h>

static char text_in_force[BLKIN_POLICY_TEXT_MAX];
static char wrong_part[BLKIN_POLICY_TEXT_MAX];
static unsigned changes;

/* If programs cannot parse the text, the previous rules stay in force. */
static const char *rules_take(const char *text)
{
    static struct blkin_slow_rules rules;
    const char *wrong = blkin_slow_parse(&rules, text);

    (void)snprintf(wrong_part, sizeof(wrong_part), "%s", wrong ? wrong : "");
    if (wrong)
        return wrong;
    changes += changes == 0 || strcmp(text, text_in_force) != 0;
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

unsigned host_rules_refresh(void)
{
    static bool is_open;

    if (is_open)
        blkin_policy_refresh(&source);
    else
        blkin_policy_init(&source);
    is_open = true;
    return changes;
}

const char *host_rules(void)
{
    return changes ? text_in_force : NULL;
}

const char *host_rules_wrong(void)
{
    return wrong_part;
}
