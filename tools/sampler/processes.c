/*
 * Processes by name, number or unit. An open file of /proc/PID stays with its process, even when
 * the kernel gives the number of the process to another process.
 *
 * The search for processes is the most expensive part of a sample. The search lists all of /proc.
 * It reads the names of new processes and, in turn, the name of one in TURNS known processes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PID_STAT, PID_IO, PID_FD };

#define LOOKS     3  /* the first 2 searches read a new process's name, as it may change at first */
#define TURNS     16 /* from the third on, a search reads the name of one in 16 processes */
#define FD_NS     NS_PER_S
#define FD_SHARE  1000 /* counting descriptors takes at most 1/1000 of the time */
#define COMM_ROOM 64   /* the name of a kernel thread may be longer than 15 bytes */

/* ---- /proc/PID/stat: number (name) state ...; the name may have any bytes */

enum {
    FIELD_MINOR_FAULTS =
        10 - 4, /* proc(5)'s number, minus that of the first number after the state */
    FIELD_MAJOR_FAULTS = 12 - 4,
    FIELD_USER = 14 - 4,
    FIELD_SYSTEM = 15 - 4,
    FIELD_THREADS = 20 - 4,
    FIELD_VIRTUAL = 23 - 4,
    FIELD_RESIDENT = 24 - 4,
    STAT_FIELDS
};

/* Reads the whole file, as a name may contain \n. */
static bool process_read_stat(struct host_reader *host, int fd, struct text *stat)
{
    const ssize_t got = pread(fd, host->lines.buffer, LINES_BYTES, 0);

    if (got <= 0)
        return false;
    *stat = (struct text){host->lines.buffer, (size_t)got};
    stat->length -= stat->data[got - 1] == '\n';
    return true;
}

/* Sets *name, and removes it and the text before it from *stat. */
static bool take_name(struct text *stat, struct text *name)
{
    const char *const open = memchr(stat->data, '(', stat->length);
    const char *const close = memrchr(stat->data, ')', stat->length);

    if (!open || !close || close < open)
        return false;
    *name = (struct text){open + 1, (size_t)(close - open - 1)};
    *stat = text_after(*stat, (size_t)(close + 1 - stat->data));
    return true;
}

/* Reads the numbers; negative ones become 0. */
static size_t read_fields(struct text stat, uint64_t fields[STAT_FIELDS])
{
    struct text word;
    size_t count = 0;

    if (!line_word(&stat, &word)) /* the state */
        return 0;
    while (count < STAT_FIELDS && line_word(&stat, &word)) {
        if (!text_read_number(word, &fields[count]))
            fields[count] = 0;
        count++;
    }
    return count;
}

/* Returns false when the process has ended. */
static bool put_stat(struct group_reading *reading, const struct slot *slot)
{
    struct host_reader *const host = reading->host;
    const uint64_t ns_per_tick = NS_PER_S / host->ticks_per_s;
    uint64_t fields[STAT_FIELDS];
    struct text stat;
    struct text name;

    if (!process_read_stat(host, slot->fds[PID_STAT], &stat))
        return false;
    if (!take_name(&stat, &name) || read_fields(stat, fields) < STAT_FIELDS) {
        host->counts.not_understood++;
        return true;
    }
    reading_put(reading, PROCESS_USER, multiply_saturated(fields[FIELD_USER], ns_per_tick));
    reading_put(reading, PROCESS_SYSTEM, multiply_saturated(fields[FIELD_SYSTEM], ns_per_tick));
    reading_put(reading, PROCESS_RESIDENT,
                multiply_saturated(fields[FIELD_RESIDENT], host->page_bytes));
    reading_put(reading, PROCESS_VIRTUAL, fields[FIELD_VIRTUAL]);
    reading_put(reading, PROCESS_THREADS, fields[FIELD_THREADS]);
    reading_put(reading, PROCESS_MINOR_FAULTS, fields[FIELD_MINOR_FAULTS]);
    reading_put(reading, PROCESS_MAJOR_FAULTS, fields[FIELD_MAJOR_FAULTS]);
    return true;
}

/* ---- /proc/PID/io, which only the process's owner may read */

static void process_put_io(struct group_reading *reading, struct slot *slot)
{
    static const struct field fields[] = {
        FIELD("rchar:", PROCESS_READ, 1),           FIELD("wchar:", PROCESS_WRITTEN, 1),
        FIELD("syscr:", PROCESS_READ_CALLS, 1),     FIELD("syscw:", PROCESS_WRITE_CALLS, 1),
        FIELD("read_bytes:", PROCESS_DISK_READ, 1), FIELD("write_bytes:", PROCESS_DISK_WRITTEN, 1),
    };
    struct host_reader *const host = reading->host;

    if (slot->fds[PID_IO] < 0)
        return;
    lines_begin(&host->lines, slot->fds[PID_IO]);
    read_named_fields(reading, FIELDS(fields));
    if (host->lines.error) { /* no permission */
        close(slot->fds[PID_IO]);
        slot->fds[PID_IO] = -1;
    }
}

/* ---- descriptors: the size of /proc/PID/fd since Linux 6.2, else the number of its entries */

static bool count_entry(void *context, int folder, const char *name, unsigned char type)
{
    (void)folder;
    (void)name;
    (void)type;
    ++*(uint64_t *)context;
    return true;
}

static void put_descriptors(struct group_reading *reading, struct slot *slot)
{
    const int fd = slot->fds[PID_FD];
    struct stat about;

    if (fd < 0 || fstat(fd, &about) != 0)
        return;
    if (reading->host->is_proc && about.st_size > 0) {
        reading_put(reading, PROCESS_DESCRIPTORS, (uint64_t)about.st_size);
        return;
    }
    if (reading->monotonic >= slot->counted_at) {
        const uint64_t began = now_ns();
        uint64_t took;

        slot->kept[0] = 0;
        folder_list(fd, count_entry, &slot->kept[0]);
        took = (now_ns() - began) * FD_SHARE;
        slot->counted_at = began + (took > FD_NS ? took : FD_NS);
    }
    reading_put(reading, PROCESS_DESCRIPTORS, slot->kept[0]);
}

static bool process_put(struct group_reading *reading, struct slot *slot)
{
    if (!put_stat(reading, slot))
        return false;
    process_put_io(reading, slot);
    put_descriptors(reading, slot);
    return true;
}

void read_processes(struct group_reading *reading)
{
    slots_read(reading, process_put);
}

/* ---- search */

static int open_of_pid(const struct host_reader *host, uint32_t pid, const char *file,
                       bool is_folder)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "%u/%s", pid, file);
    return host_open_at(host->proc, path, is_folder);
}

void process_add(struct host_reader *host, uint32_t pid, bool by_name)
{
    char name[HOST_NAME_BYTES];
    char comm[COMM_ROOM];
    struct slot *slot = NULL;
    struct text stat, text;
    int fd;

    while ((slot = slot_next(host, HOST_PROCESS, slot)))
        if (slot->pid == pid)
            return;
    fd = open_of_pid(host, pid, "stat", false);
    if (fd < 0)
        return;
    if (process_read_stat(host, fd, &stat) && take_name(&stat, &text)) {
        (void)snprintf(comm, sizeof(comm), "%.*s", (int)text.length, text.data);
        (void)snprintf(name, sizeof(name), "%s[%u]", comm, pid);
        if (!by_name || patterns_match(&host->patterns[HOST_PROCESS], PATTERN_NAME, comm, 0))
            slot = slot_take(host, HOST_PROCESS, text_of(name));
    }
    if (!slot) {
        close(fd);
        return;
    }
    slot->pid = pid;
    slot->fds[PID_STAT] = fd;
    slot->fds[PID_IO] = open_of_pid(host, pid, "io", false);
    slot->fds[PID_FD] = open_of_pid(host, pid, "fd", true);
}

struct process_listing {
    struct host_reader *host;
    const struct pids *before;
    struct pids *now;
    size_t at; /* the position in `before`; both lists are sorted by pid */
};

/* Adds the pid to the new listing. Reads the name of the process if it is new, or if it is its
 * turn. */
static bool list_process(void *context, int folder, const char *name, unsigned char type)
{
    struct process_listing *const listing = context;
    const struct pids *const before = listing->before;
    struct pids *const now = listing->now;
    uint32_t looks = 1;
    uint64_t pid;

    (void)folder;
    (void)type;
    if (!text_read_number(text_of(name), &pid) || pid == 0 || pid > UINT32_MAX >> 2)
        return true;
    while (listing->at < before->count && before->list[listing->at] >> 2 < pid)
        listing->at++;
    if (listing->at < before->count && before->list[listing->at] >> 2 == pid) {
        looks = before->list[listing->at] & 3;
        looks += looks < LOOKS;
    }
    if (now->count < PIDS_MAX)
        now->list[now->count++] = (uint32_t)pid << 2 | looks;
    if (looks < LOOKS || pid % TURNS == listing->host->find_turn % TURNS)
        process_add(listing->host, (uint32_t)pid, true);
    return true;
}

void processes_find(struct host_reader *host)
{
    const struct patterns *const patterns = &host->patterns[HOST_PROCESS];
    struct process_listing listing = {
        .host = host,
        .before = &host->pids[host->find_turn & 1],
        .now = &host->pids[~host->find_turn & 1],
    };

    if (host->period[HOST_PROCESS] == 0)
        return;
    for (size_t i = 0; i < patterns->count; i++)
        if (patterns->list[i].kind == PATTERN_PID && !patterns->list[i].excludes)
            process_add(host, patterns->list[i].pid, false);
    if (!patterns_have(patterns, PATTERN_NAME))
        return;
    listing.now->count = 0;
    folder_list(host->proc, list_process, &listing);
}
