/* Reads the filters in a unit's file and drop-ins, see systemd.unit(5).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "run.h"

#include "libblkin/base/text.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT_BLANKS " \t"

/* The system calls of libblkin in a traced program, except those of systemd's group @default, which
 * every filter allows. */
static const struct {
    const char *name, *group;
} unit_calls[] = {
    {"close", "@basic-io"},         {"read", "@basic-io"},          {"fcntl", "@file-system"},
    {"fstat", "@file-system"},      {"newfstatat", "@file-system"}, {"openat", "@file-system"},
    {"readlink", "@file-system"},   {"ppoll", "@io-event"},         {"connect", "@network-io"},
    {"getpeername", "@network-io"}, {"getsockname", "@network-io"}, {"getsockopt", "@network-io"},
    {"recvfrom", "@network-io"},    {"recvmsg", "@network-io"},     {"sendto", "@network-io"},
    {"socket", "@network-io"},      {"rt_sigaction", "@signal"},    {"rt_sigpending", "@signal"},
    {"rt_sigprocmask", "@signal"},  {"sigaltstack", "@signal"},     {"munlock", "@memlock"},
    {"madvise", "@system-service"}, {"mremap", "@system-service"},
};
#define UNIT_CALLS (sizeof(unit_calls) / sizeof(unit_calls[0]))

struct unit {
    bool has_filter, forbids[UNIT_CALLS];
    bool has_families, has_unix, has_netlink;
    bool has_no_exec, may_exec;
    bool has_root, has_environment;
    const char *library;
};

/* ---- lines ---- */

static bool unit_names_call(const char *word, size_t call)
{
    return strcmp(word, unit_calls[call].name) == 0 || strcmp(word, unit_calls[call].group) == 0 ||
           strcmp(word, "@system-service") == 0 || strcmp(word, "@known") == 0;
}

/* Reads a line SystemCallFilter=. The first line decides whether unnamed calls are allowed. */
static void unit_read_calls(struct unit *unit, char *value)
{
    const bool is_denied = *value == '~';
    char *word;

    if (!*value) {
        unit->has_filter = false;
        memset(unit->forbids, false, sizeof(unit->forbids));
        return;
    }
    if (!unit->has_filter)
        memset(unit->forbids, !is_denied, sizeof(unit->forbids));
    unit->has_filter = true;
    value += is_denied;
    while ((word = strsep(&value, UNIT_BLANKS))) {
        word[strcspn(word, ":")] = '\0';
        for (size_t i = 0; i < UNIT_CALLS; i++) {
            if (unit_names_call(word, i))
                unit->forbids[i] = is_denied;
        }
    }
}

static void unit_read_families(struct unit *unit, char *value)
{
    const bool is_denied = *value == '~';
    char *word;

    if (!unit->has_families)
        unit->has_unix = unit->has_netlink = is_denied;
    unit->has_families = *value != '\0';
    value += is_denied;
    while ((word = strsep(&value, UNIT_BLANKS))) {
        if (strcmp(word, "AF_UNIX") == 0)
            unit->has_unix = !is_denied;
        else if (strcmp(word, "AF_NETLINK") == 0)
            unit->has_netlink = !is_denied;
    }
}

static bool unit_has_library(const struct unit *unit, char *value)
{
    const char *word;
    bool has = false;

    while ((word = strsep(&value, UNIT_BLANKS))) {
        word += strspn(word, "-+");
        has |= *word && strncmp(unit->library, word, strlen(word)) == 0;
    }
    return has;
}

static void unit_read_line(struct unit *unit, char *line)
{
    char *value = strchr(line, '=');
    const char *key;

    if (!value || strchr("#;", *line))
        return;
    *value++ = '\0';
    value = blkin_trimmed(value);
    key = blkin_trimmed(line);
    if (strcmp(key, "SystemCallFilter") == 0)
        unit_read_calls(unit, value);
    else if (strcmp(key, "RestrictAddressFamilies") == 0)
        unit_read_families(unit, value);
    else if (strcmp(key, "NoExecPaths") == 0)
        unit->has_no_exec |= unit_has_library(unit, value);
    else if (strcmp(key, "ExecPaths") == 0)
        unit->may_exec |= unit_has_library(unit, value);
    else if (strcmp(key, "RootDirectory") == 0 || strcmp(key, "RootImage") == 0)
        unit->has_root = *value != '\0';
    else if (strcmp(key, "UnsetEnvironment") == 0)
        unit->has_environment |= strstr(value, "LD_PRELOAD") != NULL;
}

static bool unit_read(struct unit *unit, const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;

    if (!file)
        return false;
    if (getdelim(&text, &size, '\0', file) > 0) {
        char *rest = text, *line;

        for (char *at = text; (at = strstr(at, "\\\n"));) /* joins continued lines */
            at[0] = at[1] = ' ';
        while ((line = strsep(&rest, "\n")))
            unit_read_line(unit, line);
    }
    free(text);
    (void)fclose(file);
    return true;
}

/* ---- files ---- */

static bool unit_read_all(struct unit *unit, const char *name)
{
    static const char *const folders[] = {"/etc/systemd/system", "/run/systemd/system",
                                          "/usr/lib/systemd/system", "/lib/systemd/system"};
    const char *end = strchr(name, '.') ? "" : ".service";
    char path[PATH_MAX];
    bool is_found = false;

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !is_found; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s%s", folders[i], name, end);
        is_found = unit_read(unit, path);
    }
    for (size_t i = 0; i < 3; i++) { /* not /lib, which is a link to /usr/lib */
        glob_t found;

        (void)snprintf(path, sizeof(path), "%s/%s%s.d/*.conf", folders[i], name, end);
        if (glob(path, 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            (void)unit_read(unit, found.gl_pathv[k]);
        globfree(&found);
    }
    return is_found;
}

/* ---- output ---- */

static void unit_print_calls(const struct unit *unit)
{
    bool forbids = false;

    if (!unit->has_filter)
        return;
    for (size_t i = 0; i < UNIT_CALLS; i++)
        forbids |= unit->forbids[i];
    if (!forbids) {
        puts("# SystemCallFilter= allows the system calls of libblkin-preload.so");
        return;
    }
    puts("# SystemCallFilter= would end the program: libblkin-preload.so makes system calls that "
         "it\n# does not allow. To allow them, remove the # of the next line");
    fputs("#SystemCallFilter=", stdout);
    for (size_t i = 0; i < UNIT_CALLS; i++) {
        if (unit->forbids[i])
            printf("%s ", unit_calls[i].name);
    }
    putchar('\n');
}

bool unit_print(const char *name, const char *library, struct error *error)
{
    struct unit unit = {.library = library};

    if (!(strchr(name, '/') ? unit_read(&unit, name) : unit_read_all(&unit, name)))
        return error_set(error,
                         "%s: no such unit: expected a name, as in --print redis-server, or the "
                         "path of its file",
                         name);
    printf("[Service]\n# for %s\n", name);
    unit_print_calls(&unit);
    if (unit.has_families && !unit.has_unix)
        puts("# RestrictAddressFamilies= has no AF_UNIX, by which the program would get the "
             "agent's\n# rings. To allow it, remove the # of the next line\n"
             "#RestrictAddressFamilies=AF_UNIX");
    if (unit.has_families && !unit.has_netlink)
        puts("# RestrictAddressFamilies= has no AF_NETLINK: requests over UNIX sockets do not "
             "join.\n# To allow it, remove the # of the next line\n"
             "#RestrictAddressFamilies=AF_NETLINK");
    if (unit.has_no_exec && !unit.may_exec)
        printf("# NoExecPaths= has libblkin-preload.so. To allow it, remove the # of the next "
               "line\n#ExecPaths=%s\n",
               library);
    if (unit.has_root)
        puts("# RootDirectory= or RootImage=: libblkin-preload.so and /run/blkin/rings must be in "
             "there, too");
    if (unit.has_environment)
        puts("# UnsetEnvironment= takes LD_PRELOAD away: put `blkin run` into ExecStart= instead");
    return true;
}
