/*
 * `blkin host` as a child.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_child.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS     1000 /* doubles with each failure */
#define RETRY_MAX_MS 30000
#define LIVED_MS     10000 /* a longer life resets the back-off */
#define CLOSE_MS     1000
#define CLOSE_US     2000

static const struct job *host_job;

void host_child_set_job(const struct job *job)
{
    host_job = job;
}

struct config *host_child_config(const void *order, size_t size)
{
    const char *name = (const char *)order + strlen(order) + 1;
    struct config *config;
    int status;

    /* only the service itself notifies systemd */
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    config = config_read_arguments((char *)(uintptr_t)order, size, &status);
    if (config)
        say_open(name, config_text(config, "log-level"));
    return config;
}

static void begin(void *context)
{
    struct host_child *host = context;
    struct child_order order = {.job = host_job};
    char *arguments;
    bool has_begun;

    if (!host->is_wanted || host->child.pid)
        return;
    host->begun_ms = clock_ms();
    arguments = config_arguments(host->config, &order.size);
    order.bytes = arguments;
    has_begun = arguments && child_start(host->loop, &host->child, &order);
    free(arguments);
    if (!has_begun) {
        say(BK1060, "cannot start `blkin host`: %s", strerror(errno));
        timer_set(host->loop, &host->retry, RETRY_MAX_MS);
    }
}

static void ended(void *context, int status)
{
    struct host_child *host = context;

    if (!host->is_wanted)
        return;
    if (status == 0) { /* by host_child_stop() or host_child_reload() */
        timer_set(host->loop, &host->retry, 0);
        return;
    }
    host->died++;
    host->failures = clock_ms() - host->begun_ms > LIVED_MS ? 0 : host->failures + 1;
    if (WIFSIGNALED(status))
        say(BK1061, "`blkin host` was ended by signal %d (%s): started again", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    else
        say(BK1062, "`blkin host` ended with status %d: started again", WEXITSTATUS(status));
    timer_set(host->loop, &host->retry, backoff_ms(host->failures, RETRY_MS, RETRY_MAX_MS));
}

void host_child_start(struct host_child *host, struct loop *loop, const struct config *config)
{
    *host = (struct host_child){.loop = loop, .config = config};
    host->child = (struct child){.ended = ended, .context = host};
    host->retry = (struct timer){.due = begin, .context = host};
    host->is_wanted = config_boolean(config, "host");
    begin(host);
}

static void tell_to_end(struct host_child *host)
{
    if (host->child.pid)
        (void)kill(host->child.pid, SIGTERM);
}

/* Restarts the child if the key allows it. */
void host_child_reload(struct host_child *host, const struct config *config)
{
    host->config = config;
    host->is_wanted = config_boolean(config, "host");
    host->failures = 0;
    if (host->child.pid)
        tell_to_end(host);
    else
        timer_set(host->loop, &host->retry, 0);
}

void host_child_stop(struct host_child *host)
{
    if (!host->loop)
        return;
    host->is_wanted = false;
    timer_clear(host->loop, &host->retry);
    tell_to_end(host);
}

void host_child_close(struct host_child *host)
{
    const int64_t until_ms = clock_ms() + CLOSE_MS;

    host_child_stop(host);
    while (host->child.pid && waitpid(host->child.pid, NULL, WNOHANG) == 0 && clock_ms() < until_ms)
        (void)usleep(CLOSE_US);
}

json_t *host_child_json(const struct host_child *host)
{
    return json_pack("{ss, sI, sI}", "state",
                     host->child.pid   ? "running"
                     : host->is_wanted ? "starting"
                                       : "off",
                     "pid", (json_int_t)host->child.pid, "died", (json_int_t)host->died);
}
