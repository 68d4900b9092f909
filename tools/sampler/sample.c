/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample.h"

#include "sample_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- the groups and their metrics */

#define GROUP(group)                       static const struct host_metric group[] = {
#define COUNTER(index, name, unit, source) [index] = {name, unit, true, source},
#define GAUGE(index, name, unit, source)   [index] = {name, unit, false, source},
#define END \
    }       \
    ;
#include "tools/sampler/metrics.def"
#undef GROUP
#undef COUNTER
#undef GAUGE
#undef END

#define METRICS(array) array, sizeof(array) / sizeof((array)[0])

static const struct host_definition definitions[HOST_KINDS] = {
    [HOST_CPU] = {"cpu", "times of the processors", true, 1000, METRICS(cpu)},
    [HOST_MEMORY] = {"memory", "memory and swap", false, 1000, METRICS(memory)},
    [HOST_PRESSURE] = {"pressure", "time that tasks waited for a resource", false, 1000,
                       METRICS(pressure)},
    [HOST_RUN_QUEUE] = {"run_queue", "threads that run or wait", false, 1000, METRICS(run_queue)},
    [HOST_DISK] = {"disk", "disks and partitions", true, 1000, METRICS(disk)},
    [HOST_NETWORK] = {"network", "network interfaces", true, 1000, METRICS(network)},
    [HOST_TCP] = {"tcp", "TCP of the network namespace", false, 1000, METRICS(tcp)},
    [HOST_PROCESS] = {"process", "processes that are named", true, 1000, METRICS(process)},
    [HOST_CGROUP] = {"cgroup", "control groups that are named", true, 1000, METRICS(cgroup)},
};

const struct host_definition *host_definition(enum host_kind kind)
{
    return &definitions[kind];
}

enum host_kind host_kind_find(const char *name)
{
    for (int kind = 0; kind < HOST_KINDS; kind++)
        if (strcmp(name, definitions[kind].name) == 0)
            return (enum host_kind)kind;
    return HOST_KINDS;
}

int host_metric_find(enum host_kind kind, uint64_t present, const char *name, size_t length)
{
    const struct host_definition *const definition = &definitions[kind];

    for (size_t i = 0; i < definition->count; i++) {
        const char *known = definition->metrics[i].name;

        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return present >> i & 1 ? (int)i : -1;
    }
    return -1;
}

/* ---- the readers of the groups */

#define FIND_NS      (10 * NS_PER_S) /* the time between two searches for instances */
#define FIND_SOON_NS NS_PER_S        /* after an instance has ended */
#define FIND_SHARE   1000            /* a search takes at most 1/1000 of the time */

typedef void read_fn(struct group_reading *reading);

static const struct {
    read_fn *read;
    size_t slots;
} kinds[HOST_KINDS] = {
    [HOST_CPU] = {read_cpu, 257},
    [HOST_MEMORY] = {read_memory, 1},
    [HOST_PRESSURE] = {read_pressure, 1},
    [HOST_RUN_QUEUE] = {read_run_queue, 1},
    [HOST_DISK] = {read_disks, 256},
    [HOST_NETWORK] = {read_networks, 256},
    [HOST_TCP] = {read_tcp, 1},
    /* a process has 3 open files, and a control group 9: together fewer than 1024 */
    [HOST_PROCESS] = {read_processes, 128},
    [HOST_CGROUP] = {read_cgroups, 56},
};

static const char *const file_names[FILES] = {
    [FILE_STAT] = "stat",
    [FILE_LOADAVG] = "loadavg",
    [FILE_MEMINFO] = "meminfo",
    [FILE_VMSTAT] = "vmstat",
    [FILE_PRESSURE_CPU] = "pressure/cpu",
    [FILE_PRESSURE_IO] = "pressure/io",
    [FILE_PRESSURE_MEMORY] = "pressure/memory",
    [FILE_DISKSTATS] = "diskstats",
    [FILE_NET_DEV] = "net/dev",
    [FILE_NET_SNMP] = "net/snmp",
};

/* ---- slots */

/* Sets the range of slots for a kind. */
static void slots_of(enum host_kind kind, size_t *first, size_t *count)
{
    *first = 0;
    for (int i = 0; i < (int)kind; i++)
        *first += kinds[i].slots;
    *count = kinds[kind].slots;
}

static bool slot_is(const struct slot *slot, struct text name)
{
    return slot->is_used && name.length < HOST_NAME_BYTES &&
           memcmp(slot->name, name.data, name.length) == 0 && !slot->name[name.length];
}

struct slot *slot_next(struct host_reader *host, enum host_kind kind, struct slot *slot)
{
    size_t first, count;

    slots_of(kind, &first, &count);
    slot = slot ? slot + 1 : &host->slots[first];
    while (slot < &host->slots[first + count] && !slot->is_used)
        slot++;
    return slot < &host->slots[first + count] ? slot : NULL;
}

struct slot *slot_take(struct host_reader *host, enum host_kind kind, struct text name)
{
    size_t first, count;

    slots_of(kind, &first, &count);
    for (size_t i = first; i < first + count && name.length < HOST_NAME_BYTES; i++) {
        struct slot *const slot = &host->slots[i];

        if (slot->is_used)
            continue;
        slot->is_used = true;
        host->used[kind]++;
        slot->pid = 0;
        slot->generation++;
        slot->seen = 0;
        slot->counted_at = 0;
        memset(slot->kept, 0, sizeof(slot->kept));
        *text_copy(slot->name, name) = '\0';
        for (size_t file = 0; file < SLOT_FILES; file++)
            slot->fds[file] = -1;
        return slot;
    }
    host->counts.no_room++;
    return NULL;
}

void slot_release(struct host_reader *host, enum host_kind kind, struct slot *slot)
{
    host->used[kind]--;
    for (size_t file = 0; file < SLOT_FILES; file++)
        if (slot->fds[file] >= 0)
            close(slot->fds[file]);
    slot->is_used = false;
    host->counts.ended++;
}

static bool slot_is_wanted(const struct group_reading *reading, struct text name, bool matters)
{
    const struct patterns *const patterns = &reading->host->patterns[reading->kind];
    char copy[HOST_NAME_BYTES];

    if (patterns->count == 0 || reading->kind == HOST_CPU)
        return matters;
    if (name.length >= sizeof(copy))
        return true; /* slot_take() refuses and counts the long name */
    *text_copy(copy, name) = '\0';
    return patterns_match(patterns, PATTERN_NAME, copy, 0);
}

struct slot *slot_single(struct group_reading *reading)
{
    return slot_find(reading, text_of(""), true);
}

struct slot *slot_find(struct group_reading *reading, struct text name, bool matters)
{
    struct host_reader *const host = reading->host;
    struct slot *slot = slot_next(host, reading->kind, reading->last);

    if (!slot || !slot_is(slot, name)) {
        if (!slot_is_wanted(reading, name, matters))
            return NULL;
        slot = NULL;
        while ((slot = slot_next(host, reading->kind, slot)) && !slot_is(slot, name))
            ;
        if (!slot)
            slot = slot_take(host, reading->kind, name);
    }
    if (!slot || slot->seen == host->tick) {
        host->counts.not_understood += slot != NULL;
        return NULL;
    }
    slot->seen = host->tick;
    reading->seen++;
    if (!reading->last || slot > reading->last)
        reading->last = slot;
    return slot;
}

void slots_sweep(const struct group_reading *reading)
{
    struct host_reader *const host = reading->host;
    struct slot *slot = NULL;

    if (reading->seen == host->used[reading->kind])
        return; /* the usual case: no instance has ended */
    while ((slot = slot_next(host, reading->kind, slot)))
        if (slot->seen != host->tick)
            slot_release(host, reading->kind, slot);
}

void slots_read(struct group_reading *reading,
                bool (*put)(struct group_reading *reading, struct slot *slot))
{
    struct host_reader *const host = reading->host;

    for (struct slot *slot = NULL; (slot = slot_next(host, reading->kind, slot));) {
        reading->monotonic = now_ns();
        if (put(reading, slot)) {
            reading_emit(reading, slot);
        } else {
            reading->present = 0;
            slot_release(host, reading->kind, slot);
            host->has_ended = true;
        }
    }
}

/* ---- files */

int host_open_at(int folder, const char *path, bool is_folder)
{
    return openat(folder, path,
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (is_folder ? O_DIRECTORY : 0));
}

/* The struct of getdents64(2), which no header defines. */
struct linux_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

void folder_list(int folder, folder_entry_fn *entry, void *context)
{
    _Alignas(struct linux_entry) char buffer[LIST_BYTES];
    long got;

    if (lseek(folder, 0, SEEK_SET) != 0)
        return;
    while ((got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
        for (long at = 0; at < got;) {
            const struct linux_entry *const found =
                (const struct linux_entry *)(const void *)(buffer + at);

            at += found->bytes;
            if (found->name[0] != '.' && !entry(context, folder, found->name, found->type))
                return;
        }
    }
}

void lines_begin(struct lines *lines, int fd)
{
    size_t length = 0;
    ssize_t got;

    do {
        got = pread(fd, lines->buffer + length, LINES_BYTES - length, (off_t)length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 && length < LINES_BYTES);
    lines->error = got < 0 ? errno : 0;
    lines->is_cut = length == LINES_BYTES;
    lines->rest = (struct text){lines->buffer, lines->error ? 0 : length};
}

bool host_file_begin(struct host_reader *host, enum host_file file)
{
    if (host->files[file] < 0)
        return false;
    lines_begin(&host->lines, host->files[file]);
    return true;
}

bool host_file_end(struct host_reader *host)
{
    host->counts.not_understood += host->lines.is_cut;
    host->counts.unreadable += host->lines.error != 0;
    return host->lines.error == 0;
}

/* ---- open, close */

static bool read_wanted(struct host_reader *host, const struct host_config *config,
                        struct error *error)
{
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        const struct host_wanted *const wanted = &config->wanted[kind];
        const uint32_t ms = wanted->period_ms;

        if (ms != 0 && (ms < HOST_PERIOD_MIN_MS || ms > HOST_PERIOD_MAX_MS))
            return error_set(error, "%s: expected a period of %d ms to %d ms, got %u ms",
                             host_definition((enum host_kind)kind)->name, HOST_PERIOD_MIN_MS,
                             HOST_PERIOD_MAX_MS, ms);
        host->period[kind] = ms * NS_PER_MS;
        if (wanted->instances &&
            !patterns_read(&host->patterns[kind], (enum host_kind)kind, wanted->instances, error))
            return false;
    }
    for (int kind = HOST_PROCESS; kind <= HOST_CGROUP; kind++)
        if (host->patterns[kind].count == 0)
            host->period[kind] = 0;
        else
            host->finds = host->finds || host->period[kind] != 0;
    return true;
}

static bool open_files(struct host_reader *host, const char *root, struct error *error)
{
    const int folder = host_open_at(AT_FDCWD, root, true);
    struct statfs about;

    host->proc = folder < 0 ? -1 : host_open_at(folder, "proc", true);
    if (host->proc < 0) {
        error_set(error, "%s: expected a folder with proc in it: %s", root, strerror(errno));
        if (folder >= 0)
            close(folder);
        return false;
    }
    host->is_proc = fstatfs(host->proc, &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
    cgroups_open(host, folder);
    close(folder);
    for (int file = 0; file < FILES; file++)
        host->files[file] = host_open_at(host->proc, file_names[file], false);
    return true;
}

struct host_reader *host_open(const struct host_config *config, struct error *error)
{
    struct host_reader *const host = calloc(1, sizeof(*host));
    const uint64_t now = now_ns();

    if (!host || !(host->lines.buffer = malloc(LINES_BYTES))) {
        free(host);
        return error_null(error, "out of memory");
    }
    host->proc = -1;
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        host->cgroups[tree] = -1;
    for (int file = 0; file < FILES; file++)
        host->files[file] = -1;
    host->ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    host->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!read_wanted(host, config, error) ||
        !open_files(host, config->root ? config->root : "/", error)) {
        host_close(host);
        return NULL;
    }
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        /* multiples of the period, so that groups of one period are read together */
        host->next[kind] =
            host->period[kind] ? (now / host->period[kind] + 1) * host->period[kind] : UINT64_MAX;
    }
    return host;
}

void host_close(struct host_reader *host)
{
    if (!host)
        return;
    for (int kind = 0; kind < HOST_KINDS; kind++)
        for (struct slot *slot = NULL; (slot = slot_next(host, (enum host_kind)kind, slot));)
            slot_release(host, (enum host_kind)kind, slot);
    for (int file = 0; file < FILES; file++)
        if (host->files[file] >= 0)
            close(host->files[file]);
    if (host->proc >= 0)
        close(host->proc);
    cgroups_close(host);
    for (int kind = 0; kind < HOST_KINDS; kind++)
        patterns_free(&host->patterns[kind]);
    free(host->lines.buffer);
    free(host);
}

/* ---- sampling */

void reading_emit(struct group_reading *reading, const struct slot *slot)
{
    const struct host_definition *const definition = host_definition(reading->kind);
    struct host_sample sample;

    if (!slot || !reading->present)
        return;
    sample = (struct host_sample){
        .kind = reading->kind,
        .group = definition->name,
        .instance = slot->name,
        .monotonic = reading->monotonic,
        .period_ms = (uint32_t)(reading->host->period[reading->kind] / NS_PER_MS),
        .slot = (uint32_t)(slot - reading->host->slots),
        .generation = slot->generation,
        .metrics = definition->metrics,
        .values = reading->values,
        .count = definition->count,
        .present = reading->present,
    };

    reading->host->counts.samples++;
    reading->sampled(reading->context, &sample);
    reading->present = 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void find_instances(struct host_reader *host, uint64_t now)
{
    uint64_t took;

    if (!host->finds || now < host->find_at)
        return;
    host->has_ended = false;
    processes_find(host);
    cgroups_find(host);
    host->find_turn++;
    took = now_ns() - now;
    host->find_at = now + larger(took * FIND_SHARE, FIND_NS);
    host->find_soonest = now + larger(took * FIND_SHARE, FIND_SOON_NS);
}

/* Returns true if the kind is due, and sets the time of its next sample. */
static bool take_turn(struct host_reader *host, enum host_kind kind, uint64_t now)
{
    const uint64_t period = host->period[kind];
    uint64_t late;

    if (now < host->next[kind])
        return false;
    late = (now - host->next[kind]) / period;
    host->counts.skipped += late;
    host->next[kind] += (late + 1) * period;
    return true;
}

/* is_due: reads only the kinds that are due at `now`; false: reads all wanted kinds. */
static void sample_kinds(struct host_reader *host, uint64_t now, bool is_due,
                         host_sampled_fn *sampled, void *context)
{
    host->tick++;
    if (host->tick == 1)
        find_instances(host, now_ns());
    for (int kind = 0; kind < HOST_KINDS; kind++)
        if (host->period[kind] != 0 && (!is_due || take_turn(host, (enum host_kind)kind, now)))
            kinds[kind].read(&(struct group_reading){.host = host,
                                                     .kind = (enum host_kind)kind,
                                                     .sampled = sampled,
                                                     .context = context,
                                                     .monotonic = now_ns()});
    if (host->has_ended)
        host->find_at = host->find_soonest;
    find_instances(host, now_ns());
}

void host_sample(struct host_reader *host, uint64_t now, host_sampled_fn *sampled, void *context)
{
    if (now >= host_next(host))
        sample_kinds(host, now, true, sampled, context);
}

void host_sample_all(struct host_reader *host, host_sampled_fn *sampled, void *context)
{
    sample_kinds(host, 0, false, sampled, context);
}

uint64_t host_next(const struct host_reader *host)
{
    uint64_t next = UINT64_MAX;

    for (int kind = 0; kind < HOST_KINDS; kind++)
        if (host->next[kind] < next)
            next = host->next[kind];
    return next;
}

struct host_counts host_counts(const struct host_reader *host)
{
    return host->counts;
}

void host_config_default(struct host_config *config)
{
    memset(config, 0, sizeof(*config));
    for (int kind = 0; kind < HOST_KINDS; kind++)
        config->wanted[kind].period_ms = host_definition(kind)->period_ms;
}
