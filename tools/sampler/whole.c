/*
 * Reads the groups whose files are about the whole host: processors, memory, pressure, run queue,
 * TCP, disks, network interfaces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#include <stdio.h>

#define CPU_TIMES (CPU_STEAL + 1)

/* ---- lines "NAME NUMBER" */

static const struct field *field_find(const struct field *fields, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++) {
        const struct field *const field = &fields[i];

        if (text_equal(field->unit ? name : text_cut(name, field->name.length), field->name))
            return field;
    }
    return NULL;
}

void read_named_fields(struct group_reading *reading, const struct field *fields, size_t count)
{
    struct host_reader *const host = reading->host;
    const struct field *field;
    struct text line;
    struct text name;
    uint64_t value;

    while (lines_next(&host->lines, &line)) {
        if (!line_word(&line, &name) || !(field = field_find(fields, count, name)))
            continue;
        if (!line_number(&line, &value))
            host->counts.not_understood++;
        else if (field->unit)
            reading_put(reading, field->i, multiply_saturated(value, field->unit));
        else
            reading_put(reading, field->i, reading->values[field->i] + value);
    }
}

static void read_fields_of(struct group_reading *reading, enum host_file file,
                           const struct field *fields, size_t count)
{
    if (!host_file_begin(reading->host, file))
        return;
    read_named_fields(reading, fields, count);
    host_file_end(reading->host);
}

/* ---- /proc/stat: two groups, one read */

/* The kernel's idle and iowait times may fall a little: returns the greater time instead. */
static uint64_t not_smaller(uint64_t *kept, uint64_t time)
{
    if (time < *kept && *kept - time < 3 * NS_PER_S)
        return *kept;
    return *kept = time;
}

static void read_cpu_line(struct group_reading *reading, struct text name, struct text line)
{
    const uint64_t ns_per_tick = NS_PER_S / reading->host->ticks_per_s;
    uint64_t ticks[CPU_TIMES];
    struct slot *slot;

    if (text_is(name, "cpu"))
        name.length = 0;
    else if (reading->host->patterns[HOST_CPU].count == 0)
        return;
    if (line_numbers(&line, ticks, CPU_TIMES) < CPU_TIMES) {
        reading->host->counts.not_understood++;
        return;
    }
    slot = slot_find(reading, name, true);
    if (!slot)
        return;
    for (size_t i = 0; i < CPU_TIMES; i++)
        reading_put(reading, i, multiply_saturated(ticks[i], ns_per_tick));
    reading_put(reading, CPU_IDLE, not_smaller(&slot->kept[0], reading->values[CPU_IDLE]));
    reading_put(reading, CPU_IOWAIT, not_smaller(&slot->kept[1], reading->values[CPU_IOWAIT]));
    reading_emit(reading, slot);
}

static void read_queue_line(struct host_reader *host, struct text name, struct text line)
{
    static const struct field fields[] = {
        FIELD("procs_running", QUEUE_RUNNING, 1),
        FIELD("procs_blocked", QUEUE_BLOCKED, 1),
        FIELD("ctxt", QUEUE_SWITCHES, 1),
        FIELD("processes", QUEUE_CREATED, 1),
    };
    const struct field *const field = field_find(FIELDS(fields), name);

    if (field && line_number(&line, &host->stat.values[field->i]))
        host->stat.present |= UINT64_C(1) << field->i;
    else
        host->counts.not_understood += field != NULL;
}

static bool cpu_read_stat(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    struct text line;
    struct text name;

    host->stat.tick = host->tick;
    host->stat.monotonic = reading->monotonic;
    host->stat.present = 0;
    if (!host_file_begin(host, FILE_STAT))
        return false;
    while (lines_next(&host->lines, &line)) {
        if (!line_word(&line, &name))
            continue;
        if (!text_begins(name, "cpu"))
            read_queue_line(host, name, line);
        else if (reading->kind == HOST_CPU)
            read_cpu_line(reading, name, line);
    }
    return host_file_end(host);
}

void read_cpu(struct group_reading *reading)
{
    if (cpu_read_stat(reading))
        slots_sweep(reading);
}

/* Reads "0.52 1.00 12.30 ..." as percent. */
static void read_load(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    struct text line = {"", 0};
    unsigned whole[3], rest[3];
    char copy[64];

    if (!host_file_begin(host, FILE_LOADAVG))
        return;
    lines_next(&host->lines, &line);
    *text_copy(copy, text_cut(line, sizeof(copy) - 1)) = '\0';
    if (sscanf(copy, "%u.%2u %u.%2u %u.%2u", &whole[0], &rest[0], &whole[1], &rest[1], &whole[2],
               &rest[2]) == 6)
        for (size_t i = 0; i < 3; i++)
            reading_put(reading, QUEUE_LOAD_1M + i, whole[i] * UINT64_C(100) + rest[i]);
    else
        host->counts.not_understood++;
    host_file_end(host);
}

void read_run_queue(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;

    if (host->stat.tick != host->tick)
        cpu_read_stat(reading);
    reading->monotonic = host->stat.monotonic;
    for (size_t i = 0; i <= QUEUE_CREATED; i++)
        if (host->stat.present >> i & 1)
            reading_put(reading, i, host->stat.values[i]);
    if (reading->values[QUEUE_RUNNING] > 0)
        reading->values[QUEUE_RUNNING]--; /* without this process itself */
    read_load(reading);
    reading_emit(reading, slot_single(reading));
}

/* ---- memory */

static const struct field memory_fields[] = {
    FIELD("MemTotal:", MEMORY_TOTAL, 1024),         FIELD("MemFree:", MEMORY_FREE, 1024),
    FIELD("MemAvailable:", MEMORY_AVAILABLE, 1024), FIELD("Buffers:", MEMORY_BUFFERS, 1024),
    FIELD("Cached:", MEMORY_CACHED, 1024),          FIELD("SwapTotal:", MEMORY_SWAP_USED, 1024),
    FIELD("SwapFree:", MEMORY_SWAP_FREE, 1024),     FIELD("Dirty:", MEMORY_DIRTY, 1024),
    FIELD("Writeback:", MEMORY_WRITEBACK, 1024),
};
static const struct field event_fields[] = {
    FIELD("pswpin", MEMORY_SWAPPED_IN, 1),       FIELD("pswpout", MEMORY_SWAPPED_OUT, 1),
    FIELD("pgmajfault", MEMORY_MAJOR_FAULTS, 1), FIELD("oom_kill", MEMORY_OOM_KILLS, 1),
    FIELD("allocstall", MEMORY_STALLS, 0), /* of all zones */
};

void read_memory(struct group_reading *reading)
{
    const uint64_t swap = UINT64_C(1) << MEMORY_SWAP_USED | UINT64_C(1) << MEMORY_SWAP_FREE;
    uint64_t *const used = &reading->values[MEMORY_SWAP_USED];

    read_fields_of(reading, FILE_MEMINFO, FIELDS(memory_fields));
    if ((reading->present & swap) == swap && *used >= reading->values[MEMORY_SWAP_FREE])
        *used -= reading->values[MEMORY_SWAP_FREE]; /* MEMORY_SWAP_USED had the total until here */
    else
        reading->present &= ~swap;
    read_fields_of(reading, FILE_VMSTAT, FIELDS(event_fields));
    reading_emit(reading, slot_single(reading));
}

/* ---- pressure */

void read_pressure_lines(struct group_reading *reading, size_t first)
{
    struct host_reader *const host = reading->host;
    struct text line;
    uint64_t us;

    while (lines_next(&host->lines, &line)) {
        const size_t i = first + text_begins(line, "full ");
        const char *const total =
            memrchr(line.data, '=', line.length); /* the last value of the line */

        if (total && text_read_number(text_after(line, (size_t)(total + 1 - line.data)), &us))
            reading_put(reading, i, multiply_saturated(us, NS_PER_US));
        else
            host->counts.not_understood++;
    }
}

void read_pressure(struct group_reading *reading)
{
    static const struct {
        enum host_file file;
        size_t first;
    } files[] = {
        {FILE_PRESSURE_CPU, PRESSURE_CPU},
        {FILE_PRESSURE_IO, PRESSURE_IO},
        {FILE_PRESSURE_MEMORY, PRESSURE_MEMORY},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (!host_file_begin(reading->host, files[i].file))
            continue;
        read_pressure_lines(reading, files[i].first);
        host_file_end(reading->host);
    }
    reading_emit(reading, slot_single(reading));
}

/* ---- TCP: a line of names, and one of values */

static const struct field tcp_fields[] = {
    FIELD("ActiveOpens", TCP_OPENED, 1),    FIELD("PassiveOpens", TCP_ACCEPTED, 1),
    FIELD("AttemptFails", TCP_FAILED, 1),   FIELD("EstabResets", TCP_RESET, 1),
    FIELD("CurrEstab", TCP_ESTABLISHED, 1), FIELD("InSegs", TCP_RECEIVED, 1),
    FIELD("OutSegs", TCP_SENT, 1),          FIELD("RetransSegs", TCP_RETRANSMITTED, 1),
    FIELD("InErrs", TCP_RECEIVE_ERRORS, 1), FIELD("OutRsts", TCP_RESETS_SENT, 1),
};

/* Reads the values of the known names. Both lines have the same columns. */
static void read_tcp_lines(struct group_reading *reading, struct text names, struct text values)
{
    struct text name, word;
    uint64_t value;

    while (line_word(&names, &name) && line_word(&values, &word)) {
        const struct field *const field = field_find(FIELDS(tcp_fields), name);

        if (field && text_read_number(word, &value))
            reading_put(reading, field->i, value);
        else
            reading->host->counts.not_understood += field != NULL;
    }
}

void read_tcp(struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    struct text names = {NULL, 0}, line;

    if (!host_file_begin(host, FILE_NET_SNMP))
        return;
    while (lines_next(&host->lines, &line)) {
        if (!text_begins(line, "Tcp: "))
            continue;
        if (names.data)
            read_tcp_lines(reading, names, line);
        names = line;
    }
    host_file_end(host);
    reading_emit(reading, slot_single(reading));
}

/* ---- disks: the numbers of a line of /proc/diskstats, after the name */

#define NOTHING_DONE " 0 0 0 0 0 0 0 0 0 0 0"

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
#define NETWORK_FIELDS 12 /* the columns up to the dropped outgoing packets */

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
