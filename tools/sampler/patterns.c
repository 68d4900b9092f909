/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_parts.h"

#include <fnmatch.h>
#include <stdlib.h>

#define COMM_LENGTH 15 /* the kernel cuts a command's name to this length */
#define PID_MAX     (1 << 22)

static bool read_pid(struct pattern *pattern, const char *text, struct error *error)
{
    uint64_t pid = 0;

    if (!text_read_number(text_of(text), &pid) || pid == 0 || pid > PID_MAX)
        return error_set(error, "process: expected pid:NUMBER of 1 to %d, got \"pid:%s\"", PID_MAX,
                         text);
    pattern->kind = PATTERN_PID;
    pattern->pid = (uint32_t)pid;
    return true;
}

static bool read_pattern(struct pattern *pattern, enum host_kind kind, const char *text,
                         struct error *error)
{
    const char *const name = host_definition(kind)->name;

    if (*text == '!') {
        pattern->excludes = true;
        text++;
    }
    if (*text == '\0')
        return error_set(error, "%s: expected names separated by commas, got an empty name", name);
    if (kind == HOST_CPU && strcmp(text, "each") != 0)
        return error_set(error, "cpu: expected \"each\" or nothing, got \"%s\"", text);
    if (kind == HOST_PROCESS && strncmp(text, "pid:", strlen("pid:")) == 0)
        return read_pid(pattern, text + strlen("pid:"), error);
    if ((kind == HOST_PROCESS || kind == HOST_CGROUP) &&
        strncmp(text, "unit:", strlen("unit:")) == 0) {
        pattern->kind = PATTERN_UNIT;
        text += strlen("unit:");
    } else if (kind == HOST_CGROUP && *text == '/') {
        text++;
    }
    pattern->text = strdup(text);
    if (!pattern->text)
        return error_set(error, "out of memory");
    if (kind == HOST_PROCESS && pattern->kind == PATTERN_NAME && strlen(text) > COMM_LENGTH &&
        !strpbrk(text, "*?["))
        pattern->text[COMM_LENGTH] = '\0';
    return true;
}

bool patterns_read(struct patterns *patterns, enum host_kind kind, const char *text,
                   struct error *error)
{
    char *const copy = strdup(text);
    char *rest = copy;
    bool is_well = true;

    patterns->count = 0;
    if (!copy)
        return error_set(error, "out of memory");
    while (is_well && *text && rest) {
        char *const word = string_trim(strsep(&rest, ","));

        if (patterns->count == PATTERNS_MAX) {
            error_set(error,
                      "%s: expected at most %d names; a pattern such as \"*\" may stand for "
                      "several",
                      host_definition(kind)->name, PATTERNS_MAX);
            is_well = false;
        } else {
            struct pattern *const pattern = &patterns->list[patterns->count++];

            *pattern = (struct pattern){.kind = PATTERN_NAME};
            is_well = read_pattern(pattern, kind, word, error);
        }
    }
    free(copy);
    return is_well;
}

void patterns_free(struct patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++)
        free(patterns->list[i].text);
    patterns->count = 0;
}

bool patterns_have(const struct patterns *patterns, enum pattern_kind kind)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (patterns->list[i].kind == kind && !patterns->list[i].excludes)
            return true;
    return false;
}

bool patterns_match(const struct patterns *patterns, enum pattern_kind kind, const char *name,
                    int flags)
{
    bool only_excludes = true;
    bool is_wanted = false;

    for (size_t i = 0; i < patterns->count; i++) {
        const struct pattern *const pattern = &patterns->list[i];

        only_excludes = only_excludes && pattern->excludes;
        if (pattern->kind != kind || fnmatch(pattern->text, name, flags) != 0)
            continue;
        if (pattern->excludes)
            return false;
        is_wanted = true;
    }
    return is_wanted || only_excludes;
}
