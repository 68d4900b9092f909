/* SPDX-License-Identifier: BSD-2-Clause */
#include "deaths.h"

#include "agent.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "export.h"
#include "judge.h"
#include "tools/base/json.h"
#include "tools/base/saver.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file -------------------------------------------------------------------------------- */

static const int deaths_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

#define DEATHS_SIGNALS (sizeof(deaths_signals) / sizeof(deaths_signals[0]))

static struct {
    char path[4096];
    pid_t pid;   /* children have the handlers, too */
    off_t count; /* crashes in the file, at the start */
    struct saver_wait saved;
    struct sigaction before[DEATHS_SIGNALS];
} deaths;

/* Runs in any thread. Afterwards, the former handler of a sanitizer or the kernel ends the process:
 * the faulty instruction is executed again, and a signal that was sent is sent again. */
static void deaths_on_signal(int number, siginfo_t *info, void *context)
{
    int fd;

    (void)context;
    if (getpid() == deaths.pid) {
        fd = open(deaths.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0) {
            (void)!write(fd, "x", 1);
            (void)close(fd);
        }
    }
    for (size_t i = 0; i < DEATHS_SIGNALS; i++) {
        if (deaths_signals[i] == number)
            (void)sigaction(number, &deaths.before[i], NULL);
    }
    if (info->si_code <= 0)
        (void)raise(number);
}

static void deaths_count(struct agent *agent)
{
    struct agent_totals *totals = &agent->totals;
    const int64_t place_ns = number_in(totals->read, "mono_ns");
    struct collected_trace *trace;

    if (totals->deaths_at_ns != place_ns)
        totals->deaths = 0;
    totals->deaths_at_ns = place_ns;
    totals->deaths += place_ns ? (uint64_t)deaths.count : 0;
    collected_for_each(trace, agent->collected)
    {
        if (deaths.count && (trace->is_open || trace->is_unsent))
            collected_note_deaths(trace, (unsigned)deaths.count);
    }
}

void deaths_watch(struct agent *agent)
{
    const struct sigaction action = {.sa_sigaction = deaths_on_signal, .sa_flags = SA_SIGINFO};
    struct stat status;

    agent_path(agent, "agent.crashed", deaths.path);
    deaths.count = stat(deaths.path, &status) == 0 ? status.st_size : 0;
    deaths_count(agent);
    deaths.pid = getpid();
    for (size_t i = 0; i < DEATHS_SIGNALS; i++)
        (void)sigaction(deaths_signals[i], &action, &deaths.before[i]);
}

static void deaths_are_saved(void *context, const char *problem)
{
    (void)context;
    if (problem)
        say(BK1040, "%s", problem);
    else
        (void)unlink(deaths.path);
}

void deaths_save(struct agent *agent)
{
    if (deaths.count)
        agent_save_collected(agent);
    agent_save(agent); /* with the place of send = all */
    if (!deaths.count)
        return;
    deaths.saved = (struct saver_wait){.done = deaths_are_saved};
    saver_then(&deaths.saved);
}

bool deaths_skip_place(struct agent *agent)
{
    if (agent->totals.deaths < DEATHS_MAX || !agent->read_on)
        return false;
    agent->totals.deaths = 0;
    return true;
}

/* ---- open traces ----------------------------------------------------------------------------- */

static void deaths_skip_trace(struct agent *agent, struct collected_trace *trace)
{
    const struct verdict verdict = {
        .id = trace->id,
        .why = trace->why,
        .time_ns = trace->asked_begin_ns   ? trace->asked_begin_ns
                   : trace->found.begin_ns ? trace->found.begin_ns
                                           : wall_clock_ns(),
        .lacks = "two agents in a row crashed while they looked for this trace",
        .hosts = "",
        .held = ""};
    char text[TRACE_ID_TEXT];

    trace_id_text(trace->id, text);
    say(BK4078,
        "trace %s is not looked for again, because %u agents in a row crashed while they looked "
        "for it",
        text, trace->deaths);
    agent->totals.traces_skipped++;
    if (trace->is_open) {
        agent->totals.traces_incomplete += !trace->was_judged;
        judge_report(agent->export, &verdict);
        collected_note_given(agent->collected, trace->id, export_given(agent->export));
    }
    collected_skip(trace);
}

void deaths_skip_traces(struct agent *agent)
{
    struct collected_trace *trace;

    collected_for_each(trace, agent->collected)
    {
        if (trace->deaths >= DEATHS_MAX && (trace->is_open || trace->is_unsent))
            deaths_skip_trace(agent, trace);
    }
}
