/*
 * Fuzzes the reading of a configuration file with any bytes. Accepted values are in range, the sink
 * takes the values of its parameters, and the text of each key can be read back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"
#include "tools/sampler/sampler.h"

#include "tools/config/config.c"

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static const char *const tokens[] = {"\n[live]\n",
                                     "\n[agent]\n",
                                     "[",
                                     "]",
                                     " = ",
                                     "\n",
                                     "1000",
                                     "65536",
                                     "99999999999999999999",
                                     "12K",
                                     "9223372036854775807",
                                     "yes",
                                     "no",
                                     "auto",
                                     "drop-oldest",
                                     "gzip",
                                     "\"",
                                     " ; ",
                                     "\xef\xbb\xbf",
                                     "http://localhost:9411/",
                                     "user:pw@",
                                     "?a=b",
                                     "a,b",
                                     "-",
                                     "16T"};

#define TOKENS (sizeof(tokens) / sizeof(tokens[0]))

/* A byte from 128 on stands for a word: a name of a key or another text of a file. 255: the next
 * byte as is. */
static size_t make_file(const uint8_t *data, size_t size, char *bytes, size_t room)
{
    size_t length = 0;

    for (size_t i = 0; i < size; i++) {
        const unsigned word = data[i] - 128u;
        const char *text;

        if (data[i] < 128 || data[i] == 255) {
            i += data[i] == 255 && i + 1 < size;
            if (length < room)
                bytes[length++] = (char)data[i];
            continue;
        }
        text = word < TOKENS                    ? tokens[word]
               : key_rule((int)(word - TOKENS)) ? key_rule((int)(word - TOKENS))->name
                                                : "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        for (; *text && length < room; text++)
            bytes[length++] = *text;
    }
    return length;
}

static void require_in_range(const struct config *config)
{
    for (int key = 0; key_rule(key); key++) {
        const struct param_rule *rule = key_rule(key);
        int64_t integer;

        if (rule->type == PARAM_BOOLEAN) {
            (void)config_boolean(config, rule->name);
        } else if (rule->type == PARAM_INTEGER) {
            integer = config_integer(config, rule->name);
            REQUIRE(integer >= rule->min && integer <= rule->max);
        } else {
            const char *text = config_text(config, rule->name);

            REQUIRE(text || !rule->default_text);
            REQUIRE(!text || rule->type != PARAM_TEXT || rule->max == 0 ||
                    strlen(text) <= (size_t)rule->max);
        }
    }
}

static void require_taken_by_the_sink(const struct config *config)
{
    json_t *json = config_sink_json(config);
    struct params params;
    struct error error;

    REQUIRE(config_sink_params(config, &params, &error));
    REQUIRE(json);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fenced file;
    static FILE *nowhere, *terminal;
    static char program[] = "fuzz", *argv[] = {program, NULL};
    static const struct config_request request = {.section = "live", .usage = ""};
    struct config config = {.request = &request, .argc = 1, .argv = argv, .section = 1};
    const struct config_lines lines = {config_take_entry, config_take_bad_line, &config};
    const size_t length = make_file(data, size, file.bytes, sizeof(file.bytes));

    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
        terminal = stderr;
    }
    keys_set_sampler_check(host_settings_check);
    config.path = "file";
    fence_put(&file, length);
    stderr = nowhere;
    config_file_parse(file.bytes, length, &lines);
    stderr = terminal;
    fence_lift(&file, length);
    REQUIRE(config_set_defaults(&config));
    require_in_range(&config);
    require_taken_by_the_sink(&config);
    for (int key = 0; key < KEYS_MAX; key++)
        setting_clear(&config.settings[key]);
    return 0;
}

#pragma clang attribute pop
