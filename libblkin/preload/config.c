/*
 * The run-time configuration that is in force.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"

#include "blkin.h"
#include "libblkin/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PRELOAD_CONFIG_MAX == BLKIN_POLICY_TEXT_MAX,
               "a file that is taken whole is read whole");

#define CONFIG_SLOTS 8

static struct preload_config slots[CONFIG_SLOTS] = {
    {.usage = PRELOAD_USAGE_UNSET}};         /* initially, nothing is traced */
static struct preload_config of_environment; /* the base that the file changes */
static char program_name[64];

const struct preload_config *preload_config_in_force = &slots[0];
uint64_t preload_config_due_ns;

static const char *take(const char *text);

static struct blkin_policy_source source = {
    .variable = "BLKIN_RUN",
    .file_variable = "BLKIN_RUN_FILE",
    .default_file = PRELOAD_CONFIG_FILE,
    .has_lines = true,
    .is_outspoken = true,
    .take = take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static const char *environment; /* text of the variable */

const char *preload_service_name(void)
{
    return preload_config()->service[0] ? preload_config()->service : program_name;
}

static void put_in_force(struct preload_config *config)
{
    const struct preload_config *before = preload_config();

    config->generation = before->generation + 1;
    config->is_traced = preload_config_has_program(config, program_name);
    __atomic_store_n(&preload_config_in_force, config, __ATOMIC_RELEASE);
    if (strcmp(before->service, config->service) != 0)
        blkin_set_service(preload_service_name(), NULL, 0);
    if (before->usage != config->usage)
        (void)blkin_set_usage(config->usage == PRELOAD_USAGE_UNSET ? 0 : config->usage);
}

/* With the lock held. */
static const char *take(const char *text)
{
    static char wrong[PRELOAD_CONFIG_MAX];
    struct preload_config *config = &slots[(preload_config() - slots + 1) % CONFIG_SLOTS];

    *config = of_environment;
    if (preload_config_read(config, text, wrong, &source.expected))
        return wrong;
    if (text == environment)
        of_environment = *config;
    put_in_force(config);
    return NULL;
}

void preload_config_look(uint64_t now_ns)
{
    uint64_t due_ns = __atomic_load_n(&preload_config_due_ns, __ATOMIC_RELAXED);

    /* the thread that moves the deadline does the work; no other thread waits */
    if (now_ns >= due_ns &&
        __atomic_compare_exchange_n(&preload_config_due_ns, &due_ns, now_ns + PRELOAD_CONFIG_EVERY,
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        blkin_policy_refresh(&source);
}

void preload_config_fix(void)
{
    __atomic_store_n(&preload_config_due_ns, UINT64_MAX, __ATOMIC_RELAXED);
}

static void after_fork(void)
{
    blkin_policy_after_fork(&source);
}

/*
 * Copies the name: programs such as nginx and postgres overwrite their arguments, which contain it.
 */
void preload_config_init(void)
{
    (void)snprintf(program_name, sizeof(program_name), "%s", program_invocation_short_name);
    environment = secure_getenv(source.variable);
    preload_config_clear(&of_environment);
    (void)take("");
    blkin_set_service(preload_service_name(), NULL, 0);
    blkin_policy_init(&source);
    (void)pthread_atfork(NULL, NULL, after_fork);
}
