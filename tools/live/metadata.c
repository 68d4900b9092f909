/* SPDX-License-Identifier: BSD-2-Clause */
#include "metadata.h"

#include <byteswap.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT32_C(0x75d11d57)
/* The header of a packet: magic, UUID, checksum, content and packet size in bits, 5 single bytes.
 */
#define METADATA_HEADER_BYTES 37
/* A stream class with this id or a higher one counts as declared. */
#define CLASSES 64

static uint64_t bit_of(unsigned long stream_class)
{
    return stream_class < CLASSES ? UINT64_C(1) << stream_class : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool begins(const struct metadata *metadata, const char *word)
{
    return strncmp(metadata->statement, word, strlen(word)) == 0;
}

static void begin_statement(struct metadata *metadata)
{
    metadata->length = 0;
    metadata->statement[0] = '\0';
}

static void open_block(struct metadata *metadata)
{
    if (metadata->depth++ > 0)
        return;
    metadata->block = strcmp(metadata->statement, "stream") == 0  ? STREAM_BLOCK
                      : strcmp(metadata->statement, "event") == 0 ? EVENT_BLOCK
                      : strcmp(metadata->statement, "clock") == 0 ? CLOCK_BLOCK
                                                                  : OTHER_BLOCK;
    metadata->has_id = false;
    begin_statement(metadata);
}

/* A stream block without an id declares class 0. */
static void close_block(struct metadata *metadata)
{
    if (metadata->depth > 0 && --metadata->depth == 0) {
        if (metadata->block == STREAM_BLOCK && !metadata->has_id)
            metadata->declared |= bit_of(0);
        metadata->statement[0] = '}'; /* the semicolon follows */
        metadata->statement[1] = '\0';
        metadata->length = 1;
    }
}

static void end_statement(struct metadata *metadata)
{
    const char *value = strchr(metadata->statement, '=');

    if (metadata->depth > 1)
        return;
    if (metadata->depth == 1 && metadata->block == STREAM_BLOCK && begins(metadata, "id=")) {
        metadata->has_id = true;
        metadata->declared |= bit_of(strtoul(value + 1, NULL, 0));
    } else if (metadata->depth == 1 && metadata->block == EVENT_BLOCK &&
               begins(metadata, "stream_id=")) {
        metadata->wanted |= bit_of(strtoul(value + 1, NULL, 0));
    } else if (metadata->depth == 1 && metadata->block == CLOCK_BLOCK &&
               begins(metadata, "offset=")) {
        metadata->offset = strtoull(value + 1, NULL, 0);
    }
    begin_statement(metadata);
}

static void add_to_statement(struct metadata *metadata, char c)
{
    if (metadata->depth > 1 || c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return;
    if (metadata->length + 1 < sizeof(metadata->statement)) {
        metadata->statement[metadata->length++] = c;
        metadata->statement[metadata->length] = '\0';
    }
}

static void add_code(struct metadata *metadata, char c)
{
    if (metadata->last == '/' && (c == '*' || c == '/')) {
        metadata->state = c == '*' ? IN_COMMENT : IN_LINE_COMMENT;
        if (metadata->depth <= 1 && metadata->length > 0) /* without the slash */
            metadata->statement[--metadata->length] = '\0';
        return;
    }
    switch (c) {
    case '"':
        metadata->state = IN_TEXT;
        break;
    case '{':
        open_block(metadata);
        break;
    case '}':
        close_block(metadata);
        break;
    case ';':
        end_statement(metadata);
        break;
    default:
        add_to_statement(metadata, c);
    }
}

static void add_character(struct metadata *metadata, char c)
{
    char last = c;

    switch (metadata->state) {
    case IN_CODE:
        add_code(metadata, c);
        if (metadata->state != IN_CODE)
            last = '\0'; /* the star of a comment's begin does not end the comment */
        break;
    case IN_TEXT:
        if (c == '"' && metadata->last != '\\')
            metadata->state = IN_CODE;
        if (c == '\\' && metadata->last == '\\')
            last = '\0';
        break;
    case IN_COMMENT:
        if (c == '/' && metadata->last == '*') {
            metadata->state = IN_CODE;
            last = '\0';
        }
        break;
    case IN_LINE_COMMENT:
        if (c == '\n')
            metadata->state = IN_CODE;
        break;
    }
    metadata->last = last;
}

/* ---- packets --------------------------------------------------------------------------------- */

static uint32_t number_at(const unsigned char *bytes, bool is_swapped)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof(number));
    return is_swapped ? bswap_32(number) : number;
}

void metadata_add(struct metadata *metadata, const unsigned char *packets, size_t size)
{
    while (size > 0 && !metadata->is_other) {
        const bool is_swapped =
            size >= METADATA_HEADER_BYTES && number_at(packets, false) == bswap_32(MAGIC);
        size_t content, packet;

        if (size < METADATA_HEADER_BYTES || number_at(packets, is_swapped) != MAGIC) {
            metadata->is_other = true;
            return;
        }
        content = number_at(packets + 24, is_swapped) / 8;
        packet = number_at(packets + 28, is_swapped) / 8;
        if (content < METADATA_HEADER_BYTES || content > packet || packet > size) {
            metadata->is_other = true;
            return;
        }
        for (size_t i = METADATA_HEADER_BYTES; i < content; i++)
            add_character(metadata, (char)packets[i]);
        packets += packet;
        size -= packet;
    }
}

bool metadata_is_whole(const struct metadata *metadata)
{
    return metadata->is_other ||
           (metadata->depth == 0 && metadata->state == IN_CODE && metadata->length == 0 &&
            metadata->declared && (metadata->wanted & ~metadata->declared) == 0);
}

bool metadata_has(const struct metadata *metadata, uint64_t stream_class)
{
    if (metadata->is_other)
        return true;
    if (stream_class == UINT64_MAX)
        return metadata->declared != 0;
    return stream_class >= CLASSES || (metadata->declared >> stream_class) & 1;
}
