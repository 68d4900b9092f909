/*
 * Sampling policies: their text form, their file, and the decision.
 *
 * A policy in force never changes in place: a new one is written to another slot and then made the
 * current one with a single store, so that the decision is plain loads. There are few enough
 * changes (once a second at most from the file) that a slot is not reused while somebody reads it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sampling.h"

#include "blkin.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_FILE "/run/blkin/sampling"
#define TEXT_MAX     1024
#define RULES_MAX    32
#define SLOTS        8
#define BURST_NS     UINT64_C(100000000)
#define DIGITS       "0123456789"
#define BLANKS       " \t"

enum mode { ALWAYS, NEVER, RATIO, RATE };

struct rule {
    char name[64];
    bool is_prefix; /* the text was name* */
    enum mode mode;
    uint32_t ppm;       /* of RATIO, ALWAYS and NEVER */
    uint64_t threshold; /* of RATIO: sampled if the id's low 56 bits are below */
    uint64_t period_ns; /* of RATE: between two traces */
    uint64_t next_ns;   /* of RATE: the next trace may start then; the one thing that changes */
};

struct policy {
    char text[TEXT_MAX];
    uint32_t
        severity; /* the least that is recorded: enum blkin_severity, whose greatest is least */
    unsigned rule_count;
    struct rule otherwise;
    struct rule rules[RULES_MAX];
};

static struct policy slots[SLOTS] = {
    {.text = "always", .otherwise = {.mode = ALWAYS, .ppm = 1000000}},
};
static struct policy *current = &slots[0];
uint32_t blkin_least_severity = BLKIN_DEBUG;
static unsigned next_slot = 1;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* ---- the text form ---- */

/* Digits and perhaps a fraction. Not strtod(3): what it reads depends on the program's locale. */
static bool parse_number(const char *text, double min, double max, double *number)
{
    const size_t whole = strspn(text, DIGITS);
    const size_t fraction = text[whole] == '.' ? strspn(text + whole + 1, DIGITS) : 0;
    double scale = 1;

    if (whole + fraction == 0 || text[whole + (text[whole] == '.') + fraction] != '\0')
        return false;
    *number = 0;
    for (size_t i = 0; i < whole; i++)
        *number = *number * 10 + (text[i] - '0');
    for (size_t i = 0; i < fraction; i++)
        *number += (text[whole + 1 + i] - '0') * (scale /= 10);
    return *number >= min && *number <= max;
}

/* always, never, ratio=0.01 or rate=100 */
static bool parse_mode(const char *text, struct rule *rule)
{
    double number;

    if (strcmp(text, "always") == 0) {
        rule->mode = ALWAYS;
        rule->ppm = 1000000;
        return true;
    }
    if (strcmp(text, "never") == 0) {
        rule->mode = NEVER;
        return true;
    }
    if (strncmp(text, "ratio=", 6) == 0 && parse_number(text + 6, 0, 1, &number)) {
        rule->mode = number == 1 ? ALWAYS : RATIO;
        rule->ppm = (uint32_t)(number * 1e6 + 0.5);
        rule->threshold = (uint64_t)(number * (double)(UINT64_C(1) << 56));
        return true;
    }
    if (strncmp(text, "rate=", 5) == 0 && parse_number(text + 5, 1e-3, 1e9, &number)) {
        rule->mode = RATE;
        rule->period_ns = (uint64_t)(1e9 / number);
        return true;
    }
    return false;
}

/* Without the blanks around it. */
static char *trimmed(char *text)
{
    size_t length;

    text += strspn(text, BLANKS);
    length = strlen(text);
    while (length > 0 && strchr(BLANKS, text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* name:mode or name*:mode */
static bool parse_rule(char *text, struct rule *rule)
{
    char *colon = strrchr(text, ':');
    size_t length;

    if (!colon)
        return false;
    *colon = '\0';
    text = trimmed(text);
    length = strlen(text);
    rule->is_prefix = length > 0 && text[length - 1] == '*';
    length -= rule->is_prefix;
    if (length >= sizeof(rule->name) || (length == 0 && !rule->is_prefix))
        return false;
    memcpy(rule->name, text, length);
    return parse_mode(trimmed(colon + 1), rule);
}

/* The name of a severity, as syslog.conf(5) has it. */
static bool parse_severity(const char *text, uint32_t *severity)
{
    static const char names[][8] = {"emerg",   "alert",  "crit", "err",
                                    "warning", "notice", "info", "debug"};

    for (*severity = BLKIN_EMERG; *severity <= BLKIN_DEBUG; ++*severity) {
        if (strcmp(text, names[*severity]) == 0)
            return true;
    }
    return false;
}

/* What may follow the first part. */
static bool parse_part(char *text, struct policy *policy)
{
    if (strncmp(text, "severity=", 9) == 0)
        return parse_severity(text + 9, &policy->severity);
    if (policy->rule_count == RULES_MAX || !parse_rule(text, &policy->rules[policy->rule_count]))
        return false;
    policy->rule_count++;
    return true;
}

static bool parse(const char *text, struct policy *policy)
{
    char copy[TEXT_MAX];
    char *rest = copy;
    char *part;

    memset(policy, 0, sizeof(*policy));
    if (strlen(text) >= sizeof(copy))
        return false;
    strcpy(copy, text);
    strcpy(policy->text, text);
    policy->severity = BLKIN_DEBUG;
    part = strsep(&rest, ",");
    if (!parse_mode(trimmed(part), &policy->otherwise))
        return false;
    while ((part = strsep(&rest, ","))) {
        if (!parse_part(trimmed(part), policy))
            return false;
    }
    return true;
}

/* The caller holds the lock. */
static int set_policy(const char *text)
{
    struct policy *policy = &slots[next_slot];

    if (!parse(text, policy))
        return -EINVAL;
    next_slot = (next_slot + 1) % SLOTS;
    __atomic_store_n(&current, policy, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_least_severity, policy->severity, __ATOMIC_RELAXED);
    return 0;
}

int blkin_set_sampling(const char *text)
{
    int result;

    if (!text)
        return -EINVAL;
    pthread_mutex_lock(&change);
    result = set_policy(text);
    pthread_mutex_unlock(&change);
    return result;
}

/* A policy that was being written is not the current one: it is written again. */
void blkin_sampling_after_fork(void)
{
    (void)pthread_mutex_init(&change, NULL);
}

const char *blkin_sampling_text(void)
{
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE)->text;
}

/* ---- the file ---- */

static struct {
    char path[512];
    struct timespec changed;
    ino_t inode;
} file;

static bool read_text(int fd, char *text, size_t size)
{
    const ssize_t length = read(fd, text, size - 1);

    if (length < 0)
        return false;
    text[length] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    return true;
}

/* What nobody else can report: a daemon runs on with the policy it had. */
static void set_from(const char *source, const char *text)
{
    if (set_policy(text) != 0 && secure_getenv("BLKIN_DEBUG"))
        fprintf(stderr,
                "libblkin: %s: \"%s\" is not a sampling policy, expected always, never, "
                "ratio=0..1 or rate=traces-per-second, then rules such as ,name*:never and "
                ",severity=notice, in less than %d bytes\n",
                source, text, TEXT_MAX);
}

/* A file that is not there, or that says nothing valid, changes nothing. */
static void take_file_over(void)
{
    char text[TEXT_MAX + 1]; /* one more than a policy may have: what is cut is refused */
    struct stat status;
    int fd;

    if (!file.path[0] || stat(file.path, &status) < 0 ||
        (status.st_ino == file.inode && status.st_mtim.tv_sec == file.changed.tv_sec &&
         status.st_mtim.tv_nsec == file.changed.tv_nsec))
        return;
    fd = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (read_text(fd, text, sizeof(text)))
        set_from(file.path, text);
    close(fd);
    file.inode = status.st_ino;
    file.changed = status.st_mtim;
}

/*
 * The caller may be a signal handler that has interrupted blkin_set_sampling(): then the file has
 * to wait for the next time.
 */
void blkin_sampling_refresh(void)
{
    if (pthread_mutex_trylock(&change) != 0)
        return;
    take_file_over();
    pthread_mutex_unlock(&change);
}

void blkin_sampling_init(void)
{
    const char *path = secure_getenv("BLKIN_SAMPLING_FILE");
    const char *text = secure_getenv("BLKIN_SAMPLING");

    if (!path)
        path = DEFAULT_FILE;
    pthread_mutex_lock(&change);
    if (strlen(path) < sizeof(file.path))
        strcpy(file.path, path);
    if (text && text[0])
        set_from("BLKIN_SAMPLING", text);
    take_file_over();
    pthread_mutex_unlock(&change);
}

/* ---- the decision ---- */

static struct rule *rule_for(struct policy *policy, const char *name)
{
    for (unsigned i = 0; i < policy->rule_count; i++) {
        struct rule *rule = &policy->rules[i];

        if (rule->is_prefix ? strncmp(name, rule->name, strlen(rule->name)) == 0
                            : strcmp(name, rule->name) == 0)
            return rule;
    }
    return &policy->otherwise;
}

/* A trace each period on average; a burst may be ahead of that by BURST_NS. */
static bool within_rate(struct rule *rule)
{
    const uint64_t now = blkin_monotonic_ns();
    uint64_t next = __atomic_load_n(&rule->next_ns, __ATOMIC_RELAXED);
    uint64_t start;

    do {
        start = next > now ? next : now;
        if (start - now > BURST_NS + rule->period_ns)
            start = now; /* the clock has stepped back, as in a process restored on another host */
        if (start - now > BURST_NS)
            return false;
    } while (!__atomic_compare_exchange_n(&rule->next_ns, &next, start + rule->period_ns, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

struct blkin_decision blkin_sampling_decide(const char *name, uint64_t trace_id)
{
    struct policy *policy = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    struct rule *rule =
        policy->rule_count ? rule_for(policy, name ? name : "") : &policy->otherwise;

    switch (rule->mode) {
    case ALWAYS:
        return (struct blkin_decision){true, rule->ppm};
    case NEVER:
        break;
    case RATIO:
        return (struct blkin_decision){(trace_id & ((UINT64_C(1) << 56) - 1)) < rule->threshold,
                                       rule->ppm};
    case RATE:
        return (struct blkin_decision){within_rate(rule), 0};
    }
    return (struct blkin_decision){false, 0};
}
