/*
 * Spans that are slow, for test-slow.sh; nothing takes its time here, they only say so.
 *
 *     slow span SERVICE NAME MS [error] [keep=WHY] [log=TAGS]   one root span, and a child
 *
 * Each prints "TRACE-ID SPAN-ID" of what is to raise an alarm.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void print_ids(const struct blkin_context *context)
{
    printf("0x%" PRIX64 " 0x%" PRIX64 " 0x%" PRIX64 "\n", context->trace_id_high, context->trace_id,
           context->span_id);
}

static int one_span(char **words)
{
    const struct blkin_endpoint service = {.ip = "", .name = words[0]};
    const uint64_t ns = (uint64_t)(atof(words[2]) * 1e6);
    struct blkin_span span;

    blkin_span_begin(&span, words[1], BLKIN_SERVER, NULL);
    blkin_span_set_service(&span, &service);
    blkin_span_set_start(&span, now_ns() - ns);
    for (char **word = words + 3; *word; word++) {
        if (strcmp(*word, "error") == 0)
            blkin_span_error(&span, "EIO");
        else if (strncmp(*word, "keep=", 5) == 0)
            blkin_span_keep(&span, *word + 5);
        else if (strncmp(*word, "log=", 4) == 0) {
            for (int tags = atoi(*word + 4); tags > 0; tags--)
                blkin_span_tag_string(&span, "a", "0123456789");
        }
    }
    print_ids(blkin_span_context(&span));
    blkin_span_end_at(&span, blkin_span_is_recorded(&span) ? now_ns() : 0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "span") == 0)
        return one_span(argv + 2);
    return 2;
}
