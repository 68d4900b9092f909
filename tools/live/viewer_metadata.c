/*
 * The filter: metadata is taken from the relay daemon, and given out when it is whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

#include <stdlib.h>

#define METADATA_MAX (UINT64_C(64) << 20) /* bytes that babeltrace2 has not asked for */

struct viewer_text *viewer_find_text(const struct viewer *viewer, enum text_key key, uint64_t id)
{
    for (size_t i = 0; i < viewer->text_count; i++) {
        struct viewer_text *text = &viewer->texts[i];

        if ((key == BY_STREAM ? text->stream : text->trace) == id)
            return text;
    }
    return NULL;
}

bool viewer_add_text(struct viewer *viewer, const unsigned char *listed)
{
    struct viewer_text *more =
        reallocarray(viewer->texts, viewer->text_count + 1, sizeof(*viewer->texts));

    if (!more)
        return false;
    viewer->texts = more;
    more[viewer->text_count++] =
        (struct viewer_text){.stream = viewer_long_at(listed), .trace = viewer_long_at(listed + 8)};
    return true;
}

void viewer_forget_texts(struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->text_count; i++)
        free(viewer->texts[i].bytes);
    viewer->text_count = 0;
}

static bool viewer_take_packets(const struct viewer *viewer, struct viewer_text *text,
                                uint64_t count)
{
    unsigned char *more;

    if (count > METADATA_MAX - text->size)
        return false;
    more = realloc(text->bytes, text->size + (size_t)count);
    if (!more)
        return false;
    text->bytes = more;
    if (!viewer_get(viewer->relay, more + text->size, (size_t)count))
        return false;
    metadata_add(&text->all, more + text->size, (size_t)count);
    text->size += (size_t)count;
    return true;
}

bool viewer_take_metadata(const struct viewer *viewer, struct viewer_text *text)
{
    const uint64_t id = htobe64(text->stream);
    unsigned char head[12];
    uint64_t count;

    text->asks++;
    do {
        if (!viewer_ask(viewer, CMD_METADATA, &id, sizeof(id)) ||
            !viewer_get(viewer->relay, head, sizeof(head)))
            return false;
        count = viewer_number_at(head + 8) == STATUS_OK ? viewer_long_at(head) : 0;
        if (count && !viewer_take_packets(viewer, text, count))
            return false;
    } while (count);
    text->is_gone = viewer_number_at(head + 8) == METADATA_GONE;
    if (metadata_is_whole(&text->all))
        text->cut_since_ns = 0;
    else if (text->cut_since_ns == 0)
        text->cut_since_ns = viewer_now_ns();
    return true;
}

bool viewer_is_whole(const struct viewer_text *text)
{
    return text->is_gone || metadata_is_whole(&text->all) ||
           (text->cut_since_ns && viewer_now_ns() - text->cut_since_ns > METADATA_NS);
}

bool viewer_give_metadata(const struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct viewer_text *text =
        size < 8 ? NULL : viewer_find_text(viewer, BY_STREAM, viewer_long_at(request));
    uint64_t count = 0;
    uint32_t status = METADATA_GONE;
    unsigned char head[12];
    bool is_good;

    if (text && !viewer_take_metadata(viewer, text))
        return false;
    if (text) {
        count = viewer_is_whole(text) ? text->size : 0;
        status = count ? STATUS_OK : text->is_gone ? METADATA_GONE : METADATA_NO_NEW;
    }
    count = htobe64(count);
    status = htobe32(status);
    memcpy(head, &count, 8);
    memcpy(head + 8, &status, 4);
    is_good = viewer_put(viewer->reader, head, sizeof(head));
    if (!text || viewer_number_at(head + 8) != STATUS_OK)
        return is_good;
    is_good = is_good && viewer_put(viewer->reader, text->bytes, text->size);
    free(text->bytes);
    text->bytes = NULL;
    text->size = 0;
    return is_good;
}
