/*
 * Fuzzes what comes from a topic of configurations: any messages, with any keys. What holds is what
 * a list says that knows the order of a few keys, all of it is right, and the configuration takes
 * it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/push/pushed.h"

#include "fuzz.h"
#include "tools/host/settings.h"

#include "tools/config/config.c"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

/* The better first; then those that are for others. */
static const char *const keys[] = {"host osd-3", "host osd-?", "host osd*", "host *", "host osd-4",
                                   "host",       "host ",      "live *",    ""};
#define OURS 4
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const words[] = {
    "\n",     "[host]\n", "[live]\n",  "cpu",           " = ",       "disk",        "1s",
    "100ms ", "off",      "vd*,nvme*", "host-filters",  "every 5s",  "log-level",   "info",
    "#",      "\n\n",     "log-level", "host-send-ms",  "60000",     "60001",       "\"",
    "memory", "process",  "pid:1",     "host-endpoint", "host-root", "runtime-dir", "kafka-file",
};
#define WORDS (sizeof(words) / sizeof(words[0]))

/* A byte from 128 on is a word. */
static size_t make_lines(struct text from, char *bytes, size_t room)
{
    size_t length = 0;

    for (size_t i = 0; i < from.length; i++) {
        const unsigned char c = (unsigned char)from.data[i];
        const char *word = c < 128 ? NULL : words[(c - 128U) % WORDS];

        if (!word && length < room)
            bytes[length++] = (char)c;
        for (; word && *word && length < room; word++)
            bytes[length++] = *word;
    }
    return length;
}

static bool is_free(const char *name)
{
    const char *const *key = pushed_keys("host");

    while (*key && strcmp(*key, name) != 0)
        key++;
    return *key != NULL;
}

/* Nothing else than what may come from there has a value from there. */
static void require_right(const struct pushed_text *text)
{
    static char program[] = "fuzz", *argv[] = {program, NULL};
    static const struct config_request request = {"host", "", NULL};
    const struct config_pushed lines = {text->key, text->bytes, text->size};
    struct config config = {.request = &request,
                            .argc = 1,
                            .argv = argv,
                            .section = key_find_section("host"),
                            .pushed = &lines};

    read_pushed(&config);
    REQUIRE(config.errors == 0);
    for (int key = 0; key_rule(key); key++) {
        REQUIRE(!config.settings[key].has_value || is_free(key_rule(key)->name));
        config_clear(&config.settings[key]);
    }
}

static void require_same(const struct pushed_text *best, const struct pushed_text *expected)
{
    REQUIRE(!best == !expected);
    REQUIRE(!best || (strcmp(best->key, expected->key) == 0 && best->size == expected->size &&
                      memcmp(best->bytes, expected->bytes, best->size) == 0));
}

static const struct pushed_text *best_of(const struct pushed_text known[OURS])
{
    for (int i = 0; i < OURS; i++) {
        if (known[i].bytes)
            return &known[i];
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fenced lines;
    struct pushed_text known[OURS] = {{.bytes = NULL}};
    struct input input = {data, data + size};
    struct pushed *pushed = pushed_new("host", "osd-3");
    bool is_known = true; /* no key but those above */

    keys_set_host_check(host_settings_check);
    while (input.at < input.end) {
        const unsigned kind = (unsigned)take(&input, 1) % (KEYS + 3);
        const struct text own = take_bytes(&input, kind == KEYS ? take(&input, 1) : 0);
        const bool has_lines = take(&input, 1) % 8 != 0;
        const struct text from = take_bytes(&input, has_lines ? take(&input, 1) : 0);
        const size_t length = make_lines(from, lines.bytes, sizeof(lines.bytes));
        struct pushed_text text = {.bytes = lines.bytes, .size = length};
        const struct topic_message message = {
            .key = kind < KEYS ? keys[kind] : own.data,
            .key_length = kind < KEYS ? strlen(keys[kind]) : own.length,
            .data = has_lines ? lines.bytes : NULL,
            .length = has_lines ? length : 0,
        };
        struct error error = {""};
        enum pushed_result result;

        if (kind > KEYS) {
            (kind == KEYS + 1 ? pushed_begin : pushed_end)(pushed);
            is_known = false; /* which ones have come, the list does not know */
            continue;
        }
        fence_put(&lines, length);
        result = pushed_take(pushed, &message, &error);
        fence_lift(&lines, length);
        REQUIRE((result == PUSHED_REFUSED) == (error.text[0] != '\0'));
        REQUIRE(kind >= KEYS || (result == PUSHED_FOR_OTHERS) == (kind >= OURS));
        is_known = is_known && (kind < KEYS || result == PUSHED_FOR_OTHERS);
        if (kind < OURS && result == PUSHED_TAKEN) {
            (void)snprintf(text.key, sizeof(text.key), "%s", keys[kind]);
            if (has_lines)
                REQUIRE(pushed_text_copy(&known[kind], &text));
            else
                pushed_text_clear(&known[kind]);
        }
        if (is_known)
            require_same(pushed_best(pushed), best_of(known));
        if (pushed_best(pushed))
            require_right(pushed_best(pushed));
    }
    for (int i = 0; i < OURS; i++)
        pushed_text_clear(&known[i]);
    pushed_free(pushed);
    return 0;
}

#pragma clang attribute pop
