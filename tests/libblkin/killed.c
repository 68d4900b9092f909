/*
 * A process that is killed while it works, for test-killed.sh. It ends COUNT spans, and has an open
 * one with an annotation. Then SIGKILL ends the process. Or the process dies in the middle of a
 * record, after it has reserved room in LTTng's buffer and written a part of the record.
 *
 *     usage: killed COUNT [mid-record]
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "tracepoints/format/provider_table.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* LTTng copies a payload into its buffer. The second half of the payload is unreadable: SIGSEGV. */
static void die_in_mid_record(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *handle = dlopen("libblkin-lttng.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct blkin_provider *provider = handle ? dlsym(handle, BLKIN_PROVIDER_SYMBOL) : NULL;
    void *slot = NULL;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!provider || pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        exit(2);
    provider->record(provider->events[BLKIN_EVENT_SPAN].event, pages + page - 100, 200, &slot);
}

int main(int argc, char **argv)
{
    struct blkin_span open;

    if (argc < 2)
        return 2;
    blkin_span_begin(&open, "open", BLKIN_SERVER, NULL);
    blkin_step_begin(&open, "ended step", BLKIN_INTERNAL);
    blkin_step_end(&open);
    blkin_step_begin(&open, "open step", BLKIN_INTERNAL);
    blkin_span_annotate(&open, "last sign of life");
    for (int i = 0; i < atoi(argv[1]); i++) {
        BLKIN_SCOPE(span, "ended", BLKIN_INTERNAL, &open);

        blkin_span_tag_int64(&span, "i", i);
    }
    if (argc > 2)
        die_in_mid_record();
    kill(getpid(), SIGKILL);
    return 1;
}
