/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "blkin.h"
#include "libblkin/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(PRELOAD_CONFIG_MAX == BLKIN_POLICY_TEXT_MAX,
               "policy.c reads all bytes of a file that config.c accepts");

#define CONFIG_SLOTS 8

/* Initially, nothing is traced. */
static BLKIN_COLD_DATA struct preload_config config_slots[CONFIG_SLOTS] = {
    {.usage = PRELOAD_USAGE_UNSET}};
static struct preload_config config_of_environment; /* the file changes a copy */
static char config_program_name[64];

const struct preload_config *preload_config_in_force = &config_slots[0];
uint64_t preload_config_due_ns;

static const char *config_take(const char *text);

static struct blkin_policy_source config_source = {
    .variable = "BLKIN_RUN",
    .file_variable = "BLKIN_RUN_FILE",
    .default_file = PRELOAD_CONFIG_FILE,
    .has_lines = true,
    .always_reports = true,
    .take = config_take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static const char *config_environment; /* text of the variable */

const char *preload_service_name(void)
{
    return preload_config()->service[0] ? preload_config()->service : config_program_name;
}

static void config_put_in_force(struct preload_config *config)
{
    const struct preload_config *before = preload_config();

    config->generation = before->generation + 1;
    config->is_traced = preload_config_has_program(config, config_program_name);
    __atomic_store_n(&preload_config_in_force, config, __ATOMIC_RELEASE);
    if (strcmp(before->service, config->service) != 0)
        blkin_set_service(preload_service_name(), NULL, 0);
    if (before->usage != config->usage)
        (void)blkin_set_usage(config->usage == PRELOAD_USAGE_UNSET ? 0 : config->usage);
}

/* Called with the lock of config_source. */
static const char *config_take(const char *text)
{
    static char wrong[PRELOAD_CONFIG_MAX];
    struct preload_config *config =
        &config_slots[(preload_config() - config_slots + 1) % CONFIG_SLOTS];

    *config = config_of_environment;
    if (preload_config_read(config, text, wrong, &config_source.expected))
        return wrong;
    if (text == config_environment)
        config_of_environment = *config;
    config_put_in_force(config);
    return NULL;
}

void preload_config_look(uint64_t now_ns)
{
    uint64_t due_ns = __atomic_load_n(&preload_config_due_ns, __ATOMIC_RELAXED);

    /* the thread that changes the deadline reads the file; other threads do not wait */
    if (now_ns >= due_ns &&
        __atomic_compare_exchange_n(&preload_config_due_ns, &due_ns, now_ns + PRELOAD_CONFIG_EVERY,
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        blkin_policy_refresh(&config_source);
}

void preload_config_freeze(void)
{
    __atomic_store_n(&preload_config_due_ns, UINT64_MAX, __ATOMIC_RELAXED);
}

static void config_after_fork(void)
{
    blkin_policy_after_fork(&config_source);
}

/* Copies the program's name, because programs such as nginx and postgres overwrite it. */
void preload_config_init(void)
{
    (void)snprintf(config_program_name, sizeof(config_program_name), "%s",
                   program_invocation_short_name);
    config_environment = secure_getenv(config_source.variable);
    preload_config_clear(&config_of_environment);
    (void)config_take("");
    blkin_set_service(preload_service_name(), NULL, 0);
    blkin_policy_init(&config_source);
    (void)pthread_atfork(NULL, NULL, config_after_fork);
}
