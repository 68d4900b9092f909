/*
 * Reads disks with their partitions, and network interfaces: a line each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#define NOTHING_DONE " 0 0 0 0 0 0 0 0 0 0 0"

/* ---- disks: the numbers of a line of /proc/diskstats, after the name */

enum { FIELD_READS = 0, FIELD_WRITES = 4, FIELDS_ALWAYS = 11, FIELDS_MOST = 17 };

/* The value of each field. The kernel prints only the lowest 32 bits of times. */
static const struct {
    unsigned char field;
    unsigned char value;
    bool wraps;
    uint64_t unit;
} disk_values[] = {
    {FIELD_READS, DISK_READS, false, 1},
    {1, DISK_READS_MERGED, false, 1},
    {2, DISK_READ_BYTES, false, SECTOR_BYTES},
    {3, DISK_READ_TIME, true, NS_PER_MS},
    {FIELD_WRITES, DISK_WRITES, false, 1},
    {5, DISK_WRITES_MERGED, false, 1},
    {6, DISK_WRITTEN_BYTES, false, SECTOR_BYTES},
    {7, DISK_WRITE_TIME, true, NS_PER_MS},
    {8, DISK_PENDING, false, 1},
    {9, DISK_IO_TIME, true, NS_PER_MS},
    {10, DISK_WEIGHTED_TIME, true, NS_PER_MS},
    {11, DISK_DISCARDS, false, 1}, /* since Linux 4.18 */
    {14, DISK_DISCARD_TIME, true, NS_PER_MS},
    {15, DISK_FLUSHES, false, 1}, /* since Linux 5.5 */
    {16, DISK_FLUSH_TIME, true, NS_PER_MS},
};
#define DISK_VALUES (sizeof(disk_values) / sizeof(disk_values[0]))

/* The slot keeps the last sample's operations, and its times with all 64 bits. */
enum { KEPT_READS, KEPT_WRITES, KEPT_TIMES };

/* Extends a time of 32 bits, which continues the kept time. */
static uint64_t unwrap(uint64_t kept, uint64_t ms)
{
    const uint64_t high = kept & ~(uint64_t)UINT32_MAX;

    if (ms > UINT32_MAX)
        return ms;
    /* a slightly smaller time has not wrapped */
    return (high | ms) +
           (kept - high > ms && kept - high - ms > UINT32_MAX / 2 ? UINT64_C(1) << 32 : 0);
}

static void put_disk(struct group_reading *reading, struct slot *slot, const uint64_t *fields,
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
        reading_put(reading, disk_values[i].value, multiply_saturated(value, disk_values[i].unit));
    }
    slot->kept[KEPT_READS] = fields[FIELD_READS];
    slot->kept[KEPT_WRITES] = fields[FIELD_WRITES];
}

static void read_disk(struct group_reading *reading, struct text line)
{
    uint64_t fields[FIELDS_MOST];
    struct text name;
    struct slot *slot;
    size_t count;

    if (line_numbers(&line, fields, 2) < 2 || !line_word(&line, &name)) {
        reading->host->counts.not_understood++;
        return;
    }
    if (text_begins(line, NOTHING_DONE) && reading->host->patterns[HOST_DISK].count == 0)
        return; /* most loop devices have done nothing */
    if ((count = line_numbers(&line, fields, FIELDS_MOST)) < FIELDS_ALWAYS) {
        reading->host->counts.not_understood++;
        return;
    }
    slot = slot_find(reading, name, fields[FIELD_READS] > 0 || fields[FIELD_WRITES] > 0);
    if (!slot)
        return;
    put_disk(reading, slot, fields, count);
    reading_emit(reading, slot);
}

void read_disks(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    struct text line;

    if (!host_file_begin(host, FILE_DISKSTATS))
        return;
    while (lines_next(&host->lines, &line))
        read_disk(reading, line);
    if (host_file_end(host))
        slots_sweep(reading);
}

/* ---- network interfaces */

#define HEADING_LINES  2
#define NETWORK_FIELDS 12 /* the columns up to the dropped packets to be sent */

static void read_network(struct group_reading *reading, struct text line)
{
    /* the column of each value */
    static const size_t columns[] = {0, 8, 1, 9, 2, 10, 3, 11};
    const char *const colon = memrchr(line.data, ':', line.length);
    uint64_t fields[NETWORK_FIELDS];
    bool has_done = false;
    struct text name;
    struct slot *slot;

    if (!colon) {
        reading->host->counts.not_understood++;
        return;
    }
    name = text_trim(text_cut(line, (size_t)(colon - line.data)));
    line = text_after(line, (size_t)(colon + 1 - line.data));
    if (name.length == 0 || line_numbers(&line, fields, NETWORK_FIELDS) < NETWORK_FIELDS) {
        reading->host->counts.not_understood++;
        return;
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        has_done = has_done || fields[columns[i]] > 0;
    slot = slot_find(reading, name, has_done);
    if (!slot)
        return;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        reading_put(reading, i, fields[columns[i]]);
    reading_emit(reading, slot);
}

void read_networks(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    size_t number = 0;
    struct text line;

    if (!host_file_begin(host, FILE_NET_DEV))
        return;
    while (lines_next(&host->lines, &line))
        if (++number > HEADING_LINES)
            read_network(reading, line);
    if (host_file_end(host))
        slots_sweep(reading);
}
