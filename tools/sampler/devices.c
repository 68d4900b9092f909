/*
 * Disks with their partitions, and network interfaces: a line each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#define SECTOR_BYTES 512
#define NOTHING_DONE " 0 0 0 0 0 0 0 0 0 0 0"

/* ---- disks: the numbers of a line of /proc/diskstats, after the name */

enum {
    FIELD_READS,
    FIELD_READS_MERGED,
    FIELD_READ_SECTORS,
    FIELD_READ_MS,
    FIELD_WRITES,
    FIELD_WRITES_MERGED,
    FIELD_WRITTEN_SECTORS,
    FIELD_WRITE_MS,
    FIELD_PENDING,
    FIELD_IO_MS,
    FIELD_WEIGHTED_MS,
    FIELDS_ALWAYS,
    FIELD_DISCARDS = FIELDS_ALWAYS, /* of Linux 4.18 */
    FIELD_DISCARDS_MERGED,
    FIELD_DISCARDED_SECTORS,
    FIELD_DISCARD_MS,
    FIELD_FLUSHES, /* of Linux 5.5 */
    FIELD_FLUSH_MS,
    FIELDS_MOST
};

/* how a field becomes a value; of times the kernel gives the lowest 32 bits only */
static const struct {
    unsigned char field;
    unsigned char value;
    bool wraps;
    uint64_t unit;
} disk_values[] = {
    {FIELD_READS, DISK_READS, false, 1},
    {FIELD_READS_MERGED, DISK_READS_MERGED, false, 1},
    {FIELD_READ_SECTORS, DISK_READ_BYTES, false, SECTOR_BYTES},
    {FIELD_READ_MS, DISK_READ_TIME, true, NS_PER_MS},
    {FIELD_WRITES, DISK_WRITES, false, 1},
    {FIELD_WRITES_MERGED, DISK_WRITES_MERGED, false, 1},
    {FIELD_WRITTEN_SECTORS, DISK_WRITTEN_BYTES, false, SECTOR_BYTES},
    {FIELD_WRITE_MS, DISK_WRITE_TIME, true, NS_PER_MS},
    {FIELD_PENDING, DISK_PENDING, false, 1},
    {FIELD_IO_MS, DISK_IO_TIME, true, NS_PER_MS},
    {FIELD_WEIGHTED_MS, DISK_WEIGHTED_TIME, true, NS_PER_MS},
    {FIELD_DISCARDS, DISK_DISCARDS, false, 1},
    {FIELD_DISCARD_MS, DISK_DISCARD_TIME, true, NS_PER_MS},
    {FIELD_FLUSHES, DISK_FLUSHES, false, 1},
    {FIELD_FLUSH_MS, DISK_FLUSH_TIME, true, NS_PER_MS},
};
#define DISK_VALUES (sizeof(disk_values) / sizeof(disk_values[0]))

/* of the last sample: the operations, and the times with the bits that the kernel left out */
enum { KEPT_READS, KEPT_WRITES, KEPT_TIMES };

/* The time goes on from what it was, unless it is another disk of the same name. */
static uint64_t unwrap(uint64_t kept, uint64_t ms)
{
    const uint64_t high = kept & ~(uint64_t)UINT32_MAX;

    if (ms > UINT32_MAX)
        return ms;
    /* a little less than it was is no wrap */
    return (high | ms) +
           (kept - high > ms && kept - high - ms > UINT32_MAX / 2 ? UINT64_C(1) << 32 : 0);
}

static void put_disk(struct reading *reading, struct slot *slot, const uint64_t *fields,
                     size_t count)
{
    const bool is_same = fields[FIELD_READS] >= slot->kept[KEPT_READS] &&
                         fields[FIELD_WRITES] >= slot->kept[KEPT_WRITES];
    size_t kept = KEPT_TIMES;

    for (size_t i = 0; i < DISK_VALUES && disk_values[i].field < count; i++) {
        uint64_t value = fields[disk_values[i].field];

        if (disk_values[i].wraps) {
            value = is_same ? unwrap(slot->kept[kept], value) : value;
            slot->kept[kept++] = value;
        }
        put_value(reading, disk_values[i].value, times(value, disk_values[i].unit));
    }
    slot->kept[KEPT_READS] = fields[FIELD_READS];
    slot->kept[KEPT_WRITES] = fields[FIELD_WRITES];
}

static void read_disk(struct reading *reading, struct piece line)
{
    uint64_t fields[FIELDS_MOST];
    struct piece name;
    struct slot *slot;
    size_t count;

    if (piece_numbers(&line, fields, 2) < 2 || !piece_word(&line, &name)) {
        reading->host->counts.not_understood++;
        return;
    }
    if (PIECE_BEGINS(line, NOTHING_DONE) && reading->host->patterns[HOST_DISK].count == 0)
        return; /* many loop devices are so */
    if ((count = piece_numbers(&line, fields, FIELDS_MOST)) < FIELDS_ALWAYS) {
        reading->host->counts.not_understood++;
        return;
    }
    slot = slot_find(reading, name, fields[FIELD_READS] > 0 || fields[FIELD_WRITES] > 0);
    if (!slot)
        return;
    put_disk(reading, slot, fields, count);
    give(reading, slot);
}

void read_disks(struct reading *reading)
{
    struct host *const host = reading->host;
    struct piece line;

    if (!begin_file(host, FILE_DISKSTATS, RECORD_ANY))
        return;
    while (lines_next(&host->lines, &line))
        read_disk(reading, line);
    if (end_file(host))
        slots_sweep(reading);
}

/* ---- network interfaces */

#define HEADING_LINES  2
#define NETWORK_FIELDS 12 /* up to the dropped ones that were to be sent */

static void read_network(struct reading *reading, struct piece line)
{
    /* the columns of the values, in their order */
    static const size_t columns[] = {0, 8, 1, 9, 2, 10, 3, 11};
    const char *const colon = memrchr(line.at, ':', piece_length(line));
    uint64_t fields[NETWORK_FIELDS];
    bool has_done = false;
    struct piece name;
    struct slot *slot;

    if (!colon) {
        reading->host->counts.not_understood++;
        return;
    }
    name = (struct piece){line.at + strspn(line.at, " "), colon};
    line.at = colon + 1;
    if (name.at >= name.end || piece_numbers(&line, fields, NETWORK_FIELDS) < NETWORK_FIELDS) {
        reading->host->counts.not_understood++;
        return;
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        has_done = has_done || fields[columns[i]] > 0;
    slot = slot_find(reading, name, has_done);
    if (!slot)
        return;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        put_value(reading, i, fields[columns[i]]);
    give(reading, slot);
}

void read_networks(struct reading *reading)
{
    struct host *const host = reading->host;
    size_t number = 0;
    struct piece line;

    if (!begin_file(host, FILE_NET_DEV, RECORD_LINE))
        return;
    while (lines_next(&host->lines, &line))
        if (++number > HEADING_LINES)
            read_network(reading, line);
    if (end_file(host))
        slots_sweep(reading);
}
