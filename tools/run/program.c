/* Reads the headers of a program's file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define INTERPRETERS_MAX  5 /* the kernel's limit */
#define LINE_MAX_BYTES    256
#define HEADERS_MAX       256
#define PROGRAM_NAMES_MAX (64 * 1024)
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

bool program_takes(const char *path, const char *library, struct error *error)
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
