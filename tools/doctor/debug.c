/*
 * Where a program's lines of BLKIN_DEBUG go: libblkin/debug.c writes them to descriptor 2, but to
 * syslog where that is a connection to a client.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is a socket with that inode in the file, in its column of so many? */
static bool lists_socket(const char *path, unsigned column, const char *inode)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool has = false;

    while (file && !has && getline(&line, &size, file) > 0) {
        char *rest = line, *word = NULL;

        for (unsigned i = 0; i < column && (word = strsep(&rest, " \n")) != NULL;)
            i += *word != '\0';
        has = word && strcmp(word, inode) == 0;
    }
    free(line);
    if (file)
        (void)fclose(file);
    return has;
}

/* In its network namespace, or in ours: a service with PrivateNetwork= has journald's. */
static bool is_in_net(pid_t pid, const char *name, unsigned column, const char *inode)
{
    char theirs[64], ours[64];

    (void)snprintf(theirs, sizeof(theirs), "/proc/%d/net/%s", (int)pid, name);
    (void)snprintf(ours, sizeof(ours), "/proc/self/net/%s", name);
    return lists_socket(theirs, column, inode) || lists_socket(ours, column, inode);
}

static bool is_of_ip(pid_t pid, const char *inode)
{
    static const char *const names[] = {"tcp", "tcp6", "udp", "udp6"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_in_net(pid, names[i], 10, inode))
            return true;
    }
    return false;
}

struct place {
    bool is_lost;
    char text[PROCESS_PATH_MAX];
};

static void set(struct place *place, bool is_lost, const char *before, const char *name)
{
    *place = (struct place){.is_lost = is_lost};
    (void)snprintf(place->text, sizeof(place->text), "%s%.400s", before, name);
}

/* "socket:[1234]" */
static void look_at_socket(pid_t pid, const char *target, struct place *place)
{
    char inode[32];

    (void)snprintf(inode, sizeof(inode), "%.*s", (int)strcspn(target + 8, "]"), target + 8);
    if (is_in_net(pid, "unix", 7, inode))
        set(place, false, "the unix socket that is its standard error, for a service the journal",
            "");
    else if (is_of_ip(pid, inode))
        set(place, false,
            "syslog (facility daemon), as its standard error is a connection to a client", "");
    else
        set(place, false, "a socket of another network namespace, or syslog if that is one of IP",
            "");
}

static void look_at_target(pid_t pid, const char *target, struct place *place)
{
    static const char deleted[] = " (deleted)";
    const size_t length = strlen(target), end = sizeof(deleted) - 1;

    if (strncmp(target, "socket:[", 8) == 0)
        look_at_socket(pid, target, place);
    else if (strncmp(target, "pipe:[", 6) == 0)
        set(place, false, "the pipe that is its standard error: its reader gets the lines", "");
    else if (strcmp(target, "/dev/null") == 0)
        set(place, true, "nowhere, as its standard error is /dev/null", "");
    else if (strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0 ||
             strcmp(target, "/dev/console") == 0)
        set(place, false, "the terminal ", target);
    else if (length > end && strcmp(target + length - end, deleted) == 0)
        set(place, true, "a file that is deleted: ", target);
    else
        set(place, false, "the file ", target);
}

/* Returns false with errno set if that cannot be seen. */
static bool look_at_error(pid_t pid, struct place *place)
{
    char path[64], target[PROCESS_PATH_MAX];
    ssize_t length;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/2", (int)pid);
    length = readlink(path, target, sizeof(target) - 1);
    if (length < 0 && errno != ENOENT)
        return false;
    target[length > 0 ? length : 0] = '\0';
    if (length < 0)
        set(place, true, "nowhere, as its standard error is closed", "");
    else
        look_at_target(pid, target, place);
    return true;
}

void check_debug(const struct doctor *doctor, const struct process *process)
{
    char value[16];
    const bool is_set = process_variable(process->pid, "BLKIN_DEBUG", value, sizeof(value));
    struct place place;

    if (!look_at_error(process->pid, &place)) {
        saw(doctor, LEVEL_NOTE, "program.debug",
            "where process %d (%s) writes lines of BLKIN_DEBUG cannot be seen: %s",
            (int)process->pid, process->name, strerror(errno));
        mend(doctor, "sudo blkin doctor --pid=%d", (int)process->pid);
        return;
    }
    saw(doctor, place.is_lost ? LEVEL_NOTE : LEVEL_OK, "program.debug",
        is_set ? "what process %d (%s) says for BLKIN_DEBUG goes to %s"
               : "process %d (%s) is started without BLKIN_DEBUG; what it would say goes to %s",
        (int)process->pid, process->name, place.text);
    if (place.is_lost)
        mend(doctor, "start it with its standard error in a file: 2>>FILE, or StandardError= of "
                     "its unit");
    else if (!is_set)
        mend(doctor, "start it with BLKIN_DEBUG=1 in its environment to see why something of it "
                     "is not traced");
}
