/*
 * For test-both.sh: the program and its child record with both APIs into rings. The program prints
 * the number of events of each kind in the rings.
 *
 * usage: both TIMES [FILE]
 *
 * The program copies the memory of the rings to FILE.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include "libblkin/ring/ring_find.h"
#include "libblkin-ring/parts/rings.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rings memory;
static struct rings_agent agent;

static void record(const char *name)
{
    static const struct blkin_endpoint endpoint = {.ip = "10.0.0.1", .port = 80, .name = "osd"};
    struct blkin_trace trace;
    BLKIN_SCOPE(span, name, BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "text");
    blkin_span_tag_int64(&span, "number", 1);
    blkin_init_new_trace(&trace, name, &endpoint);
    BLKIN_TIMESTAMP(&trace, NULL, "cs");
}

int main(int argc, char **argv)
{
    const int times = argc >= 2 ? atoi(argv[1]) : 0;
    int status = 1;
    FILE *copy;
    pid_t child;

    rings_make(&memory, 1 << 24, RING_BYTES_MIN);
    agent_prepare(&agent);
    agent_start(&agent, &memory);
    blkin_init();
    for (int64_t end_ms = 0; !ring_map() && wait_up_to(PATIENCE_MS, &end_ms);)
        blkin_heartbeat();
    for (int i = 0; i < times; i++)
        record("of parent");
    child = fork();
    if (child == 0) {
        for (int i = 0; i < times; i++)
            record("of child");
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status)
        return 1;
    printf("blkin:span %u\n", rings_count(&memory, BLKIN_EVENT_SPAN));
    printf("blkin:begin %u\n", rings_count(&memory, BLKIN_EVENT_BEGIN));
    printf("blkin:tag %u\n", rings_count(&memory, BLKIN_EVENT_TAG));
    printf("blkin:end %u\n", rings_count(&memory, BLKIN_EVENT_END));
    printf("blkin:annotation_info %u\n", rings_count(&memory, BLKIN_EVENT_ANNOTATION + BLKIN_INFO));
    printf("zipkin:timestamp %u\n", rings_count(&memory, RING_ORIGINAL + ANNOT_TIMESTAMP));
    if (argc == 3 && (!(copy = fopen(argv[2], "w")) ||
                      fwrite(memory.head, memory.bytes, 1, copy) != 1 || fclose(copy) != 0))
        return 1;
    agent_stop(&agent);
    agent_remove(&agent);
    return 0;
}
