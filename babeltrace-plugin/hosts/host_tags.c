/* SPDX-License-Identifier: BSD-2-Clause */
#include "host_tags.h"

#include "babeltrace-plugin/base/printer.h"

/* ---- metrics --------------------------------------------------------------------------------- */

enum { DISK_BUSY, DISK_QUEUE, DISK_WAIT };
enum { CPU_BUSY, CPU_STEAL, CPU_COUNT };
enum { PRESSURE_CPU, PRESSURE_IO, PRESSURE_MEMORY };
enum { TCP_RETRANSMIT, TCP_TRANSMIT };

static const struct host_view cpu_count = {
    .group = "cpu",
    .name = "count",
    .kind = HOST_VIEW_AVERAGE,
    .metrics = "system.cpu.time.user system.cpu.time.nice system.cpu.time.system "
               "system.cpu.time.interrupt system.cpu.time.softirq system.cpu.time.steal "
               "system.cpu.time.idle system.cpu.time.iowait",
};
static const struct host_view retransmit = {
    .group = "tcp",
    .name = "retransmit",
    .kind = HOST_VIEW_DELTA,
    .metrics = "system.network.tcp.segments.retransmit",
};
static const struct host_view transmit = {
    .group = "tcp",
    .name = "transmit",
    .kind = HOST_VIEW_DELTA,
    .metrics = "system.network.tcp.segments.transmit",
};

static const struct {
    const char *name;
    bool has_instances;
    const char *views[HISTORY_VIEWS_MAX];           /* names for host_view_find() */
    const struct host_view *own[HISTORY_VIEWS_MAX]; /* views that only tags use */
} groups[HOST_GROUPS] = {
    [GROUP_DISK] = {"disk", true, {"busy", "queue", "wait"}, {NULL}},
    [HOST_GROUP_CPU] = {"cpu", false, {"busy", "steal"}, {[CPU_COUNT] = &cpu_count}},
    [GROUP_PRESSURE] = {"pressure", false, {"cpu", "io", "memory"}, {NULL}},
    [GROUP_RUN_QUEUE] = {"run_queue", false, {"running"}, {NULL}},
    [HOST_GROUP_MEMORY] = {"memory", false, {"available_share"}, {NULL}},
    [GROUP_TCP] = {"tcp", false, {NULL}, {&retransmit, &transmit}},
};

void host_group_views(enum host_group group, const struct host_view *views[HISTORY_VIEWS_MAX])
{
    for (unsigned i = 0; i < HISTORY_VIEWS_MAX; i++) {
        const char *name = groups[group].views[i];

        views[i] = name ? host_view_find(groups[group].name, name) : groups[group].own[i];
    }
}

bool host_group_find(struct text group, struct text instance, enum host_group *found)
{
    for (enum host_group i = 0; i < HOST_GROUPS; i++) {
        *found = i;
        if (text_is(group, groups[i].name))
            return groups[i].has_instances == (instance.length > 0);
    }
    return false;
}

/* ---- tags ------------------------------------------------------------------------------------ */

#define FOUND_MAX 400 /* bytes of the text with all findings */

struct tagging {
    struct span *span;
    unsigned lost;
    bool is_tagged;
    bool has_times;
    int64_t from_ns; /* the begin of the time of all values */
    int64_t until_ns;
    struct printer found; /* the findings */
};

static void count_tag(struct tagging *tagging, bool is_added)
{
    tagging->lost += !is_added;
    tagging->is_tagged |= is_added;
}

static void tag_number(struct tagging *tagging, const char *key, double value)
{
    const int64_t number = value < 9e18 ? (int64_t)(value + 0.5) : INT64_MAX;

    count_tag(tagging, span_add(tagging->span, SPAN_TAG_INTEGER, text_of(key),
                                (struct text){NULL, 0}, number));
}

static void tag_text(struct tagging *tagging, const char *key, struct text value)
{
    count_tag(tagging, span_add(tagging->span, SPAN_TAG_TEXT, text_of(key), value, 0));
}

static void tagging_note_time(struct tagging *tagging, const struct range *range)
{
    if (range->from_ns < tagging->from_ns || !tagging->has_times)
        tagging->from_ns = range->from_ns;
    if (range->until_ns > tagging->until_ns || !tagging->has_times)
        tagging->until_ns = range->until_ns;
    tagging->has_times = true;
}

/* An unknown value has no tag. */
static void tag_range(struct tagging *tagging, const struct range *range, const char *least,
                      const char *most)
{
    if (!range->is_known)
        return;
    tagging_note_time(tagging, range);
    tag_number(tagging, least, range->least);
    tag_number(tagging, most, range->most);
}

static struct range range_of(const struct tagging *tagging, struct host_part *part, unsigned view)
{
    if (!part)
        return (struct range){.is_known = false};
    return history_range(&part->history, view, tagging->span->start_ns, tagging->span->end_ns);
}

/* ---- findings -------------------------------------------------------------------------------- */

/*
 * A finding says that the state of the host has probably cost the span time, so spans of a quiet
 * host have none. All values are means over the span's time; those of TCP are totals.
 * - A disk that is busy for 80 % of the time: most requests have to wait. Below that, by queueing
 *   theory for one server, a request waits for fewer than four others.
 * - Waiting for I/O without a busy disk: a network file system, or a limit of a cgroup. The limit
 *   is 40 %, because a healthy database that reads all the time has half of that.
 * - Memory: a healthy machine has no pressure. Each percent is time in which a task could only wait
 *   for pages.
 * - CPU: the CPUs are busy, and tasks wait for them. 90 % without waiting tasks is good use of a
 *   machine. With as many tasks as CPUs the pressure is near 0. On a kernel without pressure, the
 *   limit is two runnable threads for each CPU.
 * - Steal: a tenth of the CPU time was another machine's.
 * - TCP: one lost segment costs 200 ms and more, and 1 % reduces the throughput. The finding needs
 *   at least 1 % of the host's segments.
 */
#define DISK_BUSY_PERCENT       80
#define IO_PERCENT              40
#define MEMORY_PERCENT          10
#define CPU_BUSY_PERCENT        90
#define CPU_WAIT_PERCENT        25
#define CPU_THREADS             2
#define STEAL_PERCENT           10
#define RETRANSMIT_PER_TRANSMIT 0.01

static struct printer *next_finding(struct tagging *tagging)
{
    if (tagging->found.buffer.length)
        print_string(&tagging->found, "; ");
    return &tagging->found;
}

/* Returns true if the mean is known, and is not printed as 0. */
static bool is_some(const struct range *range)
{
    return range->is_known && range->mean >= 0.5;
}

/* ---- the groups ------------------------------------------------------------------------------ */

/* "vda1" is a part of "vda", and never busier. */
static bool is_part_of(const struct host_part *part, const struct host_part *whole)
{
    return part->instance_length > whole->instance_length &&
           memcmp(part->instance, whole->instance, whole->instance_length) == 0;
}

static struct host_part *busiest(const struct tagging *tagging, struct host_part *disks,
                                 struct range *busy)
{
    struct host_part *found = NULL;

    busy->is_known = false;
    for (struct host_part *disk = disks; disk; disk = disk->next) {
        const struct range range = range_of(tagging, disk, DISK_BUSY);

        if (range.is_known && (!busy->is_known || range.mean > busy->mean ||
                               (range.mean == busy->mean && is_part_of(found, disk)))) {
            *busy = range;
            found = disk;
        }
    }
    return found;
}

#define US_PER_MS 1000

static bool tag_disk(struct tagging *tagging, struct host_part *disks)
{
    struct range busy, queue, wait;
    struct host_part *disk = busiest(tagging, disks, &busy);

    if (!disk)
        return false;
    queue = range_of(tagging, disk, DISK_QUEUE);
    wait = range_of(tagging, disk, DISK_WAIT);
    wait.least *= US_PER_MS;
    wait.most *= US_PER_MS;
    tag_text(tagging, "system.device", (struct text){disk->instance, disk->instance_length});
    tag_range(tagging, &busy, "system.disk.busy.min", "system.disk.busy.max");
    tag_range(tagging, &queue, "system.disk.queue.min", "system.disk.queue.max");
    tag_range(tagging, &wait, "system.disk.wait_us.min", "system.disk.wait_us.max");
    if (busy.mean < DISK_BUSY_PERCENT)
        return false;
    print(next_finding(tagging), "%.*s was %.0f %% busy", (int)disk->instance_length,
          disk->instance, busy.mean);
    /* without a queue, requests are so short that the kernel's ticks make the disk look busy */
    if (is_some(&queue))
        print(&tagging->found, ", %.0f in queue", queue.mean);
    return true;
}

static void tag_pressure(struct tagging *tagging, struct host_part *pressure, bool has_busy_disk)
{
    const struct range cpu = range_of(tagging, pressure, PRESSURE_CPU);
    const struct range io = range_of(tagging, pressure, PRESSURE_IO);
    const struct range memory = range_of(tagging, pressure, PRESSURE_MEMORY);

    tag_range(tagging, &cpu, "system.linux.pressure.cpu.min", "system.linux.pressure.cpu.max");
    tag_range(tagging, &io, "system.linux.pressure.io.min", "system.linux.pressure.io.max");
    tag_range(tagging, &memory, "system.linux.pressure.memory.min",
              "system.linux.pressure.memory.max");
    if (memory.is_known && memory.mean >= MEMORY_PERCENT)
        print(next_finding(tagging), "tasks waited for memory %.0f %% of the time", memory.mean);
    else if (io.is_known && io.mean >= IO_PERCENT && !has_busy_disk)
        print(next_finding(tagging), "tasks waited for I/O %.0f %% of the time", io.mean);
}

static bool is_crowded(const struct range *busy, const struct range *wait,
                       const struct range *threads, const struct range *cpus)
{
    if (!busy->is_known || busy->mean < CPU_BUSY_PERCENT)
        return false;
    if (wait->is_known)
        return wait->mean >= CPU_WAIT_PERCENT;
    return threads->is_known && cpus->is_known && threads->mean >= CPU_THREADS * cpus->mean;
}

/* Threads are counted at the moments of samples, other values over the whole time. If fewer threads
 * than busy CPUs were counted, as in a short span, their number means nothing. */
static bool is_count_of(const struct range *threads, const struct range *busy,
                        const struct range *cpus)
{
    return is_some(threads) && cpus->is_known &&
           threads->mean + 0.5 >= busy->mean / 100 * cpus->mean;
}

static void tag_cpu(struct tagging *tagging, struct host_part *const parts[HOST_GROUPS])
{
    const struct range busy = range_of(tagging, parts[HOST_GROUP_CPU], CPU_BUSY);
    const struct range steal = range_of(tagging, parts[HOST_GROUP_CPU], CPU_STEAL);
    const struct range cpus = range_of(tagging, parts[HOST_GROUP_CPU], CPU_COUNT);
    const struct range threads = range_of(tagging, parts[GROUP_RUN_QUEUE], 0);
    const struct range wait = range_of(tagging, parts[GROUP_PRESSURE], PRESSURE_CPU);

    tag_range(tagging, &busy, "system.cpu.busy.min", "system.cpu.busy.max");
    tag_range(tagging, &steal, "system.cpu.steal.min", "system.cpu.steal.max");
    tag_range(tagging, &threads, "system.process.count.running.min",
              "system.process.count.running.max");
    if (is_crowded(&busy, &wait, &threads, &cpus)) {
        print(next_finding(tagging), "the CPUs were %.0f %% busy", busy.mean);
        if (is_count_of(&threads, &busy, &cpus))
            print(&tagging->found, ", %.0f thread%s ran or wanted to", threads.mean,
                  threads.mean < 1.5 ? "" : "s");
        else if (wait.is_known)
            print(&tagging->found, ", tasks waited for a CPU %.0f %% of the time", wait.mean);
    }
    if (steal.is_known && steal.mean >= STEAL_PERCENT)
        print(next_finding(tagging), "%.0f %% of the CPUs' time was stolen", steal.mean);
}

static void tag_tcp(struct tagging *tagging, struct host_part *tcp)
{
    const struct range again = range_of(tagging, tcp, TCP_RETRANSMIT);
    const struct range sent = range_of(tagging, tcp, TCP_TRANSMIT);

    if (!again.is_known)
        return;
    tagging_note_time(tagging, &again);
    tag_number(tagging, "system.network.tcp.segments.retransmit", again.total);
    if (sent.is_known)
        tag_number(tagging, "system.network.tcp.segments.transmit", sent.total);
    if (again.total < 1 || !sent.is_known || again.total < RETRANSMIT_PER_TRANSMIT * sent.total)
        return;
    /* the kernel does not count a retransmitted segment as transmitted, too */
    print(next_finding(tagging), "%.0f of %.0f TCP segments were sent again", again.total,
          again.total + sent.total);
}

unsigned host_tag(struct span *span, struct host_part *const parts[HOST_GROUPS], bool *is_tagged)
{
    char found[FOUND_MAX];
    struct tagging tagging = {.span = span, .found = PRINTER_INTO(found)};
    struct range memory;
    bool has_busy_disk;

    has_busy_disk = tag_disk(&tagging, parts[GROUP_DISK]);
    tag_pressure(&tagging, parts[GROUP_PRESSURE], has_busy_disk);
    tag_cpu(&tagging, parts);
    memory = range_of(&tagging, parts[HOST_GROUP_MEMORY], 0);
    tag_range(&tagging, &memory, "system.memory.available.min", "system.memory.available.max");
    tag_tcp(&tagging, parts[GROUP_TCP]);
    if (tagging.has_times)
        tag_number(&tagging, "blkin.host_ms",
                   (double)((uint64_t)tagging.until_ns - (uint64_t)tagging.from_ns) / 1e6);
    if (tagging.found.buffer.length)
        tag_text(&tagging, "blkin.host", (struct text){found, tagging.found.buffer.length});
    *is_tagged = tagging.is_tagged;
    return tagging.lost;
}
