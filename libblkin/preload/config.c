/*
 * The run-time configuration that is in force.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "config.h"

#include "../policy.h"
#include "blkin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(RUN_CONFIG_MAX == BLKIN_POLICY_TEXT_MAX, "a file that is taken whole is read whole");

#define SLOTS 8

static struct run_config slots[SLOTS];   /* the first one at first: nothing is wanted */
static struct run_config of_environment; /* what the file changes a part of */
static char program_name[64];

const struct run_config *run_config_current = &slots[0];
uint64_t run_config_due_ns;

static const char *take(const char *text);

static struct blkin_policy_source source = {
    .variable = "BLKIN_RUN",
    .file_variable = "BLKIN_RUN_FILE",
    .default_file = RUN_CONFIG_FILE,
    .has_lines = true,
    .is_outspoken = true,
    .take = take,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static const char *environment; /* the variable's text */

/* Borrowed by libblkin for as long as the process runs; a thread may be reading the one before. */
static void set_service(const struct run_config *config)
{
    static struct blkin_endpoint endpoints[SLOTS];
    struct blkin_endpoint *endpoint = &endpoints[config - slots];

    endpoint->ip = "";
    endpoint->name = config->service[0] ? config->service : program_name;
    blkin_set_service(endpoint);
}

static void put_in_force(struct run_config *config)
{
    const struct run_config *before = run_config();

    config->generation = before->generation + 1;
    config->is_wanted = run_config_has_program(config, program_name);
    __atomic_store_n(&run_config_current, config, __ATOMIC_RELEASE);
    if (strcmp(before->service, config->service) != 0)
        set_service(config);
}

/* With the lock held. */
static const char *take(const char *text)
{
    static char wrong[RUN_CONFIG_MAX];
    struct run_config *config = &slots[(run_config() - slots + 1) % SLOTS];

    *config = of_environment;
    if (run_config_read(config, text, wrong, &source.expected))
        return wrong;
    if (text == environment)
        of_environment = *config;
    put_in_force(config);
    return NULL;
}

void run_config_refresh(uint64_t now_ns)
{
    uint64_t due_ns = __atomic_load_n(&run_config_due_ns, __ATOMIC_RELAXED);

    /* who moves the time on does the work: the others are not held up */
    if (now_ns >= due_ns &&
        __atomic_compare_exchange_n(&run_config_due_ns, &due_ns, now_ns + RUN_CONFIG_EVERY, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        blkin_policy_refresh(&source);
}

static void after_fork(void)
{
    blkin_policy_after_fork(&source);
}

/*
 * The name is kept, as programs write over their arguments, which it is a part of: nginx, postgres.
 */
void run_config_init(const char *program)
{
    (void)snprintf(program_name, sizeof(program_name), "%s", program);
    environment = secure_getenv(source.variable);
    run_config_clear(&of_environment);
    (void)take("");
    set_service(run_config());
    blkin_policy_init(&source);
    (void)pthread_atfork(NULL, NULL, after_fork);
}
