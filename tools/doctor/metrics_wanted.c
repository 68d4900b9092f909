/*
 * Checks of what `blkin host` is told to read and to whom to send it: would it start with that, and
 * is there what it names?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "tools/host/sample.h"
#include "tools/host/send.h"
#include "tools/host/settings.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 256

/* ---- would it start? ------------------------------------------------------------------------- */

static bool can_be_read(const struct host_config *wanted, struct error *error)
{
    struct host *host = host_open(wanted, error);

    host_close(host);
    return host != NULL;
}

/* Not beside one that runs, which has the port. */
static bool can_be_sent(const struct config *config, struct error *error)
{
    struct loop *loop = loop_new(&(struct loop_signals){.end = NULL});
    struct host_send *send = NULL;
    bool can = true;

    if (loop) {
        can = host_send_open(config, loop, &send, error);
        host_send_close(send);
        loop_free(loop);
    }
    return can;
}

/* ---- is there what it names? ----------------------------------------------------------------- */

static void count(void *context, const struct host_sample *sample)
{
    (void)sample;
    ++*(unsigned *)context;
}

static unsigned instances_of(const struct host_config *wanted, enum host_kind kind,
                             const char *name)
{
    struct host_config only = {.root = wanted->root};
    struct error ignored;
    struct host *host;
    unsigned instances = 0;

    only.wanted[kind] = (struct host_wanted){wanted->wanted[kind].period_ms, name};
    host = host_open(&only, &ignored);
    if (host)
        host_sample_all(host, count, &instances);
    host_close(host);
    return instances;
}

/* What takes away needs not be there. */
static void look_for_names(const struct host_config *wanted, enum host_kind kind, char *missing,
                           size_t size)
{
    const char *at = wanted->wanted[kind].instances;
    char name[NAME_BYTES], item[NAME_BYTES + 32];

    while (at && *(at += strspn(at, ", ")) != '\0') {
        const size_t length = strcspn(at, ", ");

        (void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
        at += length;
        if (name[0] == '!' || instances_of(wanted, kind, name) > 0)
            continue;
        (void)snprintf(item, sizeof(item), "%s %s", host_definition(kind)->name, name);
        list_add(missing, size, item);
    }
}

static void check_names(const struct doctor *doctor, const struct host_config *wanted)
{
    char missing[400] = "";

    for (enum host_kind kind = 0; kind < HOST_KINDS; kind++) {
        if (wanted->wanted[kind].period_ms && host_definition(kind)->has_instances)
            look_for_names(wanted, kind, missing, sizeof(missing));
    }
    if (*missing) {
        saw(doctor, LEVEL_NOTE, "host.names", "nothing here is called so: %s", missing);
        mend(doctor, "blkin host --list tells what there is; what comes later is found then");
    } else {
        saw(doctor, LEVEL_OK, "host.names", "all that [host] names is there");
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

void check_metrics_wanted(const struct doctor *doctor, bool is_there)
{
    struct config *config = config_read_for(doctor->config, "host");
    struct host_config wanted;
    struct error error;

    if (!config)
        return; /* config.file has told */
    if (!host_settings_read(config, &wanted, &error) || !can_be_read(&wanted, &error) ||
        (!is_there && !can_be_sent(config, &error))) {
        saw(doctor, LEVEL_BAD, "host.settings", "blkin host would not start: %s", error.text);
        mend(doctor,
             "[host] in blkin.conf: blkin config show --section=host tells where it is set");
    } else {
        check_names(doctor, &wanted);
    }
    config_free(config);
}
