/*
 * Which alarms are new, and which are missing.
 *
 * A snapshot has all that is still in the buffers, and what has left them does not come back: an
 * alarm is new if the snapshot before did not have it. Nothing else needs to be remembered for
 * that.
 *
 * What is missing is told by the sequences of a process. An alarm may come after one of a later
 * sequence (another CPU's buffer is written out a moment later, or a thread was stopped between the
 * two), so a gap counts only if the next snapshot has not filled it either. The pid alone does not
 * know a process: it is used again, and those of containers have the same ones. So several of one
 * pid are kept apart by how their sequences go on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "alarm.h"

#include "babeltrace-plugin/base/hash.h"
#include "packets.h"
#include "tracepoints/format/events.h"

#include <stdlib.h>
#include <string.h>

#ifndef WINDOW_BYTES
#define WINDOW_BYTES (256 << 10) /* read at once */
#define ALARM_BYTES  4096        /* at most, with its texts */
#define PROCESSES    1024        /* so many are known: the one that was silent for longest goes */
#endif
#define CHAINS     256
#define NO_PROCESS UINT16_MAX
#define LATE_NS    50000000 /* no thread is that late, and no process that quickly another one */

struct process {
    uint32_t pid;
    uint32_t first, newest;  /* the sequences that we know of */
    uint32_t newest_before;  /* of the snapshots before this one */
    uint32_t missing;        /* sequences up to `newest` ... */
    uint32_t missing_before; /* ... and those of them up to `newest_before` */
    uint32_t lost;           /* of it, as far as they were counted */
    uint64_t monotonic_ns;   /* the last one's end */
    uint16_t next;           /* of the chain */
};

/* An alarm of this snapshot that the one before did not have. */
struct found {
    struct blkin_slow_event event;
    size_t texts; /* where, in `texts` */
};

struct alarm_reader {
    uint64_t *known; /* what the last snapshot had, sorted; see identity() */
    size_t known_count;
    bool has_read;   /* one snapshot at least */
    bool forgot;     /* a process: who comes back may be it */
    uint64_t excess; /* counted as lost, and found after all */
    uint64_t newer;  /* of the last snapshot, as alarm_reader_newer() has them */
    uint16_t chains[CHAINS];
    uint16_t process_count, told_count;
    struct process processes[PROCESSES];
    struct {
        uint32_t pid, sequence;
    } told[PROCESSES];
};

/* What one snapshot has. */
struct reading {
    const struct alarm_reader *reader;
    uint64_t *seen;
    size_t seen_count, seen_room;
    struct found *found;
    size_t found_count, found_room;
    char *texts;
    size_t texts_length, texts_room;
    uint64_t newer; /* alarms of a version that is not known here */
    char window[WINDOW_BYTES];
};

struct alarm_reader *alarm_reader_new(void)
{
    struct alarm_reader *reader = calloc(1, sizeof(*reader));

    for (size_t i = 0; reader != NULL && i < CHAINS; i++)
        reader->chains[i] = NO_PROCESS;
    return reader;
}

void alarm_reader_free(struct alarm_reader *reader)
{
    if (reader == NULL)
        return;
    free(reader->known);
    free(reader);
}

void alarm_reader_knows(struct alarm_reader *reader, uint32_t pid, uint32_t sequence)
{
    if (reader->told_count == PROCESSES)
        return;
    reader->told[reader->told_count].pid = pid;
    reader->told[reader->told_count++].sequence = sequence;
}

/* ---- what the packets have */

static uint64_t identity(const struct blkin_slow_event *event)
{
    return hash_mix(
        hash_mix(((uint64_t)event->pid << 32 | event->sequence) ^ hash_mix(event->monotonic)) ^
        event->span_id);
}

static int compare(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static int by_value(const void *left, const void *right)
{
    return compare(*(const uint64_t *)left, *(const uint64_t *)right);
}

static bool is_known(const struct alarm_reader *reader, uint64_t what)
{
    return reader->known_count > 0 &&
           bsearch(&what, reader->known, reader->known_count, sizeof(what), by_value) != NULL;
}

/* Room for so many more. */
static bool reserve(void **array, size_t count, size_t more, size_t *room, size_t size)
{
    size_t wanted = *room > 0 ? *room : 64;
    void *larger;

    while (wanted < count + more)
        wanted *= 2;
    if (wanted == *room)
        return true;
    larger = realloc(*array, wanted * size);
    if (larger == NULL)
        return false;
    *array = larger;
    *room = wanted;
    return true;
}

/* False: out of memory. */
static bool note_seen(struct reading *reading, uint64_t what)
{
    if (!reserve((void **)&reading->seen, reading->seen_count, 1, &reading->seen_room,
                 sizeof(*reading->seen)))
        return false;
    reading->seen[reading->seen_count++] = what;
    return true;
}

/* Nothing is known of it but its bytes, by which it is counted once. */
static bool add_newer(struct reading *reading, const char *event, const char *end)
{
    const size_t size = (size_t)(end - event);
    const uint64_t what = hash_text(0, (struct text){event, size < sizeof(struct blkin_slow_event)
                                                                ? size
                                                                : sizeof(struct blkin_slow_event)});

    reading->newer += !is_known(reading->reader, what);
    return note_seen(reading, what);
}

static bool add(struct reading *reading, const struct blkin_slow_event *event, const char *texts,
                size_t length)
{
    const uint64_t what = identity(event);

    if (!note_seen(reading, what))
        return false;
    if (is_known(reading->reader, what))
        return true;
    if (!reserve((void **)&reading->found, reading->found_count, 1, &reading->found_room,
                 sizeof(*reading->found)) ||
        !reserve((void **)&reading->texts, reading->texts_length, length, &reading->texts_room, 1))
        return false;
    reading->found[reading->found_count++] =
        (struct found){.event = *event, .texts = reading->texts_length};
    memcpy(reading->texts + reading->texts_length, texts, length);
    reading->texts_length += length;
    return true;
}

/* The length of the event's three texts; 0: they do not end before `end`. */
static size_t texts_length(const char *texts, const char *end)
{
    const char *at = texts;

    for (int i = 0; i < 3; i++) {
        at = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (at == NULL)
            return 0;
        at++;
    }
    return (size_t)(at - texts);
}

/* The mark's last character in a little endian's order, which is its version. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define VERSION_AT 7
#define NAME_AT    0
#else
#define VERSION_AT 0
#define NAME_AT    1
#endif

/* Of any version; NULL: there is no more. */
static const char *find_mark(const char *at, const char *end, const uint64_t *mark)
{
    const char *name = (const char *)mark + NAME_AT;
    const char *found;

    if ((size_t)(end - at) < sizeof(*mark))
        return NULL;
    found = memmem(at + NAME_AT, (size_t)(end - at) - 1, name, sizeof(*mark) - 1);
    return found == NULL ? NULL : found - NAME_AT;
}

/*
 * Alarms that begin before `last`. Returns where to go on: behind the last one, which may reach
 * beyond `last`. NULL: out of memory.
 */
static const char *scan(struct reading *reading, const char *at, const char *last, const char *end)
{
    const uint64_t mark = BLKIN_SLOW_MARK;
    struct blkin_slow_event event;

    while (at < last) {
        const char *found = find_mark(at, end, &mark);
        size_t length = 0;

        if (found == NULL || found >= last)
            return last;
        if (memcmp(found, &mark, sizeof(mark)) != 0) {
            if (found[VERSION_AT] > BLKIN_SLOW_VERSION && found[VERSION_AT] <= '9' &&
                !add_newer(reading, found, end))
                return NULL;
            at = found + sizeof(mark);
            continue;
        }
        if ((size_t)(end - found) > sizeof(event))
            length = texts_length(found + sizeof(event), end);
        at = found + (length > 0 ? sizeof(event) + length : sizeof(mark));
        if (length == 0)
            continue;
        memcpy(&event, found, sizeof(event));
        if (!add(reading, &event, at - length, length))
            return NULL;
    }
    return at;
}

/* In windows: each but the last is followed by as much as an alarm can have. */
static bool scan_packet(struct reading *reading, int fd, const struct packet *packet)
{
    uint64_t at = packet->at + PACKET_HEAD_BYTES;
    const uint64_t end = packet->at + packet->content;

    while (at < end) {
        const size_t room = end - at < WINDOW_BYTES ? (size_t)(end - at) : WINDOW_BYTES;
        const size_t got = read_at(fd, reading->window, room, at);
        const bool is_last = got < room || end - at <= WINDOW_BYTES;
        const char *window_end = reading->window + got;
        const char *next = scan(reading, reading->window,
                                is_last ? window_end : window_end - ALARM_BYTES, window_end);

        if (next == NULL)
            return false;
        if (is_last)
            break;
        at += (uint64_t)(next - reading->window);
    }
    return true;
}

static bool scan_stream(void *context, struct stream *stream, const char *path, const char *name,
                        struct error *error)
{
    struct reading *reading = context;
    enum packet_found found;
    struct packet packet;

    (void)name;
    while ((found = packet_next(stream, &packet)) == PACKET) {
        if (!scan_packet(reading, stream->fd, &packet)) {
            error_set(error, "out of memory for the alarms of %s", path);
            return false;
        }
    }
    return found != PACKET_OTHER_ORDER || refuse_order(path, error);
}

/* ---- the processes, and what is missing of them */

static uint16_t *chain_of(struct alarm_reader *reader, uint32_t pid)
{
    return &reader->chains[pid % CHAINS];
}

static uint16_t oldest(const struct alarm_reader *reader)
{
    uint16_t least = 0;

    for (uint16_t i = 1; i < reader->process_count; i++)
        if (reader->processes[i].monotonic_ns < reader->processes[least].monotonic_ns)
            least = i;
    return least;
}

/* Its place is free then; what was missing of it is lost. */
static void forget(struct alarm_reader *reader, uint16_t index, uint64_t *lost)
{
    struct process *process = &reader->processes[index];
    uint16_t *link = chain_of(reader, process->pid);

    while (*link != index)
        link = &reader->processes[*link].next;
    *link = process->next;
    *lost += (uint64_t)process->missing + process->missing_before;
    reader->forgot = true;
}

static struct process *new_process(struct alarm_reader *reader, uint32_t pid, uint64_t *lost)
{
    uint16_t index = reader->process_count;

    if (index < PROCESSES) {
        reader->process_count++;
    } else {
        index = oldest(reader);
        forget(reader, index, lost);
    }
    reader->processes[index] = (struct process){.pid = pid, .next = *chain_of(reader, pid)};
    *chain_of(reader, pid) = index;
    return &reader->processes[index];
}

static bool is_late(const struct process *process, const struct blkin_slow_event *event)
{
    return process->pid == event->pid && event->sequence <= process->newest &&
           event->monotonic <= process->monotonic_ns + LATE_NS;
}

/* Whose sequences go on with this one with the smallest gap. */
static bool is_better(const struct process *process, const struct process *than)
{
    return than == NULL || process->newest > than->newest ||
           (process->newest == than->newest && process->monotonic_ns > than->monotonic_ns);
}

/* Is it one that was missing? */
static bool fill_one(struct alarm_reader *reader, struct process *process, uint32_t sequence)
{
    uint32_t *missing =
        sequence > process->newest_before ? &process->missing : &process->missing_before;

    if (sequence < process->first) {
        *missing += process->first - sequence - 1;
        process->first = sequence;
        return true;
    }
    if (*missing > 0) {
        (*missing)--;
        return true;
    }
    if (process->lost == 0)
        return false;
    process->lost--;
    reader->excess++;
    return true;
}

/* Fills a gap, if a process of this pid has one there. */
static bool fill(struct alarm_reader *reader, const struct blkin_slow_event *event)
{
    struct process *process;

    for (uint16_t i = *chain_of(reader, event->pid); i != NO_PROCESS; i = process->next) {
        process = &reader->processes[i];
        if (is_late(process, event) && fill_one(reader, process, event->sequence))
            return true;
    }
    return false;
}

/* The last one that is not missing, of a process that is new to us. */
static uint32_t before(const struct alarm_reader *reader, const struct blkin_slow_event *event)
{
    if (!reader->has_read || reader->forgot) /* what was before us, or is forgotten */
        return event->sequence > 0 ? event->sequence - 1 : 0;
    for (uint16_t i = 0; i < reader->told_count; i++) {
        if (reader->told[i].pid == event->pid && reader->told[i].sequence < event->sequence)
            return reader->told[i].sequence;
    }
    return 0;
}

static struct process *process_of(struct alarm_reader *reader, const struct blkin_slow_event *event,
                                  uint64_t *lost)
{
    struct process *best = NULL, *process;

    for (uint16_t i = *chain_of(reader, event->pid); i != NO_PROCESS; i = process->next) {
        process = &reader->processes[i];
        if (process->pid == event->pid && process->newest < event->sequence &&
            is_better(process, best))
            best = process;
    }
    if (best != NULL)
        return best;
    best = new_process(reader, event->pid, lost);
    best->newest = before(reader, event);
    best->first = best->newest + 1;
    return best;
}

static void note(struct alarm_reader *reader, const struct blkin_slow_event *event, uint64_t *lost)
{
    struct process *process;

    if (fill(reader, event))
        return;
    process = process_of(reader, event, lost);
    if (event->sequence > process->newest)
        process->missing += event->sequence - process->newest - 1;
    process->newest = event->sequence;
    if (event->monotonic > process->monotonic_ns)
        process->monotonic_ns = event->monotonic;
}

/* What is missing for the second time is lost. */
static uint64_t end_of_snapshot(struct alarm_reader *reader, uint64_t lost)
{
    uint64_t found_after_all;

    for (uint16_t i = 0; i < reader->process_count; i++) {
        struct process *process = &reader->processes[i];

        lost += process->missing_before;
        process->lost += process->missing_before;
        process->missing_before = process->missing;
        process->missing = 0;
        process->newest_before = process->newest;
    }
    found_after_all = lost < reader->excess ? lost : reader->excess;
    reader->excess -= found_after_all;
    return lost - found_after_all;
}

/* ---- what is given */

/* Of a character of UTF-8 that is no control character; 0: none begins here. */
static size_t character(const unsigned char *text)
{
    const unsigned char lead = text[0];
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t value = length < 2 ? lead : lead & (0x7fU >> length);

    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fU);
    }
    if (value < 0x20 || (value >= 0x7f && value < 0xa0) || value > 0x10ffff ||
        (length == 3 && (value < 0x800 || (value >= 0xd800 && value < 0xe000))) ||
        (length == 4 && value < 0x10000))
        return 0;
    return length;
}

/* Valid UTF-8, cut between characters. Returns what follows the text. */
static const char *set_text(char *text, size_t room, const char *from)
{
    const unsigned char *at = (const unsigned char *)from;
    size_t length = 0;

    while (*at != '\0') {
        const size_t bytes = character(at);

        if (length + (bytes > 0 ? bytes : 1) >= room)
            break;
        if (bytes > 0)
            memcpy(text + length, at, bytes);
        else
            text[length] = '?';
        length += bytes > 0 ? bytes : 1;
        at += bytes > 0 ? bytes : 1;
    }
    text[length] = '\0';
    return (const char *)at + strlen((const char *)at) + 1;
}

static void give_one(const struct reading *reading, const struct found *found, alarm_fn *give,
                     void *context)
{
    const struct blkin_slow_event *event = &found->event;
    struct alarm alarm = {.trace_id_high = event->trace_id_high,
                          .trace_id = event->trace_id,
                          .span_id = event->span_id,
                          .duration_ns = event->duration,
                          .monotonic_ns = event->monotonic,
                          .pid = event->pid,
                          .sequence = event->sequence,
                          .dropped = event->dropped};
    const char *texts = reading->texts + found->texts;

    texts = set_text(alarm.why, sizeof(alarm.why), texts);
    texts = set_text(alarm.name, sizeof(alarm.name), texts);
    (void)set_text(alarm.service, sizeof(alarm.service), texts);
    give(context, &alarm);
}

/*
 * As they happened, those without a time (they only tell of `dropped`) last; the same one twice is
 * side by side.
 */
static int by_time(const void *left, const void *right)
{
    const struct blkin_slow_event *a = &((const struct found *)left)->event;
    const struct blkin_slow_event *b = &((const struct found *)right)->event;
    int order = compare(a->monotonic - 1, b->monotonic - 1); /* 0 becomes the greatest */

    if (order == 0)
        order = compare((uint64_t)a->pid << 32 | a->sequence, (uint64_t)b->pid << 32 | b->sequence);
    return order != 0 ? order : compare(a->span_id, b->span_id);
}

static uint64_t give_all(struct alarm_reader *reader, struct reading *reading, alarm_fn *give,
                         void *context)
{
    const struct found *found = reading->found;
    uint64_t lost = 0;

    if (reading->found_count > 0)
        qsort(reading->found, reading->found_count, sizeof(*found), by_time);
    for (size_t i = 0; i < reading->found_count; i++) {
        if (i > 0 && by_time(&found[i - 1], &found[i]) == 0)
            continue;
        note(reader, &found[i].event, &lost);
        give_one(reading, &found[i], give, context);
    }
    return end_of_snapshot(reader, lost);
}

static void remember(struct alarm_reader *reader, struct reading *reading)
{
    if (reading->seen_count > 0)
        qsort(reading->seen, reading->seen_count, sizeof(*reading->seen), by_value);
    free(reader->known);
    reader->known = reading->seen;
    reader->known_count = reading->seen_count;
    reader->has_read = true;
    reading->seen = NULL;
}

uint64_t alarm_reader_newer(const struct alarm_reader *reader)
{
    return reader->newer;
}

bool alarm_read(struct alarm_reader *reader, const char *folder, alarm_fn *give, void *context,
                uint64_t *lost, struct error *error)
{
    struct reading *reading = malloc(sizeof(*reading));
    bool is_read;

    *lost = 0;
    if (reading == NULL) {
        error_set(error, "out of memory for the alarms of %s", folder);
        return false;
    }
    memset(reading, 0, offsetof(struct reading, window));
    reading->reader = reader;
    is_read = streams_each(folder, scan_stream, reading, error);
    if (is_read) {
        *lost = give_all(reader, reading, give, context);
        reader->newer = reading->newer;
        remember(reader, reading);
    }
    free(reading->seen);
    free(reading->found);
    free(reading->texts);
    free(reading);
    return is_read;
}
