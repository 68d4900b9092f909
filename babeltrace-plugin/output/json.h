/*
 * JSON primitives that write at a pointer into room that the caller has reserved.
 *
 * Strings come from traces and may be any bytes: what is written is valid UTF-8 and valid JSON,
 * with U+FFFD in place of what is not (Unicode 15, 3.9, "substitution of maximal subparts").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_JSON_H
#define BLKIN_OUTPUT_JSON_H

#include "../core/text.h"

#include <stdint.h>

/* Room for each: \u00XX for every byte, two quotes, and the escape of json_string()'s last byte. */
#define JSON_STRING_MAX(length) ((length)*6 + 8)
#define JSON_INTEGER_MAX        20
#define JSON_HEX_MAX            16

/* A literal, without its NUL. */
#define JSON_LITERAL(at, literal) json_bytes((at), (literal), sizeof(literal) - 1)

static inline char *json_bytes(char *at, const char *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

char *json_integer(char *at, int64_t value);

/* 16 lower-case hexadecimal digits. */
char *json_hex(char *at, uint64_t value);

/* The text in quotes. pipe is written for '|': see zipkin_json.c; '|' itself where it may stay. */
char *json_string(char *at, struct text text, char pipe);

#endif
