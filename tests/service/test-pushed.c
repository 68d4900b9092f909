/*
 * Configurations of a topic: which one holds for a host, and what is refused.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/config/keys.h"
#include "tools/host/settings.h"
#include "tools/push/pushed.h"

#include <stdlib.h>
#include <string.h>

static struct pushed *pushed;
static struct error error;
static int64_t offset;

static enum pushed_result take(const char *key, const char *lines)
{
    const struct topic_message message = {.key = key,
                                          .key_length = strlen(key),
                                          .data = lines,
                                          .length = lines ? strlen(lines) : 0,
                                          .offset = offset++};

    return pushed_take(pushed, &message, &error);
}

static bool best_is(const char *key)
{
    const struct pushed_text *best = pushed_best(pushed);

    return key ? best && strcmp(best->key, key) == 0 : !best;
}

static bool is_right(const char *lines)
{
    return pushed_check("host", "here", lines, strlen(lines), &error);
}

static bool is_refused(const char *lines, const char *why)
{
    return !is_right(lines) && strcmp(error.text, why) == 0;
}

static void test_lines(void)
{
    static char much[PUSHED_BYTES_MAX + 2];

    CHECK(is_right(""));
    CHECK(is_right(
        "# nothing\n\n[host]\ncpu = 100ms\ndisk = 1s vd*\nhost-filters = disk every 5s\n"));
    CHECK(is_refused("cpu = 1s\ncpu = 2s\n", "here:2: \"cpu\" is given twice: line 1 has it"));
    CHECK(is_refused("[host]\ncpu = 1s\n[host]\ncpu = 2s\n",
                     "here:4: \"cpu\" is given twice: line 2 has it"));
    CHECK(is_refused("cpu = 1s\ncpu\n", "here:2: expected KEY = VALUE"));
    CHECK(is_refused("[live]\ncpu = 1s\n", "here:2: section \"live\": expected \"host\", or none"));
    CHECK(!is_right("host-filters = disk every now\n"));
    CHECK(!is_right("log-level = loud\n"));
    CHECK(!is_right("host-send-ms = 60001\n"));
    CHECK(!pushed_check("host", "here", "cpu = 1s\n\0", 10, &error));
    CHECK(!pushed_check("live", "here", "log-level = info\n", 17, &error));
    memset(much, '#', sizeof(much));
    CHECK(!pushed_check("host", "here", much, sizeof(much) - 1, &error));
}

/* Nothing that says where to connect to, as whom, or which files to use. */
static void test_keys(void)
{
    for (int key = 0; key_rule(key); key++) {
        const char *name = key_rule(key)->name;
        char line[128], value[64];
        bool is_free = false;

        for (const char *const *one = pushed_keys("host"); *one; one++)
            is_free = is_free || strcmp(*one, name) == 0;
        key_default(key_rule(key), value, sizeof(value));
        (void)snprintf(line, sizeof(line), "%s = %s\n", name, value);
        CHECK(is_right(line) == is_free);
        CHECK(!is_free || !(strstr(name, "file") || strstr(name, "dir") || strstr(name, "root") ||
                            strstr(name, "endpoint") || strstr(name, "listen")));
    }
}

static void test_hosts(void)
{
    static const char *const right[] = {"*", "osd-3", "osd-*", "a?c.example", "****", "A_1"};
    static const char *const wrong[] = {"", "a b", "[a-z]", "*****", "a,b", "\xff", "a\n", "\\*"};
    char name[PUSHED_PATTERN_MAX + 2];

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        CHECK(pushed_check_hosts(right[i], &error));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK(!pushed_check_hosts(wrong[i], &error));
    memset(name, 'a', sizeof(name));
    name[PUSHED_PATTERN_MAX + 1] = '\0';
    CHECK(!pushed_check_hosts(name, &error));
    name[PUSHED_PATTERN_MAX] = '\0';
    CHECK(pushed_check_hosts(name, &error));
}

static void test_best(void)
{
    pushed = pushed_new("host", "osd-3");
    CHECK(best_is(NULL));
    CHECK(take("host *", "cpu = 1s\n") == PUSHED_TAKEN && best_is("host *"));
    CHECK(take("host osd-*", "cpu = 1s\n") == PUSHED_TAKEN && best_is("host osd-*"));
    CHECK(take("host o*", "cpu = 1s\n") == PUSHED_TAKEN && best_is("host osd-*"));
    CHECK(take("host ??d-3", "cpu = 1s\n") == PUSHED_TAKEN && best_is("host osd-*"));
    CHECK(take("host osd-3", "cpu = 2s\n") == PUSHED_TAKEN && best_is("host osd-3"));
    CHECK(take("host osd-?", "cpu = 1s\n") == PUSHED_TAKEN && best_is("host osd-3"));
    CHECK(take("host osd-4", "cpu = 1s\n") == PUSHED_FOR_OTHERS);
    CHECK(take("host", "cpu = 1s\n") == PUSHED_FOR_OTHERS);
    CHECK(take("host ", "cpu = 1s\n") == PUSHED_FOR_OTHERS);
    CHECK(take("", "cpu = 1s\n") == PUSHED_FOR_OTHERS);
    CHECK(take("hosts *", "cpu = 1s\n") == PUSHED_FOR_OTHERS);
    CHECK(take("host osd-3", "cpu = 3\n") == PUSHED_REFUSED && best_is("host osd-3"));
    CHECK(strcmp(pushed_best(pushed)->bytes, "cpu = 2s\n") == 0);
    CHECK(take("host osd-3", NULL) == PUSHED_TAKEN && best_is("host osd-*"));
    CHECK(take("host osd-3", NULL) == PUSHED_TAKEN && best_is("host osd-*"));
    CHECK(take("host osd-3", "") == PUSHED_TAKEN && best_is("host osd-3"));
    pushed_free(pushed);
}

/* Read anew: what is there with what is wrong now stays as it was, what is not there goes. */
static void test_anew(void)
{
    pushed = pushed_new("host", "osd-3");
    CHECK(take("host *", "cpu = 1s\n") == PUSHED_TAKEN);
    CHECK(take("host osd-*", "cpu = 2s\n") == PUSHED_TAKEN);
    CHECK(take("host osd-3", "cpu = 3s\n") == PUSHED_TAKEN);
    pushed_begin(pushed);
    CHECK(best_is("host osd-3"));
    CHECK(take("host osd-*", "log-level = loud\n") == PUSHED_REFUSED);
    pushed_end(pushed);
    CHECK(best_is("host osd-*"));
    CHECK(strcmp(pushed_best(pushed)->bytes, "cpu = 2s\n") == 0);
    pushed_begin(pushed);
    pushed_end(pushed);
    CHECK(best_is(NULL));
    pushed_free(pushed);
}

static void test_many(void)
{
    char key[64];
    int taken = 0;

    pushed = pushed_new("host", "osd-3");
    for (int i = 0; i < 256; i++) {
        (void)snprintf(key, sizeof(key), "host %c%c%c%c%c*", i & 1 ? '?' : 'o', i & 2 ? '?' : 's',
                       i & 4 ? '?' : 'd', i & 8 ? '?' : '-', i & 16 ? '?' : '3');
        taken += take(key, "cpu = 1s\n") == PUSHED_TAKEN;
    }
    CHECK(taken == 8 * 16);
    CHECK(best_is("host osd-3*"));
    pushed_free(pushed);
}

int main(void)
{
    keys_set_host_check(host_settings_check);
    test_lines();
    test_keys();
    test_hosts();
    test_best();
    test_anew();
    test_many();
    return check_status();
}
