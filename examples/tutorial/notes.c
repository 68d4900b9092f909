/*
 * notes: a small server that keeps notes in a journal. The program of doc/tutorial.md.
 *
 *     notes serve SOCKET JOURNAL     keeps notes; a request is a line "NAME TEXT"
 *     notes load SOCKET COUNT        writes COUNT notes, and says how long that took
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NOTES_MAX     1000
#define COMPACT_AFTER 40 /* writes */
#define NAME_BYTES    32
#define TEXT_BYTES    200
#define REQUEST_BYTES 400

struct note {
    char name[NAME_BYTES], text[TEXT_BYTES];
};

static struct note notes[NOTES_MAX];
static size_t note_count;

static int fail(const char *what)
{
    fprintf(stderr, "notes: %s: %s\n", what, strerror(errno));
    return 1;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int write_note(FILE *file, const struct note *note)
{
    return fprintf(file, "%s %s\n", note->name, note->text) < 0 || fflush(file) != 0 ? -1 : 0;
}

static int sync_file(FILE *file)
{
    return fsync(fileno(file));
}

/* Puts the note into memory, in the place of one of the same name. */
static int remember(const struct note *note)
{
    size_t i = 0;

    while (i < note_count && strcmp(notes[i].name, note->name) != 0)
        i++;
    if (i == NOTES_MAX)
        return -1;
    notes[i] = *note;
    note_count += i == note_count;
    return 0;
}

/* Writes the journal again, with each note once. */
static int compact(FILE *journal)
{
    const struct timespec pause = {0, 1000000};

    if (ftruncate(fileno(journal), 0) != 0)
        return -1;
    for (size_t i = 0; i < note_count; i++) {
        if (write_note(journal, &notes[i]) != 0)
            return -1;
        nanosleep(&pause, NULL); /* leaves the disk to others */
    }
    return sync_file(journal);
}

static int serve_request(char *request, FILE *journal)
{
    static unsigned writes;
    struct note note;
    int status;

    if (sscanf(request, "%31s %199[^\n]", note.name, note.text) != 2)
        return -1;
    status = write_note(journal, &note) != 0 || sync_file(journal) != 0 ? -1 : 0;
    if (status == 0)
        status = remember(&note);
    if (status == 0 && ++writes % COMPACT_AFTER == 0)
        status = compact(journal);
    return status;
}

static int serve(int listener, FILE *journal)
{
    char request[REQUEST_BYTES];
    int client;

    while ((client = accept(listener, NULL, NULL)) >= 0) {
        FILE *requests = fdopen(client, "r");

        while (fgets(request, sizeof(request), requests))
            dprintf(client, "%s\n", serve_request(request, journal) == 0 ? "ok" : "failed");
        fclose(requests);
    }
    return fail("accept");
}

static int load(int server, int count)
{
    FILE *answers = fdopen(server, "r");
    double slowest = 0, sum = 0;
    char answer[REQUEST_BYTES];

    for (int i = 0; i < count; i++) {
        const double start = now_ms();

        dprintf(server, "note-%d this is number %d\n", i % 60, i);
        if (!fgets(answer, sizeof(answer), answers))
            return fail("the server");
        sum += now_ms() - start;
        if (now_ms() - start > slowest)
            slowest = now_ms() - start;
    }
    printf("%d requests: %.3f ms on average, the slowest took %.3f ms\n", count, sum / count,
           slowest);
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    FILE *journal;

    if (argc != 4)
        return fprintf(stderr, "usage: notes serve SOCKET JOURNAL | load SOCKET COUNT\n"), 2;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[2]);
    if (strcmp(argv[1], "load") == 0)
        return connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0
                   ? fail(argv[2])
                   : load(fd, atoi(argv[3]));
    signal(SIGPIPE, SIG_IGN);
    unlink(argv[2]);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 8) != 0)
        return fail(argv[2]);
    journal = fopen(argv[3], "a");
    return journal ? serve(fd, journal) : fail(argv[3]);
}
