/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_NS 60000000000LL

static const char *const names[FAULT_COUNT] = {
    [FAULT_SLOW_DISK] = "slow-disk",
    [FAULT_SLOW_JOURNAL] = "slow-journal",
    [FAULT_SLOW_NETWORK] = "slow-network",
    [FAULT_DROP_REPLICA] = "drop-replica",
};

static long long planted[FAULT_COUNT]; /* ns to wait (drop-replica: 1); 0: not planted */
static long only_time[FAULT_COUNT];    /* N: happens only the Nth time; 0: each time */

static int refuse(const char *text, unsigned allowed)
{
    const char *separator = "expected ";

    fprintf(stderr, "%s: bad fault '%s': ", program_invocation_short_name, text);
    for (int i = 0; i < FAULT_COUNT; i++) {
        if (!(allowed & (1U << i)))
            continue;
        fprintf(stderr, "%s%s%s", separator, names[i], i == FAULT_DROP_REPLICA ? "" : "=TIME");
        separator = ", ";
    }
    fputs(" (TIME: 1us to 60s, such as 20ms; 20ms@8: only the eighth time)\n", stderr);
    return -EINVAL;
}

/* Reads "20ms" or "20ms@8". Returns 0 if the text is no time, or a time above LONGEST_NS. */
static long long parse_ns(const char *text, long *only)
{
    char *unit;
    const long value = strspn(text, "0123456789") > 0 ? strtol(text, &unit, 10) : 0;
    long long scale;
    char *end;

    if (value < 1 || value > LONGEST_NS / 1000)
        return 0;
    if (strncmp(unit, "us", 2) == 0)
        scale = 1000;
    else if (strncmp(unit, "ms", 2) == 0)
        scale = 1000000;
    else if (strncmp(unit, "s", 1) == 0)
        scale = 1000000000;
    else
        return 0;
    end = unit + (*unit == 's' ? 1 : 2);
    if (*end == '@' && (*only = strtol(end + 1, &end, 10)) < 1)
        return 0;
    return *end == '\0' && value <= LONGEST_NS / scale ? value * scale : 0;
}

int fault_plant(const char *text, unsigned allowed)
{
    const size_t length = strcspn(text, "=");

    for (int i = 0; i < FAULT_COUNT; i++) {
        long long ns = 0;

        if (!(allowed & (1U << i)) || strlen(names[i]) != length ||
            memcmp(text, names[i], length) != 0)
            continue;
        if (i == FAULT_DROP_REPLICA)
            ns = text[length] == '\0';
        else if (text[length] == '=')
            ns = parse_ns(text + length + 1, &only_time[i]);
        if (ns == 0)
            break;
        planted[i] = ns;
        return 0;
    }
    return refuse(text, allowed);
}

void fault_wait(enum fault fault)
{
    static atomic_long times[FAULT_COUNT];
    struct timespec left = {.tv_sec = planted[fault] / 1000000000,
                            .tv_nsec = planted[fault] % 1000000000};

    if (only_time[fault] && atomic_fetch_add(&times[fault], 1) + 1 != only_time[fault])
        return;
    while (planted[fault] && nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int fault_is_planted(enum fault fault)
{
    return planted[fault] != 0;
}
