/*
 * Writes logs in the form of tracepoints/events.h from the words of a script.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_SCRIPT_LOG_H
#define TESTS_PLUGIN_SCRIPT_LOG_H

#include "script.h"

#include <inttypes.h>

static inline void write_remote(FILE *log, const struct script_line *line, const char *value)
{
    char ip[64], service[64];
    unsigned port;

    if (sscanf(value, "%63s %u %63s", ip, &port, service) != 3)
        script_fail(line, "expected \"IP PORT SERVICE\"", value);
    fprintf(log, "r%04x%02zx%02zx%s%s", port, strlen(ip), strlen(service), ip, service);
}

static inline uint64_t number_bits(const struct script_line *line, char type, const char *value)
{
    double real;
    uint64_t bits;

    if (type == 'b')
        return strcmp(value, "true") == 0;
    if (type != 'd')
        return script_number(line, value);
    real = strtod(value, NULL);
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

/*
 * a@OFFSET=text  s.KEY=text  i|u|d|b.KEY=number  remote="IP PORT SERVICE"
 * Returns false for any other word.
 */
static inline bool write_log_record(FILE *log, const struct script_line *line,
                                    const struct script_word *word)
{
    const char *key = word->key;
    const struct text value = word->value;

    if (strcmp(key, "remote") == 0) {
        write_remote(log, line, value.data);
    } else if (strncmp(key, "a@", 2) == 0) {
        fprintf(log, "a6%012" PRIx64 "%04zx",
                script_number(line, key + 2) & UINT64_C(0xffffffffffff), value.length);
        fwrite(value.data, 1, value.length, log);
    } else if (key[0] && key[1] == '.' && strchr("siudb", key[0])) {
        fprintf(log, "%c%04zx", key[0], strlen(key + 2));
        if (key[0] == 's')
            fprintf(log, "%04zx", value.length);
        else
            fprintf(log, "%016" PRIx64, number_bits(line, key[0], value.data));
        fputs(key + 2, log);
        if (key[0] == 's')
            fwrite(value.data, 1, value.length, log);
    } else {
        return false;
    }
    return true;
}

#endif
