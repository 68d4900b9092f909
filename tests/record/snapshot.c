/*
 * What tools/record/ finds in snapshots, for the scripts here.
 *
 *     snapshot pick FROM TO [ID...] | between FROM TO BEGIN END | look FOLDER NOW STALLED-NS |
 *              clock FOLDER | alarms FOLDER...
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/record/alarm.h"
#include "tools/record/pick.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool do_pick(const char *from, const char *to, const struct pick_spec *spec,
                    struct error *error)
{
    const uint64_t begin = cpu_us();
    struct pick_result result;

    if (!pick(from, to, spec, &result, error))
        return false;
    printf("packets %" PRIu64 " kept %" PRIu64 " bytes %" PRIu64 " kept %" PRIu64
           " damaged %" PRIu64 " streams %" PRIu64 " gaps %" PRIu64 " held_from %" PRIu64
           " cpu_us %" PRIu64 "\n",
           result.packets, result.packets_kept, result.bytes, result.bytes_kept,
           result.packets_damaged, result.streams, result.gaps, result.held_from, cpu_us() - begin);
    return true;
}

static bool pick_ids(int count, char *args[], struct error *error)
{
    uint64_t ids[1000];
    struct pick_spec spec = {.ids = ids, .until_clock = UINT64_MAX};

    for (int i = 2; i < count && spec.count < 1000; i++)
        ids[spec.count++] = strtoull(args[i], NULL, 16);
    return do_pick(args[0], args[1], &spec, error);
}

static bool look(char *args[], struct error *error)
{
    struct ring_look look;

    if (!ring_look(args[0], strtoull(args[1], NULL, 10), strtoull(args[2], NULL, 10), &look, error))
        return false;
    printf("streams %" PRIu64 " stalled %" PRIu64 " rate %" PRIu64 " held_from %" PRIu64
           " held_until %" PRIu64 " newest %" PRIu64 " gaps %" PRIu64 " damaged %" PRIu64 "\n",
           look.streams, look.streams_stalled, look.bytes_per_s, look.held_from, look.held_until,
           look.newest, look.gaps, look.packets_damaged);
    return true;
}

static void print_alarm(void *context, const struct alarm *alarm)
{
    (void)context;
    printf("%016" PRIx64 "%016" PRIx64 " %016" PRIx64 " %" PRIu64
           " %u:%u %u \"%s\" \"%s\" \"%s\"\n",
           alarm->trace_id_high, alarm->trace_id, alarm->span_id, alarm->duration_ns, alarm->pid,
           alarm->sequence, alarm->dropped, alarm->why, alarm->name, alarm->service);
}

static bool alarms(char *folders[], struct error *error)
{
    struct alarm_reader *reader = alarm_reader_new();
    uint64_t lost;
    bool is_read = reader != NULL;

    for (; is_read && *folders; folders++) {
        is_read = alarm_read(reader, *folders, print_alarm, NULL, &lost, error);
        printf("%s: lost %" PRIu64 "\n", *folders, lost);
    }
    alarm_reader_free(reader);
    return is_read;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 2 ? argv[1] : "";
    struct error error = {""};
    int64_t offset;
    bool ok = false;

    if (strcmp(what, "pick") == 0 && argc > 3) {
        ok = pick_ids(argc - 2, argv + 2, &error);
    } else if (strcmp(what, "between") == 0 && argc > 5) {
        ok = do_pick(argv[2], argv[3],
                     &(struct pick_spec){.from_clock = strtoull(argv[4], NULL, 10),
                                         .until_clock = strtoull(argv[5], NULL, 10)},
                     &error);
    } else if (strcmp(what, "look") == 0 && argc > 4) {
        ok = look(argv + 2, &error);
    } else if (strcmp(what, "alarms") == 0) {
        ok = alarms(argv + 2, &error);
    } else if (strcmp(what, "clock") == 0 && (ok = ring_clock(argv[2], &offset, &error))) {
        printf("%" PRId64 "\n", offset);
    }
    if (!ok)
        printf("%s\n", error.text);
    return !ok;
}
