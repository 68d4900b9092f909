/*
 * Shared by the readers of the groups of metrics. sample.c has the instances and the schedule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_PARTS_H
#define BLKIN_SAMPLER_PARTS_H

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/text.h"
#include "sample.h"

/* ---- a file of the kernel, read as a whole: its lines, and their words. Blanks separate words */

#define LINES_BYTES (4 << 20) /* of a file; the rest is left out, as some files do not end */
#define DIGITS_MANY 20        /* a number of this many digits may exceed 64 bits */

struct lines {
    char *buffer; /* of LINES_BYTES bytes; the kernel provides pages on use */
    int error;    /* errno of a failed read, after which there are no lines */
    bool is_cut;  /* the file is longer than the buffer */
    struct text rest;
};

/* Reads the file from its beginning. */
void lines_begin(struct lines *lines, int fd);

/* Sets *line, which is valid until the next lines_begin(). Returns false at the end. */
static inline bool lines_next(struct lines *lines, struct text *line)
{
    if (lines->rest.length == 0)
        return false;
    *line = text_take(&lines->rest, '\n');
    return true;
}

/* Removes the next word from the line. Returns false at the line's end. */
static inline bool line_word(struct text *line, struct text *word)
{
    size_t length = 0;

    while (line->length && (*line->data == ' ' || *line->data == '\t'))
        *line = text_after(*line, 1);
    while (length < line->length && line->data[length] != ' ' && line->data[length] != '\t')
        length++;
    *word = text_cut(*line, length);
    *line = text_after(*line, length);
    return length > 0;
}

/* Removes the line's next numbers, at most `most`. This function takes most of a sample's time. */
static inline size_t line_numbers(struct text *line, uint64_t *numbers, size_t most)
{
    const char *at = line->data;
    const char *const end = at + line->length;
    size_t count = 0;

    while (count < most) {
        uint64_t value = 0;
        const char *digits;
        unsigned digit;

        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        for (digits = at; at < end && (digit = (unsigned)(unsigned char)*at - '0') <= 9; at++)
            value = value * 10 + digit;
        if (at == digits || (at < end && *at != ' ' && *at != '\t'))
            break;
        if (at - digits >= DIGITS_MANY &&
            !text_read_number((struct text){digits, (size_t)(at - digits)}, &value))
            break;
        *line = (struct text){at, (size_t)(end - at)};
        numbers[count++] = value;
    }
    return count;
}

static inline bool line_number(struct text *line, uint64_t *number)
{
    return line_numbers(line, number, 1) == 1;
}

/* ---- the wanted instances of a group: "vd*,!vda1", "redis-server,pid:12,unit:nginx.service" */

#define PATTERNS_MAX 64

enum pattern_kind { PATTERN_NAME, PATTERN_PID, PATTERN_UNIT };

struct pattern {
    enum pattern_kind kind;
    bool excludes;
    uint32_t pid;
    char *text; /* a pattern of names or units, as in glob(7) */
};

struct patterns {
    size_t count;
    struct pattern list[PATTERNS_MAX];
};

/* Parses the patterns for a kind. Returns false with error set. */
bool patterns_read(struct patterns *patterns, enum host_kind kind, const char *text,
                   struct error *error);
void patterns_free(struct patterns *patterns);

bool patterns_have(const struct patterns *patterns, enum pattern_kind kind);

/* Returns true if patterns of this kind want the name. If all patterns exclude names, every other
 * name is wanted. flags: FNM_... of fnmatch(3) */
bool patterns_match(const struct patterns *patterns, enum pattern_kind kind, const char *name,
                    int flags);

/* ---- reading */

#define SLOT_FILES 9  /* an instance's own open files */
#define SLOT_KEPT  12 /* values of an instance, stored until its next read */
#define PIDS_MAX   32768
#define LIST_BYTES 4096 /* one read of a folder's entries */

enum host_file {
    FILE_STAT,
    FILE_LOADAVG,
    FILE_MEMINFO,
    FILE_VMSTAT,
    FILE_PRESSURE_CPU,
    FILE_PRESSURE_IO,
    FILE_PRESSURE_MEMORY,
    FILE_DISKSTATS,
    FILE_NET_DEV,
    FILE_NET_SNMP,
    FILES
};

/* The folders in which control groups have their files. */
enum cgroup_tree {
    CGROUP_V2,
    CGROUP_V1_CPUACCT,
    CGROUP_V1_CPU, /* mostly the same folder as cpuacct */
    CGROUP_V1_MEMORY,
    CGROUP_V1_PIDS,
    CGROUP_V1_BLKIO,
    CGROUP_V1_SYSTEMD, /* no controller; systemd's tree of units */
    CGROUP_TREES
};

struct slot {
    bool is_used;
    uint32_t pid;        /* for a process */
    uint64_t generation; /* 0: never used */
    uint64_t seen;       /* the tick of the last read */
    uint64_t kept[SLOT_KEPT];
    uint64_t counted_at; /* the time when a process's descriptors were counted */
    int fds[SLOT_FILES];
    char name[HOST_NAME_BYTES];
};

/* The processes of one listing of /proc, in the order of the listing: pid << 2 | the number of
 * listings with this pid, at most 3. */
struct pids {
    size_t count;
    uint32_t list[PIDS_MAX];
};

struct host_reader {
    uint64_t tick;               /* the number of the current host_sample() */
    uint64_t period[HOST_KINDS]; /* in ns; 0: not sampled */
    uint64_t next[HOST_KINDS];
    struct patterns patterns[HOST_KINDS];
    int proc;                  /* the open folder */
    int cgroups[CGROUP_TREES]; /* open folders; -1: none */
    bool is_proc;              /* the file system is procfs, not a copy for tests */
    int files[FILES];
    struct lines lines;
    size_t used[HOST_KINDS]; /* used slots of the kind */
    struct {
        uint64_t tick;
        uint64_t monotonic;
        uint64_t values[QUEUE_CREATED + 1];
        uint64_t present;
    } stat; /* values of the run queue that read_cpu() has found in /proc/stat */
    uint64_t ticks_per_s;
    uint64_t page_bytes;
    uint64_t find_at;      /* the time of the next search for processes and control groups */
    uint64_t find_soonest; /* the time of that search if an instance ends before */
    uint64_t find_turn;    /* the number of searches so far */
    bool has_ended;        /* an instance ended, so a successor may have started */
    bool finds;            /* the configuration names processes or control groups */
    struct pids pids[2];
    struct host_counts counts;
    struct slot slots[HOST_SLOTS];
};

/* The read of one group. */
struct group_reading {
    struct host_reader *host;
    enum host_kind kind;
    uint64_t monotonic;
    struct slot *last; /* the highest slot found so far: the next line usually has the next slot */
    size_t seen;       /* the number of instances */
    uint64_t values[HOST_METRICS_MAX];
    uint64_t present;
    host_sampled_fn *sampled;
    void *context;
};

/* Returns the instance's slot, an old or a new one. matters: if the configuration names no
 * instances, only an instance that matters gets a new slot. NULL: not wanted, no room, or a second
 * line of the same name. */
struct slot *slot_find(struct group_reading *reading, struct text name, bool matters);
/* Returns the only slot of a group without instances. */
struct slot *slot_single(struct group_reading *reading);
/* Returns a new slot, whose files are -1. NULL: no room, which is counted. */
struct slot *slot_take(struct host_reader *host, enum host_kind kind, struct text name);
void slot_release(struct host_reader *host, enum host_kind kind, struct slot *slot);

/* Returns the used slot of the kind after `slot`, or the first one after NULL; NULL: the end. The
 * caller may release the returned slot. */
struct slot *slot_next(struct host_reader *host, enum host_kind kind, struct slot *slot);

/* Reads the instances of a group that have files of their own. put() returns false when the
 * instance has ended. */
void slots_read(struct group_reading *reading,
                bool (*put)(struct group_reading *reading, struct slot *slot));

/* Releases the slots that this read has not seen. */
void slots_sweep(const struct group_reading *reading);

static inline void reading_put(struct group_reading *reading, size_t i, uint64_t value)
{
    reading->values[i] = value;
    reading->present |= UINT64_C(1) << i;
}

/* Passes the collected values to the callback, and empties the collection. NULL: does nothing. */
void reading_emit(struct group_reading *reading, const struct slot *slot);

/* Begins to read a file of the host. Returns false if there is no such file. */
bool host_file_begin(struct host_reader *host, enum host_file file);
/* Counts the errors of the file that was read. Returns false if the read failed. */
bool host_file_end(struct host_reader *host);

void read_cpu(struct group_reading *reading);
void read_memory(struct group_reading *reading);
void read_pressure(struct group_reading *reading);
void read_run_queue(struct group_reading *reading);
void read_disks(struct group_reading *reading);
void read_networks(struct group_reading *reading);
void read_tcp(struct group_reading *reading);
void read_processes(struct group_reading *reading);
void read_cgroups(struct group_reading *reading);

/* The name and the unit of a line "NAME NUMBER". */
struct field {
    struct text name;
    size_t i;      /* the index of the value */
    uint64_t unit; /* the factor from the number to the metric's unit; 0: the value is the sum of
                      all lines whose names begin with this one */
};
#define FIELD(name, i, unit)              \
    {                                     \
        {name, sizeof(name) - 1}, i, unit \
    }
#define FIELDS(fields) fields, sizeof(fields) / sizeof((fields)[0])

/* Reads the named lines of the begun file. */
void read_named_fields(struct group_reading *reading, const struct field *fields, size_t count);

/* Reads a begun pressure file into the values first and first + 1. */
void read_pressure_lines(struct group_reading *reading, size_t first);

/* Searches for the wanted processes and control groups. */
void processes_find(struct host_reader *host);
void cgroups_find(struct host_reader *host);
/* Adds a process; by_name: only if a pattern wants its name. */
void process_add(struct host_reader *host, uint32_t pid, bool by_name);

/* Calls the function for each entry of a folder until the function returns false. */
typedef bool folder_entry_fn(void *context, int folder, const char *name, unsigned char type);
void folder_list(int folder, folder_entry_fn *entry, void *context);

void cgroups_open(struct host_reader *host, int folder); /* folder: has sys/fs/cgroup */
void cgroups_close(struct host_reader *host);

/* Opens a file or folder for reading. Does not wait if the path is a pipe. */
int host_open_at(int folder, const char *path, bool is_folder);

static inline uint64_t now_ns(void)
{
    return (uint64_t)clock_ns();
}

/* Multiplies; UINT64_MAX on overflow. */
static inline uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
