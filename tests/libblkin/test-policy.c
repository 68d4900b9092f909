/*
 * Sampling policies: their texts, and their decisions about traces. The sources of a policy, which
 * slow rules have, too: the program, the environment, a file that changes, and the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/thread.h"
#include "libblkin/policy/policy.h"
#include "libblkin/policy/sampling.h"

#include <blkin.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BITS (UINT64_C(1) << 56) /* number of values of the id's bits that a ratio uses */

static struct blkin_decision decide(const char *name, uint64_t trace_id)
{
    return blkin_sampling_decide(name, strlen(name), trace_id);
}

/* Each text after `before` is a policy, or none of them is one. */
static void check_texts(bool is_right, const char *before, const char *const texts[], size_t count)
{
    char text[100];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text, sizeof(text), "%s%s", before, texts[i]);
        CHECK(blkin_set_sampling("never") == 0);
        CHECK(blkin_set_sampling(text) == (is_right ? 0 : -EINVAL));
        CHECK_TEXT(blkin_sampling_text(), is_right ? text : "never");
    }
}

#define CHECK_TEXTS(is_right, before, texts) \
    check_texts(is_right, before, texts, sizeof(texts) / sizeof((texts)[0]))
#define NAME_63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"

TEST(test_texts)
{
    static const char *const nothing[] = {"", " "};
    static const char *const modes[] = {
        "always",         "never",      "ratio=0",         "ratio=1",
        "ratio=0.000001", "rate=0.001", "rate=1000000000", " always\t",
    };
    static const char *const parts[] = {
        "*:never", "severity=emerg", "severity=debug,usage=0", "a:b:ratio=0.5", "usage=3",
    };
    static const char *const wrong_modes[] = {
        "ratio",           "Always",       "ratio=",       "rate=0",       ",always",
        "rate=-1",         "usage=1",      "rate=inf",     "rate=1e3",     "sometimes",
        "ratio=0,5",       "ratio= .5",    "ratio=nan",    "ratio=-0.1",   "ratio=0.5x",
        "rate=0.0009",     "always never", "ratio=0x1p-2", "severity=err", "ratio=1.000001",
        "rate=1000000001",
    };
    static const char *const wrong_parts[] = {
        "scrub",        "scrub:",        ":never",          "usage=",
        " :never",      "usage=4",       "usage=12",        "severity=",
        ",scrub:never", "severity=loud", "scrub:sometimes", "severity=err:never",
    };

    CHECK_TEXTS(true, "", modes);
    CHECK_TEXTS(true, "always,", parts);
    CHECK_TEXTS(false, "", wrong_modes);
    CHECK_TEXTS(false, "always,", wrong_parts);
    CHECK_TEXTS(false, "", nothing);
    CHECK_TEXTS(false, "always,", nothing);
    CHECK(blkin_set_sampling("always," NAME_63 ":never," NAME_63 "*:never") == 0);
    CHECK(blkin_set_sampling("always," NAME_63 "g:never") == -EINVAL);
    CHECK(blkin_set_sampling(NULL) == -EINVAL);
}

/* The maximum number of rules, and one rule more. */
TEST(test_many_rules)
{
    char text[4096] = "always";

    for (int i = 0; i < 32; i++)
        (void)sprintf(text + strlen(text), ",n%d:never", i);
    CHECK(blkin_set_sampling(text) == 0);
    CHECK(!decide("n31", 1).sampled && decide("n32", 1).sampled);
    (void)strcat(text, ",n32:never");
    CHECK(blkin_set_sampling(text) == -EINVAL);
    CHECK(decide("n32", 1).sampled);
    memset(text, ' ', 1024);
    memcpy(text + 1024, "never", sizeof("never"));
    CHECK(blkin_set_sampling(text) == -EINVAL && blkin_set_sampling(text + 6) == 0);
}

TEST(test_decisions)
{
    CHECK(blkin_set_sampling("always") == 0);
    CHECK(decide("a", 0).sampled && decide("a", 0).ppm == 1000000);
    CHECK(blkin_set_sampling("never") == 0);
    CHECK(!decide("a", 0).sampled && decide("a", 0).ppm == 0);
    CHECK(blkin_set_sampling("ratio=0.25") == 0);
    CHECK(decide("a", 0).sampled && decide("a", BITS / 4 - 1).sampled);
    CHECK(!decide("a", BITS / 4).sampled && !decide("a", BITS - 1).sampled);
    CHECK(decide("a", BITS).sampled); /* the high bits do not matter */
    CHECK(decide("a", BITS / 2).ppm == 250000 && decide("a", 0).ppm == 250000);
    CHECK(blkin_set_sampling("ratio=0") == 0 && !decide("a", 0).sampled);
    CHECK(blkin_set_sampling("ratio=1") == 0 && decide("a", BITS - 1).sampled);
    CHECK(decide("a", 0).ppm == 1000000);
}

/* The ids of traces are uniform: a right share fails once in two million runs. */
TEST(test_shares)
{
    const int ids = 1000000;
    double off = -ids * 0.01;

    CHECK(blkin_set_sampling("ratio=0.01") == 0);
    for (int i = 0; i < ids; i++)
        off += decide("a", blkin_id_next(&blkin_thread)).sampled;
    CHECK(off * off < 5 * 5 * ids * 0.01 * 0.99); /* five standard deviations */
}

TEST(test_names)
{
    CHECK(blkin_set_sampling("always,scrub:never,osd*:never,osdmap:always,read*:ratio=0") == 0);
    CHECK(!decide("scrub", 1).sampled);
    CHECK(decide("scru", 1).sampled && decide("scrubs", 1).sampled);
    CHECK(!decide("osd", 1).sampled && !decide("osd.1", 1).sampled);
    CHECK(decide("os", 1).sampled);
    CHECK(!decide("osdmap", 1).sampled); /* the first that fits */
    CHECK(!decide("reads", 1).sampled && decide("", 1).sampled);
    CHECK(blkin_set_sampling("always,*:never") == 0);
    CHECK(!decide("", 1).sampled && !decide("a", 1).sampled);
    CHECK(blkin_set_sampling(" always , scrub :\tnever, deep scrub*: never ") == 0);
    CHECK(!decide("scrub", 1).sampled && !decide("deep scrub 7", 1).sampled);
    CHECK(decide("deep", 1).sampled);
}

/* A rate: a burst passes, and then nothing for a while. */
TEST(test_rate)
{
    CHECK(blkin_set_sampling("rate=0.001") == 0 && decide("a", 1).sampled);
    for (int i = 0; i < 1000; i++) /* the share is not known */
        CHECK(!decide("a", 1).sampled && decide("a", 1).ppm == 0);
}

/* Returns the number of events within the rate at this time. */
static unsigned within(struct blkin_rate *rate, uint64_t now)
{
    unsigned count = 0;

    while (blkin_within_rate(rate, SECOND / 10, now))
        count++;
    return count;
}

/* A thread that is delayed after its reading of the clock gets no second burst. */
TEST(test_late)
{
    const uint64_t now = 1000 * SECOND, longest = SECOND + SECOND / 100;
    struct blkin_rate rate = {.period_ns = SECOND / 100};

    CHECK(within(&rate, now) == 11 && rate.next_ns == now + 11 * SECOND / 100);
    CHECK(within(&rate, now + SECOND / 100 - 1) == 0 && within(&rate, now + SECOND / 100) == 1);
    CHECK(within(&rate, now + 2 * SECOND) == 11);
    for (uint64_t late = 1; late < longest; late *= 2)
        CHECK(within(&rate, now + 2 * SECOND - late) == 0);
    CHECK(within(&rate, now + 2 * SECOND - longest + SECOND / 100) == 0);
    /* the clock has stepped back */
    CHECK(within(&rate, now + 2 * SECOND - longest + SECOND / 100 - 1) == 11);
}

TEST(test_severity)
{
    CHECK(blkin_set_sampling("always,severity=notice") == 0);
    CHECK(blkin_least_severity == BLKIN_NOTICE);
    CHECK(blkin_set_sampling("always,severity=emerg") == 0);
    CHECK(blkin_least_severity == BLKIN_EMERG);
    CHECK(blkin_set_sampling("always") == 0);
    CHECK(blkin_least_severity == BLKIN_DEBUG);
}

/* The level of the policy, or of the program; each change gets a new number. */
TEST(test_usage)
{
    const uint32_t none = blkin_usage_state;

    CHECK((none & 3) == 0);
    blkin_wiped.periodic_due_ticks = 5;
    CHECK(blkin_set_usage(-1) == -EINVAL && blkin_set_usage(BLKIN_USAGE_LEVEL_MAX + 1) == -EINVAL);
    CHECK(blkin_set_usage(0) == 0 && blkin_usage_state == none);
    CHECK(blkin_wiped.periodic_due_ticks == 5);
    CHECK(blkin_set_usage(3) == 0 && blkin_usage_state == none + 4 + 3);
    CHECK(blkin_wiped.periodic_due_ticks == BLKIN_PERIODIC_ALWAYS);
    CHECK(blkin_set_usage(3) == 0 && blkin_usage_state == none + 4 + 3);
    CHECK(blkin_set_sampling("always,usage=0") == 0 && blkin_usage_state == none + 8);
    CHECK(blkin_set_usage(1) == 0 && blkin_usage_state == none + 8);
    CHECK(blkin_set_sampling("always") == 0 && blkin_usage_state == none + 12 + 1);
    CHECK(blkin_set_sampling("always,usage=2") == 0 && blkin_usage_state == none + 16 + 2);
    CHECK(blkin_set_usage(0) == 0 && blkin_set_sampling("always") == 0);
    CHECK(blkin_usage_state == none + 20);
}

TEST(test_numbers)
{
    static const struct {
        const char *text, *end;
        double number;
        bool is_number;
    } cases[] = {{"90.25x", "x", 90.25, true}, {".5", "", 0.5, true},
                 {"1.", "", 1, true},          {"1..5", ".5", 1, true},
                 {"", "", 0, false},           {".", "", 0, false},
                 {"1e3", "e3", 1, true},       {"0.0625,1", ",1", 0.0625, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *end;
        double number;

        CHECK(blkin_policy_number(cases[i].text, &number, &end) == cases[i].is_number);
        CHECK(number == cases[i].number);
        CHECK_TEXT(end, cases[i].end);
    }
}

/* ---- sources ---- */

static char file_path[256], wrong_file[350]; /* wrong_file: the message about it */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Returns what the library writes to stderr during the call. */
#define SAID(call) (begin_to_say(), (call), end_to_say())

static int said_descriptor, former_stderr;

static void begin_to_say(void)
{
    said_descriptor = memfd_create("stderr", MFD_CLOEXEC);
    former_stderr = dup(STDERR_FILENO);
    CHECK(dup2(said_descriptor, STDERR_FILENO) == STDERR_FILENO);
}

static const char *end_to_say(void)
{
    static char said[1000];
    const ssize_t length = pread(said_descriptor, said, sizeof(said) - 1, 0);

    CHECK(dup2(former_stderr, STDERR_FILENO) == STDERR_FILENO);
    close(former_stderr);
    close(said_descriptor);
    said[length > 0 ? length : 0] = '\0';
    return said;
}

/* A policy whose text may be anything but "wrong". */
static char own_text[2000], own_offered[BLKIN_POLICY_TEXT_MAX];
static unsigned own_count; /* of texts that it took */

static const char *own_take(const char *text)
{
    const char *wrong = strstr(text, "wrong");
    int state;

    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0);
    CHECK(state == PTHREAD_CANCEL_DISABLE);
    if (!wrong)
        own_count++;
    return wrong ? wrong : (strcpy(own_text, text), NULL);
}

static struct blkin_policy_source own;

/* Begins with no policy. */
static void own_begin(const char *variable, const char *file, const char *default_file)
{
    own = (struct blkin_policy_source){
        .variable = "OWN",
        .file_variable = "OWN_FILE",
        .default_file = default_file,
        .expected = "a text",
        .always_reports = true,
        .take = own_take,
        .offered = own_offered,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    own_offered[0] = own_text[0] = '\0';
    own_count = 0;
    CHECK((variable ? setenv("OWN", variable, 1) : unsetenv("OWN")) == 0);
    CHECK((file ? setenv("OWN_FILE", file, 1) : unsetenv("OWN_FILE")) == 0);
}

enum own_call { INIT, REFRESH, REWRITE, OFFER, SET, REFUSE };

static void own_do(enum own_call call, const char *argument)
{
    if (call == INIT)
        blkin_policy_init(&own);
    else if (call == OFFER)
        blkin_policy_offer(&own, argument);
    else if (call >= SET)
        CHECK(blkin_policy_set(&own, argument) == (call == SET ? 0 : -EINVAL));
    else
        blkin_policy_refresh(&own);
}

/* Does the call, after REWRITE of the file; it may write only `says` to stderr. Then `text` is the
 * policy, the count-th one; the thread can be cancelled again, and the lock is free. */
static void own_is(enum own_call call, const char *argument, const char *text, unsigned count,
                   const char *says)
{
    int state = -1;

    if (call == REWRITE)
        write_file(file_path, argument);
    CHECK_TEXT(SAID(own_do(call, argument)), says);
    CHECK_TEXT(own_text, text);
    CHECK(own_count == count);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
    CHECK(state == PTHREAD_CANCEL_ENABLE);
    CHECK(pthread_mutex_trylock(&own.lock) == 0 && pthread_mutex_unlock(&own.lock) == 0);
}

#define WRONG(where) "libblkin: " where ": \"wrong\" is not a text, all in less than 1024 bytes\n"

/* The file overrides the variable; each of them, even an empty one, makes the policy the program's
 * own, and so does the default file with a right text. */
TEST(test_beginnings)
{
    static const struct {
        const char *variable, *file, *of_file, *text;
        unsigned count;
        bool is_own;
        const char *says;
    } cases[] = {
        {NULL, NULL, NULL, "", 0, false, ""},
        {"one", NULL, NULL, "one", 1, true, ""},
        {"", NULL, NULL, "", 0, true, ""},
        {NULL, "", "two", "", 0, true, ""},
        {NULL, "/dev/zero", "two", "", 0, true, ""},
        {NULL, "/", "two", "", 0, true, ""},
        {NULL, NULL, "two", "two", 1, true, ""},
        {"one", NULL, "two\rthree\nfour", "two", 2, true, ""},
        {"one", file_path, "two\nthree", "two", 2, true, ""},
        {"wrong", file_path, "two", "two", 1, true, WRONG("OWN")},
        {NULL, NULL, "wrong", "", 0, false, wrong_file},
        {"one", file_path, "wrong", "one", 1, true, wrong_file},
    };
    char longest[600];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].of_file)
            write_file(file_path, cases[i].of_file);
        own_begin(cases[i].variable, cases[i].file, file_path);
        own_is(INIT, NULL, cases[i].text, cases[i].count, cases[i].says);
        CHECK(own.is_own == cases[i].is_own);
        (void)remove(file_path);
    }
    write_file(file_path, "two");
    memset(longest, '/', sizeof(longest));
    for (size_t length = sizeof(own.path) - 1; length <= sizeof(own.path); length++) {
        strcpy(longest + length - strlen(file_path), file_path);
        own_begin(NULL, longest, "");
        own_is(INIT, NULL, length < sizeof(own.path) ? "two" : "", length < sizeof(own.path), "");
    }
    own_begin("wrong", "/nowhere", "");
    own.always_reports = false;
    own_is(INIT, NULL, "", 0, "");
    setenv("BLKIN_DEBUG", "1", 1);
    own_is(INIT, NULL, "", 0, WRONG("OWN"));
    unsetenv("BLKIN_DEBUG");
}

/* A changed file is read once. A wrong or missing one changes nothing. */
TEST(test_changes)
{
    char other[sizeof(file_path) + 4], text[2000];

    (void)snprintf(other, sizeof(other), "%s.new", file_path);
    own_begin(NULL, file_path, "");
    (void)remove(file_path);
    own_is(INIT, NULL, "", 0, "");
    own_is(REWRITE, "one", "one", 1, "");
    own_is(REFRESH, NULL, "one", 1, "");
    CHECK(chmod(file_path, 0600) == 0); /* its time has changed */
    own_is(REFRESH, NULL, "one", 2, "");
    write_file(other, "two");
    CHECK(rename(other, file_path) == 0);
    own_is(REFRESH, NULL, "two", 3, "");
    own_is(REWRITE, "wrong", "two", 3, wrong_file);
    own_is(REFRESH, NULL, "two", 3, "");
    CHECK(remove(file_path) == 0);
    own_is(REFRESH, NULL, "two", 3, "");
    own.has_lines = true;
    CHECK(pthread_mutex_lock(&own.lock) == 0);
    write_file(file_path, "three\r\nfour\n");
    blkin_policy_refresh(&own); /* as in a handler that has interrupted a change */
    CHECK(own_count == 3);
    blkin_policy_after_fork(&own);
    own_is(REFRESH, NULL, "three\r\nfour\n", 4, "");
    /* a text that is too long stays too long */
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    write_file(file_path, text);
    text[BLKIN_POLICY_TEXT_MAX] = '\0';
    own_is(REFRESH, NULL, text, 5, "");
}

/* Only root, or the program's user, may be able to write the file. */
TEST(test_trust)
{
    static const struct {
        mode_t mode;
        uid_t user;
        bool is_trusted;
    } cases[] = {
        {0644, 0, true}, {0664, 0, false}, {0646, 0, false}, {0755, 0, true}, {0600, 77, false}};
    char refused[700];

    if (geteuid() != 0) {
        puts("not tested: files of other users: needs root");
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(refused, sizeof(refused),
                       "libblkin: %s: not read, because it is of user %u with mode %o: it must "
                       "belong to root or to user 0, and nobody else may write to it (chown, "
                       "chmod go-w)\n",
                       file_path, cases[i].user, cases[i].mode);
        write_file(file_path, "text");
        CHECK(chown(file_path, cases[i].user, 0) == 0 && chmod(file_path, cases[i].mode) == 0);
        own_begin(NULL, file_path, "");
        own_is(INIT, NULL, cases[i].is_trusted ? "text" : "", cases[i].is_trusted,
               cases[i].is_trusted ? "" : refused);
        own_is(REFRESH, NULL, own_text, own_count, "");
    }
    CHECK(!getenv("TMPDIR") || chmod(getenv("TMPDIR"), 0755) == 0);
    CHECK(seteuid(77) == 0); /* the program becomes the owner of the file that it has refused */
    own_is(REFRESH, NULL, "text", 1, "");
    own_is(REFRESH, NULL, "text", 1, "");
    CHECK(seteuid(0) == 0 && remove(file_path) == 0);
}

/* The agent's text counts until the program has a policy of its own. */
TEST(test_offers)
{
    own_begin(NULL, NULL, "");
    own_is(INIT, NULL, "", 0, "");
    CHECK(pthread_mutex_lock(&own.lock) == 0);
    blkin_policy_offer(&own, "one");
    CHECK(own_count == 0 && pthread_mutex_unlock(&own.lock) == 0);
    own_is(OFFER, "one", "one", 1, "");
    own_is(OFFER, "one", "one", 1, "");
    own_is(OFFER, "wrong", "one", 1, WRONG("the agent's rules"));
    own_is(OFFER, "wrong", "one", 1, "");
    own_is(REFUSE, "wrong", "one", 1, "");
    own_is(REFUSE, NULL, "one", 1, "");
    own_is(OFFER, "one", "one", 2, "");
    own_is(SET, "two", "two", 3, "");
    own_is(REFUSE, "wrong", "two", 3, "");
    own_is(OFFER, "one", "two", 3, "");
}

/* The sources of the sampling policy. */
TEST(test_sampling_sources)
{
    int status = -1;
    const pid_t pid = fork();

    if (pid == 0) {
        check_failures = 0;
        setenv("BLKIN_SAMPLING", "ratio=0.5", 1);
        setenv("BLKIN_RANDOM_FLAG", "1", 1);
        blkin_sampling_init();
        CHECK_TEXT(blkin_sampling_text(), "ratio=0.5");
        CHECK(blkin_root_flags == BLKIN_CONTEXT_RANDOM);
        CHECK_TEXT(blkin_sampling_source.default_file, "/run/blkin/sampling");
        _exit(check_status());
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0 && blkin_root_flags == 0);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");

    (void)snprintf(file_path, sizeof(file_path), "%s/sampling", folder ? folder : "/tmp");
    (void)snprintf(wrong_file, sizeof(wrong_file), WRONG("%s"), file_path);
    setenv("BLKIN_LTTNG", "no", 1);
    setenv("BLKIN_SAMPLING_FILE", file_path, 1);
    blkin_init();
    check_run();
    (void)remove(file_path);
    return check_status();
}
