/* Tells whether a program can be traced, by its file, and whether the filters of a unit of systemd
 * allow tracing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "run.h"

#include "libblkin/base/text.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define INTERPRETERS_MAX  5           /* the kernel's limit */
#define LINE_MAX_BYTES    256         /* of a script's first line, and of a loader's path */
#define HEADERS_MAX       256         /* program headers */
#define PROGRAM_NAMES_MAX (64 * 1024) /* bytes of the names of sections */
#define BLANKS            " \t"

/* ---- the path of a program ---- */

static bool is_executable(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return false;
    if (S_ISREG(status.st_mode) && access(path, X_OK) == 0)
        return true;
    errno = EACCES;
    return false;
}

bool program_find(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    int cause = ENOENT;

    if (strchr(name, '/')) {
        (void)snprintf(path, PATH_MAX, "%s", name);
        return is_executable(path);
    }
    if (!folders)
        folders = "/bin:/usr/bin";
    while (*name) {
        const int length = (int)strcspn(folders, ":");

        (void)snprintf(path, PATH_MAX, "%.*s%s%s", length, folders, length ? "/" : "./", name);
        if (is_executable(path))
            return true;
        if (errno == EACCES)
            cause = EACCES;
        folders += length;
        if (!*folders++)
            break;
    }
    errno = cause;
    return false;
}

/* ---- ELF ---- */

struct elf {
    int fd;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[HEADERS_MAX];
    unsigned segment_count;
};

static bool read_at(int fd, void *buffer, size_t length, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, buffer, length, (off_t)offset) == (ssize_t)length;
}

/* Reads the ELF header and, if the file has the class of this program, the program headers. Returns
 * false if the file is not ELF. */
static bool read_elf(int fd, struct elf *elf)
{
    memset(elf, 0, sizeof(*elf));
    elf->fd = fd;
    if (!read_at(fd, &elf->header, sizeof(elf->header), 0) ||
        memcmp(elf->header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (elf->header.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
        elf->header.e_phentsize == sizeof(elf->segments[0]) && elf->header.e_phnum <= HEADERS_MAX &&
        read_at(fd, elf->segments, elf->header.e_phnum * sizeof(elf->segments[0]),
                elf->header.e_phoff))
        elf->segment_count = elf->header.e_phnum;
    return true;
}

static const ElfW(Phdr) * find_segment(const struct elf *elf, uint32_t type)
{
    for (unsigned i = 0; i < elf->segment_count; i++) {
        if (elf->segments[i].p_type == type)
            return &elf->segments[i];
    }
    return NULL;
}

/* Returns whether the file has a section of this name. strip(1) does not remove loaded sections. */
static bool has_section(const struct elf *elf, const char *name)
{
    const ElfW(Ehdr) *header = &elf->header;
    ElfW(Shdr) names, section;
    char *texts;
    bool has = false;

    if (header->e_shentsize != sizeof(section) || header->e_shstrndx >= header->e_shnum ||
        !read_at(elf->fd, &names, sizeof(names),
                 header->e_shoff + header->e_shstrndx * sizeof(section)) ||
        names.sh_size > PROGRAM_NAMES_MAX)
        return false;
    texts = calloc(1, names.sh_size + 1);
    if (texts && read_at(elf->fd, texts, names.sh_size, names.sh_offset)) {
        for (unsigned i = 0; i < header->e_shnum && !has; i++)
            has = read_at(elf->fd, &section, sizeof(section),
                          header->e_shoff + i * sizeof(section)) &&
                  section.sh_name < names.sh_size && strcmp(texts + section.sh_name, name) == 0;
    }
    free(texts);
    return has;
}

/* Reads the path of the dynamic loader; "": a static program. */
static void read_loader(const struct elf *elf, char loader[LINE_MAX_BYTES])
{
    const ElfW(Phdr) *segment = find_segment(elf, PT_INTERP);

    memset(loader, 0, LINE_MAX_BYTES);
    if (segment && segment->p_filesz < LINE_MAX_BYTES &&
        !read_at(elf->fd, loader, segment->p_filesz, segment->p_offset))
        loader[0] = '\0';
}

/* Returns whether the library is for the same processor and class, or cannot be read. */
static bool has_same_machine(const struct elf *elf, const char *library)
{
    const int fd = open(library, O_RDONLY | O_CLOEXEC);
    struct elf other;
    const bool is_read = fd >= 0 && read_elf(fd, &other);

    if (fd >= 0)
        (void)close(fd);
    return !is_read || (elf->header.e_machine == other.header.e_machine &&
                        elf->header.e_ident[EI_CLASS] == other.header.e_ident[EI_CLASS] &&
                        elf->header.e_ident[EI_DATA] == other.header.e_ident[EI_DATA]);
}

static bool check_elf(const struct elf *elf, const char *path, const char *library,
                      struct error *error)
{
    char loader[LINE_MAX_BYTES];

    read_loader(elf, loader);
    if (!has_same_machine(elf, library))
        error_set(error,
                  "%s is for another processor than %s (32 bits?): use the package blkin of its "
                  "architecture",
                  path, library);
    else if (has_section(elf, ".go.buildinfo") || has_section(elf, ".note.go.buildid"))
        error_set(
            error,
            "%s is a Go program, which calls the kernel without libc: use OpenTelemetry's SDK "
            "for Go in it",
            path);
    else if (!loader[0])
        error_set(error,
                  "%s is linked statically, so that nothing can be preloaded: link it with a "
                  "shared libc, or use a dynamic build",
                  path);
    else if (strstr(loader, "ld-musl"))
        error_set(error, "%s runs with musl, and %s needs glibc: use a build for glibc", path,
                  library);
    else
        return true;
    return false;
}

/* ---- privileges ---- */

/* Returns false with error set if the program gains privileges: then ld.so ignores LD_PRELOAD. */
static bool check_privileges(int fd, const char *path, struct error *error)
{
    struct stat status;
    const char *what = NULL;

    if (fstat(fd, &status) < 0)
        return true;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        what = "set-user-ID";
    else if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
             status.st_gid != getgid())
        what = "set-group-ID";
    else if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        what = "a program with file capabilities (getcap)";
    if (!what)
        return true;
    return error_set(
        error,
        "%s is %s, for which ld.so ignores LD_PRELOAD: run a copy without that, as the user "
        "whose rights it needs",
        path, what);
}

/* ---- scripts ---- */

/* Finds the program in the arguments of env(1), after flags and variables. */
static bool find_env_program(char *words, char path[PATH_MAX])
{
    char *word;

    while ((word = strsep(&words, BLANKS))) {
        if (*word && *word != '-' && !strchr(word, '='))
            return program_find(word, path);
    }
    return false;
}

static bool is_env(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, "env") == 0;
}

/* Finds the interpreter of a script. line: the first line of the script. */
static bool find_interpreter(char *line, char path[PATH_MAX])
{
    char *words = line + strlen("#!");
    const char *first;

    line[strcspn(line, "\n")] = '\0';
    words += strspn(words, BLANKS);
    first = strsep(&words, BLANKS);
    if (!first || !*first)
        return false;
    if (is_env(first) && words && find_env_program(words, path))
        return true;
    (void)snprintf(path, PATH_MAX, "%s", first);
    return is_executable(path);
}

/* ---- the check ---- */

enum found { FOUND_SCRIPT, FOUND_GOOD, FOUND_BAD };

/* Checks a file. For a script, replaces path with the path of the interpreter. */
static enum found check_file(int fd, char path[PATH_MAX], const char *library, struct error *error)
{
    char line[LINE_MAX_BYTES] = "";
    struct elf elf;

    if (pread(fd, line, sizeof(line) - 1, 0) > 2 && strncmp(line, "#!", 2) == 0)
        return find_interpreter(line, path) ? FOUND_SCRIPT : FOUND_GOOD;
    if (read_elf(fd, &elf) && !check_elf(&elf, path, library, error))
        return FOUND_BAD;
    return check_privileges(fd, path, error) ? FOUND_GOOD : FOUND_BAD;
}

bool program_can_preload(const char *path, const char *library, struct error *error)
{
    char at[PATH_MAX];
    enum found found = FOUND_SCRIPT;

    (void)snprintf(at, sizeof(at), "%s", path);
    for (int i = 0; i < INTERPRETERS_MAX && found == FOUND_SCRIPT; i++) {
        const int fd = open(at, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            return true;
        found = check_file(fd, at, library, error);
        (void)close(fd);
    }
    return found != FOUND_BAD;
}

/* ---- the filters of a unit of systemd, from its file and drop-ins: systemd.unit(5) ----------- */

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
    bool has_filter, forbids[UNIT_CALLS];     /* SystemCallFilter= */
    bool has_families, has_unix, has_netlink; /* RestrictAddressFamilies= */
    bool has_no_exec, may_exec;               /* NoExecPaths= or ExecPaths= has the library */
    bool has_root;                            /* RootDirectory= or RootImage= */
    bool unsets_preload;                      /* UnsetEnvironment= has LD_PRELOAD */
    const char *library;
};

/* ---- lines ---- */

static bool unit_names_call(const char *word, size_t call)
{
    return strcmp(word, unit_calls[call].name) == 0 || strcmp(word, unit_calls[call].group) == 0 ||
           strcmp(word, "@system-service") == 0 || strcmp(word, "@known") == 0;
}

/* Reads the value of SystemCallFilter=. The first such line decides whether unnamed calls are
 * allowed. */
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
    while ((word = strsep(&value, BLANKS))) {
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
    while ((word = strsep(&value, BLANKS))) {
        if (strcmp(word, "AF_UNIX") == 0)
            unit->has_unix = !is_denied;
        else if (strcmp(word, "AF_NETLINK") == 0)
            unit->has_netlink = !is_denied;
    }
}

/* Returns whether a path of the value is the library, or a folder above it. */
static bool unit_has_library(const struct unit *unit, char *value)
{
    const char *word;
    size_t length;
    bool has = false;

    while ((word = strsep(&value, BLANKS))) {
        word += strspn(word, "-+");
        length = strlen(word);
        has |= length && strncmp(unit->library, word, length) == 0 &&
               (word[length - 1] == '/' || strchr("/", unit->library[length]));
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
        unit->unsets_preload |= strstr(value, "LD_PRELOAD") != NULL;
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

/* Prints a comment on SystemCallFilter=. */
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
    puts("# SystemCallFilter= would end the program: libblkin-preload.so makes system calls that\n"
         "# the filter does not allow. To allow them, remove the # of the next line");
    fputs("#SystemCallFilter=", stdout);
    for (size_t i = 0; i < UNIT_CALLS; i++) {
        if (unit->forbids[i])
            printf("%s ", unit_calls[i].name);
    }
    putchar('\n');
}

bool unit_print_drop_in(const char *name, const char *library, struct error *error)
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
    if (unit.unsets_preload)
        puts("# UnsetEnvironment= takes LD_PRELOAD away: put `blkin run` into ExecStart= instead");
    return true;
}
