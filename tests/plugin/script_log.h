/*
 * Writes logs in the form of doc/format.md from the words of a script.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_SCRIPT_LOG_H
#define TESTS_PLUGIN_SCRIPT_LOG_H

#include "babeltrace-plugin/base/duration.h"
#include "script.h"

#include <inttypes.h>

/* Writes digits of base 16, the lowest first, each '0' plus its value. */
static inline void write_digits16(FILE *log, uint64_t value)
{
    for (unsigned i = 0; i < 16; i++)
        fputc((int)('0' + (value >> 4 * i & 15)), log);
}

/* Writes the lower 12 bits in two digits of base 64. */
static inline void write_length(FILE *log, size_t length)
{
    fputc((int)('0' + (length & 63)), log);
    fputc((int)('0' + (length >> 6 & 63)), log);
}

/* Writes the lower 48 bits in eight digits of base 64. */
static inline void write_word(FILE *log, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        fputc((int)('0' + (value >> 6 * i & 63)), log);
}

static inline void write_long(FILE *log, uint64_t value)
{
    write_word(log, value);
    for (unsigned i = 48; i < 66; i += 6)
        fputc((int)('0' + (value >> i & 63)), log);
}

static const char *const kind_names[] = {"local", "client", "server", "producer", "consumer"};

static inline uint64_t kind_number(const struct script_line *line, const char *value)
{
    for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
        if (strcmp(value, kind_names[i]) == 0)
            return i;
    }
    return script_number(line, value);
}

/* Writes a step. key: [.KIND]@OFFSET, without the word "step". */
static inline void write_step(FILE *log, const struct script_line *line, const char *key,
                              struct text name)
{
    char kind[16] = "local";
    const char *at = strchr(key, '@');

    if (!at || at - key >= (ptrdiff_t)sizeof(kind))
        script_fail(line, "expected step[.KIND]@OFFSET=NAME", key);
    if (*key == '.')
        snprintf(kind, sizeof(kind), "%.*s", (int)(at - key - 1), key + 1);
    fputc('(', log);
    write_length(log, name.length | kind_number(line, kind) << 7);
    write_word(log, script_number(line, at + 1));
    fwrite(name.data, 1, name.length, log);
}

static inline void write_remote(FILE *log, const struct script_line *line, const char *value)
{
    char ip[64], service[64] = "";
    unsigned port;

    if (sscanf(value, "%63s %u %63s", ip, &port, service) < 2)
        script_fail(line, "expected \"IP PORT [SERVICE]\"", value);
    fputc('r', log);
    write_digits16(log, port);
    write_length(log, strlen(ip));
    write_length(log, strlen(service));
    fprintf(log, "%s%s", ip, service);
}

static inline uint64_t number_bits(const struct script_line *line, char type, const char *value)
{
    double real;
    uint64_t bits;

    if (type != 'D')
        return script_number(line, value);
    real = real_read(value, NULL);
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

/*
 * Writes the record of one word:
 * SEVERITY@OFFSET=text  s.KEY=text  I|U|D.KEY=number  remote="IP PORT [SERVICE]"
 * step[.KIND]@OFFSET=NAME  done=OFFSET  number=N  from=OFFSET  left-open=
 * Returns false for any other word.
 */
static inline bool write_log_record(FILE *log, const struct script_line *line,
                                    const struct script_word *word)
{
    const char *key = word->key;
    const struct text value = word->value;

    if (strcmp(key, "remote") == 0) {
        write_remote(log, line, value.data);
    } else if (strncmp(key, "step", 4) == 0 && strchr(".@", key[4])) {
        write_step(log, line, key + 4, value);
    } else if (strcmp(key, "done") == 0 || strcmp(key, "from") == 0) {
        fputc(*key == 'd' ? ')' : 'T', log);
        write_word(log, script_number(line, value.data));
    } else if (strcmp(key, "number") == 0) {
        const uint64_t number = script_number(line, value.data);

        fputc('#', log);
        write_length(log, number);
        write_length(log, number >> 12);
    } else if (strcmp(key, "left-open") == 0) {
        fputc('o', log);
    } else if (key[0] >= '0' && key[0] <= '7' && key[1] == '@') {
        fputc(key[0], log);
        write_length(log, value.length);
        write_word(log, script_number(line, key + 2));
        fwrite(value.data, 1, value.length, log);
    } else if (key[0] && key[1] == '.' && strchr("sIUD", key[0])) {
        fputc(key[0], log);
        write_length(log, strlen(key + 2));
        if (key[0] == 's')
            write_length(log, value.length);
        else
            write_long(log, number_bits(line, key[0], value.data));
        fputs(key + 2, log);
        if (key[0] == 's')
            fwrite(value.data, 1, value.length, log);
    } else {
        return false;
    }
    return true;
}

#endif
