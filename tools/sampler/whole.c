/*
 * The groups of the whole host: processors, memory, pressure, run queue, TCP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#define CPU_TIMES   (CPU_STEAL + 1)
#define VMSTAT_MORE 32 /* bytes that what is needed of the file may grow by until the next time */

/* ---- /proc/stat: of two groups, read once */

/* What a processor has waited may go back a little, as it is summed up while it goes on. */
static uint64_t not_smaller(uint64_t *kept, uint64_t time)
{
    if (time < *kept && *kept - time < 3 * NS_PER_S)
        return *kept;
    return *kept = time;
}

static void read_cpu_line(struct reading *reading, struct piece name, struct piece line)
{
    const uint64_t ns_per_tick = NS_PER_S / reading->host->ticks_per_s;
    uint64_t ticks[CPU_TIMES];
    struct slot *slot;

    name.at += strlen("cpu");
    if (name.at == name.end)
        name.at = name.end = "";
    else if (reading->host->patterns[HOST_CPU].count == 0)
        return;
    else
        name.at -= strlen("cpu");
    if (piece_numbers(&line, ticks, CPU_TIMES) < CPU_TIMES) {
        reading->host->counts.not_understood++;
        return;
    }
    slot = slot_find(reading, name, true);
    if (!slot)
        return;
    for (size_t i = 0; i < CPU_TIMES; i++)
        put_value(reading, i, times(ticks[i], ns_per_tick));
    put_value(reading, CPU_IDLE, not_smaller(&slot->kept[0], reading->values[CPU_IDLE]));
    put_value(reading, CPU_IOWAIT, not_smaller(&slot->kept[1], reading->values[CPU_IOWAIT]));
    give(reading, slot);
}

static void read_queue_line(struct host *host, struct piece name, struct piece line)
{
    size_t i;

    if (PIECE_IS(name, "procs_running"))
        i = QUEUE_RUNNING;
    else if (PIECE_IS(name, "procs_blocked"))
        i = QUEUE_BLOCKED;
    else if (PIECE_IS(name, "ctxt"))
        i = QUEUE_SWITCHES;
    else if (PIECE_IS(name, "processes"))
        i = QUEUE_CREATED;
    else
        return;
    if (!piece_next_number(&line, &host->stat.values[i])) {
        host->counts.not_understood++;
        return;
    }
    host->stat.present |= UINT64_C(1) << i;
}

static bool cpu_read_stat(struct reading *reading)
{
    struct host *const host = reading->host;
    struct piece line;
    struct piece name;

    host->stat.tick = host->tick;
    host->stat.monotonic = reading->monotonic;
    host->stat.present = 0;
    if (!begin_file(host, FILE_STAT, RECORD_WHOLE))
        return false;
    while (lines_next(&host->lines, &line)) {
        if (!piece_word(&line, &name))
            continue;
        if (!PIECE_BEGINS(name, "cpu"))
            read_queue_line(host, name, line);
        else if (reading->kind == HOST_CPU)
            read_cpu_line(reading, name, line);
    }
    return end_file(host);
}

void read_cpu(struct reading *reading)
{
    if (cpu_read_stat(reading))
        slots_sweep(reading);
}

/* "0.52": in percent */
static bool piece_hundredths(struct piece word, uint64_t *value)
{
    const char *const point = memchr(word.at, '.', piece_length(word));
    uint64_t fraction;

    if (!point || word.end - point != 3 ||
        !piece_number((struct piece){point + 1, word.end}, &fraction) ||
        !piece_number((struct piece){word.at, point}, value))
        return false;
    *value = times(*value, 100);
    *value += *value > UINT64_MAX - fraction ? 0 : fraction;
    return true;
}

static void read_load(struct reading *reading)
{
    struct host *const host = reading->host;
    struct piece line = {"", ""};
    struct piece word;
    uint64_t load;

    if (!begin_file(host, FILE_LOADAVG, RECORD_WHOLE))
        return;
    lines_next(&host->lines, &line);
    for (size_t i = QUEUE_LOAD_1M; i <= QUEUE_LOAD_15M; i++) {
        if (piece_word(&line, &word) && piece_hundredths(word, &load))
            put_value(reading, i, load);
        else
            host->counts.not_understood++;
    }
    end_file(host);
}

void read_run_queue(struct reading *reading)
{
    struct host *const host = reading->host;

    if (host->stat.tick != host->tick)
        cpu_read_stat(reading);
    reading->monotonic = host->stat.monotonic;
    for (size_t i = 0; i <= QUEUE_CREATED; i++)
        if (host->stat.present >> i & 1)
            put_value(reading, i, host->stat.values[i]);
    if (reading->values[QUEUE_RUNNING] > 0)
        reading->values[QUEUE_RUNNING]--; /* it is we who run */
    read_load(reading);
    give(reading, slot_single(reading));
}

/* ---- memory */

/* in the order of the file */
static const struct field memory_fields[] = {
    FIELD("MemTotal:", MEMORY_TOTAL, 1024),         FIELD("MemFree:", MEMORY_FREE, 1024),
    FIELD("MemAvailable:", MEMORY_AVAILABLE, 1024), FIELD("Buffers:", MEMORY_BUFFERS, 1024),
    FIELD("Cached:", MEMORY_CACHED, 1024),          FIELD("SwapTotal:", MEMORY_SWAP_USED, 1024),
    FIELD("SwapFree:", MEMORY_SWAP_FREE, 1024),     FIELD("Dirty:", MEMORY_DIRTY, 1024),
    FIELD("Writeback:", MEMORY_WRITEBACK, 1024),
};
static const struct field event_fields[] = {
    FIELD("pswpin", MEMORY_SWAPPED_IN, 1),
    FIELD("pswpout", MEMORY_SWAPPED_OUT, 1),
    FIELD("pgmajfault", MEMORY_MAJOR_FAULTS, 1),
    FIELD("oom_kill", MEMORY_OOM_KILLS, 1),
};

static const struct field *field_find(const struct field *fields, size_t count, struct piece name)
{
    for (size_t i = 0; i < count; i++)
        if (piece_is(name, fields[i].name, fields[i].length))
            return &fields[i];
    return NULL;
}

void read_named_fields(struct reading *reading, const struct field *fields, size_t count)
{
    struct host *const host = reading->host;
    const struct field *field;
    size_t left = count;
    struct piece line;
    struct piece name;
    uint64_t value;

    while (left > 0 && lines_next(&host->lines, &line)) {
        if (!piece_word(&line, &name) || !(field = field_find(fields, count, name)))
            continue;
        left--;
        if (piece_next_number(&line, &value))
            put_value(reading, field->i, times(value, field->unit));
        else
            host->counts.not_understood++;
    }
}

static void read_vmstat(struct reading *reading)
{
    struct host *const host = reading->host;
    const struct field *field = NULL;
    uint64_t stalls = 0;
    size_t left = sizeof(event_fields) / sizeof(event_fields[0]);
    bool has_stalls = false;
    struct piece line;
    struct piece name;
    uint64_t count;

    if (!begin_file(host, FILE_VMSTAT, RECORD_LINE))
        return;
    host->lines.ask = host->vmstat_ask;
    while (left > 0 && lines_next(&host->lines, &line)) {
        const bool is_stalls = PIECE_BEGINS(line, "allocstall");

        /* of the hundreds of lines */
        if (!is_stalls && !PIECE_BEGINS(line, "pswp") && !PIECE_BEGINS(line, "pgmajf") &&
            !PIECE_BEGINS(line, "oom_"))
            continue;
        if (!piece_word(&line, &name) ||
            (!is_stalls && !(field = field_find(FIELDS(event_fields), name))))
            continue;
        if (!piece_next_number(&line, &count)) {
            host->counts.not_understood++;
        } else if (is_stalls) {
            stalls += count; /* one of each zone */
            has_stalls = true;
        } else {
            put_value(reading, field->i, count);
            left--;
        }
    }
    host->vmstat_ask = left > 0 ? 0 : lines_offset(&host->lines) + VMSTAT_MORE;
    if (has_stalls)
        put_value(reading, MEMORY_STALLS, stalls);
    end_file(host);
}

void read_memory(struct reading *reading)
{
    const uint64_t swap = UINT64_C(1) << MEMORY_SWAP_USED | UINT64_C(1) << MEMORY_SWAP_FREE;
    uint64_t *const used = &reading->values[MEMORY_SWAP_USED];

    if (begin_file(reading->host, FILE_MEMINFO, RECORD_WHOLE)) {
        read_named_fields(reading, FIELDS(memory_fields));
        end_file(reading->host);
    }
    if ((reading->present & swap) == swap && *used >= reading->values[MEMORY_SWAP_FREE])
        *used -= reading->values[MEMORY_SWAP_FREE]; /* it was the total */
    else
        reading->present &= ~swap;
    read_vmstat(reading);
    give(reading, slot_single(reading));
}

/* ---- pressure */

void read_pressure_lines(struct reading *reading, size_t first)
{
    struct host *const host = reading->host;
    struct piece line;
    uint64_t us;

    while (lines_next(&host->lines, &line)) {
        const size_t i = first + PIECE_BEGINS(line, "full ");
        const char *const total = memrchr(line.at, '=', piece_length(line)); /* is the last */

        if (total && piece_number((struct piece){total + 1, line.end}, &us))
            put_value(reading, i, times(us, NS_PER_US));
        else
            host->counts.not_understood++;
    }
}

void read_pressure(struct reading *reading)
{
    static const struct {
        enum file file;
        size_t first;
    } files[] = {
        {FILE_PRESSURE_CPU, PRESSURE_CPU},
        {FILE_PRESSURE_IO, PRESSURE_IO},
        {FILE_PRESSURE_MEMORY, PRESSURE_MEMORY},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (!begin_file(reading->host, files[i].file, RECORD_WHOLE))
            continue;
        read_pressure_lines(reading, files[i].first);
        end_file(reading->host);
    }
    give(reading, slot_single(reading));
}

/* ---- TCP: a line of names, and one of values */

static const struct field tcp_fields[] = {
    FIELD("ActiveOpens", TCP_OPENED, 1),    FIELD("PassiveOpens", TCP_ACCEPTED, 1),
    FIELD("AttemptFails", TCP_FAILED, 1),   FIELD("EstabResets", TCP_RESET, 1),
    FIELD("CurrEstab", TCP_ESTABLISHED, 1), FIELD("InSegs", TCP_RECEIVED, 1),
    FIELD("OutSegs", TCP_SENT, 1),          FIELD("RetransSegs", TCP_RETRANSMITTED, 1),
    FIELD("InErrs", TCP_RECEIVE_ERRORS, 1), FIELD("OutRsts", TCP_RESETS_SENT, 1),
};

static void learn_tcp(struct host *host, struct piece line)
{
    struct piece name;

    for (host->tcp_count = 0; host->tcp_count < HOST_METRICS_MAX && piece_word(&line, &name);
         host->tcp_count++) {
        const struct field *const field = field_find(FIELDS(tcp_fields), name);

        host->tcp_metrics[host->tcp_count] = field ? (int)field->i : -1;
    }
}

static void read_tcp_values(struct reading *reading, struct piece line)
{
    struct host *const host = reading->host;
    struct piece word;
    uint64_t value;

    for (size_t i = 0; i < host->tcp_count && piece_word(&line, &word); i++) {
        if (host->tcp_metrics[i] < 0)
            continue;
        if (piece_number(word, &value))
            put_value(reading, (size_t)host->tcp_metrics[i], value);
        else
            host->counts.not_understood++;
    }
}

void read_tcp(struct reading *reading)
{
    struct host *const host = reading->host;
    bool is_second = false;
    struct piece line;
    struct piece word;

    if (!begin_file(host, FILE_NET_SNMP, RECORD_WHOLE))
        return;
    while (lines_next(&host->lines, &line)) {
        if (!PIECE_BEGINS(line, "Tcp: ") || !piece_word(&line, &word))
            continue;
        if (is_second)
            read_tcp_values(reading, line);
        else if (host->tcp_count == 0)
            learn_tcp(host, line); /* it stays, as long as the kernel runs */
        is_second = true;
    }
    end_file(host);
    give(reading, slot_single(reading));
}
